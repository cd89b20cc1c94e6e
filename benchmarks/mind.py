"""A mind made of rules, in place of a language model: it answers what a patrol hands out. Deterministic.

It merges what says the same in nearly the same words into the newest of them, lets go of every dying memory that has
no such partner, and writes a diary of the day's beginnings. It never splits a cluster nor summarises a session. A
language model sees more: that an update and what it updates belong together, and that a dying fact is still worth
something. So the benchmark's forgetting is as strict as the rules of ❹ allow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from madeleine.memory.rules.storing.likeness import facts
from madeleine.memory.text.terms import STOP_WORDS
from madeleine.patrol.deciding.decision import Decision
from madeleine.patrol.deciding.offer import Offer, Shown, cut

NEARLY = 0.8
"""Share of the words that two texts have in common, from which they are worded alike."""
DECIDES = ("consolidate", "diary")
_WORD = re.compile(r"\w+")


def decisions(offers: Sequence[Offer]) -> list[Decision]:
    """For those of them that it decides."""
    return [decided(offer) for offer in offers if offer.kind in DECIDES]


def decided(offer: Offer) -> Decision:
    if offer.kind == "diary":
        return _diary(offer)
    groups = same_told([memory for memory in offer.memories if not memory.pinned])
    merged = {memory.id for group in groups for memory in group}
    return Decision(
        offer=offer.id,
        merges=[[memory.id for memory in reversed(group)] for group in groups],
        make_dead=[
            memory.id
            for memory in offer.memories
            if memory.status == "dying" and not memory.pinned and memory.id not in merged
        ],
    )


def same_told(memories: Sequence[Shown]) -> list[list[Shown]]:
    """Groups of two or more, disjoint, each in the order of their dates."""
    groups: list[list[Shown]] = []
    for memory in sorted(memories, key=lambda one: (one.when, one.id)):
        for group in groups:
            if same(memory.text, group[0].text):
                group.append(memory)
                break
        else:
            groups.append([memory])
    return [group for group in groups if len(group) > 1]


def same(one: str, other: str) -> bool:
    """No number, name, day or negation differs, and nearly all words are the same."""
    mine, theirs = words(one), words(other)
    shared = len(mine & theirs) / max(1, len(mine | theirs))
    return one == other or (shared >= NEARLY and facts(one) == facts(other))


@lru_cache(maxsize=10_000)
def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - STOP_WORDS


def _diary(offer: Offer) -> Decision:
    told = [cut(" ".join(memory.text.split()), 200) for memory in offer.memories[:3]]
    lines = [*told, *["Nothing else happened."] * (3 - len(told))]
    return Decision(offer=offer.id, diary="\n".join(lines), think_md=lines)
