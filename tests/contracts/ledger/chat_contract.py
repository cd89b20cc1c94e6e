"""What every ledger of conversations does (spec P1, T1, H1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

from madeleine.memory.chat import ChatRole, ConversationMessage, MessageId, UnreadMessageTotals
from madeleine.memory.context.ports import ChatReader
from madeleine.memory.model import Scope
from madeleine.memory.watch.ports import MemoryExtractionLedger, ObservationLedger
from tests.doubles import ADA, BOB, NOW
from tests.doubles_chat import a_message

SECOND = timedelta(seconds=1)
LATER = NOW + timedelta(minutes=1)


class AnyChat(ObservationLedger, ChatReader, MemoryExtractionLedger, Protocol): ...


def said(
    *texts: str, session_id: str = "s", at: datetime = NOW, stored_at: datetime = NOW
) -> list[ConversationMessage]:
    """A second apart."""
    return [
        a_message(text, session_id=session_id, at=at + place * SECOND, stored_at=stored_at)
        for place, text in enumerate(texts)
    ]


async def appended(
    chat: AnyChat,
    *texts: str,
    session_id: str = "s",
    keys: Sequence[str | None] | None = None,
    scope: Scope = ADA,
    at: datetime = NOW,
    stored_at: datetime = NOW,
    watched: bool = False,
) -> list[MessageId]:
    messages = said(*texts, session_id=session_id, at=at, stored_at=stored_at)
    return await chat.append_messages(scope, session_id, messages, keys=keys or [None] * len(texts), watched=watched)


async def whole(chat: AnyChat, session_id: str = "s", scope: Scope = ADA) -> list[tuple[int, str]]:
    """The session, by position."""
    return [
        (one.position, one.text)
        for one in await chat.session_messages_between_positions(scope, session_id, start=0, end=99)
    ]


async def waiting(chat: AnyChat, now: datetime = LATER, limit: int = 9) -> list[tuple[str, int, int]]:
    return [
        (one.session_id, one.watched, one.messages)
        for one in await chat.sessions_with_unread_messages(now=now, limit=limit)
    ]


class ChatContract:
    async def erase(self, chat: AnyChat, ids: Sequence[MessageId], scope: Scope = ADA) -> None:
        raise NotImplementedError

    # --- observing

    async def test_messages_are_appended_in_order_and_come_back_whole(self, chat: AnyChat) -> None:
        first = a_message("Hi", role="user", speaker="Zoé", at=NOW - SECOND)
        second = a_message("Hello, Zoé", role="assistant")
        ids = await chat.append_messages(ADA, "s", [first, second], keys=[None, None])
        assert ids == [first.id, second.id]
        await appended(chat, "How are you?")
        messages = await chat.session_messages_between_positions(ADA, "s", start=0, end=9)
        assert [(one.position, one.role, one.speaker, one.text) for one in messages] == [
            (0, "user", "Zoé", "Hi"), (1, "assistant", "", "Hello, Zoé"), (2, "user", "", "How are you?"),
        ]  # fmt: skip
        assert (messages[0].at, messages[0].stored_at, messages[0].session_id) == (NOW - SECOND, NOW, "s")

    async def test_a_key_is_stored_once_in_its_session(self, chat: AnyChat) -> None:
        [one] = await appended(chat, "one", keys=["k1"])
        assert await appended(chat, "one", keys=["k1"]) == []
        new = await appended(chat, "one", "two", "two", "three", keys=["k1", "k2", "k2", None])
        assert await whole(chat) == [(0, "one"), (1, "two"), (2, "three")]
        assert [message.id for message in await chat.session_messages_between_positions(ADA, "s", start=0, end=9)] == [
            one,
            *new,
        ]
        assert len(await appended(chat, "one", session_id="other", keys=["k1"])) == 1
        assert len(await appended(chat, "one", keys=["k1"], scope=BOB)) == 1

    async def test_messages_without_a_key_are_stored_each_time(self, chat: AnyChat) -> None:
        await appended(chat, "yes")
        await appended(chat, "yes")
        assert await whole(chat) == [(0, "yes"), (1, "yes")]

    async def test_the_key_that_came_last_is_told(self, chat: AnyChat) -> None:
        assert await chat.last_message_key(ADA, "s") is None
        await appended(chat, "one", "two", "three", keys=["k1", "k2", None])
        assert await chat.last_message_key(ADA, "s") == "k2"
        assert await chat.last_message_key(BOB, "s") is None

    async def test_messages_are_found_by_their_keys(self, chat: AnyChat) -> None:
        await appended(chat, "one", "two", keys=["k1", "k2"])
        await appended(chat, "other", session_id="t", keys=["k3"])
        found = await chat.messages_by_keys(ADA, "s", ["k2", "k3", "nobody's"])
        assert {key: message.text for key, message in found.items()} == {"k2": "two"}
        assert await chat.messages_by_keys(BOB, "s", ["k2"]) == {}

    async def test_messages_are_found_by_their_ids(self, chat: AnyChat) -> None:
        one, two = await appended(chat, "one", "two")
        [theirs] = await appended(chat, "theirs", scope=BOB)
        found = await chat.messages_with_ids(ADA, [two, theirs, one, MessageId("nobody's"), two])
        assert [message.text for message in found] == ["two", "one"]

    # --- reading

    async def test_a_session_keeps_its_first_title_and_tells_its_times(self, chat: AnyChat) -> None:
        await chat.append_messages(ADA, "s", said("one", at=LATER), keys=[None], interface="cli")
        await chat.append_messages(ADA, "s", said("two", "three"), keys=[None, None], title="Tea", interface="web")
        await chat.append_messages(ADA, "s", said("four"), keys=[None], title="Coffee")
        [found] = await chat.sessions(ADA, limit=9)
        assert (found.title, found.interface, found.messages) == ("Tea", "cli", 4)
        assert (found.first_at, found.last_at) == (NOW, LATER)

    async def test_the_session_spoken_in_last_comes_first(self, chat: AnyChat) -> None:
        for number, session in enumerate(("b", "a", "c")):
            await appended(chat, "x", session_id=session, at=NOW + number // 2 * SECOND)
        assert [one.session_id for one in await chat.sessions(ADA, limit=9)] == ["c", "a", "b"]
        assert [one.session_id for one in await chat.sessions(ADA, limit=1)] == ["c"]
        assert await chat.sessions(BOB, limit=9) == []

    async def test_recent_messages_are_the_last_ones_oldest_first(self, chat: AnyChat) -> None:
        await appended(chat, "1", "4", session_id="s")
        await appended(chat, "2", "5", session_id="t", at=NOW + SECOND / 4)
        await appended(chat, "3", "6", session_id="u", at=NOW + SECOND / 2)
        await appended(chat, "x", scope=BOB, at=LATER)

        async def texts(limit: int, session_id: str | None = None, other_than: str | None = None) -> list[str]:
            found = await chat.recent_messages(ADA, limit=limit, session_id=session_id, other_than=other_than)
            return [message.text for message in found]

        assert await texts(4) == ["3", "4", "5", "6"]
        assert await texts(9, session_id="t") == ["2", "5"]
        assert await texts(1, session_id="t") == ["5"]
        assert await texts(3, other_than="t") == ["3", "4", "6"]
        assert await texts(9, session_id="nobody's") == []

    async def test_a_conversation_is_shown_in_the_project_of_its_first_message(self, chat: AnyChat) -> None:
        boat, house = replace(ADA, project="boat"), replace(ADA, project="house")
        await appended(chat, "varnish", session_id="b", scope=boat)
        await appended(chat, "it is dry", session_id="b", scope=house)
        await appended(chat, "roof", session_id="h", scope=house)
        await appended(chat, "bread", session_id="everywhere")
        for scope, shown in ((boat, "b"), (house, "h"), (ADA, "")):
            sessions = {one.session_id: one.project for one in await chat.sessions(scope, limit=9)}
            assert sessions == {"everywhere": None} | ({shown: scope.project} if shown else {})
            recent = await chat.recent_messages(scope, limit=9, other_than="none")
            assert {one.session_id for one in recent} == set(sessions)
        assert len(await chat.sessions(ADA, limit=9, all_projects=True)) == 3
        unread = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert {one.session_id: one.project for one in unread} == {"b": "boat", "h": "house", "everywhere": None}
        assert len(await chat.recent_messages(ADA, limit=9, session_id="b")) == 2

    async def test_what_was_said_in_one_moment_keeps_its_order(self, chat: AnyChat) -> None:
        await chat.append_messages(ADA, "s", [a_message(str(n)) for n in range(9)], keys=[None] * 9)
        assert [one.text for one in await chat.recent_messages(ADA, limit=9)] == list("012345678")

    # --- watching

    async def test_new_messages_wait_to_be_looked_at(self, chat: AnyChat) -> None:
        """spec T1"""
        await appended(chat, "one", "two")
        assert await waiting(chat) == [("s", 0, 2)]
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=2)
        assert await waiting(chat) == []
        await appended(chat, "three")
        assert await waiting(chat) == [("s", 2, 3)]
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=99)
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=1)
        assert await waiting(chat) == []

    async def test_who_waits_longest_is_looked_at_first(self, chat: AnyChat) -> None:
        await appended(chat, "1", session_id="b", stored_at=NOW + SECOND)
        await appended(chat, "1", session_id="a", scope=BOB, stored_at=NOW)
        await appended(chat, "1", session_id="c", stored_at=NOW + 2 * SECOND)
        await appended(chat, "2", session_id="a", scope=BOB, stored_at=NOW + 3 * SECOND)
        assert await waiting(chat) == [("a", 0, 2), ("b", 0, 1), ("c", 0, 1)]
        assert await waiting(chat, limit=1) == [("a", 0, 2)]
        await chat.mark_messages_read_up_to_position(BOB, "a", up_to=1)
        assert await waiting(chat) == [("b", 0, 1), ("c", 0, 1), ("a", 1, 2)]

    async def test_what_failed_is_tried_again_when_it_is_due(self, chat: AnyChat) -> None:
        await appended(chat, "one")
        await chat.retry_session_later(ADA, "s", next_try=LATER, failed=True)
        await chat.retry_session_later(ADA, "s", next_try=LATER, failed=True)
        await appended(chat, "two")
        assert await chat.sessions_with_unread_messages(now=LATER - SECOND, limit=9) == []
        [found] = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert (found.being_id, found.watched, found.messages, found.failures) == (ADA.being_id, 0, 2, 2)
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=1)
        [found] = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert (found.watched, found.failures) == (1, 0)

    async def test_what_is_put_off_waits_and_has_not_failed(self, chat: AnyChat) -> None:
        await appended(chat, "one")
        await appended(chat, "Bob's", scope=BOB)
        await chat.retry_session_later(ADA, "s", next_try=LATER, failed=False)
        [theirs] = await chat.sessions_with_unread_messages(now=LATER - SECOND, limit=9)
        assert theirs.being_id == BOB.being_id
        _, found = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert (found.being_id, found.watched, found.messages, found.failures) == (ADA.being_id, 0, 1, 0)

    async def test_what_was_put_off_waits_for_a_new_message_or_for_its_time(self, chat: AnyChat) -> None:
        """spec T2"""
        await appended(chat, "one", "two")
        await chat.postpone_unread_messages(ADA, "s", up_to=2, until=LATER)
        assert await waiting(chat, LATER - SECOND) == []
        assert await waiting(chat, LATER) == [("s", 0, 2)]
        assert await chat.unread_message_totals_across_beings() == UnreadMessageTotals(unread=2, put_off=2)
        await appended(chat, "three", stored_at=NOW + SECOND)
        [found] = await chat.sessions_with_unread_messages(now=NOW + SECOND, limit=9)
        assert (found.watched, found.put_off, found.messages) == (0, 2, 3)
        await chat.postpone_unread_messages(ADA, "s", up_to=2, until=LATER)
        assert await waiting(chat, NOW + SECOND) == [("s", 0, 3)], "a message that came meanwhile is not put off"
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=3, abandoned=2)
        assert await chat.unread_message_totals_across_beings() == UnreadMessageTotals(abandoned=2)

    async def test_what_people_and_assistants_say_is_given_around_a_position(self, chat: AnyChat) -> None:
        roles: list[ChatRole] = ["user", "tool", "assistant", "system", "user", "tool", "assistant", "user"]
        messages = [a_message(str(place), role=role) for place, role in enumerate(roles)]
        await chat.append_messages(ADA, "s", messages, keys=[None] * len(roles))
        earlier, unread = await chat.earlier_and_unread_spoken_messages(ADA, "s", start=4, before=1, unread=2)
        assert ([one.text for one in earlier], [one.text for one in unread]) == (["2"], ["4", "6"])
        assert await chat.earlier_and_unread_spoken_messages(BOB, "s", start=4, before=9, unread=9) == ([], [])

    async def test_what_comes_watched_does_not_wait_unless_earlier_messages_do(self, chat: AnyChat) -> None:
        await appended(chat, "one", "two", watched=True)
        assert await waiting(chat) == []
        await appended(chat, "three")
        await appended(chat, "four", watched=True)
        assert await waiting(chat) == [("s", 2, 4)]

    async def test_messages_are_given_by_position(self, chat: AnyChat) -> None:
        await appended(chat, *"abcde")
        messages = await chat.session_messages_between_positions(ADA, "s", start=1, end=4)
        assert [one.text for one in messages] == ["b", "c", "d"]

    # --- beings

    async def test_no_being_sees_or_changes_another_s_conversations(self, chat: AnyChat) -> None:
        """spec P1"""
        await appended(chat, "Ada's", keys=["k"])
        await appended(chat, "Bob's", "Bob's too", keys=["k", "k2"], scope=BOB)
        assert await whole(chat) == [(0, "Ada's")]
        assert await whole(chat, scope=BOB) == [(0, "Bob's"), (1, "Bob's too")]
        assert [one.text for one in await chat.recent_messages(ADA, limit=9)] == ["Ada's"]
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=1)
        await chat.retry_session_later(ADA, "s", next_try=LATER, failed=True)
        [found] = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert (found.being_id, found.failures) == (BOB.being_id, 0)

    # --- what was forgotten

    async def test_an_erased_message_leaves_a_gap(self, chat: AnyChat) -> None:
        ids = await appended(chat, "one", "two", "three")
        await self.erase(chat, [ids[1]])
        assert await whole(chat) == [(0, "one"), (2, "three")]
        assert await waiting(chat) == [("s", 0, 3)]
        assert [one.messages for one in await chat.sessions(ADA, limit=9)] == [2]
        await appended(chat, "four")
        assert await whole(chat) == [(0, "one"), (2, "three"), (3, "four")]

    async def test_the_last_position_is_not_given_out_again(self, chat: AnyChat) -> None:
        ids = await appended(chat, "one", "two")
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=2)
        await self.erase(chat, [ids[1]])
        await appended(chat, "three")
        assert await whole(chat) == [(0, "one"), (2, "three")]
        assert await waiting(chat) == [("s", 2, 3)]

    async def test_nothing_waits_where_all_that_waited_was_erased(self, chat: AnyChat) -> None:
        await appended(chat, "one")
        await chat.mark_messages_read_up_to_position(ADA, "s", up_to=1)
        await self.erase(chat, await appended(chat, "two", "three"))
        assert await waiting(chat) == []

    async def test_a_session_goes_with_its_last_message(self, chat: AnyChat) -> None:
        ids = await appended(chat, "one", "two")
        await self.erase(chat, [ids[0]])
        [found] = await chat.sessions(ADA, limit=9)
        assert found.first_at == NOW + SECOND
        await self.erase(chat, [ids[1]])
        assert await chat.sessions(ADA, limit=9) == []
        assert await waiting(chat) == []

    async def test_a_session_that_was_erased_whole_goes_on_where_it_ended(self, chat: AnyChat) -> None:
        """What is known by its position must not be taken for what was there before."""
        ids = await chat.append_messages(ADA, "s", said("one", "two"), keys=[None, None], title="Tea", interface="cli")
        await chat.retry_session_later(ADA, "s", next_try=LATER, failed=True)
        await self.erase(chat, ids)
        new = said("three", at=LATER, stored_at=LATER)
        await chat.append_messages(ADA, "s", new, keys=[None], title="Tea", interface="web")
        assert await whole(chat) == [(2, "three")]
        [found] = await chat.sessions_with_unread_messages(now=LATER, limit=9)
        assert (found.watched, found.messages, found.failures) == (2, 3, 0)
        [session] = await chat.sessions(ADA, limit=9)
        assert (session.title, session.interface, session.messages) == ("", "web", 1)
        assert (session.first_at, session.last_at) == (LATER, LATER)

    async def test_what_was_forgotten_is_not_taken_in_again(self, chat: AnyChat) -> None:
        """A transcript is read again and again."""
        ids = await appended(chat, "one", "two", keys=["k1", "k2"])
        await self.erase(chat, ids)
        assert await appended(chat, "one", "two", keys=["k1", "k2"]) == []
        assert await chat.sessions(ADA, limit=9) == []
        assert len(await appended(chat, "one", keys=["k1"], session_id="other")) == 1
        assert len(await appended(chat, "one", keys=["k1"], scope=BOB)) == 1
        await appended(chat, "two", "three", keys=["k2", "k3"])
        assert await whole(chat) == [(2, "three")]
