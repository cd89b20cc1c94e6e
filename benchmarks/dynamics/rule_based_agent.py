"""A deterministic agent that decides a patrol's open decisions by rules, in place of a language model.

It merges memories that say the same in nearly the same words into the newest of them, lets every other dying memory
die, and writes a diary of the first lines of the day. It never splits a cluster and never summarises a session. A
language model knows more: that an update belongs to what it updates, and that a dying fact may still be worth
keeping. The benchmark therefore forgets as strictly as the rules of ❹ allow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from madeleine.memory.rules.storing.likeness import extract_numbers_names_and_fact_words
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.requests import DecisionRequest, MemoryInDecisionRequest, shorten_with_ellipsis

SAME_WORDING_SHARE = 0.8
"""Share of common words from which two texts count as worded alike."""
DECIDED_KINDS = ("consolidate", "diary")
_WORD = re.compile(r"\w+")


def decide(requests: Sequence[DecisionRequest]) -> list[AgentDecision]:
    """Decide the requests of `DECIDED_KINDS`; the others stay open."""
    return [
        write_diary(request) if request.kind == "diary" else _merge(request)
        for request in requests
        if request.kind in DECIDED_KINDS
    ]


def _merge(request: DecisionRequest) -> AgentDecision:
    groups = repeated([memory for memory in request.memories if not memory.pinned])
    merged = {memory.id for group in groups for memory in group}
    return AgentDecision(
        offer=request.id,
        merges=[[memory.id for memory in reversed(group)] for group in groups],
        make_dead=[
            memory.id
            for memory in request.memories
            if memory.status == "dying" and not memory.pinned and memory.id not in merged
        ],
    )


def repeated(memories: Sequence[MemoryInDecisionRequest]) -> list[list[MemoryInDecisionRequest]]:
    """Disjoint groups of two or more that say the same, each in the order of their dates."""
    groups: list[list[MemoryInDecisionRequest]] = []
    for memory in sorted(memories, key=lambda memory: (memory.when, memory.id)):
        for group in groups:
            if same(memory.text, group[0].text):
                group.append(memory)
                break
        else:
            groups.append([memory])
    return [group for group in groups if len(group) > 1]


def same(first: str, second: str) -> bool:
    """Whether no number, name, day or negation differs and nearly all words are equal."""
    first_words, second_words = words(first), words(second)
    shared = len(first_words & second_words) / max(1, len(first_words | second_words))
    return first == second or (
        shared >= SAME_WORDING_SHARE
        and extract_numbers_names_and_fact_words(AnalysedText(first, second))
        == extract_numbers_names_and_fact_words(AnalysedText(second, first))
    )


@lru_cache(maxsize=10_000)
def words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - ENGLISH_STOP_WORDS


def write_diary(request: DecisionRequest) -> AgentDecision:
    lines = [shorten_with_ellipsis(" ".join(memory.text.split()), 200) for memory in request.memories[:3]]
    lines += ["Nothing else happened."] * (3 - len(lines))
    return AgentDecision(offer=request.id, diary="\n".join(lines), think_md=lines)
