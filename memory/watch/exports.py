"""Conversations as Claude and ChatGPT export them (`conversations.json`), by their shape.

Claude: a list of `{uuid, name, created_at, chat_messages: [{uuid, sender, created_at, text, content, attachments}]}`.
ChatGPT: a list of `{conversation_id, title, create_time, current_node, mapping: {node: {message, parent, children}}}`,
a tree of which the branch up from `current_node` is the conversation as it was seen last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from madeleine.memory.chat import ChatRole, NewMessage
from madeleine.memory.model import parse_moment
from madeleine.memory.text.json_stream import array_elements
from madeleine.memory.text.normalization import split_by_length, storable_text

CLAUDE, CHATGPT = "claude.ai", "chatgpt.com"
LONGEST_NAME = 200
_SENDERS: Mapping[str, ChatRole] = {"human": "user", "user": "user", "assistant": "assistant"}
_CITATION = re.compile("\ue200.*?\ue201", re.DOTALL)
"""What ChatGPT's page replaces by a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedConversation:
    """A conversation. `messages` may be empty: some are begun and left. Each has its key."""

    session_id: str
    title: str
    interface: str
    messages: tuple[NewMessage, ...]


@dataclass(frozen=True, slots=True)
class UnreadableConversation:
    """A conversation that is of no known shape. `place` in the file, from 1."""

    place: int
    title: str
    reason: str


class _UnexpectedShape(ValueError):
    """A conversation is not as it should be; the message says where."""


def conversations(
    chunks: Iterable[str], *, max_text_chars: int
) -> Iterator[ExportedConversation | UnreadableConversation]:
    """Of the text of an export, in its order. Raises `ValueError` where it is no JSON, and says where."""
    for place, found in enumerate(array_elements(chunks), start=1):
        try:
            one = _conversation(found)
        except _UnexpectedShape as error:
            title = found.get("title") or found.get("name") if isinstance(found, dict) else ""
            yield UnreadableConversation(place, title if isinstance(title, str) else "", str(error))
        else:
            yield replace(one, messages=tuple(_whole(one.messages, max_text_chars)))


def _conversation(found: Any) -> ExportedConversation:
    """Raises `_UnexpectedShape`."""
    if not isinstance(found, dict):
        raise _UnexpectedShape(f"it is {_kind(found)}, not an object")
    if "chat_messages" in found:
        return _claude(found)
    if "mapping" in found:
        return _chatgpt(found)
    raise _UnexpectedShape("it has neither chat_messages, as Claude's have, nor a mapping, as ChatGPT's")


def _whole(messages: Iterable[NewMessage], limit: int) -> Iterator[NewMessage]:
    """Without those that say nothing; what is too long for one message becomes several."""
    before: datetime | None = None
    for message in messages:
        before = message.at or before
        text = storable_text(message.text).strip()
        parts = [part for part in split_by_length(text, limit) if storable_text(part)]
        for place, part in enumerate(parts):
            key = f"{message.key}#{place}" if place else message.key
            yield replace(message, text=part, key=key, at=before)


# --- Claude -----------------------------------------------------------------------------------------------------


def _claude(found: Mapping[str, Any]) -> ExportedConversation:
    begun = _moment(found.get("created_at"))
    messages: list[NewMessage] = []
    for place, message in enumerate(_list(found, "chat_messages")):
        if not isinstance(message, dict):
            raise _UnexpectedShape(f"message {place + 1} is {_kind(message)}, not an object")
        role = _SENDERS.get(str(message.get("sender")))
        if role:
            key = _name(message.get("uuid")) or str(place)
            at = _moment(message.get("created_at")) or (begun if not messages else None)
            messages.append(NewMessage(role=role, text=_claude_text(message), at=at, key=key))
    return ExportedConversation(
        session_id=_id(found, "uuid"), title=_title(found, "name"), interface=CLAUDE, messages=tuple(messages)
    )


