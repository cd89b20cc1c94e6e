"""What was said, and the context of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from madeleine.memory.model import Category
from madeleine.models.base import ClientAnswerBaseModel
from madeleine.models.memories import MemoryRecord, SearchHit


class ObserveMessagesResult(ClientAnswerBaseModel):
    """`new`: how many were not there yet, with their `ids`; `position`: of the first of them in its session; `known`:
    how many were there. `last_key`: of the session's last message with a key."""

    new: int
    ids: tuple[str, ...] = ()
    position: int | None = None
    known: int = 0
    last_key: str = ""
    memories: tuple[Mapping[str, str], ...] = ()
    """Id and status of each that was given."""
    redacted: Mapping[str, int] = Field(default_factory=dict)


class PromptTurn(ClientAnswerBaseModel):
    role: str
    content: str


class RecentlyActivatedMemory(ClientAnswerBaseModel):
    id: str
    text: str
    category: Category
    when: str
    last_activated: datetime | None = None


class ChatMessage(ClientAnswerBaseModel):
    id: str
    role: str
    text: str
    when: datetime | None = None
    speaker: str = ""
    session_id: str = ""


class DiaryDay(ClientAnswerBaseModel):
    when: str
    text: str


class DroppedBlockEntries(ClientAnswerBaseModel):
    """Left out for the token limit: `count` entries with `tokens` tokens of a block; `in_full`: all of it."""

    block: str
    count: int
    tokens: int
    in_full: bool = False


class PromptContext(ClientAnswerBaseModel):
    """`prompt` is the whole context as one text; the blocks follow by themselves. A block that was not asked for, or is
    switched off, is None."""

    prompt: str
    system_prompt: str | None = None
    snapshot: tuple[PromptTurn, ...] | None = None
    recent_nodes: tuple[RecentlyActivatedMemory, ...] | None = None
    memory_block: str | None = None
    memories: tuple[SearchHit, ...] | None = None
    history_current_chat: tuple[ChatMessage, ...] | None = None
    history_recent: tuple[ChatMessage, ...] | None = None
    diary: tuple[DiaryDay, ...] | None = None
    thoughts: tuple[str, ...] | None = None
    tags_placeholder: tuple[str, ...] | None = None
    sources: tuple[MemoryRecord, ...] = ()
    dropped: tuple[DroppedBlockEntries, ...] = ()
    tokens: Mapping[str, int] = Field(default_factory=dict)
    """By block; `limit` is the token limit."""
    notice: str = ""
