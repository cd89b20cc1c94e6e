"""What is true now (ruling 14, spec O14): a memory after an act that changed its state, and when it held.

Only these functions change `Memory.truth`. Each is the outcome of an explicit act: an argument of a tool, a decision in
a patrol, a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import Any, Literal, NoReturn, Protocol

from madeleine.memory.errors import InvalidInput, NotCurrent
from madeleine.memory.model import (
    MAX_SUPERSEDED_TEXT_CHARS,
    Memory,
    MemoryId,
    TextOrDatedAction,
    TruthStatus,
    date_as_told,
    first_timeline_period,
    memory_date,
    parse_iso_moment_or_none,
    text_behind_date,
)
from madeleine.memory.text.dates import IsoPeriod

MEMORY_TRUTH_FIELDS = ("truth", "valid_from", "valid_until", "superseded_by", "retraction_reason")
"""The fields of a memory that an act changes."""
FIELD_VALUES_MARKING_VERSION_AS_UNDONE: Mapping[str, Any] = {"truth": "retracted", "retraction_reason": "undone"}
"""Fields of a version that an act has made, once that act is undone."""

TruthChangeKind = Literal["supersede", "retract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """An act: `old` was true until `since`, when `new` became true. `at`: when the act was recorded. `makes_new`: the
    act has also made `new`, which is retracted if the act is undone; else `new` stays beside `old` then."""

    old: MemoryId
    new: MemoryId
    since: datetime
    at: datetime
    tool: str
    makes_new: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthChangeOutcome:
    """The memories that an act, or its undo, has changed, as they are now; the one that it was about first."""

    kind: TruthChangeKind
    changed: tuple[Memory, ...]


class HasValidityDates(Protocol):
    """What says when a memory holds: the memory itself, or its outline."""

    @property
    def truth(self) -> TruthStatus: ...
    @property
    def valid_from(self) -> datetime | None: ...
    @property
    def valid_until(self) -> datetime | None: ...
    @property
    def happened_at(self) -> datetime: ...
    @property
    def created_at(self) -> datetime: ...


def beginning_of_validity(memory: HasValidityDates) -> datetime | None:
    """When a memory became true as far as is known: `valid_from`, else when it happened or was told, the earlier one: a
    plan holds before its day. None if that is after its end: it was told late, and its beginning is not known."""
    begin = memory.valid_from or min(memory.happened_at, memory.created_at)
    return None if memory.valid_until is not None and begin > memory.valid_until else begin


def was_true_at(memory: HasValidityDates, moment: datetime) -> bool:
    """By all that is known today (valid time, not recorded time). Before its beginning a memory counts as unknown."""
    begin = beginning_of_validity(memory)
    has_begun = begin is None or begin <= moment
    return memory.truth != "retracted" and has_begun and (memory.valid_until is None or moment < memory.valid_until)


def was_told_before_survivor(absorbed: Memory, survivor: Memory, moment: datetime) -> bool:
    """Whether what a merge has taken away is all that tells of that moment: it was true, and what has absorbed it, told
    later, had not begun. A retracted survivor takes with it what said the same."""
    begin = beginning_of_validity(survivor)
    return was_true_at(absorbed, moment) and survivor.truth != "retracted" and begin is not None and begin > moment


def id_of_version_true_at(chain: Sequence[Memory], moment: datetime) -> MemoryId | None:
    """Of versions the one that was true then; None where nothing is known of that time. Of two the one that became true
    later: what has superseded two tells when both had ended, and not that one had followed the other."""
    earliest = datetime.min.replace(tzinfo=UTC)
    known = [(beginning_of_validity(memory) or earliest, memory) for memory in chain if was_true_at(memory, moment)]
    return max(known, key=lambda one: one[0])[1].id if known else None


def is_in_future(moment: datetime, now: datetime) -> bool:
    """A date without a time has begun where it is today on this machine's calendar."""
    return moment > max(now, datetime.combine(now.astimezone().date(), time.min, UTC))


def start_of_truth_or_telling(memory: Memory) -> datetime:
    """Since when it is true, or was told of what is still to come; of two tellings the later one is what is true now. A
    date that lasts, as the day of telling or its month, began before it was told."""
    period = first_timeline_period(memory.scene.when)
    told_in_time = period is None or period.end >= memory.created_at
    return memory.valid_from or (memory.created_at if told_in_time else memory.happened_at)


def first_timeline_period_if_not_future(memory: Memory, now: datetime) -> IsoPeriod | None:
    """Its own date, if it is no future day: what it says was not true before. None for one that has none."""
    period = first_timeline_period(memory.scene.when)
    return period if period is not None and not is_in_future(period.start, now) else None


