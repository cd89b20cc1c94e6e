"""Conversations as Claude and ChatGPT export them (`conversations.json`), by their shape.

Claude: a list of `{uuid, name, created_at, chat_messages: [{uuid, sender, created_at, text, content, attachments}]}`.
ChatGPT: a list of `{conversation_id, title, create_time, current_node, mapping: {node: {message, parent, children}}}`,
a tree of which the branch up from `current_node` is the conversation as it was seen last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from madeleine.memory.chat import ChatRole, NewConversationMessage
from madeleine.memory.moving.sources.json_stream import iterate_json_array
from madeleine.memory.moving.sources.values import (
    MAX_IMPORTED_LABEL_CHARS,
    ExpectedJsonValueT,
    JsonObject,
    json_objects_in_list,
    moment_from_json,
    value_of_type_or_empty,
)
from madeleine.memory.text.normalization import split_message_into_keyed_parts, storable_text
from madeleine.memory.watch.observe import ObservedConversationPart

CLAUDE_INTERFACE, CHATGPT_INTERFACE = "claude.ai", "chatgpt.com"
_CHAT_ROLE_BY_EXPORTED_ROLE: Mapping[str, ChatRole] = {"human": "user", "user": "user", "assistant": "assistant"}
_CHATGPT_CITATION_PATTERN = re.compile("\ue200[^\ue200\ue201]*+\ue201")
"""Text that ChatGPT's page replaces by a link."""
_JSON_TYPE_DESCRIPTIONS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True, slots=True)
class UnreadableConversationReport:
    """A conversation of unknown shape. `number`: its number in the file, from 1."""

    number: int
    title: str
    reason: str


class _UnexpectedExportShape(ValueError):
    """The export differs from its known shape; the message says where."""


@dataclass(frozen=True, slots=True)
class _ConversationExportFormat:
    """`id_fields`: of a conversation; a message has the last one. `messages`: in order, each with the key that it gets
    without an id. `role`: None for a message that is not shown."""

    interface: str
    id_fields: tuple[str, ...]
    title_field: str
    time_field: str
    messages: Callable[[JsonObject], Iterable[tuple[str, JsonObject]]]
    role: Callable[[JsonObject], ChatRole | None]
    text: Callable[[JsonObject], str]


def read_exported_conversations(
    chunks: Iterable[str], *, max_text_chars: int
) -> Iterator[ObservedConversationPart | UnreadableConversationReport]:
    """Read the conversations of an export, in its order. Raises `ValueError` with the place where the text is not
    JSON."""
    for place, export in enumerate(iterate_json_array(chunks), start=1):
        try:
            yield _parse_exported_conversation(export, max_text_chars)
        except _UnexpectedExportShape as error:
            title = value_of_type_or_empty(
                str,
                value_of_type_or_empty(dict, export).get("title") or value_of_type_or_empty(dict, export).get("name"),
            )
            yield UnreadableConversationReport(place, title, str(error))


def _parse_exported_conversation(export: Any, max_text_chars: int) -> ObservedConversationPart:
    export = _require_type(dict, export, "it")
    if "chat_messages" not in export and "mapping" not in export:
        raise _UnexpectedExportShape("it has neither chat_messages, as Claude's have, nor a mapping, as ChatGPT's")
    shape = _CLAUDE_FORMAT if "chat_messages" in export else _CHATGPT_FORMAT
    at = moment_from_json(export.get(shape.time_field))
    messages: list[NewConversationMessage] = []
    for fallback_key, message in shape.messages(export):
        if role := shape.role(message):
            at = moment_from_json(message.get(shape.time_field)) or at
            text = storable_text(shape.text(message)).strip()
            parts = split_message_into_keyed_parts(
                text, _first_usable_text_field(message, shape.id_fields[-1:]) or fallback_key, max_text_chars
            )
            messages += [NewConversationMessage(role=role, text=part, at=at, key=key) for key, part in parts]
    session_id = _first_usable_text_field(export, shape.id_fields)
    if not session_id:
        raise _UnexpectedExportShape(f"it has no {' or '.join(shape.id_fields)} that names it")
    title = storable_text(value_of_type_or_empty(str, export.get(shape.title_field))).strip()[:MAX_IMPORTED_LABEL_CHARS]
    return ObservedConversationPart(
        session_id=session_id, title=title, interface=shape.interface, messages=tuple(messages)
    )


# --- Claude -----------------------------------------------------------------------------------------------------


