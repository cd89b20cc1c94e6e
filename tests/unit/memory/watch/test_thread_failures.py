"""spec T1 to T6: a memory thread whose model, index or disk fails, or whose budget is spent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import IndexUnavailable, LanguageModelUnavailable, StorageFull, UnusableAnswer
from madeleine.memory.language_model import Prompt
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import AgentExtractedMemory
from madeleine.memory.watch.thread import (
    MAX_SNIPPET_READING_FAILURES,
    MAX_UNUSABLE_ANSWERS_PER_SNIPPET,
    SPENT_TOKEN_BUDGET_PAUSE,
    MemoryExtractionConfig,
)
from tests.doubles import ADA, BOB
from tests.household import rows
from tests.unit.memory.watch.talks import Said, Talks, copies, memory, shown, talks

LYON: Said = ("user", "I moved to Lyon in May with my two cats.")
NICE: Said = ("assistant", "Congratulations!")
BOSS: Said = ("user", "My boss Samira is leaving the company.")


def away(prompt: Prompt) -> Exception:
    return LanguageModelUnavailable("mind-1", "it is asleep")


def useless(prompt: Prompt) -> Exception:
    return UnusableAnswer("mind-1", "it was cut off at 1,000 tokens.")


def broken(prompt: Prompt) -> Exception:
    return ValueError("nobody expected this")


def of_lyon(wrong: Callable[[Prompt], Exception], prompt: Prompt) -> Any:
    """Wrong for what tells of Lyon."""
    return wrong(prompt) if "Lyon" in prompt.text else copies(prompt)


async def test_while_the_model_is_away_nothing_is_lost_and_it_is_asked_ever_more_seldom(home: Talks) -> None:
    home.answers(away)
    await home.say(LYON, NICE)
    asked: list[int] = []
    for _ in range(60):
        await home.poll()
        asked.append(home.mind.asked("extract"))
        home.clock.advance(timedelta(seconds=30))
    assert asked[:4] == [1, 2, 2, 3], "after 30 s, then after a minute"
    assert asked[-1] == 6, "half an hour: at 0, 30, 90, 210, 450, 930 s"
    for _ in range(40):
        home.clock.advance(timedelta(hours=1))
        await home.poll()
    assert home.mind.asked("extract") == 46, "never given up, at most an hour apart"
    home.answers(copies)
    home.clock.advance(timedelta(hours=1))
    assert (await home.poll()).counts["stored"] == 1


async def test_a_model_that_is_away_is_not_asked_about_every_session(home: Talks) -> None:
    for number in range(5):
        await home.say(LYON, NICE, session=f"s{number}")
    home.answers(away)
    await home.poll()
    await home.poll()
    assert home.mind.asked("extract") == 1
    home.answers(copies)
    home.clock.advance(home.thread.config.retry_delay)
    assert (await home.poll_all()).counts["read"] == 5


async def test_answers_that_cannot_be_used_are_asked_for_again_and_then_left(
    home: Talks, caplog: pytest.LogCaptureFixture
) -> None:
    home.answers(useless)
    await home.say(LYON, NICE)
    for _ in range(MAX_UNUSABLE_ANSWERS_PER_SNIPPET):
        assert home.waits() == [("s", 0, 2)]
        await home.poll()
        assert (await home.poll()).counts["asked"] == 0, "not in a loop"
        home.clock.advance(timedelta(hours=1))
    assert home.mind.asked("extract") == MAX_UNUSABLE_ANSWERS_PER_SNIPPET
    assert home.waits() == []
    assert "are skipped" in caplog.text
    assert "Lyon" not in caplog.text
    home.answers(copies)
    await home.say(BOSS, NICE)
    assert (await home.poll()).counts["stored"] == 1


async def test_across_restarts_a_hopeless_snippet_is_left_too(home: Talks) -> None:
    home.answers(useless)
    await home.say(LYON, NICE)
    for _ in range(MAX_SNIPPET_READING_FAILURES):
        home.thread = home.thread_over(home.ledger.memories)
        await home.poll()
        assert home.waits() == [("s", 0, 2)]
        home.clock.advance(timedelta(hours=1))
    home.thread = home.thread_over(home.ledger.memories)
    await home.poll()
    assert home.waits() == []


async def test_what_fails_again_and_again_is_left(home: Talks, caplog: pytest.LogCaptureFixture) -> None:
    home.answers(broken)
    await home.say(LYON, NICE)
    for _ in range(MAX_SNIPPET_READING_FAILURES):
        await home.poll()
        assert home.waits() == [("s", 0, 2)]
        home.clock.advance(timedelta(hours=1))
    caplog.clear()
    assert (await home.poll()).counts["abandoned"] == 1
    assert home.waits() == []
    assert [(record.levelname, record.exc_info) for record in caplog.records] == [("WARNING", None)]
    home.answers(copies)
    await home.say(BOSS, NICE)
    await home.poll()
    assert await home.texts() == [BOSS[1]]


async def test_a_session_that_fails_keeps_no_other_waiting(home: Talks) -> None:
    await home.say(LYON, NICE, session="bad")
    home.clock.advance(timedelta(seconds=1))
    await home.say(BOSS, NICE, session="good")
    for wrong in (useless, broken):
        home.answers(partial(of_lyon, wrong))
        await home.poll()
        home.clock.advance(timedelta(hours=1))
    assert await home.texts() == [BOSS[1]]
    assert home.waits() == [("bad", 0, 2)]


async def test_what_nobody_expected_is_logged_and_tried_again(home: Talks, caplog: pytest.LogCaptureFixture) -> None:
    home.answers(broken)
    await home.say(LYON, NICE)
    assert (await home.poll()).counts["failed"] == 1
    assert [record.exc_info is not None for record in caplog.records if record.levelno == logging.ERROR] == [True]
    home.answers(copies)
    await home.poll()
    assert await home.texts() == []
    home.clock.advance(timedelta(seconds=30))
    await home.poll()
    assert await home.texts() == [LYON[1]]


async def test_without_the_index_no_quote_is_known_and_it_is_tried_again(
    home: Talks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await home.say(LYON, NICE)

    async def away(*args: Any) -> Any:
        raise IndexUnavailable("The server is down.")

    with monkeypatch.context() as patched:
        patched.setattr(home.index, "candidates", away)
        assert (await home.poll()).counts["failed"] == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    home.clock.advance(timedelta(seconds=30))
    assert (await home.poll()).counts["stored"] == 1


async def test_a_full_disk_ends_the_turn_and_the_next_one_goes_on(
    home: Talks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await home.say(LYON, NICE)

    async def full(*args: Any, **fields: Any) -> Any:
        raise StorageFull("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(home.ledger.memories, "commit_store_batch", full)
        await home.poll()
    assert "The disk is full." in caplog.text
    assert (await home.poll()).counts["stored"] == 1


async def test_a_turn_that_dies_after_storing_doubles_nothing_whatever_the_model_says_then(
    home: Talks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between storing and saying so; and meanwhile the conversation goes on."""

    async def dies(*args: Any, **fields: Any) -> None:
        raise SystemExit

    said = f"{LYON[1]} They are called Tom and Rosa."
    await home.say(("user", said), NICE)
    with monkeypatch.context() as patched:
        patched.setattr(home.ledger.conversations, "mark_messages_read_up_to_position", dies)
        with pytest.raises(SystemExit):
            await home.poll()
    assert await home.texts() == [said]
    assert home.waits() == [("s", 0, 2)]
    await home.say(BOSS, NICE)
    home.answers(lambda prompt: {"memories": [memory("Since May the user's home is Lyon, where two cats live.")]})
    first = await home.poll()
    assert (first.counts["repeated"], home.mind.prompts) == (1, [])
    assert home.links() == [(0, said)]
    assert home.waits() == [("s", 2, 4)]
    home.answers(copies)
    await home.poll_all()
    assert await home.texts() == sorted([said, BOSS[1]])


