"""Changing a memory: what it becomes, and what it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from madeleine.memory.model import LIVING, Memory, MemoryChanges, Revision


def effective(memory: Memory, changes: MemoryChanges) -> MemoryChanges:
    """Of `changes` what differs from the memory as it is."""
    scene = memory.scene
    return MemoryChanges(
        text=changes.text if changes.text != scene.action else None,
        importance=changes.importance if changes.importance != memory.importance else None,
        themes=changes.themes if changes.themes != memory.themes else None,
        pinned=changes.pinned if changes.pinned != memory.pinned else None,
    )


def changed(memory: Memory, changes: MemoryChanges) -> Memory:
    """The memory as it is to be. A living one with another text is fresh and without a cluster again, as if it had just
    been stored (ruling 1): where it was it may not belong. A dead one stays dead, where it is. What it resembled, it
    may not any more."""
    found = replace(
        memory,
        importance=memory.importance if changes.importance is None else changes.importance,
        themes=memory.themes if changes.themes is None else changes.themes,
        pinned=memory.pinned if changes.pinned is None else changes.pinned,
    )
    if changes.text is None:
        return found
    found = replace(found, scene=replace(memory.scene, action=changes.text), resembles=None)
    return replace(found, fresh=True, cluster_id=None) if memory.status in LIVING else found


def revision(memory: Memory, changes: MemoryChanges, *, at: datetime, client: str) -> Revision:
    """What `memory` was in the fields that `changes` names."""
    return Revision(
        memory_id=memory.id,
        at=at,
        client=client,
        before=MemoryChanges(
            text=None if changes.text is None else memory.scene.action,
            importance=None if changes.importance is None else memory.importance,
            themes=None if changes.themes is None else memory.themes,
            pinned=None if changes.pinned is None else memory.pinned,
        ),
    )
