"""Values of the archive (spec O8)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from madeleine.memory.model import Category, Memory, MemoryId, short_id_of_memory_number
from madeleine.memory.rules.archiving.density import ArchivalMode, extractive_or_abstractive_mode_for_texts
from madeleine.memory.rules.archiving.extracts import make_extractive_digest
from madeleine.memory.rules.archiving.retention import RetentionArchiveReason

ArchivalId = NewType("ArchivalId", str)
ArchiveGroupId = NewType("ArchiveGroupId", str)
MAX_ARCHIVE_GROUP_MEMORIES = 40
"""Told by one digest."""
MAX_ARCHIVE_GROUP_SUMMARY_CHARS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveGroup:
    """Memories of one category that go together, in the order in which they happened. `digest`: what the archive tells
    of them; `is_summary`: by a model or an agent, not by extracts."""

    id: ArchiveGroupId
    category: Category
    mode: ArchivalMode
    digest: str
    is_summary: bool = False
    reasons: Mapping[MemoryId, RetentionArchiveReason]
    """Of each memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedMemory:
    """An entry of the archive. `memory` is the memory as it was; its `number` is kept for it."""

    id: ArchivalId
    group_id: ArchiveGroupId
    memory: Memory
    reason: RetentionArchiveReason
    archived_at: datetime

    @property
    def short_id(self) -> str:
        return self.memory.short_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedArchiveGroup:
    """A group as a list shows it."""

    id: ArchiveGroupId
    category: Category
    mode: ArchivalMode
    digest: str
    is_summary: bool
    archived_at: datetime
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalIndexEntry:
    """Where a memory is in the archive (spec O8, `archival_index`)."""

    memory_id: MemoryId
    number: int
    archival_id: ArchivalId
    group_id: ArchiveGroupId
    mode: ArchivalMode

    @property
    def short_id(self) -> str:
        return short_id_of_memory_number(self.number)


def groups_to_archive(
    memories: Sequence[Memory], reasons: Mapping[MemoryId, RetentionArchiveReason]
) -> list[ArchiveGroup]:
    """One or more groups a category, with the mode that most of their texts ask for and a digest of extracts."""
    by_category: dict[Category, list[Memory]] = {}
    for memory in sorted(memories, key=lambda one: (one.happened_at, one.number)):
        by_category.setdefault(memory.category, []).append(memory)
    groups: list[ArchiveGroup] = []
    for category, of_category in by_category.items():
        for start in range(0, len(of_category), MAX_ARCHIVE_GROUP_MEMORIES):
            part = of_category[start : start + MAX_ARCHIVE_GROUP_MEMORIES]
            texts = [memory.scene.action for memory in part]
            groups.append(
                ArchiveGroup(
                    id=ArchiveGroupId(str(uuid.uuid4())),
                    category=category,
                    mode=extractive_or_abstractive_mode_for_texts(texts),
                    digest=make_extractive_digest(texts),
                    reasons={memory.id: reasons[memory.id] for memory in part},
                )
            )
    return groups
