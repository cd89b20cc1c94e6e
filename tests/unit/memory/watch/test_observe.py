"""Observing a conversation, over conversations in lists."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from madeleine.memory.chat import ConversationMessage, NewConversationMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.model import Scope
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import (
    AgentExtractedMemory,
    ObserveConversation,
    ObserveConversationResult,
    ObservedConversationPart,
)
from tests.doubles import ADA, NOW, Clock, a_memory
from tests.doubles_chat import FakeChat

TOKEN = "ghp_" + "a1B2" * 9
HARBOUR = ExtractedMemory("She lives by the harbour.", ("joy",), 0.7)


class Remembered:
    """`RememberAgentMemory` that records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str], str]] = []
        """(essence, texts of the messages, request)"""

    async def __call__(
        self,
        scope: Scope,
        session_id: str,
        extracted: ExtractedMemory,
        messages: Sequence[ConversationMessage],
        key: str = "",
    ) -> StoredSceneResult:
        self.calls.append((extracted.essence, [message.text for message in messages], key))
        return StoredSceneResult(memory=a_memory(extracted.essence), status="stored", redacted={"a memory's secret": 1})


class Room:
    def __init__(self) -> None:
        self.chat = FakeChat()
        self.remembered = Remembered()
        self.observe = ObserveConversation(self.chat, self.remembered, now=Clock())

    async def __call__(
        self, *messages: NewConversationMessage, request: str = "", **more: Any
    ) -> ObserveConversationResult:
        return await self.observe(
            ADA, ObservedConversationPart(session_id="s", messages=messages, **more), request=request
        )

    async def texts(self) -> list[str]:
        return [
            message.text for message in await self.chat.session_messages_between_positions(ADA, "s", start=0, end=99)
        ]


@pytest.fixture
def room() -> Room:
    return Room()


def user(text: str, **more: Any) -> NewConversationMessage:
    return NewConversationMessage(role="user", text=text, **more)


async def test_what_was_said_is_kept_and_told(room: Room) -> None:
    found = await room(
        user("Hi", key="k1"), NewConversationMessage(role="assistant", text="Hello", speaker="Bob"), title="Greetings"
    )
    assert [(one.position, one.role, one.speaker, one.text) for one in found.new_messages] == [
        (0, "user", "", "Hi"), (1, "assistant", "Bob", "Hello"),
    ]  # fmt: skip
    assert (found.known_count, found.last_key, found.memories) == (0, "k1", ())
    [session] = await room.chat.sessions(ADA, limit=9)
    assert session.title == "Greetings"


async def test_messages_that_do_not_say_when_were_said_one_after_the_other(room: Room) -> None:
    found = await room(user("a"), user("b", at=NOW - timedelta(days=9)), user("c"))
    first, second, third = (one.at for one in found.new_messages)
    assert (first, second) == (NOW, NOW - timedelta(days=9))
    assert first < third < NOW + timedelta(milliseconds=1)


async def test_without_messages_only_the_last_key_is_told(room: Room) -> None:
    await room(user("a", key="k1"))
    found = await room()
    assert (found.new_messages, found.known_count, found.last_key) == ((), 0, "k1")


async def test_a_call_that_is_made_again_keeps_nothing_twice(room: Room) -> None:
    drawn = [AgentExtractedMemory(HARBOUR)]
    first = await room(user("a"), user("b", key="k"), request="r1", memories=drawn)
    again = await room(user("a"), user("b", key="k"), request="r1", memories=drawn)
    assert await room.texts() == ["a", "b"]
    assert (len(first.new_messages), len(again.new_messages), again.known_count) == (2, 0, 2)
    assert room.remembered.calls[0] == room.remembered.calls[1] == (HARBOUR.essence, ["a", "b"], "r1-memory-0")
    await room(user("a"), request="r2")
    assert await room.texts() == ["a", "b", "a"]


async def test_secrets_never_reach_the_ledger(room: Room) -> None:
    """Those of a memory are taken out where it is stored (test_remember.py), and counted here."""
    secret = f"my token is {TOKEN}"
    drawn = AgentExtractedMemory(HARBOUR)
    found = await room(user(secret, speaker=secret), title=secret, interface=secret, memories=[drawn])
    assert found.redacted == {"github token": 4, "a memory's secret": 1}
    [session] = await room.chat.sessions(ADA, limit=9)
    for text in (found.new_messages[0].text, found.new_messages[0].speaker, session.title, session.interface):
        assert text.startswith("my token is ")
        assert TOKEN not in text


async def test_a_key_that_is_a_secret_is_refused(room: Room) -> None:
    with pytest.raises(InvalidInput, match="key: looks like a secret"):
        await room(user("a"), user("b", key=TOKEN))
    assert await room.texts() == []