async def test_what_an_agent_drew_from_is_not_looked_at_though_something_earlier_waits(home: Talks) -> None:
    await home.say(BOSS)
    await home.draw(AgentExtractedMemory(ExtractedMemory("They live in Lyon.", (), 0.5)), said=LYON)
    await home.say(NICE)
    await home.poll()
    assert [(line["text"], line.get("new", False)) for line in shown(home.mind.prompts[0])] == [
        (BOSS[1], True), (LYON[1], False), (NICE[1], True)
    ]  # fmt: skip
    assert await home.texts() == [BOSS[1], "They live in Lyon."]


async def test_a_session_that_was_forgotten_whole_is_not_taken_for_what_it_was(home: Talks) -> None:
    await home.say(LYON, NICE)
    await home.poll()
    messages = await home.ledger.conversations.session_messages_between_positions(ADA, "s", start=0, end=9)
    await home.ledger.erasure.forget(ADA, [message.id for message in messages], at=home.clock())
    assert await home.texts() == [LYON[1]]
    await home.say(BOSS, NICE)
    result = await home.poll()
    assert (result.counts["repeated"], result.counts["stored"]) == (0, 1)
    assert [text for _, text in home.links()] == [BOSS[1]]


async def test_what_it_may_spend_in_a_day_is_not_exceeded_across_restarts(
    templates: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """spec O10. Each answer costs a hundred; what it may cost at most is between 1,600 and 1,700."""
    async with talks(templates, tmp_path, MemoryExtractionConfig(token_budget=1_950)) as home:
        for number in range(6):
            await home.say(LYON if number % 2 else BOSS, NICE, session=f"s{number}")
        await home.poll_all()
        spent = home.mind.asked("extract")
        assert spent in (3, 4)
        home.thread = home.thread_over(home.ledger.memories, home.thread.config)
        home.clock.advance(SPENT_TOKEN_BUDGET_PAUSE)
        await home.poll_all()
        assert home.mind.asked("extract") == spent
        warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warned) == 2
        assert all(f"{spent * 100} of the daily budget of 1950 are spent (MADELEINE_THREAD" in one for one in warned)
        assert len(home.waits()) == 6 - spent
        assert rows(home.path, "SELECT DISTINCT purpose, input_tokens + output_tokens FROM cost_records") == [
            ("extract", 100)
        ]
        home.clock.advance(timedelta(days=1, seconds=1))
        await home.poll_all()
        assert home.mind.asked("extract") > spent


async def test_a_question_that_the_budget_never_reaches_for_keeps_no_other_waiting(
    templates: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with talks(templates, tmp_path, MemoryExtractionConfig(token_budget=1_950)) as home:
        await home.say(("user", "I moved to Lyon. " + "It rained there all day long. " * 90), NICE, session="long")
        home.clock.advance(timedelta(seconds=1))
        await home.say(BOSS, NICE, session="short", scope=BOB)
        result = await home.poll()
        assert (result.counts["asked"], result.counts["stored"], result.counts["failed"]) == (1, 1, 0)
        assert await home.texts(BOB) == [BOSS[1]]
        assert home.waits() == [("long", 0, 2)]
        [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert "and the daily budget is 1950" in said
        assert (await home.poll()).counts == {}, "it is not looked at without end"
        home.clock.advance(SPENT_TOKEN_BUDGET_PAUSE)
        assert (await home.poll()).counts == {"read": 1, "waiting": 1}
