"""Which memories are worth a look by their owner: alike, empty, undecided, never asked for, secret."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from madeleine.memory.rules.storing.quoting import split_into_sentences_and_lines
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.memory.rules.storing.worth_remembering import is_small_talk
from madeleine.memory.text.normalization import fold_text

ReviewReason = Literal["duplicate", "junk", "undecided", "never recalled", "secret"]
MIN_AGE_OF_UNDECIDED_SUPERSESSION = timedelta(days=30)
MIN_AGE_OF_NEVER_RECALLED_MEMORY = timedelta(days=90)
_WORD = re.compile(r"[^\W_]+")
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryForReview:
    """A living memory. `other_texts`: its feeling, lesson and so on. `undecided_about`: the memory that it was proposed
    to supersede, as long as nobody has decided."""

    id: str
    being: str
    number: int
    text: str
    other_texts: Sequence[str] = ()
    pinned: bool = False
    times_recalled: int = 0
    created_micros: int = 0
    undecided_about: str | None = None


def memories_by_review_reason(
    memories: Iterable[MemoryForReview], *, now: datetime, redact: RedactText
) -> dict[ReviewReason, list[MemoryForReview]]:
    """The memories by what is noticed of each, in their order. Of those with the same words all but the last are
    duplicates."""
    noticed: defaultdict[ReviewReason, list[MemoryForReview]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    is_older = _make_age_exceeds_check(now)
    for memory in memories:
        words = " ".join(_WORD.findall(fold_text(memory.text)))
        if words and (memory.being, words) in seen:
            noticed["duplicate"].append(memory)
        seen.add((memory.being, words))
        if all(map(is_small_talk, split_into_sentences_and_lines(memory.text))):
            noticed["junk"].append(memory)
        if memory.undecided_about and is_older(memory, MIN_AGE_OF_UNDECIDED_SUPERSESSION):
            noticed["undecided"].append(memory)
        if not (memory.times_recalled or memory.pinned) and is_older(memory, MIN_AGE_OF_NEVER_RECALLED_MEMORY):
            noticed["never recalled"].append(memory)
        if any(redact(text).found for text in (memory.text, *memory.other_texts)):
            noticed["secret"].append(memory)
    return dict(noticed)


def _make_age_exceeds_check(now: datetime) -> Callable[[MemoryForReview, timedelta], bool]:
    now_micros = now.timestamp() * 1_000_000
    return lambda memory, age: now_micros - memory.created_micros > age / _MICROSECOND
