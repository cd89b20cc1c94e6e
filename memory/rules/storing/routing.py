"""Which kind of memory a text becomes (spec L1, step 5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from madeleine.memory.model import Category
from madeleine.memory.text.reading import Reading

MIN_SHARE = 0.5
"""Of the sentences, that have to be about now, or be facts, for the text to be."""


def route(reading: Reading, hint: Category | None = None) -> Category:
    """The hint; else procedural for a preference, working for what is about now or this session, semantic for facts of
    the form subject, predicate, object; else episodic."""
    if hint is not None:
        return hint
    if reading.states_preference:
        return "procedural"
    stated = [Reading(sentence) for sentence in reading.sentences if sentence.strip()] or [reading]
    if _share(stated, lambda sentence: sentence.matches("now")) >= MIN_SHARE:
        return "working"
    return "semantic" if _share(stated, _is_fact) >= MIN_SHARE else "episodic"


def _share(stated: Sequence[Reading], holds: Callable[[Reading], bool]) -> float:
    return sum(map(holds, stated)) / len(stated)


def _is_fact(sentence: Reading) -> bool:
    told = sentence.asks or sentence.begins_with("subjects") or sentence.matches("event")
    return not told and sentence.matches("fact")
