"""Learn from failures (spec O11): report one, have a lesson proposed and checked, find it when its condition comes up
again, and count whether it helped."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import datetime
from importlib import resources
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from madeleine.memory.embedding import Embedder, cached_vectors_of_any_precision
from madeleine.memory.errors import EmbeddingUnavailable, InvalidInput, MadeleineError
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.ingest.update_and_forget import UpdateMemory
from madeleine.memory.language_model import (
    LanguageModel,
    MeteredModel,
    ModelCallCost,
    ModelCostRecorder,
    Prompt,
    RejectedModelAnswer,
)
from madeleine.memory.lessons.ports import LessonLedger, WriteSkill
from madeleine.memory.lessons.skill import render_lesson_as_skill, skill_name_of_lesson
from madeleine.memory.lessons.values import (
    REPORT_FAILURE_TOOL_NAME,
    AgentTaskFailureReport,
    Lesson,
    LessonWithOutcomeCounts,
    reason_against_lesson,
    require_no_conversation_in_failure,
)
from madeleine.memory.model import LIVING_STATUSES, MemoryChanges, MemoryId, RunId, Scene, Scope, Vector
from madeleine.memory.recall.selection import NON_INFERABLE_MEMORIES_THEME_NAME
from madeleine.memory.rules.storing.secrets import CountingRedactor
from madeleine.memory.text.content_words import content_words
from madeleine.memory.vector_space import centred_cosines

logger = logging.getLogger(__name__)

MAX_LESSON_DISCOVERY_CHARS = 500
"""Some 100 tokens (spec O11)."""
MAX_LESSON_PART_CHARS, MAX_STEPS = 1_000, 10
MAX_LESSONS_COMPARED = 2_000
"""Of a being, the latest: all of them are compared, which takes a millisecond."""
MAX_LISTED_LESSONS = 100
MAX_LESSON_PROPOSAL_TOKENS = 1_500
LESSON_COST_RUN_ID = RunId("lesson")
LESSON_IMPORTANCE_STEP = 0.1
"""Of a lesson's memory, for each outcome."""
MIN_LESSON_IMPORTANCE = 0.1
LESSON_PROPOSAL_INSTRUCTIONS = (
    resources.files(__package__)
    .joinpath("proposal_prompt.txt")
    .read_text(encoding="utf-8")
    .format(max_discovery_chars=MAX_LESSON_DISCOVERY_CHARS, max_steps=MAX_STEPS)
)

LessonPartText = Annotated[str, Field(min_length=1, max_length=MAX_LESSON_PART_CHARS)]


