"""Changing a memory: its state after a change, and before it."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from madeleine.memory.model import (
    LIVING_STATUSES,
    Memory,
    MemoryChanges,
    MemoryValuesBeforeChange,
    start_of_first_dated_timeline_entry,
)


def changes_without_unchanged_fields(memory: Memory, changes: MemoryChanges) -> MemoryChanges:
    """The changes that differ from the memory."""
    requested, before = _new_values_by_changed_field(changes), _changeable_values(memory)
    return MemoryChanges(**{name: value for name, value in requested.items() if value != before[name]})


def memory_after_changes(memory: Memory, changes: MemoryChanges) -> Memory:
    """The memory after the changes. A living one with another text is fresh and without a cluster again, as if it had
    just been stored (ruling 1), since it may not belong to its cluster any more. A dead one stays dead, in its cluster.
    It may not resemble any more what it resembled. That it was kept says nothing of what it tells now."""
    requested = _new_values_by_changed_field(changes)
    text, when = requested.pop("text", None), requested.pop("when", None)
    memory = replace(memory, **requested)
    if text is not None or when is not None:
        memory = replace(memory, kept_until=None)
    if when is not None:
        happened_at = start_of_first_dated_timeline_entry(when, memory.created_at)
        memory = replace(memory, scene=replace(memory.scene, when=when), happened_at=happened_at)
    if text is None:
        return memory
    planned = memory.may_supersede if memory.valid_from is not None else None  # whoever stored it said so
    memory = replace(memory, scene=replace(memory.scene, action=text), resembles=None, may_supersede=planned)
    return replace(memory, fresh=True, cluster_id=None) if memory.status in LIVING_STATUSES else memory


def memory_values_before_change(
    memory: Memory, changes: MemoryChanges, *, at: datetime, client: str
) -> MemoryValuesBeforeChange:
    """The values of `memory` in the fields that `changes` names."""
    values = _changeable_values(memory)
    before = MemoryChanges(**{name: values[name] for name in _new_values_by_changed_field(changes)})
    return MemoryValuesBeforeChange(memory_id=memory.id, at=at, client=client, before=before)


def _new_values_by_changed_field(changes: MemoryChanges) -> dict[str, Any]:
    return {name: value for name, value in asdict(changes).items() if value is not None}


def _changeable_values(memory: Memory) -> dict[str, Any]:
    return {
        "text": memory.scene.action,
        "importance": memory.importance,
        "themes": memory.themes,
        "pinned": memory.pinned,
        "when": memory.scene.when,
    }