def memories_after_supersession(old: Memory, new: Memory, since: datetime, at: datetime) -> tuple[Memory, Memory]:
    """Both memories after an act at `at`. The new one may have been superseded since: of a chain the later link may be
    told first. What was to be true from a later day on, and ended before that day, was a plan: it has no beginning of
    its own, whenever that is told (ADR 97). Raises `NotCurrent` if the old one is not current or the new one was not
    when it took its place, `InvalidInput` for a memory that would supersede itself, or would be true before what it
    supersedes."""
    if old.id == new.id:
        raise InvalidInput(f"Memory {old.short_id} cannot supersede itself. Nothing was changed.")
    require_current_memory(old)
    if not was_superseded_after(new, since):
        require_current_memory(new)
    begin, begin_text = _told_beginning(old)
    is_plan_still = old.valid_from is not None and is_in_future(old.valid_from, at)
    if begin is not None and since < begin and not is_plan_still and not _was_only_planned(old, begin):
        _raise_end_before_start_error(old, begin_text)
    if is_plan_still or (begin is not None and since < begin):
        old = replace(old, valid_from=None)
    return (
        replace(old, truth="superseded", valid_until=since, superseded_by=new.id),
        replace(new, valid_from=new.valid_from or since),
    )


def _told_beginning(memory: Memory) -> tuple[datetime, str] | tuple[None, str]:
    """Since when it is true, or is to be, by what was told of it, and the same as told; None if no day was told."""
    if memory.valid_from is not None:
        return memory.valid_from, memory.valid_from.date().isoformat()
    period = first_timeline_period(memory.scene.when)
    return (period.start, period.text) if period else (None, "")


def _was_only_planned(memory: Memory, begin: datetime) -> bool:
    """Whether it was told before it was to begin, and no act has said since that it took the place of another one."""
    return is_in_future(begin, memory.created_at) and not memory.before


def _raise_end_before_start_error(old: Memory, begin: str) -> NoReturn:
    if old.valid_from is not None:
        remedy = f"{old.short_id} was wrong or never came true, retract it by update_memory"
    else:
        remedy = (
            f"{old.short_id} has the wrong date, or was a plan that was told before that day, update_memory its when "
            "alone, to the day of telling, and repeat this"
        )
    raise InvalidInput(
        f"Memory {old.short_id} is true since {begin}, so it cannot have ended before. Nothing was changed: give a "
        f"later date as when; if this was true before {old.short_id}, store it without supersedes; or, if {remedy}."
    )


def was_superseded_after(memory: Memory, moment: datetime) -> bool:
    return memory.truth == "superseded" and memory.valid_until is not None and moment < memory.valid_until


def memories_after_retraction(memory: Memory, predecessors: Sequence[Memory], reason: str) -> tuple[Memory, ...]:
    """The memory and what it had superseded. If it was wrong, it never took their place: they hold until its own
    successor's time, and are current again if it has none."""
    if memory.truth == "retracted":
        raise NotCurrent(
            f"Memory {memory.short_id} is retracted already: {memory.retraction_reason!r}. Nothing was changed."
        )
    retracted = replace(memory, truth="retracted", retraction_reason=reason, superseded_by=None)
    return (
        retracted,
        *(memory_with_other_successor(one, memory.superseded_by, memory.valid_until) for one in predecessors),
    )


def memory_with_other_successor(memory: Memory, successor: MemoryId | None, until: datetime | None) -> Memory:
    """A superseded memory whose successor is another now; current again without one."""
    if successor is None:
        return replace(memory, truth="current", valid_until=None, superseded_by=None)
    return replace(memory, valid_until=until, superseded_by=successor)


def require_current_memory(memory: Memory, current: Memory | None = None) -> None:
    """Raise `NotCurrent` if the memory is superseded or retracted. `current`: its current version, to be named."""
    if memory.truth == "retracted":
        raise NotCurrent(
            f"Memory {memory.short_id} was retracted: {memory.retraction_reason!r}. Nothing was changed: store the "
            "text without supersedes."
        )
    if memory.truth == "superseded":
        successor = current.short_id if current else memory.superseded_by
        text = f", which says {current.scene.action[:200]!r}" if current else ""
        raise NotCurrent(
            f"Memory {memory.short_id} was superseded by {successor}{text}. Nothing was changed: if that has changed "
            f"too, supersede {successor} instead.",
            current=current.id if current else memory.superseded_by or "",
        )


def version_start_date_text(memory: Memory) -> str:
    """Since when a version is true, as told; "" for a memory that has superseded none."""
    if memory.valid_from is None:
        return ""
    told = memory_date(memory)
    return told if parse_iso_moment_or_none(told) == memory.valid_from else memory.valid_from.date().isoformat()


def end_of_superseded_version_text(memory: Memory) -> str:
    """The day until which a superseded memory was true; "" for any other."""
    return memory.valid_until.date().isoformat() if memory.truth == "superseded" and memory.valid_until else ""


def dated_start_of_superseded_text(when: Sequence[TextOrDatedAction], happened_at: datetime, text: str) -> str:
    """What a memory with these dates said, as its successor shows it: behind its date, unless it names that itself; of
    its text at most `MAX_SUPERSEDED_TEXT_CHARS`. Without the date that of the successor is read as its own."""
    return text_behind_date(date_as_told(when, happened_at), text[:MAX_SUPERSEDED_TEXT_CHARS])
