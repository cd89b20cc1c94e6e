"""The diary of the day and points for the next session (spec P8); summaries of old sessions, whose memories are kept
(spec L3)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from madeleine.memory.language_model import Rejected
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Provenance, Scene
from madeleine.memory.patrol_records import DiaryEntry, Thoughts
from madeleine.memory.rules.storing.secrets import Redact
from madeleine.memory.text.sentences import split_sentences
from madeleine.patrol.deciding.answers import (
    POINT_COUNTS,
    DecisionAnswerSchema,
    DecisionRequestState,
    DecisionType,
    Resolution,
)
from madeleine.patrol.deciding.requests import (
    MAX_OFFERED_MEMORIES,
    SORT_KEY_BY_EVENT_TIME,
    DecisionRequest,
    offered_memories_in_parts,
    offered_memories_within_limits,
    shortened,
)
from madeleine.patrol.unit_of_work import UnitOfWork

MAX_MEMORIES_READ_FOR_DIARY = 5 * MAX_OFFERED_MEMORIES
"""Stored since the last entry and read; the most important of them are offered."""
MAX_EARLIER_ENTRY_CHARS, MAX_EARLIER_POINTS, MAX_EARLIER_POINT_CHARS = 2_000, 7, 300
"""Of what was written before, as a request shows it."""
MIN_LINES, MAX_LINES = 3, 5
MAX_RECORDED_DIARY_SOURCES = 300
"""Recorded of an entry or of the points, the latest."""
_BULLET_PATTERN = re.compile(r"^(?:[-*•–]|\d{1,2}[.)])\s+")


class DiarySchema(DecisionAnswerSchema):
    diary: str
    think_md: list[str]


@dataclass(frozen=True, slots=True)
class DiaryAnswer(Resolution):
    """Normalized, `diary` has one line to a line and `think_md` its points without bullets."""

    kind = "diary"
    schema = DiarySchema

    diary: str
    think_md: tuple[str, ...]

    def normalized(self) -> DiaryAnswer:
        points = (_BULLET_PATTERN.sub("", " ".join(point.split())) for point in self.think_md)
        return DiaryAnswer("\n".join(_diary_lines(self.diary)), tuple(point for point in points if point))

    def redacted(self, redact: Redact) -> DiaryAnswer:
        return DiaryAnswer(redact(self.diary).text, tuple(redact(point).text for point in self.think_md))

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        lines = self.diary.splitlines()
        yield from self.text_complaints("diary", self.diary)
        if not MIN_LINES <= len(lines) <= MAX_LINES:
            yield f"diary has {len(lines)} lines: write {MIN_LINES} to {MAX_LINES}, each on a line of its own."
        if not POINT_COUNTS[0] <= len(self.think_md) <= POINT_COUNTS[1]:
            yield f"think_md has {len(self.think_md)} points: write {POINT_COUNTS[0]} to {POINT_COUNTS[1]}."
        for point in self.think_md:
            yield from self.text_complaints("A point of think_md", point, MAX_EARLIER_POINT_CHARS)


def _diary_lines(text: str) -> list[str]:
    """A diary written in one line has its sentences for lines."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [sentence.rstrip() for sentence in split_sentences(lines[0])] if len(lines) == 1 else lines


class WriteDiary(DecisionType[DiaryAnswer]):
    answer_type = DiaryAnswer

    async def pending_keys(self) -> list[str]:
        """If anything was stored since the last entry, as ruling 1 does not wait for scene notes."""
        last = await self.context.reads.last_diary()
        new = await self.context.reads.stored_since(last.written_at if last else None, limit=1)
        return [self.context.services.diary_date().isoformat()] if new else []

    async def requests(self, key: str) -> list[DecisionRequest]:
        reads = self.context.reads
        last = await reads.last_diary()
        new = await reads.stored_since(last.written_at if last else None, limit=MAX_MEMORIES_READ_FOR_DIARY)
        earlier = last.text if last and last.date == key else ""
        return diary_requests(key, new, earlier, (await reads.thoughts()).points)

    async def apply(
        self, work: UnitOfWork, answer: DiaryAnswer, current: DecisionRequestState
    ) -> dict[str, int] | Rejected:
        request = current.request
        last, thoughts = await work.transaction.last_diary(), await work.transaction.thoughts()
        today = last if last and last.date == request.date else None
        if (request.earlier, request.think) != shortened_diary(today.text if today else "", thoughts.points):
            # Its words may be of a memory that is forgotten by now, and would come back with a new text.
            return Rejected("What was written before has changed since: nothing was written. Take a new offer.")
        offered = tuple(memory.id for memory in request.memories)
        work.diary = DiaryEntry(
            date=request.date,
            text=answer.diary,
            sources=tuple(dict.fromkeys((*(today.sources if today else ()), *offered)))[-MAX_RECORDED_DIARY_SOURCES:],
            written_at=request.until or self.context.services.now(),
        )
        sources = tuple(dict.fromkeys((*thoughts.sources, *offered)))[-MAX_RECORDED_DIARY_SOURCES:]
        work.thoughts = Thoughts(points=answer.think_md, sources=sources)
        return {"written": 1, "points": len(answer.think_md)}


