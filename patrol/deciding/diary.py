"""The diary of the day and points for the next session (spec P8)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import Memory
from madeleine.memory.patrol_records import DiaryEntry, ThoughtsForNextSession
from madeleine.memory.rules.feelings import mood_of_feelings
from madeleine.memory.rules.storing.secrets import RedactText
from madeleine.memory.text.sentences import split_sentences
from madeleine.patrol.deciding.answers import (
    MAX_NEXT_SESSION_POINT_CHARS,
    MIN_AND_MAX_NEXT_SESSION_POINTS,
    AgentDecision,
    CurrentOfferedMemories,
    DecisionAnswer,
    DecisionAnswerSchema,
    DecisionHandler,
)
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    EVENT_TIME_SORT_KEY,
    MAX_MEMORIES_PER_DECISION_REQUEST,
    DecisionRequest,
    DecisionRequestLimits,
    offered_memories_within_limits,
    shorten_with_ellipsis,
    topic_key_of,
)
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_MEMORIES_READ_FOR_DIARY = 5 * MAX_MEMORIES_PER_DECISION_REQUEST
"""Stored since the last entry and read; the most important of them are offered."""
MAX_DAYS_BACK_FOR_DIARY = 7
MAX_EARLIER_ENTRY_CHARS, MAX_EARLIER_POINTS, MAX_EARLIER_POINT_CHARS = 1_000, 7, 160
"""Of what was written before, as a request shows it."""
MIN_LINES, MAX_LINES = 3, 5
MAX_RECORDED_DIARY_SOURCES = 300
"""Recorded of an entry or of the points, the latest."""
_BULLET_PATTERN = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")


class DiaryAnswerSchema(DecisionAnswerSchema):
    diary: str
    think_md: list[str]


@dataclass(frozen=True, slots=True)
class DiaryWritingAnswer(DecisionAnswer):
    """Normalized, `diary` has one line to a line and `think_md` its points without bullets."""

    kind = "diary"
    schema = DiaryAnswerSchema

    diary: str
    think_md: tuple[str, ...]
    is_declined: bool = False
    """The calling agent gave the offer's id alone: nothing is written of that day."""

    @classmethod
    def _from_relevant_decision_fields(cls, decision: AgentDecision) -> DiaryWritingAnswer:
        return cls(decision.diary, tuple(decision.think_md), is_declined=not (decision.diary or decision.think_md))

    def normalized(self) -> DiaryWritingAnswer:
        points = (_BULLET_PATTERN.sub("", " ".join(point.split())) for point in self.think_md)
        think_md = tuple(point for point in points if point)
        return replace(self, diary="\n".join(_diary_lines(self.diary)), think_md=think_md)

    def redacted(self, redact: RedactText) -> DiaryWritingAnswer:
        points = tuple(redact(point).text for point in self.think_md)
        return replace(self, diary=redact(self.diary).text, think_md=points)

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        if self.is_declined:
            return
        lines = self.diary.splitlines()
        yield from self.text_complaints("diary", self.diary)
        if not MIN_LINES <= len(lines) <= MAX_LINES:
            yield f"diary has {len(lines)} lines: write {MIN_LINES} to {MAX_LINES}, each on a line of its own."
        fewest, most = MIN_AND_MAX_NEXT_SESSION_POINTS
        if not fewest <= len(self.think_md) <= most:
            yield f"think_md has {len(self.think_md)} points: write {fewest} to {most}."
        for point in self.think_md:
            yield from self.text_complaints("A point of think_md", point, MAX_NEXT_SESSION_POINT_CHARS)


