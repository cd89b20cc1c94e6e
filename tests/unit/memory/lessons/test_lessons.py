"""Lessons from failures, over the real ledger (spec O11)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lessons.__main__ import failures, found_ids, learn_all, unrelated_tasks
from madeleine.memory.errors import InvalidInput, LanguageModelUnavailable
from madeleine.memory.language_model import ModelCallCost, Prompt
from madeleine.memory.lessons.lessons import LearnLessons, LessonProposal
from madeleine.memory.lessons.skill import MAX_SKILL_NAME_CHARS, render_lesson_as_skill, skill_name_of_lesson
from madeleine.memory.lessons.values import AgentTaskFailureReport, Lesson, LessonWithOutcomeCounts
from madeleine.memory.model import MemoryId
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from tests.doubles import ADA, BOB, WordEmbedder, a_memory

FAILURE = AgentTaskFailureReport(
    task="Geocode all addresses", error="HTTP 429", tool_calls=("http_get",), retries=3, turns=9
)
PROPOSAL = LessonProposal(
    discovery="The geocoding service answers 429 after fifty requests",
    condition="Many addresses are geocoded in one go",
    action="Send at most one request a second",
    rationale="Its limit is per minute",
    steps=("Cache by address", "Wait a second between two"),
    confidence=0.9,
)
TASK = "Many addresses are to be geocoded in one go"


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[OpenedMemoryStore]:
    settings = Settings(data_dir=tmp_path / "data", skill_directory=tmp_path / "skills")
    async with open_memory_store(settings, embedder=WordEmbedder(), background=False) as memory:
        yield memory


@pytest.fixture
def lessons(memory: OpenedMemoryStore) -> LearnLessons:
    return memory.use_cases.lessons


@dataclass
class FakeProposer:
    """A language model that answers in turn."""

    answers: list[Any]
    asked: list[Prompt] = field(default_factory=list)
    name: str = "proposer"

    async def answer_prompt(self, prompt: Prompt, schema: Any, record: Any) -> Any:
        self.asked.append(prompt)
        record(ModelCallCost(purpose=prompt.purpose, model="m", input_tokens=10, output_tokens=5, usd=None))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return schema.model_validate(answer)


async def test_without_a_model_the_caller_is_asked_for_the_lesson_and_nothing_is_stored(lessons: LearnLessons) -> None:
    outcome = await lessons.report_failure(ADA, FAILURE)
    assert (outcome.learnt, outcome.failure) == (None, FAILURE)
    assert await lessons.lessons_applying_to_task_with_scores(ADA, TASK) == []


async def test_a_lesson_is_found_by_its_condition_and_by_no_other_task_or_being(lessons: LearnLessons) -> None:
    await lessons.report_failure(ADA, FAILURE, PROPOSAL)
    [(found, _)] = await lessons.lessons_applying_to_task_with_scores(ADA, TASK)
    assert found.lesson == PROPOSAL.to_lesson()
    assert found.memory.category == "procedural"
    assert found.memory.themes == ("non-inferable",)
    assert found.memory.lesson == "Send at most one request a second (Its limit is per minute)"
    assert await lessons.lessons_applying_to_task_with_scores(ADA, "Water plants") == []
    assert await lessons.lessons_applying_to_task_with_scores(BOB, TASK) == []
    with pytest.raises(InvalidInput):
        await lessons.load_lesson(BOB, found.memory.id)


async def test_a_lesson_is_no_standing_preference(memory: OpenedMemoryStore, lessons: LearnLessons) -> None:
    """Sixty lessons would fill every prompt: they come when their condition does."""
    await lessons.report_failure(ADA, FAILURE, PROPOSAL)
    assert await memory.ledger.context.profile_entries(ADA) == []
    assert await memory.ledger.recall.preferences(ADA, matching_ids=[], limit=9, include_standing=True) == []


CONVERSATIONS = ("It broke.\nuser: do it again\nassistant: sure", "- Human: why?", "**assistant**: because", "AI: done")


@pytest.mark.parametrize("text", CONVERSATIONS)
@pytest.mark.parametrize("name", ["task", "error"])
async def test_a_conversation_is_refused(lessons: LearnLessons, name: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="lines of a conversation"):
        await lessons.report_failure(ADA, replace(FAILURE, **cast(Any, {name: text})), PROPOSAL)
    assert await lessons.lessons_applying_to_task_with_scores(ADA, TASK) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"discovery": "Cats sleep", "condition": "It is noon"}, "no word of the task or the error"),
        ({"action": PROPOSAL.condition}, "says no more than its condition"),
        ({"steps": ("user: do it",)}, "quotes a conversation"),
    ],
)
async def test_a_lesson_that_teaches_nothing_is_refused(
    lessons: LearnLessons, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await lessons.report_failure(ADA, FAILURE, PROPOSAL.model_copy(update=changes))


async def test_a_guess_is_discarded(lessons: LearnLessons) -> None:
    outcome = await lessons.report_failure(ADA, FAILURE, PROPOSAL.model_copy(update={"confidence": 0.4}))
    assert (outcome.learnt, outcome.discarded) == (None, "Its confidence is 0.4; a lesson needs 0.5.")


async def test_a_model_proposes_apart_from_who_failed_and_is_told_what_is_wrong(lessons: LearnLessons) -> None:
    bad = PROPOSAL.model_copy(update={"discovery": "Cats sleep", "condition": "It is noon"}).model_dump()
    model = FakeProposer([bad, PROPOSAL.model_dump()])
    secret = "token sk-abc123DEF456ghi789JKL012mno345PQR678"
    outcome = await lessons.report_failure(ADA, replace(FAILURE, error=f"HTTP 429 for {secret}"), language=model)
    assert outcome.learnt is not None
    shown = json.loads(model.asked[0].text)
    assert shown.keys() == {"task", "error", "tool_calls", "retries", "turns"}
    assert "sk-abc" not in model.asked[0].text
    assert model.asked[1].rejected is not None


async def test_a_model_that_fails_leaves_the_failure_to_the_caller(lessons: LearnLessons) -> None:
    model = FakeProposer([LanguageModelUnavailable("m", "it is down")])
    outcome = await lessons.report_failure(ADA, FAILURE, language=model)
    assert (outcome.learnt, "it is down" in outcome.notice) == (None, True)


async def test_the_same_lesson_told_again_is_kept_once_and_secrets_are_taken_out(lessons: LearnLessons) -> None:
    first = await lessons.report_failure(ADA, FAILURE, PROPOSAL)
    steps = ("Use AKIAIOSFODNN7EXAMPLE", "Wait")
    again = await lessons.report_failure(ADA, FAILURE, PROPOSAL.model_copy(update={"steps": steps}))
    assert first.stored is not None
    assert again.stored is not None
    assert again.learnt is not None
    assert (first.stored.status, again.stored.status) == ("stored", "reinforced")
    assert again.learnt.lesson.steps == PROPOSAL.steps
    other = PROPOSAL.model_copy(
        update={"discovery": "The geocoding service hates AKIAIOSFODNN7EXAMPLE", "steps": steps}
    )
    outcome = await lessons.report_failure(ADA, FAILURE, other)
    assert outcome.learnt is not None
    assert "AKIA" not in str(outcome.learnt)


async def test_outcomes_reinforce_and_weaken(lessons: LearnLessons) -> None:
    learnt = (await lessons.report_failure(ADA, FAILURE, PROPOSAL)).learnt
    assert learnt is not None
    [(_, before)] = await lessons.lessons_applying_to_task_with_scores(ADA, TASK)
    good = await lessons.record_lesson_outcome(ADA, learnt.memory.id, helped=True)
    [(found, after)] = await lessons.lessons_applying_to_task_with_scores(ADA, TASK)
    assert (good.helped, found.helped, found.memory.importance, after) == (1, 1, 0.6, before)
    for _ in range(4):
        await lessons.record_lesson_outcome(ADA, learnt.memory.id, helped=False)
    [(found, after)] = await lessons.lessons_applying_to_task_with_scores(ADA, TASK)
    assert (found.failed, round(found.memory.importance, 2)) == (4, 0.2)
    assert after < before


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_failure_never_adds_trust_and_a_help_never_takes_it(helped: int, failed: int) -> None:
    known = LessonWithOutcomeCounts(memory=a_memory("x"), lesson=PROPOSAL.to_lesson(), helped=helped, failed=failed)
    assert replace(known, failed=failed + 1).trust < known.trust <= replace(known, helped=helped + 1).trust <= 1


async def test_a_forgotten_lesson_is_gone_with_its_steps_and_its_skill_is_named(
    memory: OpenedMemoryStore, lessons: LearnLessons, tmp_path: Path
) -> None:
    learnt = (await lessons.report_failure(ADA, FAILURE, PROPOSAL)).learnt
    assert learnt is not None
    [skill] = (tmp_path / "skills").iterdir()
    outcome = await memory.use_cases.forget(ADA, [learnt.memory.id])
    assert outcome.copies == (str(tmp_path / "skills" / skill_name_of_lesson(learnt) / "SKILL.md"),)
    assert await lessons.lessons_applying_to_task_with_scores(ADA, TASK) == []
    assert await memory.ledger.lessons.lessons_with_ids(ADA, [learnt.memory.id]) == []
    assert skill.name == skill_name_of_lesson(learnt)


# --- skills


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=900), st.lists(st.text(max_size=50), max_size=3))
def test_a_skill_has_the_form_that_the_format_asks_for(discovery: str, condition: str, steps: list[str]) -> None:
    """agentskills.io: the name is that of its folder, 1 to 64 of a-z, 0-9 and single hyphens; a description of 1 to
    1,024 signs; frontmatter that a YAML reader takes, whatever the texts hold."""
    lesson = Lesson(discovery=discovery, condition=condition, action="Do it", steps=tuple(steps))
    learnt = LessonWithOutcomeCounts(memory=replace(a_memory("x"), number=12, id=MemoryId("id")), lesson=lesson)
    name, text = skill_name_of_lesson(learnt), render_lesson_as_skill(learnt)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= MAX_SKILL_NAME_CHARS
    assert name.endswith("-m12")
    opening, first, second, closing, *_ = text.split("\n")
    assert (opening, first, closing) == ("---", f"name: {name}", "---")
    described = json.loads(second.removeprefix("description: "))
    assert 1 <= len(described) <= 1_024


# --- the benchmark's bounds, with the real model


@pytest.mark.slow
async def test_the_right_lesson_is_among_the_first_three_and_unrelated_tasks_get_none(tmp_path: Path) -> None:
    """spec O11: 60 failures; paraphrased conditions 90 %, unrelated tasks 95 %."""
    async with open_memory_store(Settings(data_dir=tmp_path / "data"), background=False) as memory:
        lessons = memory.use_cases.lessons
        ids = await learn_all(lessons)
        found = [await found_ids(lessons, row["paraphrase"]) for row in failures()]
        assert sum(id_ in shown for id_, shown in zip(ids, found, strict=True)) >= 0.9 * len(ids)
        tasks = unrelated_tasks()
        assert sum([not await found_ids(lessons, task) for task in tasks]) >= 0.95 * len(tasks)