def diary_requests(date: str, memories: Sequence[Memory], earlier: str, think: Sequence[str]) -> list[DecisionRequest]:
    """At most one request: of more memories than fit the most important, in the order in which they happened."""
    earlier, points = shortened_diary(earlier, think)
    by_importance = sorted(memories, key=lambda memory: (-memory.importance, SORT_KEY_BY_EVENT_TIME(memory)))
    used = len(earlier) + sum(map(len, points))
    offered = offered_memories_within_limits(by_importance, "diary", used_characters=used)
    if not offered:
        return []
    by_id = {memory.id: memory for memory in offered}
    in_order = tuple(by_id[memory.id] for memory in sorted(memories, key=SORT_KEY_BY_EVENT_TIME) if memory.id in by_id)
    until = max(memory.created_at for memory in memories)
    return [DecisionRequest(kind="diary", memories=in_order, date=date, until=until, earlier=earlier, think=points)]


def shortened_diary(earlier: str, think: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The day's entry and the points as a request shows them."""
    points = tuple(shortened(point, MAX_EARLIER_POINT_CHARS) for point in think[:MAX_EARLIER_POINTS])
    return shortened(earlier, MAX_EARLIER_ENTRY_CHARS), points


class SessionSummarySchema(DecisionAnswerSchema):
    summary: str


@dataclass(frozen=True, slots=True)
class SessionSummaryAnswer(Resolution):
    kind = "compress"
    schema = SessionSummarySchema

    summary: str

    def normalized(self) -> SessionSummaryAnswer:
        return SessionSummaryAnswer(self.summary.strip())

    def redacted(self, redact: Redact) -> SessionSummaryAnswer:
        return SessionSummaryAnswer(redact(self.summary).text)

    def complaints(self, request: DecisionRequest) -> Iterator[str]:
        return self.text_complaints("summary", self.summary)


class CompressSessions(DecisionType[SessionSummaryAnswer]):
    answer_type = SessionSummaryAnswer
    embeds_texts = True

    async def pending_keys(self) -> list[str]:
        """Above the threshold the oldest half of it (spec L3, 3.1)."""
        threshold = self.context.services.config.compression_threshold
        sessions = await self.context.reads.unsummarised_sessions()
        oldest = sessions[: max(1, threshold // 2)] if len(sessions) > threshold else []
        return [session.session_id for session in oldest]

    async def requests(self, key: str) -> list[DecisionRequest]:
        return session_compression_requests(key, await self.context.reads.session_memories(key))

    def texts_to_embed(self, answer: SessionSummaryAnswer, current: DecisionRequestState) -> list[str]:
        return [session_summary_as_memory(answer.summary, current, self.context.services.now()).embedded_text]

    async def apply(
        self, work: UnitOfWork, answer: SessionSummaryAnswer, current: DecisionRequestState
    ) -> dict[str, int]:
        summary = session_summary_as_memory(answer.summary, current, self.context.services.now())
        work.add_memory(summary)
        work.new_vectors |= work.prepared.vectors
        work.compressed |= {memory.id: summary.id for memory in current.request.memories}
        return {"summaries": 1, "compressed": len(current.request.memories)}


def session_summary_as_memory(text: str, current: DecisionRequestState, now: datetime) -> Memory:
    """A semantic memory of the session's beginning, as important as the most important of its sources."""
    sources = [current.memories[memory.id] for memory in current.request.memories]
    first = min(sources, key=lambda memory: memory.happened_at)
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=first.being_id,
        scene=Scene(
            action=text,
            actors=tuple(dict.fromkeys(actor for memory in sources for actor in memory.scene.actors)),
            when=(first.happened_at.date().isoformat(),),
        ),
        provenance=Provenance(tool="run_patrol", session_id=current.request.session_id),
        created_at=now,
        happened_at=first.happened_at,
        importance=max(memory.importance for memory in sources),
        category="semantic",
        themes=tuple(dict.fromkeys(theme for memory in sources for theme in memory.themes))[:5],
        compression_source=True,
    )


def session_compression_requests(session_id: str, memories: Sequence[Memory]) -> list[DecisionRequest]:
    """The living episodic memories of a session that no summary stands for yet, in the order in which they happened
    (spec L3); a session too long for one request becomes several, each to be summarised by itself."""
    episodes = [m for m in memories if m.category == "episodic" and m.truth == "current" and m.valid_from is None]
    uncompressed = [m for m in episodes if m.status in LIVING_STATUSES and not m.compressed]
    parts = offered_memories_in_parts(sorted(uncompressed, key=SORT_KEY_BY_EVENT_TIME), "compress")
    return [DecisionRequest(kind="compress", memories=tuple(part), session_id=session_id) for part in parts]
