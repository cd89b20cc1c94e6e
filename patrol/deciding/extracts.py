"""Summaries of sessions without a model: extracts of their scenes (spec L3)."""

from __future__ import annotations

from collections.abc import Sequence

from madeleine.memory.rules.storing.chunk_scoring import chunk_salience
from madeleine.memory.text.reading import Reading
from madeleine.patrol.deciding.requests import OfferedMemory, RequestLimits, shorten_with_ellipsis

MAX_EXTRACT_CHARS = 1_000
"""What the default embedding model reads of a text: 256 tokens."""
MAX_EXTRACTED_SCENE_CHARS = 1_000
EXTRACT_LIMITS = RequestLimits(memories=8, size=1_000, text_chars=MAX_EXTRACT_CHARS)
"""Of one extract: a longer session has several, so that little is left out."""


def extract_summary(memories: Sequence[OfferedMemory]) -> str:
    """The first, the middle and the last scene, and of the others those with most facts, as far as they fit; in order.
    The same memories give the same text."""
    last = len(memories) - 1
    always = dict.fromkeys((0, last // 2, last))
    by_facts = sorted(range(len(memories)), key=lambda i: (-_fact_score(memories[i]), i))
    chosen: dict[int, str] = {}
    room = MAX_EXTRACT_CHARS
    for i in dict.fromkeys((*always, *by_facts)):
        text = shorten_with_ellipsis(memories[i].text, MAX_EXTRACTED_SCENE_CHARS) if last else memories[i].text
        if len(text) <= room:
            chosen[i] = text
            room -= len(text) + 1
    return "\n".join(chosen[i] for i in sorted(chosen))


def _fact_score(memory: OfferedMemory) -> float:
    return chunk_salience(Reading(memory.text), rarity=0.0) + memory.importance
