"""The diary of the day, and points for the next session (spec P8)."""

from __future__ import annotations

from collections.abc import Mapping

from madeleine.memory.language_model import Rejected
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.patrol.context import PatrolContext
from madeleine.patrol.deciding.answers import Diary
from madeleine.patrol.deciding.checks import CurrentState
from madeleine.patrol.deciding.decision_type import DecisionType
from madeleine.patrol.deciding.requests import (
    MAX_MEMORIES,
    DecisionRequest,
    diary_request,
    offered_diary,
)
from madeleine.patrol.unit_of_work import UnitOfWork

LATEST_MEMORIES = 5 * MAX_MEMORIES
"""Stored since the last entry and read; the most important of them are offered."""
MAX_SOURCES = 300
"""Recorded of an entry or of the points, the latest."""


class WriteDiary(DecisionType[Diary]):
    kind = "diary"

    async def pending(self, context: PatrolContext) -> list[str]:
        """If anything was stored since the last entry, as ruling 1 does not wait for scene notes."""
        last = await context.reads.last_diary()
        new = await context.reads.stored_since(last.written_at if last else None, limit=1)
        return [context.services.diary_date().isoformat()] if new else []

    async def requests(self, context: PatrolContext, key: str) -> list[DecisionRequest]:
        last = await context.reads.last_diary()
        new = await context.reads.stored_since(last.written_at if last else None, limit=LATEST_MEMORIES)
        earlier = last.text if last and last.date == key else ""
        request = diary_request(key, new, earlier, (await context.reads.thoughts()).points)
        return [request] if request else []

    async def apply(
        self, context: PatrolContext, work: UnitOfWork, request: DecisionRequest, answer: Diary, current: CurrentState
    ) -> Mapping[str, int] | Rejected:
        last, thoughts = await work.transaction.last_diary(), await work.transaction.thoughts()
        today = last if last and last.date == request.date else None
        if (request.earlier, request.think) != offered_diary(today.text if today else "", thoughts.points):
            # Its words may be of a memory that is forgotten by now, and would come back with a new text.
            return Rejected("What was written before has changed since: nothing was written. Take a new offer.")
        offered = tuple(memory.id for memory in request.memories)
        work.diary = DiaryEntry(
            date=request.date,
            text=answer.diary,
            sources=tuple(dict.fromkeys((*(today.sources if today else ()), *offered)))[-MAX_SOURCES:],
            written_at=request.until or context.services.now(),
        )
        sources = tuple(dict.fromkeys((*thoughts.sources, *offered)))[-MAX_SOURCES:]
        work.thoughts = Thoughts(points=answer.think_md, sources=sources)
        return {"written": 1, "points": len(answer.think_md)}