def _claude_messages(export: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for place, message in enumerate(_require_type(list, export["chat_messages"], "its chat_messages")):
        yield str(place), _require_type(dict, message, f"message {place + 1}")


def _claude_role(message: JsonObject) -> ChatRole | None:
    return _CHAT_ROLE_BY_EXPORTED_ROLE.get(str(message.get("sender")))


def _claude_text(message: JsonObject) -> str:
    """The words of the message, without thoughts and tools, and the names of its attachments."""
    blocks = json_objects_in_list(message.get("content"))
    texts = [value_of_type_or_empty(str, block.get("text")) for block in blocks if block.get("type") == "text"]
    if not blocks:
        texts = [value_of_type_or_empty(str, message.get("text"))]
    attachments = [*json_objects_in_list(message.get("attachments")), *json_objects_in_list(message.get("files"))]
    names = dict.fromkeys(
        name for attachment in attachments if (name := _first_usable_text_field(attachment, ("file_name",)))
    )
    return "\n\n".join([*(text for text in texts if text.strip()), *(f"[attached: {name}]" for name in names)])


_CLAUDE_FORMAT = _ConversationExportFormat(
    CLAUDE_INTERFACE, ("uuid",), "name", "created_at", messages=_claude_messages, role=_claude_role, text=_claude_text
)


# --- ChatGPT ----------------------------------------------------------------------------------------------------


def _chatgpt_messages(export: JsonObject) -> list[tuple[str, JsonObject]]:
    """The messages of the branch that ends at the current node."""
    mapping = _require_type(dict, export["mapping"], "its mapping")
    node = export.get("current_node") or next(reversed(mapping), None)
    branch: dict[str, Any] = {}
    while node is not None:
        if not isinstance(node, str) or not isinstance(mapping.get(node), dict):
            raise _UnexpectedExportShape(f"its mapping has no node {str(node)[:80]!r}")
        if node in branch:
            raise _UnexpectedExportShape(f"its mapping goes in a circle at {node[:80]!r}")
        branch[node] = mapping[node].get("message")
        node = mapping[node].get("parent")
    return [(node, message) for node, message in reversed(branch.items()) if isinstance(message, dict)]


def _chatgpt_role(message: JsonObject) -> ChatRole | None:
    """None for hidden messages and for those from the model to a tool."""
    role = _CHAT_ROLE_BY_EXPORTED_ROLE.get(str(value_of_type_or_empty(dict, message.get("author")).get("role")))
    hidden = value_of_type_or_empty(dict, message.get("metadata")).get("is_visually_hidden_from_conversation")
    to_a_tool = role == "assistant" and message.get("recipient") not in (None, "all")
    has_text = value_of_type_or_empty(dict, message.get("content")).get("content_type") in ("text", "multimodal_text")
    return role if has_text and not hidden and not to_a_tool else None


def _chatgpt_text(message: JsonObject) -> str:
    texts = map(
        _chatgpt_part_text,
        value_of_type_or_empty(list, value_of_type_or_empty(dict, message.get("content")).get("parts")),
    )
    return _CHATGPT_CITATION_PATTERN.sub("", "\n\n".join(text for text in texts if text.strip()))


def _chatgpt_part_text(part: Any) -> str:
    """Text, the transcript of speech, or a mark for an image."""
    if not isinstance(part, dict):
        return value_of_type_or_empty(str, part)
    image = "[image]" if part.get("content_type") == "image_asset_pointer" else ""
    return value_of_type_or_empty(str, part.get("text")) or image


_CHATGPT_FORMAT = _ConversationExportFormat(
    CHATGPT_INTERFACE, ("conversation_id", "id"), "title", "create_time",
    messages=_chatgpt_messages, role=_chatgpt_role, text=_chatgpt_text,
)  # fmt: skip


# --- values -----------------------------------------------------------------------------------------------------


def _first_usable_text_field(export: JsonObject, fields: Iterable[str]) -> str:
    """The first of the fields with a usable name; "" if there is none."""
    names = (value_of_type_or_empty(str, export.get(field)) for field in fields)
    return next(
        (name for name in names if name and len(name) <= MAX_IMPORTED_LABEL_CHARS and storable_text(name) == name), ""
    )


def _require_type(kind: type[ExpectedJsonValueT], value: Any, subject: str) -> ExpectedJsonValueT:
    if not isinstance(value, kind):
        raise _UnexpectedExportShape(
            f"{subject} is {_JSON_TYPE_DESCRIPTIONS.get(type(value), 'a number')}, not {_JSON_TYPE_DESCRIPTIONS[kind]}"
        )
    return value
