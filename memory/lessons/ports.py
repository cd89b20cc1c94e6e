"""What lessons need of the ledger and of files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.embedding import VectorCache
from madeleine.memory.lessons.values import LessonWithOutcomeCounts
from madeleine.memory.model import MemoryId, Scope


class LessonLedger(VectorCache, Protocol):
    async def lessons(self, scope: Scope, *, limit: int) -> list[LessonWithOutcomeCounts]:
        """Those whose memory is current, faded and merged ones too, the latest first."""

    async def lessons_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[LessonWithOutcomeCounts]:
        """Those of these memories that are lessons."""

    async def record_lesson_outcome(self, scope: Scope, memory_id: MemoryId, *, helped: bool, at: datetime) -> bool:
        """Count once more that it helped or failed, durably. False if the memory is no lesson."""


WriteSkill = Callable[[Scope, str, str], Awaitable[None]]
"""Write the SKILL.md of a skill: (scope, name, text). May raise `OSError`."""