def _diary_lines(text: str) -> list[str]:
    """A diary written in one line has its sentences for lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [sentence.rstrip() for sentence in split_sentences(lines[0])] if len(lines) == 1 else lines


class DiaryDecisionHandler(DecisionHandler[DiaryWritingAnswer]):
    answer_type = DiaryWritingAnswer

    async def keys_that_may_need_decision(self) -> list[str]:
        """If anything was stored since the last entry, as ruling 1 does not wait for scene notes."""
        day, of_day, _ = await self._first_day_to_write_of_with_memories()
        return [day] if of_day else []

    async def _first_day_to_write_of_with_memories(self) -> tuple[str, list[Memory], DiaryEntry | None]:
        """The first day with something to write of, its memories, and the last entry. A day that was declined is not
        asked about again (ruling 20)."""
        reads, services = self.context.reads, self.context.services
        last = await reads.last_diary_entry()
        new = await reads.memories_stored_since(last.written_at if last else None, limit=MAX_MEMORIES_READ_FOR_DIARY)
        by_day = memories_by_recent_day(new, services.today(), services.local_day)
        declined = await reads.cluster_size_by_declined_topic() if by_day else {}
        for day, of_day in sorted(by_day.items()):
            if topic_key_of("diary", day) not in declined:
                return day, of_day, last
        return services.today().isoformat(), [], last

    async def build_requests_for_key(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        day, of_day, last = await self._first_day_to_write_of_with_memories()
        earlier = last.text if last and last.date == day else ""
        think = (await reads.thoughts_for_next_session()).points
        return await asyncio.to_thread(decision_requests_for_diary, day, of_day, earlier, think, self.limits)

    async def apply_answer(
        self, work: UnitOfWork, answer: DiaryWritingAnswer, current: CurrentOfferedMemories
    ) -> dict[str, int] | RejectedModelAnswer:
        request = current.request
        if answer.is_declined:
            work.declined = {request.topic_key: len(request.memories)}
            return {"declined": 1}
        last, thoughts = await work.transaction.last_diary_entry(), await work.transaction.thoughts_for_next_session()
        today = last if last and last.date == request.date else None
        if (request.earlier, request.think) != shorten_diary_and_points(today.text if today else "", thoughts.points):
            # Its words may be of a memory that is forgotten by now, and would come back with a new text.
            return RejectedModelAnswer(
                "What was written before has changed since: nothing was written. Take a new offer."
            )
        offered = tuple(memory.id for memory in request.memories)
        work.diary = DiaryEntry(
            date=request.date,
            text=answer.diary,
            sources=tuple(dict.fromkeys((*(today.sources if today else ()), *offered)))[-MAX_RECORDED_DIARY_SOURCES:],
            written_at=request.until or self.context.services.now(),
        )
        sources = tuple(dict.fromkeys((*thoughts.sources, *offered)))[-MAX_RECORDED_DIARY_SOURCES:]
        work.thoughts = ThoughtsForNextSession(points=answer.think_md, sources=sources)
        return {"written": 1, "points": len(answer.think_md)}


def memories_by_recent_day(
    memories: Sequence[Memory], today: date, local_day: Callable[[datetime], date]
) -> dict[str, list[Memory]]:
    """Those stored in the last seven days (spec P5: the diary that is shown), by the day in ISO form; a history that
    was stored long after it happened is of no day."""
    by_day: dict[str, list[Memory]] = {}
    for memory in memories:
        day, age = local_day(memory.created_at), memory.created_at - memory.happened_at
        if (today - day).days < MAX_DAYS_BACK_FOR_DIARY and age < timedelta(days=MAX_DAYS_BACK_FOR_DIARY):
            by_day.setdefault(day.isoformat(), []).append(memory)
    return by_day


def decision_requests_for_diary(
    date: str,
    memories: Sequence[Memory],
    earlier: str,
    think: Sequence[str],
    limits: DecisionRequestLimits = DECISION_REQUEST_LIMITS_FOR_MODEL["diary"],
) -> list[DecisionRequest]:
    """At most one request: of more memories than fit the most important, in the order in which they happened."""
    earlier, points = shorten_diary_and_points(earlier, think)
    by_importance = sorted(memories, key=lambda memory: (-memory.importance, EVENT_TIME_SORT_KEY(memory)))
    used = len(earlier) + sum(map(len, points)) if limits == DECISION_REQUEST_LIMITS_FOR_MODEL["diary"] else 0
    offered = offered_memories_within_limits(by_importance, "diary", limits, used_characters=used)
    if not offered:
        return []
    by_id = {memory.id: memory for memory in offered}
    in_order = tuple(by_id[memory.id] for memory in sorted(memories, key=EVENT_TIME_SORT_KEY) if memory.id in by_id)
    until = max(memory.created_at for memory in memories)
    felt = describe_feeling_of_day(memories)
    return [
        DecisionRequest(
            kind="diary", memories=in_order, date=date, until=until, earlier=earlier, think=points, felt=felt
        )
    ]


def describe_feeling_of_day(memories: Sequence[Memory]) -> str:
    """Labels and the main axes of what was felt, in words for the one who writes; "" if no feeling is known."""
    mood = mood_of_feelings((memory.emotions, memory.emotion) for memory in memories)
    if mood is None:
        return ""
    axes = f"valence {mood.vector.valence:+.1f}, arousal {mood.vector.arousal:+.1f}"
    return f"{', '.join(mood.emotions)} ({axes})" if mood.emotions else axes


def shorten_diary_and_points(earlier: str, think: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The day's entry and the points as a request shows them."""
    points = tuple(shorten_with_ellipsis(point, MAX_EARLIER_POINT_CHARS) for point in think[:MAX_EARLIER_POINTS])
    return shorten_with_ellipsis(earlier, MAX_EARLIER_ENTRY_CHARS), points