def _claude_text(message: Mapping[str, Any]) -> str:
    """What was said, without thoughts and tools, and the names of what was attached."""
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    if not blocks and isinstance(message.get("text"), str):
        texts = [message["text"]]
    attached = [*_some(message.get("attachments")), *_some(message.get("files"))]
    names = dict.fromkeys(name for one in attached if (name := _name(one.get("file_name"))))
    return "\n\n".join([*(text for text in texts if text.strip()), *(f"[attached: {name}]" for name in names)])


# --- ChatGPT ----------------------------------------------------------------------------------------------------


def _chatgpt(found: Mapping[str, Any]) -> ExportedConversation:
    begun = _moment(found.get("create_time"))
    messages: list[NewMessage] = []
    for node, message in _branch(found):
        role = _SENDERS.get(str(_dict(message.get("author")).get("role")))
        if role and _is_shown(message, role):
            key = _name(message.get("id")) or node
            at = _moment(message.get("create_time")) or (begun if not messages else None)
            messages.append(NewMessage(role=role, text=_chatgpt_text(message), at=at, key=key))
    return ExportedConversation(
        session_id=_id(found, "conversation_id", "id"),
        title=_title(found, "title"),
        interface=CHATGPT,
        messages=tuple(messages),
    )


def _branch(found: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The messages up from the current node, from the first."""
    mapping = found["mapping"]
    if not isinstance(mapping, dict):
        raise _UnexpectedShape(f"its mapping is {_kind(mapping)}, not an object")
    node = found.get("current_node") or next(reversed(mapping), None)
    branch: list[tuple[str, dict[str, Any]]] = []
    seen: set[str] = set()
    while node is not None:
        if not isinstance(node, str) or not isinstance(mapping.get(node), dict):
            raise _UnexpectedShape(f"its mapping has no node {str(node)[:80]!r}")
        if node in seen:
            raise _UnexpectedShape(f"its mapping goes in a circle at {node[:80]!r}")
        seen.add(node)
        if isinstance(message := mapping[node].get("message"), dict):
            branch.append((node, message))
        node = mapping[node].get("parent")
    return branch[::-1]


def _is_shown(message: Mapping[str, Any], role: ChatRole) -> bool:
    """Not what is hidden, nor what the model says to a tool."""
    hidden = _dict(message.get("metadata")).get("is_visually_hidden_from_conversation")
    to_a_tool = role == "assistant" and message.get("recipient") not in (None, "all")
    return not hidden and not to_a_tool and _dict(message.get("content")).get("content_type") in (
        "text", "multimodal_text",
    )  # fmt: skip


def _chatgpt_text(message: Mapping[str, Any]) -> str:
    parts = _dict(message.get("content")).get("parts")
    texts = (_part(part) for part in (parts if isinstance(parts, list) else []))
    return _CITATION.sub("", "\n\n".join(text for text in texts if text.strip()))


def _part(part: Any) -> str:
    """Text, what was heard, or that there was an image."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    return "[image]" if part.get("content_type") == "image_asset_pointer" else ""


# --- values -----------------------------------------------------------------------------------------------------


def _moment(value: Any) -> datetime | None:
    """An ISO time, or seconds since 1970."""
    if isinstance(value, str):
        return parse_moment(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (ValueError, OverflowError, OSError):  # beyond the years 1 to 9999
            return None
    return None


def _id(found: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if id_ := _name(found.get(name)):
            return id_
    raise _UnexpectedShape(f"it has no {' or '.join(names)} that names it")


def _title(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return storable_text(value).strip()[:LONGEST_NAME] if isinstance(value, str) else ""


def _name(value: Any) -> str:
    """ "" for what cannot be one."""
    return value if isinstance(value, str) and len(value) <= LONGEST_NAME and storable_text(value) == value else ""


def _list(found: Mapping[str, Any], name: str) -> list[Any]:
    value = found[name]
    if not isinstance(value, list):
        raise _UnexpectedShape(f"its {name} is {_kind(value)}, not a list")
    return value


def _some(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
