"""A backend that keeps everything in the process and forgets it with it: for tests, and as an example of one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from madeleine.backends.base import CompanyBackend
from madeleine.backends.config import CompanyMemoryConfig
from madeleine.backends.errors import MemoryStoreError, raised_as, require_connected
from madeleine.backends.values import (
    CoreBlock,
    CoreBlockEdit,
    MemoryEntry,
    MemoryMetadata,
    MemoryQuery,
    MemoryStoreRequest,
    OrgFact,
    OrgFactAuthor,
    OrgFactWriteRequest,
    OrgMemoryQuery,
)
from madeleine.memory.core_blocks.values import (
    DEFAULT_BLOCK_CHARS,
    CoreBlockEditKind,
    VersionedCoreBlockEdit,
    core_block_text_after_edit,
    require_core_block_text_within_limit,
)
from madeleine.memory.model import Category

_WORD = re.compile(r"\w+")


def casefolded_words_of_text(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def share_of_query_words_in_text(query: str, text: str) -> float:
    """Share of the query's words that the text has, in [0, 1]."""
    asked = casefolded_words_of_text(query)
    return len(asked & casefolded_words_of_text(text)) / len(asked) if asked else 0.0


@dataclass(frozen=True)
class _Fact:
    fact: OrgFact
    tags: tuple[str, ...]
    since: datetime
    until: datetime | None = None
    is_retracted: bool = False

    def was_true_at(self, moment: datetime | None) -> bool:
        if moment is None:
            return self.until is None and not self.is_retracted
        return not self.is_retracted and self.since <= moment and (self.until is None or moment < self.until)


