"""Conversations as Claude and ChatGPT export them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.memory.moving.sources.exported_conversations import (
    CHATGPT_INTERFACE,
    CLAUDE_INTERFACE,
    UnreadableConversationReport,
    read_exported_conversations,
)
from madeleine.memory.watch.observe import ObservedConversationPart
from tests.chat_exports import chatgpt, claude, node
from tests.rows import for_each_row

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def read(*found: Any, limit: int = 1000) -> list[ObservedConversationPart | UnreadableConversationReport]:
    return list(read_exported_conversations([json.dumps(found)], max_text_chars=limit))


def one(found: Any, limit: int = 1000) -> ObservedConversationPart:
    [read_one] = read(found, limit=limit)
    assert isinstance(read_one, ObservedConversationPart), read_one
    return read_one


def why(found: Any) -> str:
    [read_one] = read(found)
    assert isinstance(read_one, UnreadableConversationReport)
    return read_one.reason


def told(found: ObservedConversationPart) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in found.messages]


# --- Claude


def test_a_conversation_of_claude_is_read() -> None:
    found = one(claude(("human", "Where is the harbour?"), ("assistant", "South.")))
    assert (found.session_id, found.title, found.interface) == ("c-1", "The harbour", CLAUDE_INTERFACE)
    assert told(found) == [("user", "Where is the harbour?"), ("assistant", "South.")]
    assert [message.key for message in found.messages] == ["c-1-0", "c-1-1"]
    assert found.messages[1].at == datetime(2025, 1, 2, 3, 5, tzinfo=UTC)


def test_of_claude_s_content_what_was_said_is_kept_and_what_was_attached_is_named() -> None:
    export = claude(("assistant", "as it was shown"), ("human", ""), ("human", "older exports"))
    export["chat_messages"][0]["content"] = [
        {"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "I look."}, {"type": "tool_use", "name": "x"},
        {"type": "tool_result", "content": []}, {"type": "text", "text": "South."}, "?", {"type": "text"},
    ]  # fmt: skip
    export["chat_messages"][1]["attachments"] = [{"file_name": "plan.txt", "extracted_content": "a long plan"}]
    export["chat_messages"][1]["files"] = [{"file_name": "map.png"}, {"file_name": "plan.txt"}]
    del export["chat_messages"][2]["content"]
    assert told(one(export)) == [
        ("assistant", "I look.\n\nSouth."), ("user", "[attached: plan.txt]\n\n[attached: map.png]"),
        ("user", "older exports"),
    ]  # fmt: skip


def test_a_message_of_claude_without_a_time_is_of_the_time_of_the_one_before() -> None:
    export = claude(("human", "a"), ("assistant", "b"))
    for message in export["chat_messages"]:
        del message["created_at"]
    assert {message.at for message in one(export).messages} == {datetime(2025, 1, 2, 3, 4, tzinfo=UTC)}


# --- ChatGPT


def test_a_conversation_of_chatgpt_is_the_branch_that_was_seen_last() -> None:
    found = one(
        chatgpt(
            node("root", None), node("a", "root", "user", "Where is the harbour?"),
            node("b", "a", "assistant", "North."), node("c", "a", "assistant", "South."),
            node("d", "c", "user", "Thanks"), current="d",
        )
    )  # fmt: skip
    assert (found.session_id, found.title, found.interface) == ("g-1", "The harbour", CHATGPT_INTERFACE)
    assert told(found) == [("user", "Where is the harbour?"), ("assistant", "South."), ("user", "Thanks")]
    assert [message.key for message in found.messages] == ["m-a", "m-c", "m-d"]
    assert found.messages[0].at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_of_chatgpt_s_nodes_only_what_was_said_is_kept() -> None:
    hidden = {"metadata": {"is_visually_hidden_from_conversation": True}}
    code = {"content": {"content_type": "code", "text": "search()"}}
    parts = ["Look", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}, {"text": "heard"}, 7]
    nodes = [
        node("a", None, "system", "You are ChatGPT"), node("b", "a", "user", "hidden", **hidden),
        node("c", "b", "user", "Look", content={"content_type": "multimodal_text", "parts": parts}),
        node("d", "c", "assistant", "", **code), node("e", "d", "assistant", "to a tool", recipient="python"),
        node("f", "e", "tool", "a result"), node("g", "f", "assistant", "", content={"content_type": "thoughts"}),
        node("h", "g", "assistant", "South\ue200cite\ue202turn0search1\ue201.", recipient="all"), node("i", "h"),
    ]  # fmt: skip
    assert told(one(chatgpt(*nodes, current="i"))) == [("user", "Look\n\n[image]\n\nheard"), ("assistant", "South.")]


def test_without_a_current_node_the_last_one_is_it() -> None:
    export = chatgpt(node("a", None, "user", "Hi"), node("b", "a", "assistant", "Hello"), current="b")
    del export["current_node"]
    assert len(one(export).messages) == 2


# --- what is wrong


@for_each_row(
    ("found", "reason"),
    [
        (7, "it is a number, not an object"),
        (None, "it is null, not an object"),
        ({"title": "x"}, "it has neither chat_messages"),
        ({"chat_messages": []}, "it has no uuid that names it"),
        ({"chat_messages": {}, "uuid": "u"}, "its chat_messages is an object, not a list"),
        ({"chat_messages": ["x"], "uuid": "u"}, "message 1 is a text, not an object"),
        ({"mapping": [], "id": "u"}, "its mapping is a list, not an object"),
        ({"mapping": {}}, "it has no conversation_id or id"),
        (chatgpt(node("a", "z", "user", "x"), current="a"), "its mapping has no node 'z'"),
        (chatgpt(node("a", "b"), node("b", "a"), current="a"), "its mapping goes in a circle at 'a'"),
    ],
)
def test_what_is_wrong_with_a_conversation_is_named(found: Any, reason: str) -> None:
    assert why(found).startswith(reason)


def test_one_that_cannot_be_read_does_not_keep_the_others_back() -> None:
    found = read(claude(("human", "a")), {"title": "Broken", "mapping": 3}, chatgpt(node("a", None, "user", "b")))
    assert [type(each) for each in found] == [
        ObservedConversationPart,
        UnreadableConversationReport,
        ObservedConversationPart,
    ]
    assert found[1] == UnreadableConversationReport(2, "Broken", "its mapping is a number, not an object")


def test_what_is_too_long_for_a_message_becomes_several_and_what_says_nothing_none() -> None:
    found = one(claude(("human", "word " * 8), ("assistant", " \n"), ("human", "\ud83dx\x00")), limit=20)
    assert [(message.key, message.text.strip()) for message in found.messages] == [
        ("c-1-0", "word word word word"), ("c-1-0#1", "word word word word"), ("c-1-2", "?x"),
    ]  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)
@given(st.data())
def test_whatever_stands_in_a_field_it_is_read_or_named(data: st.DataObject) -> None:
    export: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                claude(("human", "a"), ("assistant", "b")),
                chatgpt(node("a", None, "user", "x"), node("b", "a", "assistant", "y"), current="b"),
            ]
        )
    )
    export = json.loads(json.dumps(export))
    place: Any = export
    while True:
        name = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not (isinstance(place[name], dict | list) and place[name] and data.draw(st.booleans())):
            break
        place = place[name]
    place[name] = data.draw(ANYTHING)
    for found in read(export):
        if isinstance(found, ObservedConversationPart):
            assert all(message.text.strip() and message.key for message in found.messages)