async def test_a_session_id_that_is_a_secret_is_refused(room: Room) -> None:
    """Two such would become one session, and share their keys."""
    with pytest.raises(InvalidInput, match="session_id: looks like a secret"):
        await room.observe(ADA, ObservedConversationPart(session_id=TOKEN, messages=[user("a", key="k")]))
    assert await room.chat.sessions(ADA, limit=9) == []


async def test_what_an_agent_drew_is_of_the_messages_that_it_names(room: Room) -> None:
    await room(user("zero", key="k0"), user("one", key="k1"))
    await room(
        user("two", key="k2"),
        user("one", key="k1"),
        user("three"),
        memories=[
            AgentExtractedMemory(ExtractedMemory("of all", (), 0.1)),
            AgentExtractedMemory(ExtractedMemory("of two", (), 0.2), ("k0", 2, "k0")),
            AgentExtractedMemory(ExtractedMemory("of a known one", (), 0.3), (1,)),
        ],
    )
    assert room.remembered.calls == [
        ("of all", ["one", "two", "three"], ""), ("of two", ["zero", "three"], ""), ("of a known one", ["one"], ""),
    ]  # fmt: skip


async def test_what_was_forgotten_is_no_source(room: Room) -> None:
    found = await room(user("secret", key="k0"))
    room.chat.erase(ADA, [found.new_messages[0].id])
    again = await room(user("secret", key="k0"), user("other"), memories=[AgentExtractedMemory(HARBOUR)])
    assert (again.known_count, await room.texts()) == (1, ["other"])
    assert room.remembered.calls == [(HARBOUR.essence, ["other"], "")]


async def test_nothing_is_stored_of_what_is_of_forgotten_messages_alone(room: Room) -> None:
    said = [user("secret", key="k0"), user("other", key="k1")]
    found = await room(*said)
    room.chat.erase(ADA, [found.new_messages[0].id])
    drawn = [
        AgentExtractedMemory(HARBOUR, ("k0",)),
        AgentExtractedMemory(HARBOUR, (0,)),
        AgentExtractedMemory(ExtractedMemory("It rains.", (), 0.5), ("k0", 1)),
    ]
    again = await room(*said, memories=drawn)
    assert room.remembered.calls == [("It rains.", ["other"], "")]
    assert [one and one.memory.scene.action for one in again.memories] == [None, None, "It rains."]
    assert (await room(said[0], memories=[AgentExtractedMemory(HARBOUR)])).memories == (None,)
    assert len(room.remembered.calls) == 1


@pytest.mark.parametrize("place", [1, -1])
async def test_a_place_that_the_call_has_not_is_refused_before_anything_is_kept(room: Room, place: int) -> None:
    with pytest.raises(InvalidInput, match="which has 1, counted from 0"):
        await room(user("a"), memories=[AgentExtractedMemory(HARBOUR, (place,))])
    assert await room.texts() == []


async def test_a_key_that_the_session_has_not_is_refused(room: Room) -> None:
    with pytest.raises(InvalidInput, match="no message with the key 'k9'"):
        await room(user("a"), memories=[AgentExtractedMemory(HARBOUR, (0, "k9"))])
    assert room.remembered.calls == []


async def test_what_the_agent_has_looked_at_the_thread_need_not(room: Room) -> None:
    await room(user("a"), memories=[AgentExtractedMemory(HARBOUR)])
    assert await room.chat.sessions_with_unread_messages(now=NOW, limit=9) == []
    await room(user("b"))
    assert [one.watched for one in await room.chat.sessions_with_unread_messages(now=NOW, limit=9)] == [1]


async def test_where_nothing_can_be_remembered_what_was_drawn_is_refused(room: Room) -> None:
    only_keeps = ObserveConversation(room.chat, now=Clock())
    with pytest.raises(InvalidInput, match="Nothing was stored"):
        await only_keeps(
            ADA,
            ObservedConversationPart(session_id="s", messages=[user("a")], memories=[AgentExtractedMemory(HARBOUR)]),
        )
    assert await room.texts() == []


async def test_a_caller_who_goes_away_leaves_nothing_half_done(room: Room) -> None:
    reached, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Remembered):
        async def __call__(self, *args: Any, **fields: Any) -> StoredSceneResult:
            reached.set()
            await go_on.wait()
            return await super().__call__(*args, **fields)

    slow = Slow()
    observe = ObserveConversation(room.chat, slow, now=Clock())
    seen = ObservedConversationPart(session_id="s", messages=[user("a")], memories=[AgentExtractedMemory(HARBOUR)])
    caller = asyncio.create_task(observe(ADA, seen))
    await reached.wait()
    [inner] = [task for task in asyncio.all_tasks() if "_store" in repr(task)]
    caller.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await inner
    assert len(slow.calls) == 1
