"""Query, flags and result of a context (spec P5, H5, L4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory
from madeleine.memory.patrol_records import DiaryEntry

ContextBlockName = Literal[
    "system_prompt", "snapshot", "recent_nodes", "memory_block", "memories",
    "history_current_chat", "history_recent", "diary", "thoughts", "tags_placeholder", "start",
]  # fmt: skip
CONTEXT_BLOCK_NAMES_FOR_MESSAGE: tuple[ContextBlockName, ...] = tuple(
    block for block in get_args(ContextBlockName) if block != "start"
)
"""Of a message; `start`, the beginning of a conversation, needs none (ruling 18)."""

MAX_ITEMS_PER_CONTEXT_LIST_IN_LITE_MODE = 2
"""Items of each list in lite mode (spec H5)."""


class ContextFlags(BaseModel):
    """The context flags of spec H5, which are settings as well. `context_verbosity` limits memories, messages of this
    chat and messages of other chats, each."""

    model_config = ConfigDict(frozen=True)

    enable_memories: bool = True
    context_verbosity: Annotated[int, Field(ge=0, le=50)] = 5
    unified_history: bool = True
    prompt_lite_mode: bool = False
    enable_history_current_chat: bool = True
    enable_history_recent: bool = True
    enable_ai_diary: bool = True
    ai_diary_full: bool = False
    enable_thoughts: bool = True
    enable_tags_placeholder: bool = False

    @property
    def item_limit(self) -> int:
        return (
            min(self.context_verbosity, MAX_ITEMS_PER_CONTEXT_LIST_IN_LITE_MODE)
            if self.prompt_lite_mode
            else self.context_verbosity
        )

    @property
    def disabled_blocks(self) -> frozenset[str]:
        enabled = {
            "memories": self.enable_memories,
            "memory_block": self.enable_memories,
            "history_current_chat": self.enable_history_current_chat,
            "history_recent": self.enable_history_recent,
            "diary": self.enable_ai_diary,
            "thoughts": self.enable_thoughts,
            "tags_placeholder": self.enable_tags_placeholder,
        }
        return frozenset(block for block, on in enabled.items() if not on)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextQuery:
    """`message`: the message to answer; "" for none, and then nothing is recalled or searched. `token_limit`: for the
    whole prompt, counted by the embedding model's tokenizer."""

    message: str = ""
    session_id: str = ""
    token_limit: int
    blocks: frozenset[ContextBlockName] = frozenset(CONTEXT_BLOCK_NAMES_FOR_MESSAGE)
    flags: ContextFlags = field(default_factory=ContextFlags)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPromptEntryCount:
    """`count` entries of `part` that did not fit, and their tokens. `in_full`: only the full texts; the
    entries are shown, shortened."""

    part: str
    count: int
    tokens: int
    in_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext:
    """Lists hold what is left after the reduction; None for a block that was not requested or is disabled.

    `prompt` is the whole context as one text, each entry once; `turn` is the part of it that changes with each message.
    `diary` is in full or shortened. `tokens` is by block, with the prompt's `total`. `shown_ids`: ids of the memories,
    notes and messages in the prompt.
    """

    system_prompt: str = ""
    snapshot: tuple[ChatTurn, ...] = ()
    turn: str = ""
    prompt: str = ""
    recent_nodes: tuple[Memory, ...] | None = None
    memory_block: str | None = None
    recalled: tuple[tuple[Memory, float], ...] = ()
    memories: tuple[SearchHit, ...] | None = None
    history_current_chat: tuple[ConversationMessage, ...] | None = None
    history_recent: tuple[ConversationMessage, ...] | None = None
    diary: tuple[DiaryEntry, ...] | None = None
    thoughts: tuple[str, ...] | None = None
    tags_placeholder: tuple[str, ...] | None = None
    dropped: tuple[DroppedPromptEntryCount, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    shown_ids: Sequence[str] = ()
    words_only_reason: str = ""
