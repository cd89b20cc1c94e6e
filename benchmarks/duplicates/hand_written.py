"""Pairs of sentences in twelve languages, written by hand by somebody who had not seen the rule: `sentences/`.

Each language has a being of its own. Its first sentences are stored, then told again in another way (`VARIANTS`), then
the second sentences of the pairs come. Lines with odd numbers were held out while the rule was made.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import BeingId, Scene, Scope

SENTENCES = Path(__file__).parent / "sentences"
SAME_FACT = ("inflection", "grammatical_form", "free_form", "paraphrase")
"""Kinds whose second sentence tells the first one's fact; those of all others tell another one. `inflection` has light
rewordings as well; `grammatical_form` and `free_form` have the same words, in another form or spelling that the fact
leaves to the writer, the latter as many sorts as somebody found who had not seen the rule."""
FIRST_TELLING = "first telling"
"""Kind of the first sentences, which have little to do with each other: none should be linked."""
VARIANTS: Mapping[str, Callable[[NewScene], NewScene]] = {
    "upper case": lambda new: replace(new, scene=replace(new.scene, action=new.scene.action.upper())),
    "lower case": lambda new: replace(new, scene=replace(new.scene, action=new.scene.action.lower())),
    "punctuation": lambda new: replace(new, scene=replace(new.scene, action=_otherwise_punctuated(new.scene.action))),
    "day of telling": lambda new: replace(new, scene=replace(new.scene, when=("2031-07-09",))),
    "lesson": lambda new: replace(new, lesson="Write it down."),
    "feeling": lambda new: replace(new, feeling="I was glad to hear it.", emotions=("joy",)),
}
VARIANTS_OF_EACH = 2
"""Of a sentence, in turn."""


@dataclass(frozen=True)
class Pair:
    language: str
    line: int
    kind: str
    first: str
    second: str

    @property
    def half(self) -> str:
        return "odd lines" if self.line % 2 else "even lines"


def _otherwise_punctuated(text: str) -> str:
    return "“" + re.sub(r"[.。؟]$", "", re.sub(r"(?<!\d)[,،、，]", " ", text)) + "”!"


def read_pairs(language: str) -> list[Pair]:
    lines = (SENTENCES / f"{language}.jsonl").read_text("utf-8").splitlines()
    return [Pair(language, number, **json.loads(line)) for number, line in enumerate(lines, start=1)]


def languages() -> list[str]:
    return sorted(path.stem for path in SENTENCES.glob("*.jsonl"))


async def run(store: StoreScenes, language: str, *, limit: int | None = None) -> Counter[tuple[str, str, str, str]]:
    """Counts by (language, kind, half, outcome); outcomes: told, reinforced, linked, right. `right`: reinforced the
    first sentence of its pair, or was linked to it."""
    scope = Scope(BeingId(language))
    pairs = read_pairs(language)[:limit]
    firsts = await _store_all(store, scope, [_scene(pair.first) for pair in pairs], distinct=True)
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for pair, first in zip(pairs, firsts, strict=True):
        counts[language, FIRST_TELLING, pair.half, "told"] += 1
        counts[language, FIRST_TELLING, pair.half, "linked"] += first.resembled_memory_id is not None

    def count(pair: Pair, kind: str, stored: StoredSceneResult, first: StoredSceneResult) -> None:
        told = {
            "told": True,
            "reinforced": stored.status == "reinforced",
            "linked": stored.resembled_memory_id is not None,
            "right": first.memory.id in (stored.memory.id, stored.resembled_memory_id),
        }
        counts.update((language, kind, pair.half, outcome) for outcome, happened in told.items() if happened)

    names = list(VARIANTS)
    variants = [(at, names[(at + turn) % len(names)]) for at in range(len(pairs)) for turn in range(VARIANTS_OF_EACH)]
    told = [VARIANTS[name](_scene(pairs[at].first)) for at, name in variants]
    for (at, name), stored in zip(variants, await _store_all(store, scope, told), strict=True):
        count(pairs[at], name, stored, firsts[at])
    seconds = await _store_all(store, scope, [_scene(pair.second) for pair in pairs])
    for pair, first, stored in zip(pairs, firsts, seconds, strict=True):
        count(pair, pair.kind, stored, first)
    return counts


def _scene(text: str) -> NewScene:
    return NewScene(scene=Scene(action=text))


async def _store_all(
    store: StoreScenes, scope: Scope, scenes: list[NewScene], *, distinct: bool = False
) -> list[StoredSceneResult]:
    return [
        stored
        for start in range(0, len(scenes), 50)
        for stored in await store(scope, [replace(new, distinct=distinct) for new in scenes[start : start + 50]])
    ]


def group_of(kind: str) -> str:
    if kind in SAME_FACT or kind == FIRST_TELLING:
        return kind
    return "told again" if kind in VARIANTS else "changed"


def sums(counts: Counter[tuple[str, str, str, str]], key: Callable[[str, str, str], Any]) -> dict[Any, Counter[str]]:
    """Outcomes by whatever `key` makes of language, kind and half."""
    result: dict[Any, Counter[str]] = defaultdict(Counter)
    for (language, kind, half, outcome), number in counts.items():
        result[key(language, kind, half)][outcome] += number
    return dict(result)


def rows(counts: Counter[tuple[str, str, str, str]]) -> Iterator[tuple[str, Counter[str]]]:
    """By kind and half, by group and language, and by group in all."""
    yield from sorted(sums(counts, lambda _, kind, half: f"{group_of(kind)}: {kind}, {half}").items())
    yield from sorted(sums(counts, lambda language, kind, _: f"{group_of(kind)}, {language}").items())
    yield from sorted(sums(counts, lambda _, kind, half: f"{group_of(kind)}, {half}").items())
    yield from sorted(sums(counts, lambda _, kind, __: group_of(kind)).items())
