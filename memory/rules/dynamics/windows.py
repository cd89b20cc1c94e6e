"""Which version of a fact is shown where only a window of time is asked for (rulings 14 and 19, ADR 94).

A filter is a match: nothing outside of the window is shown. Of the versions that lie in it the latest is, also if it is
superseded; it then says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, time_spans_of_memory
from madeleine.memory.rules.dynamics.future_dates import announced_time_span
from madeleine.memory.rules.dynamics.importance import MAX_DYING_IMPORTANCE
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.text.relative_dates import Days, first_and_last_moment_of_days


def time_spans_with_announced_one(memory: Memory) -> Iterator[tuple[datetime, datetime]]:
    """Of its dates, and of what its text announces beside them (ADR 99), which is read last."""
    yield from time_spans_of_memory(memory)
    if announced := announced_time_span(memory):
        yield announced


def is_still_to_come(memory: Memory, now: datetime) -> bool:
    """Whether one of its days is to come, as of an event or a plan, and it would not be dying with its clock at 0."""
    spans = time_spans_with_announced_one(memory)
    return memory.importance > MAX_DYING_IMPORTANCE and any(is_in_future(first, now) for first, _ in spans)


def _starts_in_window(memory: Memory, since: datetime | None, until: datetime | None) -> Iterator[datetime]:
    """The first moment of each of its time spans that overlap with the window."""
    for first, last in time_spans_with_announced_one(memory):
        if (since is None or last >= since) and (until is None or first <= until):
            yield first


def has_date_in_window(memory: Memory, since: datetime | None, until: datetime | None) -> bool:
    """Whether one of its dates lies between the two, inclusive; None for no limit. Of two days it has no day between
    them, though an index that knows the first and the last finds it there: the day of a plan, and that on which it was
    called off."""
    return (since is None and until is None) or any(True for _ in _starts_in_window(memory, since, until))


def first_moment_in_days(memory: Memory, days: Days) -> datetime:
    """The beginning of its first date that lies in them; `happened_at` if none does."""
    return min(_starts_in_window(memory, *first_and_last_moment_of_days(days)), default=memory.happened_at)


def _came_in_window_before_superseded(memory: Memory, since: datetime | None, until: datetime | None) -> bool:
    """Whether a day of it in the window came while it was true: what was given up before its day did not happen."""
    until_superseded = memory.valid_until
    return until_superseded is None or any(
        start < until_superseded for start in _starts_in_window(memory, since, until)
    )


def id_of_version_in_window(
    match: MemoryId, chain: Sequence[Memory], since: datetime | None, until: datetime | None
) -> MemoryId | None:
    """Of the match and the versions that followed it the latest that lies in the window; None if none does. `chain`:
    all versions, the current one last; two that one memory has superseded are no versions of each other."""
    by_id = {memory.id: memory for memory in chain}
    following: list[Memory] = []
    step: MemoryId | None = match
    while step is not None and step in by_id:
        following.append(by_id[step])
        step = by_id[step].superseded_by
    if chain and step is not None:  # the chain goes on through a merge
        following.append(chain[-1])
    dated = [memory for memory in following if has_date_in_window(memory, since, until)]
    return next(
        (
            memory.id
            for memory in reversed(dated)
            if memory.truth == "current"
            or (_can_be_shown_superseded(memory) and _came_in_window_before_superseded(memory, since, until))
        ),
        None,
    )


def _can_be_shown_superseded(memory: Memory) -> bool:
    return memory.truth == "superseded" and memory.status in LIVING_STATUSES
