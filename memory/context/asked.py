"""What a caller wants of a context, and what it gets (spec P5, H5, L4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, get_args

from madeleine.memory.chat import Message
from madeleine.memory.context.flags import ContextFlags
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory
from madeleine.memory.scope import Scope

Block = Literal[
    "system_prompt", "snapshot", "recent_nodes", "memory_block", "memories",
    "history_current_chat", "history_recent", "diary", "thoughts", "tags_placeholder",
]  # fmt: skip
BLOCKS: tuple[Block, ...] = get_args(Block)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextQuery:
    """`message`: what was said just now; "" for none, and then nothing is recalled or searched. `token_limit`: of all
    that is given for a prompt, by the embedding model's tokenizer."""

    message: str = ""
    session_id: str = ""
    token_limit: int
    blocks: frozenset[Block] = frozenset(BLOCKS)
    flags: ContextFlags = field(default_factory=ContextFlags)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """An entry of the diary as it is shown. `date` is ISO."""

    date: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What did not fit: `count` pieces of `part`, or of the diary that it is not told `in_full`; and their tokens."""

    part: str
    count: int
    tokens: int
    ids: tuple[str, ...] = ()
    in_full: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltContext:
    """Each list as it is after the reduction; None for what was not asked for or is switched off.

    `prompt`: everything in one text; `turn`: of it what changes with each message. Each thing is in it once, though
    several lists may have it. `tokens` by block, and `total` of the prompt. `shown`: the ids of memories, notes and
    messages that the prompt holds.
    """

    system_prompt: str = ""
    snapshot: tuple[ChatTurn, ...] = ()
    turn: str = ""
    prompt: str = ""
    recent_nodes: tuple[Memory, ...] | None = None
    memory_block: str | None = None
    recalled: tuple[tuple[Memory, float], ...] = ()
    memories: tuple[SearchHit, ...] | None = None
    history_current_chat: tuple[Message, ...] | None = None
    history_recent: tuple[Message, ...] | None = None
    diary: tuple[Day, ...] | None = None
    thoughts: tuple[str, ...] | None = None
    tags_placeholder: tuple[str, ...] | None = None
    dropped: tuple[Dropped, ...] = ()
    tokens: Mapping[str, int] = field(default_factory=dict)
    shown: Sequence[str] = ()
    meaning_off: str = ""


class TagSearch(Protocol):
    """`memory.recall.tagged.MessageSearch`."""

    async def __call__(
        self, scope: Scope, message: str, *, limit: int, include_chat: bool, include_diary: bool = True
    ) -> tuple[SearchHit, ...]: ...
