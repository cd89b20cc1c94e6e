"""Build a context for the next answer (spec P5, H5, L4): gather what is known, turn it into prompt entries, fit these
into the token limit, return the lists and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import TypeVar

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.context.ports import ContextLedger, SessionStartMemories, possibly_outdated_memory_ids
from madeleine.memory.context.profile import profile_entries_in_display_order
from madeleine.memory.context.prompt import (
    ContextMaterial,
    FittedPrompt,
    fit_prompt,
    prompt_entries_from_material,
    shown_preferences,
)
from madeleine.memory.context.values import (
    MAX_ITEMS_PER_CONTEXT_LIST_IN_LITE_MODE,
    BuiltContext,
    ChatTurn,
    ContextBlockName,
    ContextFlags,
    ContextQuery,
)
from madeleine.memory.embedding import Embedder
from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import Scope
from madeleine.memory.recall.ports import MemoryReactivation, ReactivationRecorder
from madeleine.memory.recall.recall import RecallMemories, RecallResult
from madeleine.memory.recall.search import SearchByTagsFromMessage
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.prompting import (
    ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT,
    MEMORY_BLOCK_RENDERER,
    PROMPT_PART_NAMES,
    SESSION_START_PROMPT_PARTS,
    SNAPSHOT_PARTS,
    SYSTEM_PROMPT_PARTS,
    TURN_PARTS,
    PromptPartName,
    first_sentence,
)
from madeleine.memory.rules.searching import sort_hits_newest_first

MAX_RECENT_MEMORIES_IN_CONTEXT = 5
CONTEXT_DIARY_DAYS = 7
CHAT_CANDIDATES_PER_SHOWN_HIT = 4
"""Messages looked for, for each place: some are shown in a history, or belong to another conversation."""
MAX_SESSION_START_MEMORIES_PER_GROUP = 8
"""Of each group."""
START_CHANGE_DAYS, START_DUE_DAYS = 7, 42
MAX_CONTEXT_NOTES = 1_000
"""Upper bound; the token limit decides what fits and reports what it dropped."""
MEMORY_BLOCK_TOKEN_BUDGET = 2000
"""Token budget of the memory block (spec L2)."""
DEFAULT_MAX_CONTEXT_TOKENS = 8000
MAX_SESSIONS_FILTERED_BY_CHAT_INTERFACE = 100
"""The latest sessions, among which those of one interface are looked for."""
_PARTS_AUDITED_BY_ENTRY_ID: frozenset[PromptPartName] = frozenset({"policies", "preferences", "notes", *TURN_PARTS})
"""Parts whose entries are audited by their own ids."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, eq=False)
class BuildPromptContext:
    """The use case. Only memories in the memory block that match count as recalled: a context is built each turn, and
    memories shown because they were recalled lately would keep themselves alive."""

    ledger: ContextLedger
    recall: RecallMemories
    search: SearchByTagsFromMessage
    embedder: Embedder
    activations: ReactivationRecorder
    _: KW_ONLY
    now: Callable[[], datetime]
    today: Callable[[], date]
    flags: ContextFlags = field(default_factory=ContextFlags)
    token_limit: int = DEFAULT_MAX_CONTEXT_TOKENS
    """`flags` and `token_limit`: defaults for callers that give none."""

    async def __call__(self, scope: Scope, query: ContextQuery) -> BuiltContext:
        """Raises `StorageError`, `IndexUnavailable`."""
        parts = requested_prompt_parts(query)
        material = await self._gather_material(scope, query, parts)
        entries = [entry for entry in prompt_entries_from_material(material, query.flags) if entry.part in parts]
        with_notice = not query.blocks.isdisjoint({"system_prompt", "start"})
        fit = await fit_prompt(entries, self.embedder, limit=query.token_limit, with_notice=with_notice)
        context = context_from_fitted_prompt(query, material, fit)
        now = self.now()
        matching = (memory for memory, score in context.recalled if score)
        self.activations.add_reactivations(scope, [MemoryReactivation(memory.id, 1, now) for memory in matching])
        return context

    async def _gather_material(self, scope: Scope, query: ContextQuery, parts: set[PromptPartName]) -> ContextMaterial:
        ledger, flags, limit = self.ledger, query.flags, query.flags.item_limit
        lite = flags.prompt_lite_mode
        with_message = bool(query.message) and limit > 0
        since = (self.today() - timedelta(days=CONTEXT_DIARY_DAYS - 1)).isoformat()
        diary_limit, recent_limit = (
            (MAX_ITEMS_PER_CONTEXT_LIST_IN_LITE_MODE, MAX_ITEMS_PER_CONTEXT_LIST_IN_LITE_MODE)
            if lite
            else (CONTEXT_DIARY_DAYS, MAX_RECENT_MEMORIES_IN_CONTEXT)
        )
        if query.blocks.isdisjoint({"snapshot", "diary"}):
            since, diary_limit = "", 1  # the start shows the last entry, however old
        now = self.now()
        profile_parts = {*SYSTEM_PROMPT_PARTS, "knowledge"}
        recalled = await self._recall_for_message(scope, query) if "memory_block" in parts and with_message else None
        current_chat = (
            await self._messages_of_current_chat(scope, query) if "history_current_chat" in parts and limit else []
        )
        other_chats = await self._messages_of_other_chats(scope, query) if "history_recent" in parts and limit else []
        shown = frozenset(message.id for message in (*current_chat, *other_chats))
        profile = await ledger.profile_entries(scope) if parts & profile_parts else []
        preferences = shown_preferences(profile) if "preferences" in parts else []
        preference_ids = [entry.memory_id for entry in preferences if entry.memory_id]
        return ContextMaterial(
            policies=await ledger.policies() if "policies" in parts else (),
            profile=profile_entries_in_display_order(profile),
            possibly_outdated_preferences=possibly_outdated_memory_ids(
                await self.recall.ledger.memories_with_ids(scope, preference_ids) if len(preference_ids) > 1 else ()
            ),
            core_blocks=await ledger.core_blocks(scope) if "core_blocks" in parts else (),
            thoughts=(await ledger.thoughts_for_next_session(scope)).points if "thoughts" in parts else (),
            notes=await ledger.list_open_notes(scope, limit=MAX_CONTEXT_NOTES) if "notes" in parts else (),
            diary=await ledger.diary_entries_since(scope, since, limit=diary_limit) if "diary" in parts else (),
            recent_nodes=(
                await ledger.recently_activated_memories(scope, limit=recent_limit) if "recent_nodes" in parts else ()
            ),
            start=(
                await ledger.memory_groups_for_session_start(
                    scope,
                    now=now,
                    due_until=now + timedelta(days=START_DUE_DAYS),
                    changed_since=now - timedelta(days=START_CHANGE_DAYS),
                    limit=MAX_SESSION_START_MEMORIES_PER_GROUP,
                )
                if "pinned" in parts
                else SessionStartMemories()
            ),
            current_chat=current_chat,
            other_chats=other_chats,
            hits=await self._search_hits_for_message(scope, query, shown)
            if "memories" in parts and with_message
            else (),
            recalled=(*recalled.preferences, *recalled.memories) if recalled else (),
            words_only_reason=recalled.words_only_reason if recalled else "",
        )

    async def _messages_of_current_chat(self, scope: Scope, query: ContextQuery) -> list[ConversationMessage]:
        """The session's last messages, oldest first, without the one to answer if it was observed already."""
        limit = query.flags.item_limit
        if not query.session_id:
            return []
        messages = await self.ledger.recent_messages(scope, limit=limit + 1, session_id=query.session_id)
        if messages and messages[-1].text.strip() == query.message.strip():
            messages = messages[:-1]
        return messages[-limit:]

    async def _messages_of_other_chats(self, scope: Scope, query: ContextQuery) -> list[ConversationMessage]:
        """The last messages of all other sessions, oldest first. Without `unified_history` only of those on this
        session's interface; an unknown session is taken to be on the caller's own."""
        ledger, limit, session_id = self.ledger, query.flags.item_limit, query.session_id
        if query.flags.unified_history:
            return await ledger.recent_messages(scope, limit=limit, other_than=session_id or None)
        sessions = await ledger.sessions(scope, limit=MAX_SESSIONS_FILTERED_BY_CHAT_INTERFACE)
        interface = next((chat.interface for chat in sessions if chat.session_id == session_id), scope.client)
        others = [chat.session_id for chat in sessions if chat.interface == interface and chat.session_id != session_id]
        # The last `limit` messages are in at most the `limit` latest sessions.
        messages = [
            message
            for other in others[:limit]
            for message in await ledger.recent_messages(scope, limit=limit, session_id=other)
        ]
        return sorted(messages, key=attrgetter("at"))[-limit:]

    async def _search_hits_for_message(
        self, scope: Scope, query: ContextQuery, shown: frozenset[str]
    ) -> tuple[SearchHit, ...]:
        """spec H1 to H5, newest first. Messages, first those that are not `shown` in a history, take at most half of
        the places where there are other hits, and come from this conversation or others as far as the flags allow."""
        flags, limit = query.flags, query.flags.item_limit
        scope = replace(scope, count_activations=False)
        others = flags.enable_history_recent and flags.unified_history

        def is_allowed(hit: SearchHit) -> bool:
            is_own = hit.provenance.session_id == query.session_id
            return flags.enable_history_current_chat if is_own else others

        found = await self.search(
            scope, query.message, limit=limit, include_chat=False, include_diary=flags.enable_ai_diary
        )
        if not (others or flags.enable_history_current_chat):
            return found
        in_chats = KeywordQuery(terms=(), sources=("chat",), limit=CHAT_CANDIDATES_PER_SHOWN_HIT * limit)
        messages = filter(
            is_allowed, (await self.search.search_by_tags_of_message(scope, query.message, in_chats)).hits
        )
        said = sorted(messages, key=lambda hit: hit.id in shown)[: max(limit // 2, limit - len(found))]
        return tuple(sort_hits_newest_first([*found[: limit - len(said)], *said]))

    async def _recall_for_message(self, scope: Scope, query: ContextQuery) -> RecallResult:
        """Not counted yet: some of it may not fit. The emotions of the conversation's last memory are the current ones
        (spec T7)."""
        emotions = (
            await self.ledger.emotions_of_latest_session_memory(scope, query.session_id) if query.session_id else ()
        )
        recall_query = RecallQuery(
            text=query.message, limit=query.flags.item_limit, token_budget=MEMORY_BLOCK_TOKEN_BUDGET, emotions=emotions
        )
        return await self.recall(replace(scope, count_activations=False), recall_query, MEMORY_BLOCK_RENDERER)


def requested_prompt_parts(query: ContextQuery) -> set[PromptPartName]:
    """Parts of the requested blocks that no flag disables (spec H5)."""
    blocks: set[str] = set(query.blocks)
    if "system_prompt" in blocks:
        blocks.update(SYSTEM_PROMPT_PARTS)
    if "snapshot" in blocks:
        blocks.update(SNAPSHOT_PARTS)
    if "start" in blocks:
        blocks.update(SESSION_START_PROMPT_PARTS)
    blocks -= query.flags.disabled_blocks
    return {part for part in PROMPT_PART_NAMES if part in blocks}


def context_from_fitted_prompt(query: ContextQuery, material: ContextMaterial, fit: FittedPrompt) -> BuiltContext:
    """Each requested list without the entries that were dropped."""
    texts = fit.texts
    shown = [entry for position, entry in enumerate(fit.entries) if position in fit.selection]
    dropped = {(entry.part, entry.id) for position, entry in enumerate(fit.entries) if position not in fit.selection}
    full_days = {fit.entries[position].id for position, in_full in fit.selection.items() if in_full}
    blocks = query.blocks - query.flags.disabled_blocks

    def remaining(
        block: ContextBlockName, items: Iterable[ItemT], id_of: Callable[[ItemT], str]
    ) -> tuple[ItemT, ...] | None:
        if block not in blocks:
            return None
        return tuple(item for item in items if (block, id_of(item)) not in dropped)

    days = [day if day.date in full_days else replace(day, text=first_sentence(day.text)) for day in material.diary]
    thoughts = remaining("thoughts", enumerate(material.thoughts), lambda numbered: str(numbered[0]))
    return BuiltContext(
        system_prompt=texts.system_prompt,
        snapshot=(ChatTurn("user", texts.snapshot), ChatTurn("assistant", ASSISTANT_REPLY_AFTER_MEMORY_SNAPSHOT))
        if texts.snapshot
        else (),
        turn=texts.turn,
        prompt=texts.prompt,
        recent_nodes=remaining("recent_nodes", material.recent_nodes, attrgetter("id")),
        memory_block=texts.by_part.get("memory_block", "") if "memory_block" in blocks else None,
        recalled=remaining("memory_block", material.recalled, lambda scored: scored[0].id) or (),
        memories=remaining("memories", material.hits, attrgetter("id")),
        history_current_chat=remaining("history_current_chat", material.current_chat, attrgetter("id")),
        history_recent=remaining("history_recent", material.other_chats, attrgetter("id")),
        diary=remaining("diary", days, attrgetter("date")),
        thoughts=None if thoughts is None else tuple(text for _, text in thoughts),
        tags_placeholder=() if "tags_placeholder" in blocks else None,
        dropped=tuple(fit.dropped_entry_counts()),
        tokens=fit.tokens,
        shown_ids=[audit_id_of_prompt_entry(entry.part, entry.id) for entry in shown],
        words_only_reason=material.words_only_reason,
    )


def audit_id_of_prompt_entry(part: PromptPartName, id_: str) -> str:
    """Memories, notes and messages by their ids, diary days by date, the rest by the part's name."""
    if part in _PARTS_AUDITED_BY_ENTRY_ID:
        return id_
    return f"diary/{id_}" if part == "diary" else f"profile/{part}"
