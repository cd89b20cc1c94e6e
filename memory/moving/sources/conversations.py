"""A conversation that is read message by message, and given on in parts: however long it is, little of it is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath

from madeleine.memory.chat import ChatRole, NewConversationMessage
from madeleine.memory.moving.sources.values import MAX_IMPORTED_LABEL_CHARS, label_from_json
from madeleine.memory.text.normalization import split_message_into_keyed_parts, storable_text
from madeleine.memory.watch.observe import ObservedConversationPart

MAX_MESSAGES_PER_CONVERSATION_PART = 1_000
MAX_CHARS_PER_CONVERSATION_PART = 1_000_000


class ImportedConversationSplitter:
    """Collects the messages of one session. The title and the session may become known while it is read."""

    def __init__(self, interface: str, *, session_id: str = "", title: str = "", max_text_chars: int) -> None:
        self.session_id = session_id
        self.title = title
        self.message_count = 0
        self.at: datetime | None = None
        """Of the last message, or of the beginning, where that is known."""
        self._interface = interface
        self._max_text_chars = max_text_chars
        self._messages: list[NewConversationMessage] = []
        self._chars = 0

    def add_and_yield_full_parts(
        self, role: ChatRole, text: str, key: str, at: datetime | None
    ) -> Iterator[ObservedConversationPart]:
        """A message without a time is of the time of the one before. Gives a part when there is enough for one."""
        self.at = at or self.at
        text = storable_text(text).strip()
        for part_key, part in split_message_into_keyed_parts(
            text, key[:MAX_IMPORTED_LABEL_CHARS], self._max_text_chars
        ):
            self._messages.append(NewConversationMessage(role=role, text=part, at=self.at, key=part_key))
            self._chars += len(part)
            self.message_count += 1
            if (
                len(self._messages) >= MAX_MESSAGES_PER_CONVERSATION_PART
                or self._chars >= MAX_CHARS_PER_CONVERSATION_PART
            ):
                yield from self.take_remaining()

    def take_remaining(self) -> Iterator[ObservedConversationPart]:
        if self._messages:
            yield ObservedConversationPart(
                session_id=self.session_id[:MAX_IMPORTED_LABEL_CHARS],
                title=label_from_json(self.title),
                interface=self._interface,
                messages=tuple(self._messages),
            )
        self._messages, self._chars = [], 0


def project_of_directory(directory: object) -> str:
    """The last part of a working directory, which names the project."""
    text = label_from_json(directory)
    return (PureWindowsPath if "\\" in text else PurePosixPath)(text).name


def session_title_prefixed_with_project(project: str, title: str = "") -> str:
    return ": ".join(part for part in (project, title) if part)


def text_of_content_blocks(content: object, types: Iterable[str] = ("text",)) -> str:
    """A text, or the texts of the blocks of these types."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    wanted = tuple(types)
    texts = (
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type", wanted[0]) in wanted and not block.get("thought")
    )
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())