class LessonProposal(BaseModel):
    """As a proposer writes it, a language model or an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    discovery: Annotated[str, Field(min_length=1, max_length=MAX_LESSON_DISCOVERY_CHARS)]
    condition: LessonPartText
    action: LessonPartText
    rationale: Annotated[str, Field(max_length=MAX_LESSON_PART_CHARS)] = ""
    steps: Annotated[tuple[LessonPartText, ...], Field(max_length=MAX_STEPS)] = ()
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.5

    def to_lesson(self) -> Lesson:
        return Lesson(**self.model_dump())


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonConfig:
    """`min_confidence`: a proposal below it is discarded (spec O11). `likeness`: centred cosine to a task from which a
    lesson applies; `benchmarks/lessons`."""

    min_confidence: float = 0.5
    likeness: float = 0.3
    limit: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonFromFailureOutcome:
    """`learnt` with `stored`, or `discarded` with the reason, or neither: then `failure` waits for a proposal.
    `notice`: why a model made none, or a skill was not written."""

    failure: AgentTaskFailureReport
    learnt: LessonWithOutcomeCounts | None = None
    stored: StoredSceneResult | None = None
    discarded: str = ""
    notice: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LearnLessons:
    """The use case. `write_skill`: None where no directory is set."""

    ledger: LessonLedger
    store: StoreScenes
    update: UpdateMemory
    embedder: Embedder
    _: KW_ONLY
    now: Callable[[], datetime]
    config: LessonConfig = field(default_factory=LessonConfig)
    write_skill: WriteSkill | None = None
    costs: ModelCostRecorder | None = None

    async def report_failure(
        self,
        scope: Scope,
        failure: AgentTaskFailureReport,
        proposal: LessonProposal | None = None,
        *,
        session_id: str = "",
        language: LanguageModel | None = None,
    ) -> LessonFromFailureOutcome:
        """Keep the lesson of a failure: as the caller proposes it, else as `language` does; without either the outcome
        waits for a proposal. Raises `InvalidInput` for a conversation or a lesson that cannot be kept, `StorageError`.
        """
        redactor = CountingRedactor(self.store.redact)
        failure = redactor.redact_fields(failure, "task", "error")
        require_no_conversation_in_failure(failure)
        notice = ""
        if proposal is not None:
            lesson = proposal.to_lesson()
            if reason := reason_against_lesson(lesson, failure):
                raise InvalidInput(f"lesson: cannot be kept. {reason} Nothing was stored.")
        elif language is None:
            return LessonFromFailureOutcome(failure=failure, redacted=redactor.found)
        else:
            try:
                lesson = await self._ask_model_for_lesson(language, scope, failure)
            except MadeleineError as error:  # what failed must not fail again here
                logger.warning("proposing a lesson failed: %s", error)
                return LessonFromFailureOutcome(failure=failure, notice=str(error), redacted=redactor.found)
        if lesson.confidence < self.config.min_confidence:
            least = self.config.min_confidence
            reason = f"Its confidence is {lesson.confidence:g}; a lesson needs {least:g}."
            return LessonFromFailureOutcome(failure=failure, discarded=reason, redacted=redactor.found)
        learnt, stored = await self._store_lesson(
            scope, redactor.redact_fields(lesson, *_LESSON_FIELDS_TO_REDACT), session_id
        )
        if self.write_skill is not None and stored.status == "stored":
            try:
                await self.write_skill(scope, skill_name_of_lesson(learnt), render_lesson_as_skill(learnt))
            except OSError as error:
                logger.warning("writing a SKILL.md failed: %s", error)
                notice = f"The lesson is kept; its SKILL.md could not be written: {error.strerror}."
        return LessonFromFailureOutcome(
            failure=failure, learnt=learnt, stored=stored, notice=notice, redacted=redactor.found
        )

    async def _ask_model_for_lesson(
        self, language: LanguageModel, scope: Scope, failure: AgentTaskFailureReport
    ) -> Lesson:
        async def record(spent: ModelCallCost) -> None:
            if self.costs is not None:
                await self.costs.record_cost(scope, LESSON_COST_RUN_ID, spent, at=self.now())

        def check(answer: LessonProposal) -> Lesson | RejectedModelAnswer:
            lesson = answer.to_lesson()
            reason = reason_against_lesson(lesson, failure)
            return RejectedModelAnswer(reason) if reason else lesson

        prompt = Prompt(
            purpose="lesson",
            system=LESSON_PROPOSAL_INSTRUCTIONS,
            text=json.dumps(asdict(failure), ensure_ascii=False),
            size="large",
            max_tokens=MAX_LESSON_PROPOSAL_TOKENS,
        )
        return await MeteredModel(language, record).answer_prompt(prompt, LessonProposal, check)

    async def _store_lesson(
        self, scope: Scope, lesson: Lesson, session_id: str
    ) -> tuple[LessonWithOutcomeCounts, StoredSceneResult]:
        scene = NewScene(
            scene=Scene(action=lesson.embedded_text),
            category="procedural",
            lesson=lesson.advice,
            themes=(NON_INFERABLE_MEMORIES_THEME_NAME,),
            session_id=session_id,
            tool=REPORT_FAILURE_TOOL_NAME,
            learnt=lesson,
        )
        [stored] = await self.store(scope, [scene])
        known = await self.ledger.lessons_with_ids(scope, [stored.memory.id])
        return (known[0] if known else LessonWithOutcomeCounts(memory=stored.memory, lesson=lesson)), stored

    async def lessons_applying_to_task_with_scores(
        self, scope: Scope, task: str, *, limit: int | None = None
    ) -> list[tuple[LessonWithOutcomeCounts, float]]:
        """The lessons whose condition the task meets, best first; none for a task that is like none. Nothing is
        counted. Raises `StorageError`."""
        known = await self.ledger.lessons(scope, limit=MAX_LESSONS_COMPARED)
        if not known:
            return []
        likeness = await self._task_similarity_per_lesson(task, known)
        scores = likeness * np.array([(1 + one.trust) / 2 for one in known])
        order = np.argsort(-scores, kind="stable")
        applying = [(known[at], round(float(scores[at]), 4)) for at in order if scores[at] >= self.config.likeness]
        return applying[: self.config.limit if limit is None else limit]

    async def _task_similarity_per_lesson(
        self, task: str, known: Sequence[LessonWithOutcomeCounts]
    ) -> NDArray[np.float64]:
        """(n,), in [0, 1]: the centred cosine as far as the model reads the task, else the share of its words that the
        lesson has."""
        asked = set(content_words(task))
        shared = [len(asked.intersection(content_words(one.lesson.embedded_text))) for one in known]
        words = np.array(shared) / max(1, len(asked))
        try:
            [query] = await self.embedder.embed([task])
        except EmbeddingUnavailable:
            return words
        hashes = [one.memory.content_hash for one in known]
        cached = await cached_vectors_of_any_precision(self.ledger, self.embedder.model_name, hashes)
        rows = np.stack([cached.get(hash_, np.zeros_like(query)) for hash_ in hashes])
        cosines = self._calibrated_centred_cosines(rows, query)
        legible = self.embedder.vector_space.legibility_of_text_behind_vector(query)
        return np.asarray(np.clip(legible * cosines + (1 - legible) * words, 0, 1), np.float64)

    def _calibrated_centred_cosines(self, rows: NDArray[np.float32], query: Vector) -> NDArray[np.float32]:
        space = self.embedder.vector_space
        cosines = np.asarray(rows @ query, np.float32)
        if (mean := space.mean_of_nearest_language(query)) is None:
            return space.calibrated_cosines(cosines)
        to_mean = np.asarray(rows @ mean / max(float(np.linalg.norm(mean)), 1e-6), np.float32)
        return space.calibrated_cosines(centred_cosines(cosines, to_mean, query, mean))

    async def lessons_not_faded(self, scope: Scope) -> list[LessonWithOutcomeCounts]:
        """The latest that have not faded, at most `MAX_LISTED_LESSONS`."""
        known = await self.ledger.lessons(scope, limit=MAX_LESSONS_COMPARED)
        return [learnt for learnt in known if learnt.memory.status in LIVING_STATUSES][:MAX_LISTED_LESSONS]

    async def load_lesson(self, scope: Scope, memory_id: MemoryId) -> LessonWithOutcomeCounts:
        """Raises `InvalidInput` if it is no lesson."""
        known = await self.ledger.lessons_with_ids(scope, [memory_id])
        if not known:
            raise InvalidInput(f"{memory_id!r} is no lesson. Take an id that lessons returned.")
        return known[0]

    async def record_lesson_outcome(
        self, scope: Scope, memory_id: MemoryId, *, helped: bool
    ) -> LessonWithOutcomeCounts:
        """Reinforce a lesson that helped, weaken one that did not: it is found less easily, and fades sooner. Raises
        `InvalidInput` if it is no lesson, `StorageError`."""
        learnt = await self.load_lesson(scope, memory_id)
        await self.ledger.record_lesson_outcome(scope, memory_id, helped=helped, at=self.now())
        change = LESSON_IMPORTANCE_STEP if helped else -LESSON_IMPORTANCE_STEP
        importance = round(min(1.0, max(MIN_LESSON_IMPORTANCE, learnt.memory.importance + change)), 4)
        await self.update(scope, memory_id, MemoryChanges(importance=importance))
        return replace(learnt, helped=learnt.helped + helped, failed=learnt.failed + (not helped))


_LESSON_FIELDS_TO_REDACT = ("discovery", "condition", "action", "rationale", "steps")
