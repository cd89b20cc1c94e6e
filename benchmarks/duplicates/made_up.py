"""Pairs of made-up sentences (`made_up_sentences.py`) are stored, N pairs of each sort
in one store of one being:

- *near-identical*: the same words with one fact changed, a digit, a name, a date or a negation. No second sentence may
  reinforce the first.
- *paraphrased*: the same facts in other words. Each second sentence should reinforce the first, or be linked to it.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.made_up_sentences import CHANGES, sentences
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import BeingId, Scene, Scope

ADA = Scope(BeingId("ada"))
BATCH_SIZE = 50


@dataclass
class Outcome:
    """Counts over the second sentences. `right`: reinforced, or was linked to, the first sentence of its own pair."""

    pairs: int = 0
    reinforced: int = 0
    linked: int = 0
    right: int = 0
    merged: Counter[str] = field(default_factory=Counter)
    """Near-identical sentences that reinforced another, by what was changed."""
    missed: list[tuple[str, str]] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "reinforced": self.reinforced,
            "linked": self.linked,
            "recognised, %": round(100 * (self.reinforced + self.linked) / self.pairs, 1),
            "to the right one, %": round(100 * self.right / self.pairs, 1),
        }


async def store_all(store: StoreScenes, texts: Sequence[str]) -> list[StoredSceneResult]:
    answers: list[StoredSceneResult] = []
    for start in range(0, len(texts), BATCH_SIZE):
        batch = texts[start : start + BATCH_SIZE]
        answers += await store(ADA, [NewScene(scene=Scene(action=text)) for text in batch])
    return answers


async def run(store: StoreScenes, pairs: int, *, seed: int = 20) -> tuple[Outcome, Outcome, float]:
    """(near-identical, paraphrased, percentage of first sentences that were linked to one about something else)."""
    rng = random.Random(seed)
    sources = list(itertools.islice(sentences(seed), 2 * pairs))
    changes = [CHANGES[at % len(CHANGES)] for at in range(pairs)]
    first = [source.text() for source in sources]
    second: list[str] = []
    for at, source in enumerate(sources):
        text = first[at]
        # No sentence may equal another one by accident.
        while text in {*first, *second}:
            text = source.with_changed(changes[at], rng).text() if at < pairs else source.paraphrased(rng)
        second.append(text)
    before = await store_all(store, first)
    assert all(stored.status == "stored" for stored in before), "a first sentence was taken for a repetition"
    after = await store_all(store, second)
    near, paraphrased = Outcome(pairs=pairs), Outcome(pairs=pairs)
    for at, (was, now) in enumerate(zip(before, after, strict=True)):
        outcome = near if at < pairs else paraphrased
        outcome.reinforced += now.status == "reinforced"
        outcome.linked += now.resembled_memory_id is not None
        outcome.right += was.memory.id in (now.memory.id, now.resembled_memory_id)
        if at < pairs and now.status == "reinforced":
            near.merged[changes[at]] += 1
            near.missed.append((first[at], second[at]))
        if at >= pairs and now.status == "stored" and now.resembled_memory_id is None:
            paraphrased.missed.append((first[at], second[at]))
    topics = {stored.memory.id: source.topic[0] for stored, source in zip(before, sources, strict=True)}
    strays = sum(
        stored.resembled_memory_id is not None and topics[stored.resembled_memory_id] != topics[stored.memory.id]
        for stored in before
    )
    return near, paraphrased, 100 * strays / len(before)
