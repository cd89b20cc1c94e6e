"""A context for the next answer (spec P5, H5, L4): find what may go into it, then fit that into the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta

from madeleine.memory.context.asked import BLOCKS, Block, BuiltContext, ContextQuery, TagSearch
from madeleine.memory.context.built import built
from madeleine.memory.context.fitting import fitted
from madeleine.memory.context.flags import LITE, ContextFlags
from madeleine.memory.context.history import other_chats, this_chat
from madeleine.memory.context.pieces import Found, pieces_of
from madeleine.memory.context.ports import ContextLedger
from madeleine.memory.context.profile import in_order
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.ports import Embedder
from madeleine.memory.recall.ports import Activation, ActivationLog
from madeleine.memory.recall.recall import Query, Recall, RecallResult
from madeleine.memory.rules.prompting.blocks import SNAPSHOT, SYSTEM_PROMPT, Part
from madeleine.memory.rules.prompting.saying import PROMPT
from madeleine.memory.scope import Scope

RECENT_NODES = 5
DIARY_DAYS = 7
MOST_NOTES = 1_000
"""Which of them fit is for the token limit to decide, which says what it drops."""
RECALL_TOKENS = 2000
"""Of the memory block at most (spec L2)."""

TOKEN_LIMIT = 8000

_PARTS_OF: dict[Block, tuple[Part, ...]] = {
    "system_prompt": SYSTEM_PROMPT,
    "snapshot": SNAPSHOT,
    "recent_nodes": ("recent_nodes",),
    "memory_block": ("memory_block",),
    "memories": ("memories",),
    "history_current_chat": ("history_current_chat",),
    "history_recent": ("history_recent",),
    "diary": ("diary",),
    "thoughts": ("thoughts",),
}


class BuildContext:
    """The use case. Of what it shows only the memory block counts, as any recall does: a context is built each turn,
    and what is shown because it came to mind lately would keep itself alive."""

    def __init__(
        self,
        ledger: ContextLedger,
        recall: Recall,
        search: TagSearch,
        embedder: Embedder,
        activations: ActivationLog,
        *,
        now: Callable[[], datetime],
        today: Callable[[], date],
        flags: ContextFlags | None = None,
        token_limit: int = TOKEN_LIMIT,
    ) -> None:
        """`flags` and `token_limit`: for a caller who says nothing else."""
        self._ledger = ledger
        self._recall = recall
        self._search = search
        self._embedder = embedder
        self._activations = activations
        self._now = now
        self._today = today
        self.flags = flags or ContextFlags()
        self.token_limit = token_limit

    async def __call__(self, scope: Scope, query: ContextQuery) -> BuiltContext:
        """Raises `StorageError`, `IndexUnavailable`."""
        query = replace(query, blocks=switched_on(query))
        parts = {part for one in query.blocks for part in _PARTS_OF.get(one, ())} - switched_off(query)
        found = await self._found(scope, query, parts)
        pieces = [piece for piece in pieces_of(found, query.flags) if piece.part in parts]
        fit = await fitted(pieces, self._embedder, limit=query.token_limit, with_notice="system_prompt" in query.blocks)
        made = built(query, found, fit)
        now = self._now()
        self._activations.add(scope, [Activation(memory.id, 1, now) for memory, _ in made.recalled])
        return made

    async def _found(self, scope: Scope, query: ContextQuery, parts: set[Part]) -> Found:
        ledger, flags, items = self._ledger, query.flags, query.flags.items
        lite = flags.prompt_lite_mode
        asked = bool(query.message) and items > 0
        since = (self._today() - timedelta(days=DIARY_DAYS - 1)).isoformat()
        found = Found()
        if parts & {*SYSTEM_PROMPT, "knowledge"}:
            found = replace(found, entries=in_order(await ledger.profile(scope)))
        if "thoughts" in parts:
            found = replace(found, thoughts=(await ledger.thoughts(scope)).points)
        if "notes" in parts:
            found = replace(found, notes=await ledger.open_notes(scope, limit=MOST_NOTES))
        if "diary" in parts:
            days = await ledger.diary_since(scope, since, limit=LITE if lite else DIARY_DAYS)
            found = replace(found, diary=days)
        if "recent_nodes" in parts:
            limit = LITE if lite else RECENT_NODES
            found = replace(found, recent_nodes=await ledger.recently_activated(scope, limit=limit))
        if "history_current_chat" in parts and items:
            said = await this_chat(ledger, scope, query.session_id, query.message, limit=items)
            found = replace(found, current_chat=said)
        if "history_recent" in parts and items:
            unified = flags.unified_history
            said = await other_chats(ledger, scope, query.session_id, unified=unified, limit=items)
            found = replace(found, other_chats=said)
        if "memories" in parts and asked:
            found = replace(found, hits=await self._hits(scope, query))
        if "memory_block" in parts and asked:
            recalled = await self._recalled(scope, query)
            found = replace(found, recalled=recalled.memories, meaning_off=recalled.meaning_off)
        return found

    async def _hits(self, scope: Scope, query: ContextQuery) -> tuple[SearchHit, ...]:
        """spec H1 to H4. Conversations only where a history is on, and that of all interfaces: the search cannot tell
        one session or interface from another."""
        flags = query.flags
        return await self._search(
            replace(scope, count_activations=False),
            query.message,
            limit=flags.items,
            include_chat=(flags.enable_history_current_chat or flags.enable_history_recent) and flags.unified_history,
            include_diary=flags.enable_ai_diary,
        )

    async def _recalled(self, scope: Scope, query: ContextQuery) -> RecallResult:
        """Not counted yet: some of it may not fit."""
        asked = Query(text=query.message, limit=query.flags.items, token_budget=RECALL_TOKENS)
        return await self._recall(replace(scope, count_activations=False), asked, PROMPT)


def switched_on(query: ContextQuery) -> frozenset[Block]:
    """Of the blocks that are wanted those that no flag takes away (spec H5)."""
    flags = query.flags
    on: dict[Block, bool] = {
        "memories": flags.enable_memories,
        "memory_block": flags.enable_memories,
        "history_current_chat": flags.enable_history_current_chat,
        "history_recent": flags.enable_history_recent,
        "diary": flags.enable_ai_diary,
        "thoughts": flags.enable_thoughts,
        "tags_placeholder": flags.enable_tags_placeholder,
    }
    return frozenset(one for one in BLOCKS if one in query.blocks and on.get(one, True))


def switched_off(query: ContextQuery) -> set[Part]:
    """Parts that a block has with others and a flag takes away."""
    off: dict[Part, bool] = {"diary": not query.flags.enable_ai_diary, "thoughts": not query.flags.enable_thoughts}
    return {part for part, gone in off.items() if gone}
