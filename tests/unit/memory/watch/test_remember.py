"""spec T4 to T6: from what was extracted to memories, over the real ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.watch.extraction import ExtractedMemory, ExtractedMemoryWithMessages
from madeleine.memory.watch.observe import AgentExtractedMemory
from madeleine.memory.watch.remember import ExtractedMemoryStoreResult
from tests.doubles import ADA, BOB
from tests.unit.memory.watch.talks import Said, Talks, talks

LYON = ExtractedMemory("Ada moved to Lyon in May with her two cats.", ("joy", "fear"), 0.8, "Ask about the cats.")
SAID: Said = ("user", "I moved to Lyon in May with my two cats.")


@pytest.fixture
async def home(templates: Path, tmp_path: Path) -> AsyncIterator[Talks]:
    async with talks(templates, tmp_path) as found:
        yield found


async def messages(home: Talks, *said: Said, session: str = "s", scope: Any = ADA) -> list[ConversationMessage]:
    await home.say(*said, session=session, speaker="Ada", scope=scope)
    return (await home.ledger.conversations.recent_messages(scope, limit=100, session_id=session))[-len(said) :]


async def remember(
    home: Talks, extracted: ExtractedMemory, sources: list[ConversationMessage], **more: Any
) -> ExtractedMemoryStoreResult:
    fields: dict[str, Any] = {"session_id": "s", "tool": "thread", "scope": ADA} | more
    [found] = await home.remember(
        fields.pop("scope"), [ExtractedMemoryWithMessages(extracted, tuple(sources))], **fields
    )
    return found


async def test_the_four_dimensions_become_a_memory_with_speaker_day_and_source(home: Talks) -> None:
    """spec T3, T4"""
    outcome = await remember(home, LYON, await messages(home, SAID))
    [kept] = await home.kept()
    assert (outcome.outcome, outcome.memory_id) == ("stored", kept.id)
    assert (kept.scene.action, kept.emotions, kept.importance, kept.lesson) == (
        LYON.essence, LYON.emotions, LYON.weight, LYON.lesson
    )  # fmt: skip
    assert (kept.scene.actors, kept.scene.when, kept.category) == (("Ada",), ("2026-03-01",), "episodic")
    assert (kept.provenance.tool, kept.provenance.session_id) == ("thread", "s")
    assert home.links() == [(0, LYON.essence)]


async def test_done_again_it_is_done_once(home: Talks) -> None:
    """A turn that was repeated, as after a crash."""
    history = await messages(home, SAID)
    first = await remember(home, LYON, history)
    again = await remember(home, LYON, history)
    assert (again.outcome, again.status, again.memory_id) == ("repeated", "stored", first.memory_id)
    assert [(one.access_count, one.scene.action) for one in await home.kept()] == [(0, LYON.essence)]


async def test_said_again_on_another_day_it_is_reinforced(home: Talks) -> None:
    """spec T6: access count and last access; its own day stays."""
    await remember(home, LYON, await messages(home, SAID))
    home.clock.advance(timedelta(days=3))
    again = ExtractedMemory("Ada moved to Lyon with two cats.", (), 0.9)
    outcome = await remember(home, again, await messages(home, SAID, session="t"), session_id="t")
    [kept] = await home.kept()
    assert outcome.outcome == "reinforced"
    assert (kept.access_count, kept.last_accessed, kept.importance) == (1, home.clock(), 0.9)
    assert (kept.scene.action, kept.scene.when) == (LYON.essence, ("2026-03-01",))
    assert len(home.links()) == 2


@pytest.mark.parametrize(
    "essence",
    [
        "Ada moved to Paris in May with her two cats.",
        "Ada moved to Lyon in June with her two cats.",
        "Ada moved to Lyon in May with her three cats.",
        "Ada did not move to Lyon in May with her two cats.",
        "Ada moved to Lyon in May with her two cats and found work at the opera.",
    ],
)
async def test_a_fact_that_differs_or_is_new_is_another_memory(home: Talks, essence: str) -> None:
    """spec T6"""
    history = await messages(home, SAID)
    await remember(home, LYON, history)
    outcome = await remember(home, ExtractedMemory(essence, (), 0.5), history)
    assert outcome.outcome == "stored"
    assert len(await home.kept()) == 2


async def test_a_new_lesson_is_kept_with_the_event_that_taught_it(home: Talks) -> None:
    """Ruling 13: a lesson put otherwise makes no second memory, and is not lost."""
    history = await messages(home, SAID)
    await remember(home, LYON, history)
    await remember(home, ExtractedMemory(LYON.essence, (), 0.5, "Never ask about the cats."), history)
    assert [one.lesson for one in await home.kept()] == ["Ask about the cats.\nNever ask about the cats."]


async def test_what_the_assistant_alone_tells_of_a_memory_changes_nothing(home: Talks) -> None:
    [old] = await home.keep(LYON.essence)
    history = await messages(home, ("user", "Where do I live?"), ("assistant", "You moved to Lyon, I remember."))
    for sources in (history, history[1:]):
        outcome = await remember(home, ExtractedMemory("The user moved to Lyon in May.", (), 0.5), sources)
        assert (outcome.outcome, outcome.memory_id) == ("quoted", old.id)
    assert [one.access_count for one in await home.kept()] == [0]
    assert home.links() == []


async def test_secrets_are_redacted(home: Talks) -> None:
    history = await messages(home, ("user", "my password is hunter2pass1"))
    await remember(home, ExtractedMemory("The password is hunter2pass1", (), 0.5), history)
    [kept] = await home.texts()
    assert "hunter2" not in kept


async def test_secrets_in_a_memory_of_an_agent_are_redacted_and_counted(home: Talks) -> None:
    token = "ghp_" + "a1B2" * 9
    secret = f"my token is {token}"
    observed = await home.draw(AgentExtractedMemory(ExtractedMemory(secret, (), 0.5, secret)), said=SAID)
    assert observed.redacted == {"github token": 2}
    [kept] = await home.kept()
    assert kept.scene.action == kept.lesson == "my token is [redacted: github token]"
    assert token not in str(kept)


async def test_two_beings_have_each_their_own(home: Talks) -> None:
    """spec P1"""
    await remember(home, LYON, await messages(home, SAID))
    outcome = await remember(home, LYON, await messages(home, SAID, scope=BOB), scope=BOB)
    assert outcome.outcome == "stored"
    assert await home.texts(ADA) == await home.texts(BOB) == [LYON.essence]
    assert (await home.remember.ledger.idempotency_key_outcomes(BOB, ["thread-unknown"])) == {}


async def test_two_that_say_the_same_at_once_become_one(home: Talks) -> None:
    history = tuple(await messages(home, SAID))
    same = ExtractedMemory(LYON.essence, LYON.emotions, 0.5, LYON.lesson)
    other = ExtractedMemory("Ada's cats are called Tom and Rosa.", (), 0.5)
    outcome = await home.remember(
        ADA,
        [ExtractedMemoryWithMessages(one, history) for one in (LYON, same, other)],
        session_id="s",
        tool="thread",
        keys=["a", "b", "c"],
    )
    assert [one.outcome for one in outcome] == ["stored", "reinforced", "stored"]
    assert len(await home.kept()) == 2


async def test_without_the_embedding_model_it_goes_by_words(home: Talks) -> None:
    await home.keep(LYON.essence)
    home.embedder.available = False
    outcome = await remember(
        home, ExtractedMemory("Ada moved to Lyon with two cats.", (), 0.5), await messages(home, SAID)
    )
    assert outcome.outcome == "reinforced"


# --- what an agent drew itself, by `observe` --------------------------------------------------------------------


async def test_what_an_agent_drew_is_kept_as_the_thread_would(home: Talks) -> None:
    """spec T4"""
    seen = await home.draw(AgentExtractedMemory(LYON), said=SAID)
    assert [one.status for one in seen.memories] == ["stored"]
    again = await home.draw(
        AgentExtractedMemory(ExtractedMemory("Ada moved to Lyon in May.", (), 0.3)), said=SAID, session="t"
    )
    assert [(one.status, one.repeated) for one in again.memories] == [("reinforced", False)]
    [kept] = await home.kept()
    assert (kept.provenance.tool, kept.access_count) == ("observe", 1)
    assert home.waits() == []


async def test_an_agent_that_draws_from_what_it_recalled_adds_nothing(home: Talks) -> None:
    [old, other] = await home.keep(LYON.essence, "We shared ramen at the counter, and it rained all night.")
    drawn = [AgentExtractedMemory(ExtractedMemory(text, (), 0.5)) for text in (
        LYON.essence,
        "The user moved to Lyon in May with two cats.",
        f"{LYON.essence} We shared ramen at the counter.",
    )]  # fmt: skip
    seen = await home.draw(*drawn, said=("assistant", f"I remember: {LYON.essence} / ramen at the counter"))
    assert [one.memory.id for one in seen.memories] == [old.id, old.id, old.id]
    assert [(one.status, one.repeated) for one in seen.memories] == [("reinforced", True)] * 3
    assert {one.id for one in await home.kept()} == {old.id, other.id}


async def test_a_dead_memory_told_by_the_assistant_is_not_stored_again(home: Talks) -> None:
    [old] = await home.keep(LYON.essence)
    with sqlite3.connect(home.path) as connection:
        connection.execute("UPDATE memories SET status = 'dead'")
    seen = await home.draw(
        AgentExtractedMemory(LYON), said=("assistant", "You once moved to Lyon in May with your two cats.")
    )
    assert [one.memory.id for one in seen.memories] == [old.id]
    assert len(await home.kept()) == 1


async def test_a_preference_of_the_person_is_routed_like_any_other(home: Talks) -> None:
    """ruling 15"""
    said = await messages(home, ("user", "I prefer short answers."), ("assistant", "The user prefers long answers."))
    await remember(home, ExtractedMemory("The user prefers short answers.", (), 0.5, themes=("style",)), said[:1])
    await remember(home, ExtractedMemory("The user prefers long answers.", (), 0.5), said[1:])
    assert [(one.scene.action, one.category, one.themes) for one in await home.kept()] == [
        ("The user prefers long answers.", "episodic", ()),
        ("The user prefers short answers.", "procedural", ("style",)),
    ]


async def test_told_on_five_days_with_other_lessons_and_feelings_it_is_one_memory(home: Talks) -> None:
    """ruling 13"""
    for day, (emotion, lesson) in enumerate(zip(
        ("joy", "fear", "relief", "pride", "love"),
        ("", "Ask about the cats.", "Ask how the cats are.", "Ask about the cats!", "Ask about her cats."),
        strict=True,
    )):  # fmt: skip
        again = ExtractedMemory("Ada moved to Lyon in May with her two cats.", (emotion,), 0.5, lesson)  # type: ignore[arg-type]
        session = f"day {day}"
        await remember(home, again, await messages(home, SAID, session=session), session_id=session)
        home.clock.advance(timedelta(days=1))
    assert [one.access_count for one in await home.kept()] == [4]
