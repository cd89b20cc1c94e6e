"""The diary of the day, and points for the next session (spec P8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from madeleine.memory.language_model import Rejected
from madeleine.memory.model import Memory
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.memory.rules.storing.secrets import Redact
from madeleine.memory.text.sentences import split_sentences
from madeleine.patrol.deciding.answers import POINTS, Answer, AnswerSchema, CurrentState, Decision, DecisionType
from madeleine.patrol.deciding.requests import (
    MAX_MEMORIES,
    ORDER_OF_EVENTS,
    DecisionRequest,
    offered_memories,
    shortened,
)
from madeleine.patrol.unit_of_work import UnitOfWork

LATEST_MEMORIES = 5 * MAX_MEMORIES
"""Stored since the last entry and read; the most important of them are offered."""
EARLIER_CHARACTERS, MAX_POINTS, POINT_CHARACTERS = 2_000, 7, 300
"""Of what was written before, as a request shows it."""
LINES = (3, 5)
MAX_SOURCES = 300
"""Recorded of an entry or of the points, the latest."""
_BULLET = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")


class DiarySchema(AnswerSchema):
    diary: str
    think_md: list[str]


@dataclass(frozen=True, slots=True)
class Diary(Answer):
    """Normalized, `diary` has one line to a line and `think_md` its points without bullets."""

    kind = "diary"
    schema = DiarySchema

    diary: str
    think_md: tuple[str, ...]

    @classmethod
    def _from_own_fields(cls, decision: Decision) -> Diary:
        return Diary(decision.diary, tuple(decision.think_md))

    def normalized(self) -> Diary:
        points = (_BULLET.sub("", " ".join(point.split())) for point in self.think_md)
        return Diary("\n".join(_lines(self.diary)), tuple(point for point in points if point))

    def redacted(self, redact: Redact) -> Diary:
        return Diary(redact(self.diary).text, tuple(redact(point).text for point in self.think_md))

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        lines = self.diary.splitlines()
        yield from self.text_complaints("diary", self.diary)
        if not LINES[0] <= len(lines) <= LINES[1]:
            yield f"diary has {len(lines)} lines: write {LINES[0]} to {LINES[1]}, each on a line of its own."
        if not POINTS[0] <= len(self.think_md) <= POINTS[1]:
            yield f"think_md has {len(self.think_md)} points: write {POINTS[0]} to {POINTS[1]}."
        for point in self.think_md:
            yield from self.text_complaints("A point of think_md", point, POINT_CHARACTERS)


def _lines(text: str) -> list[str]:
    """A diary written in one line has its sentences for lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [sentence.rstrip() for sentence in split_sentences(lines[0])] if len(lines) == 1 else lines


class WriteDiary(DecisionType[Diary]):
    answer_type = Diary

    async def pending(self) -> list[str]:
        """If anything was stored since the last entry, as ruling 1 does not wait for scene notes."""
        last = await self.context.reads.last_diary()
        new = await self.context.reads.stored_since(last.written_at if last else None, limit=1)
        return [self.context.services.diary_date().isoformat()] if new else []

    async def requests(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        last = await reads.last_diary()
        new = await reads.stored_since(last.written_at if last else None, limit=LATEST_MEMORIES)
        earlier = last.text if last and last.date == key else ""
        request = diary_request(key, new, earlier, (await reads.thoughts()).points)
        return [request] if request else []

    async def apply(self, work: UnitOfWork, answer: Diary, current: CurrentState) -> dict[str, int] | Rejected:
        request = current.request
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
            written_at=request.until or self.context.services.now(),
        )
        sources = tuple(dict.fromkeys((*thoughts.sources, *offered)))[-MAX_SOURCES:]
        work.thoughts = Thoughts(points=answer.think_md, sources=sources)
        return {"written": 1, "points": len(answer.think_md)}


def diary_request(date: str, memories: Sequence[Memory], earlier: str, think: Sequence[str]) -> DecisionRequest | None:
    """Of more memories than fit the most important, in the order in which they happened. None without any."""
    earlier, points = offered_diary(earlier, think)
    by_importance = sorted(memories, key=lambda memory: (-memory.importance, ORDER_OF_EVENTS(memory)))
    used = len(earlier) + sum(map(len, points))
    offered = offered_memories(by_importance, "diary", used_characters=used)
    if not offered:
        return None
    by_id = {memory.id: memory for memory in offered}
    in_order = tuple(by_id[memory.id] for memory in sorted(memories, key=ORDER_OF_EVENTS) if memory.id in by_id)
    until = max(memory.created_at for memory in memories)
    return DecisionRequest(kind="diary", memories=in_order, date=date, until=until, earlier=earlier, think=points)


def offered_diary(earlier: str, think: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The day's entry and the points as a request shows them."""
    points = tuple(shortened(point, POINT_CHARACTERS) for point in think[:MAX_POINTS])
    return shortened(earlier, EARLIER_CHARACTERS), points
