"""What is true now (ruling 14, spec O14): a memory after an act that changed its state, and when it held.

Only these functions change `Memory.truth`. Each is the outcome of an explicit act: an argument of a tool, a decision in
a patrol, a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import Any, Literal

from madeleine.memory.errors import InvalidInput, NotCurrent
from madeleine.memory.model import Memory, MemoryId, memory_date, parse_iso_moment

TRUTH_FIELDS = ("truth", "valid_from", "valid_until", "superseded_by", "retraction_reason")
"""The fields of a memory that an act changes."""
UNDONE_VERSION_FIELDS: Mapping[str, Any] = {"truth": "retracted", "retraction_reason": "undone"}
"""Fields of a version that an act has made, once that act is undone."""

TruthActKind = Literal["supersede", "retract"]


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
class TruthActOutcome:
    """The memories that an act, or its undo, has changed, as they are now; the one that it was about first."""

    kind: TruthActKind
    changed: tuple[Memory, ...]


def beginning_of_validity(memory: Memory) -> datetime | None:
    """When a memory became true as far as is known: `valid_from`, else when it happened or was told, the earlier one: a
    plan holds before its day. None if that is after its end: it was told late, and its beginning is not known."""
    begin = memory.valid_from or min(memory.happened_at, memory.created_at)
    return None if memory.valid_until is not None and begin > memory.valid_until else begin


def was_true_at(memory: Memory, moment: datetime) -> bool:
    """By all that is known today (valid time, not recorded time). Before its beginning a memory counts as unknown."""
    begin = beginning_of_validity(memory)
    has_begun = begin is None or begin <= moment
    return memory.truth != "retracted" and has_begun and (memory.valid_until is None or moment < memory.valid_until)


def is_planned_version(memory: Memory, now: datetime) -> bool:
    """Whether it is true from a later day on, so that what it is to supersede is true until then. A date without a time
    has begun where it is today on this machine's calendar."""
    today = datetime.combine(now.astimezone().date(), time.min, UTC)
    return (memory.valid_from or memory.happened_at) > max(now, today)


def memories_after_supersession(old: Memory, new: Memory, since: datetime) -> tuple[Memory, Memory]:
    """Both memories after the act. The new one may have been superseded since: of a chain the later link may be told
    first. Raises `NotCurrent` if the old one is not current or the new one was not when it took its place,
    `InvalidInput` for a memory that would supersede itself, or would be true before what it supersedes."""
    if old.id == new.id:
        raise InvalidInput(f"Memory {old.short_id} cannot supersede itself. Nothing was changed.")
    require_current(old)
    if not was_superseded_after(new, since):
        require_current(new)
    if old.valid_from is not None and since < old.valid_from:
        begin = old.valid_from.date().isoformat()
        raise InvalidInput(
            f"Memory {old.short_id} is true since {begin}, so it cannot have ended before. Nothing was changed: give a "
            "later date as when, or, if it was wrong, retract it by update_memory."
        )
    return (
        replace(old, truth="superseded", valid_until=since, superseded_by=new.id),
        replace(new, valid_from=new.valid_from or since),
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
    return (retracted, *(with_successor(one, memory.superseded_by, memory.valid_until) for one in predecessors))


def with_successor(memory: Memory, successor: MemoryId | None, until: datetime | None) -> Memory:
    """A superseded memory whose successor is another now; current again without one."""
    if successor is None:
        return replace(memory, truth="current", valid_until=None, superseded_by=None)
    return replace(memory, valid_until=until, superseded_by=successor)


def require_current(memory: Memory, current: Memory | None = None) -> None:
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


def version_valid_since(memory: Memory) -> str:
    """Since when a version is true, as told; "" for a memory that has superseded none."""
    if memory.valid_from is None:
        return ""
    told = memory_date(memory)
    return told if parse_iso_moment(told) == memory.valid_from else memory.valid_from.date().isoformat()
