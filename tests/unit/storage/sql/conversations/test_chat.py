"""Conversations in SQL: what was drawn from them, how they are forgotten, and how they are found."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from madeleine.memory.audit import AuditQuery
from madeleine.memory.chat import MessageId
from madeleine.memory.errors import InvalidInput, SourcesForgotten
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import ErasureResult
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import Memory, Scene
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.remember import FindMemoriesSimilarToTexts, RememberExtractedMemories
from tests.contracts.ledger.chat_contract import appended, said, waiting, whole
from tests.doubles import ADA, BOB, NOW, WordEmbedder
from tests.household import Household, household, rows
from tests.unit.memory.watch.talks import NearIndex


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Household]:
    async with household(tmp_path / "memory.db") as home:
        yield home


def links(home: Household) -> set[tuple[str, str]]:
    return {
        (message, memory) for message, memory in rows(home.path, "SELECT message_id, memory_id FROM message_memories")
    }


async def test_messages_of_another_session_are_refused(home: Household) -> None:
    with pytest.raises(InvalidInput, match="session"):
        await home.ledger.conversations.append_messages(ADA, "t", said("a", session_id="s"), keys=[None])


async def drawn(home: Household, sources: Mapping[str, Sequence[MessageId]]) -> list[Memory]:
    """Memories of these texts, linked to their messages."""
    scenes = [NewScene(scene=Scene(action=text), sources=tuple(ids)) for text, ids in sources.items()]
    store = StoreScenes(home.ledger.memories, NearIndex(), WordEmbedder(), now=lambda: NOW)
    return [answer.memory for answer in await store(ADA, scenes)]


async def test_a_memory_is_only_drawn_from_messages_that_its_being_has(home: Household) -> None:
    """spec P1, ruling 25"""
    one, gone = await appended(home.ledger.conversations, "a", "b")
    [theirs] = await appended(home.ledger.conversations, "c", scope=BOB)
    await home.ledger.erasure.forget(ADA, [gone], at=NOW)
    for missing in (theirs, gone):
        with pytest.raises(SourcesForgotten) as caught:
            await drawn(home, {"tea": [one, missing]})
        assert caught.value.ids == {missing}
    assert links(home) == set()
    [mine] = await drawn(home, {"tea at five": [one, one]})
    assert links(home) == {(one, mine.id)}


async def test_with_a_memory_go_the_messages_that_it_was_drawn_from(home: Household) -> None:
    """ruling 11"""
    one, two, three = await appended(home.ledger.conversations, "tea", "gate", "rain")
    gone, stays = await drawn(home, {"tea at five": [one, two], "the garden gate": [two]})
    erased = await home.ledger.erasure.forget(ADA, [gone.id], at=NOW)
    assert erased == ErasureResult((gone.id,), (stays.id,), 0, (one, two))
    assert await whole(home.ledger.conversations) == [(2, "rain")]
    assert links(home) == set()
    [message] = await home.ledger.conversations.messages_with_ids(ADA, [three])
    assert message.text == "rain"
    assert (await home.now(stays)).scene.action == "the garden gate"


async def test_a_message_is_forgotten_by_itself_and_what_was_drawn_from_it_is_told(home: Household) -> None:
    one, two = await appended(home.ledger.conversations, "tea", "rain")
    [tea] = await drawn(home, {"tea at five": [one]})
    assert await home.ledger.erasure.forget(ADA, [one], at=NOW) == ErasureResult((), (tea.id,), 0, (one,))
    assert await whole(home.ledger.conversations) == [(1, "rain")]
    assert await home.ledger.erasure.forget(ADA, [one], at=NOW) == ErasureResult()
    both = await home.ledger.erasure.forget(ADA, [tea.id, two], at=NOW)
    assert both == ErasureResult((tea.id,), (), 0, (two,))


async def test_no_being_forgets_another_s_messages(home: Household) -> None:
    """spec P1"""
    [theirs] = await appended(home.ledger.conversations, "coffee", scope=BOB)
    assert await home.ledger.erasure.forget(ADA, [theirs], at=NOW) == ErasureResult()
    assert await whole(home.ledger.conversations, scope=BOB) == [(0, "coffee")]


@pytest.mark.parametrize(
    ("title", "left"), [("About xylophones", ""), ("XYLOPHONES", ""), ("The year in review", "The year in review")]
)
async def test_a_title_that_tells_of_what_is_forgotten_goes_with_it(home: Household, title: str, left: str) -> None:
    messages = said("Zoé sold the xylophones", "It rains")
    one, _ = await home.ledger.conversations.append_messages(ADA, "s", messages, keys=[None, None], title=title)
    await home.ledger.erasure.forget(ADA, [one], at=NOW)
    [session] = await home.ledger.conversations.sessions(ADA, limit=9)
    assert session.title == left
    # Who reads the transcript or the export again still knows it by its title.
    await home.ledger.conversations.append_messages(ADA, "s", said("It snows"), keys=[None], title=title)
    [session] = await home.ledger.conversations.sessions(ADA, limit=9)
    assert session.title == left


async def test_what_is_written_and_forgotten_is_audited_by_ids(home: Household) -> None:
    """spec O4"""
    ids = await appended(home.ledger.conversations, "a", "b")
    await home.ledger.erasure.forget(ADA, ids[:1], at=NOW)
    found = [(entry.event, entry.ids) for entry in await home.ledger.audit.audit_entries(AuditQuery())]
    assert found == [("observe", tuple(ids)), ("forget", (ids[0],))]


async def test_what_is_found_by_its_words_is_folded_with_its_speaker(home: Household) -> None:
    """spec H2"""
    message = said("Ｓtraße")[0]
    await home.ledger.conversations.append_messages(ADA, "s", [message], keys=[None])
    assert rows(home.path, "SELECT folded FROM messages") == [(" strasse",)]


async def test_a_look_for_work_walks_no_session_that_was_looked_at(home: Household) -> None:
    """spec T1: every five seconds"""
    statement = "SELECT session_id FROM sessions WHERE watched < messages AND next_try <= 7 ORDER BY next_try LIMIT 9"
    with closing(sqlite3.connect(home.path)) as connection:
        [plan] = [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert "ix_sessions_unwatched" in plan
    assert "B-TREE" not in plan


async def test_what_an_agent_drew_is_stored_and_linked_once(home: Household) -> None:
    store = StoreScenes(home.ledger.memories, home.index, home.embedder, now=home.clock)
    similar = FindMemoriesSimilarToTexts(home.ledger.recall, NearIndex(), home.embedder)
    remember = RememberExtractedMemories(store.store_already_redacted_scenes, home.ledger.memories, similar)
    ids = await appended(home.ledger.conversations, "I live by the harbour", "How lovely")
    messages = await home.ledger.conversations.messages_with_ids(ADA, ids)
    one = ExtractedMemory("She lives by the harbour.", ("joy", "love"), 0.7, "Ask about the sea.")
    stored = await remember.store_memory_extracted_by_agent(ADA, "s", one, messages, key="r")
    again = await remember.store_memory_extracted_by_agent(ADA, "s", one, messages, key="r")
    assert stored is not None
    assert again is not None
    assert (again.memory.id, again.repeated) == (stored.memory.id, True)
    memory = await home.now(stored.memory)
    assert (memory.scene.action, memory.importance, memory.emotions) == (one.essence, 0.7, ("joy", "love"))
    assert (memory.lesson, memory.provenance.tool, memory.provenance.session_id) == (one.lesson, "observe", "s")
    assert memory.happened_at.date() == messages[-1].at.date()
    assert memory.access_count == 0
    assert links(home) == {(id_, memory.id) for id_ in ids}


async def test_messages_survive_the_patrol_and_its_undoing(home: Household) -> None:
    await appended(home.ledger.conversations, "a", "b")
    await home.store("tea", "coffee", session_id="s")
    await home.undo((await home.run_patrol()).run_id)
    assert await whole(home.ledger.conversations) == [(0, "a"), (1, "b")]
    assert await waiting(home.ledger.conversations) == [("s", 0, 2)]