class InMemoryBackend(CompanyBackend):
    """`MemoryBackend`, `MemoryCapabilities`, `SharedKnowledgeStore`, `OrgMemoryBackend` and `CoreBlockStore`, by words
    alone."""

    def __init__(self, config: CompanyMemoryConfig) -> None:
        super().__init__(config)
        self._entries: dict[str, dict[str, MemoryEntry]] = {}
        self._facts: dict[str, _Fact] = {}
        self._blocks: dict[str, dict[str, CoreBlock]] = {}
        self._last_id = 0
        self._is_connected = False

    async def connect(self) -> None:
        if self._is_connected:
            return
        self._is_connected = True
        await self._write_core_policies()

    async def disconnect(self) -> None:
        self._is_connected = False

    async def health_check(self) -> bool:
        return self._is_connected

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    @property
    def backend_name(self) -> str:
        return "in_memory"

    @property
    def supports_vector_search(self) -> bool:
        return False

    # --- each agent's own

    async def store(self, agent_id: str, request: MemoryStoreRequest) -> str:
        own = self._of(agent_id)
        entry = MemoryEntry(
            id=self._new_id("m"),
            agent_id=agent_id,
            category=request.category,
            content=request.content,
            metadata=request.metadata,
            created_at=datetime.now(UTC),
        )
        own[entry.id] = entry
        return entry.id

    async def retrieve(self, agent_id: str, query: MemoryQuery) -> tuple[MemoryEntry, ...]:
        return _matching(reversed(self._of(agent_id).values()), query)

    async def get(self, agent_id: str, memory_id: str) -> MemoryEntry | None:
        return self._of(agent_id).get(memory_id)

    async def delete(self, agent_id: str, memory_id: str) -> bool:
        return self._of(agent_id).pop(memory_id, None) is not None

    async def count(self, agent_id: str, *, category: Category | None = None) -> int:
        return sum(category in (None, entry.category) for entry in self._of(agent_id).values())

    def _of(self, agent_id: str) -> dict[str, MemoryEntry]:
        require_connected(self._is_connected)
        return self._entries.setdefault(agent_id, {})

    def _new_id(self, letter: str) -> str:
        self._last_id += 1
        return f"{letter}{self._last_id}"

    # --- what each agent keeps in its prompt

    async def core_blocks(self, agent_id: str) -> tuple[CoreBlock, ...]:
        require_connected(self._is_connected)
        blocks = self._blocks.get(agent_id, {})
        return tuple(blocks[name] for name in sorted(blocks))

    async def edit_core_block(self, agent_id: str, edit: CoreBlockEdit) -> CoreBlock:
        require_connected(self._is_connected)
        blocks = self._blocks.setdefault(agent_id, {})
        current = blocks.get(edit.name)
        text, version = (current.text, current.version) if current else ("", 0)
        if version != edit.version:
            raise MemoryStoreError(f"The block {edit.name!r} is at version {version}, and says: {text}")
        if edit.old and edit.append:
            raise MemoryStoreError("Nothing was changed. Give old or append, not both.")
        kind: CoreBlockEditKind = "replace" if edit.old else "append" if edit.append else "write"
        with raised_as(MemoryStoreError):
            changed = core_block_text_after_edit(
                text, VersionedCoreBlockEdit(name=edit.name, version=version, kind=kind, text=edit.text, old=edit.old)
            ).strip()
            require_core_block_text_within_limit(changed, DEFAULT_BLOCK_CHARS, edit.name)
        block = CoreBlock(name=edit.name, version=version + 1, text=changed, max_chars=DEFAULT_BLOCK_CHARS)
        blocks[edit.name] = block
        return block

    # --- what agents share

    async def publish(self, agent_id: str, request: MemoryStoreRequest) -> str:
        self._require_sharing()
        shared = OrgFactWriteRequest(category="knowledge", content=request.content, tags=request.metadata.tags)
        return await self.write(shared, author=OrgFactAuthor(agent_id=agent_id))

    async def search_shared(self, query: MemoryQuery, *, exclude_agent: str | None = None) -> tuple[MemoryEntry, ...]:
        self._require_sharing()
        shared = [
            MemoryEntry(
                id=one.fact.id,
                agent_id=one.fact.author.agent_id,
                category="semantic",
                content=one.fact.content,
                metadata=MemoryMetadata(tags=one.tags, author=one.fact.author.agent_id),
                created_at=one.since,
            )
            for one in reversed(self._facts.values())
            if one.fact.category == "knowledge" and one.was_true_at(None) and one.fact.author.agent_id != exclude_agent
        ]
        return _matching(shared, query)

    async def retract(self, agent_id: str, memory_id: str) -> bool:
        self._require_sharing()
        one = self._facts.get(memory_id)
        if one is None or one.is_retracted:
            return False
        self._require_change(OrgFactAuthor(agent_id=agent_id), one.fact)
        self._facts[memory_id] = replace(one, is_retracted=True)
        return True

    # --- what the organisation knows

    async def query(self, query: OrgMemoryQuery) -> tuple[OrgFact, ...]:
        require_connected(self._is_connected)
        facts = [
            one.fact
            for one in reversed(self._facts.values())
            if one.was_true_at(query.as_of) and (not query.categories or one.fact.category in query.categories)
        ]
        if query.text is None:
            return tuple(sorted(facts, key=lambda fact: fact.category != "policy"))[: query.limit]
        scored = ((share_of_query_words_in_text(query.text, fact.content), fact) for fact in facts)
        best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
        most = min(query.limit, self._config.org_memory.max_retrieved_per_query)
        return tuple(fact.model_copy(update={"relevance_score": score}) for score, fact in best[:most])

    async def write(self, request: OrgFactWriteRequest, *, author: OrgFactAuthor) -> str:
        require_connected(self._is_connected)
        access, now = self._config.org_memory.write_access, datetime.now(UTC)
        if not access.may_write(author.role, request.category):
            raise MemoryStoreError(f"The role {author.role} may not write a {request.category}.")
        if request.supersedes is not None:
            old = self._facts.get(request.supersedes)
            if old is None or not old.was_true_at(None) or old.fact.category != request.category:
                raise MemoryStoreError(f"No current {request.category} has the id {request.supersedes!r}.")
            self._require_change(author, old.fact)
            self._facts[old.fact.id] = replace(old, until=now)
        elif known := next((one for one in self._facts.values() if _says(one, request)), None):
            return known.fact.id
        new = OrgFact(id=self._new_id("s"), category=request.category, content=request.content, author=author)
        self._facts[new.id] = _Fact(new, request.tags, now)
        return new.id

    def _require_change(self, author: OrgFactAuthor, fact: OrgFact) -> None:
        is_author = fact.author.agent_id == author.agent_id
        if not self._config.org_memory.write_access.role_may_change(author.role, fact.category, is_author=is_author):
            raise MemoryStoreError(f"{author.agent_id} may not change what {fact.author.agent_id} has written.")


def _says(one: _Fact, request: OrgFactWriteRequest) -> bool:
    return one.was_true_at(None) and (one.fact.category, one.fact.content) == (request.category, request.content)


def _matching(latest_first: Iterable[MemoryEntry], query: MemoryQuery) -> tuple[MemoryEntry, ...]:
    wanted = [
        entry
        for entry in latest_first
        if (not query.categories or entry.category in query.categories) and set(query.tags) <= set(entry.metadata.tags)
    ]
    if query.text is None:
        return tuple(wanted[: query.limit])
    scored = [(share_of_query_words_in_text(query.text, entry.content), entry) for entry in wanted]
    matching = sorted((pair for pair in scored if 0 < pair[0] >= query.min_relevance), key=lambda pair: -pair[0])
    return tuple(entry.model_copy(update={"relevance_score": score}) for score, entry in matching[: query.limit])
