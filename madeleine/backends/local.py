"""Madeleine as the memory of a company's agents: a client of the process that owns the data directory."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madeleine import models
from madeleine.backends.base import CompanyBackend
from madeleine.backends.config import CompanyMemoryConfig, EmbedderConfig
from madeleine.backends.errors import (
    MemoryRetrievalError,
    MemoryStoreError,
    raised_as,
    require_connected,
)
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
from madeleine.memory.errors import InvalidInput, MadeleineError, NotCurrent
from madeleine.memory.model import Category, Role

if TYPE_CHECKING:
    from madeleine.arguments import StoreArguments
    from madeleine.client import Memory

SHARED_KNOWLEDGE_READER_ID = "reader"
"""The being that reads what is shared, where no agent asks; it stores nothing."""
SEARCH_PAGE_SIZE = 100


class MadeleineBackend(CompanyBackend):
    """`MemoryBackend`, `MemoryCapabilities`, `SharedKnowledgeStore`, `OrgMemoryBackend` and `CoreBlockStore`.

    Every agent is a being with a connection of its own. Agents have the role `agent`, but may erase what is their own
    (`delete`); the role of whoever writes what the organisation knows is the author's.
    """

    def __init__(self, config: CompanyMemoryConfig, data_dir: Path, *, embedder: EmbedderConfig | None = None) -> None:
        super().__init__(config)
        self._data_dir = data_dir
        self._embedder = embedder
        self._stack: AsyncExitStack | None = None
        self._memories: dict[tuple[str, Role], Memory] = {}
        self._connecting = asyncio.Lock()

    # --- life cycle

    async def connect(self) -> None:
        if self._stack is not None:
            return
        self._stack = AsyncExitStack()
        try:
            with raised_as(MemoryStoreError):
                await self._memory(SHARED_KNOWLEDGE_READER_ID)
                await self._write_core_policies()
        except BaseException:
            await self.disconnect()
            raise

    async def disconnect(self) -> None:
        stack, self._stack, self._memories = self._stack, None, {}
        if stack is not None:
            await stack.aclose()

    async def health_check(self) -> bool:
        try:
            await (await self._memory(SHARED_KNOWLEDGE_READER_ID)).search_shared(limit=1)
        except MadeleineError:
            return False
        return True

    @property
    def is_connected(self) -> bool:
        return self._stack is not None

    @property
    def backend_name(self) -> str:
        return "madeleine"

    async def _memory(self, agent_id: str, role: Role = "agent") -> Memory:
        """The agent's own connection, opened when it is first needed."""
        from madeleine.client import Memory, host_connection

        require_connected(self.is_connected)
        async with self._connecting:
            assert self._stack is not None
            if (known := self._memories.get((agent_id, role))) is not None:
                return known
            org = self._config.org_memory
            own = {
                "being": agent_id,
                "role": role,
                "organisation_retrieved": str(org.max_retrieved_per_query),
                "organisation_write_access": json.dumps(org.write_access.model_dump(mode="json")),
            }
            own |= {"embedding_model": self._embedder.model} if self._embedder else {}
            call = await self._stack.enter_async_context(host_connection(None, self._data_dir, own))
            memory = self._memories[agent_id, role] = Memory(call)
            return memory

    # --- capabilities

    @property
    def supports_vector_search(self) -> bool:
        return True

    # --- each agent's own

    async def store(self, agent_id: str, request: MemoryStoreRequest) -> str:
        given: StoreArguments = {"category": request.category, "themes": request.metadata.tags}
        if request.metadata.source:
            given["session_id"] = request.metadata.source
        with raised_as(MemoryStoreError):
            stored = await (await self._memory(agent_id)).store(request.content, **given)
        return stored.id

    async def retrieve(self, agent_id: str, query: MemoryQuery) -> tuple[MemoryEntry, ...]:
        with raised_as(MemoryRetrievalError):
            memory = await self._memory(agent_id)
            found = await _recalled(memory, query) if query.text else await _latest(memory, query)
        entries = (_entry(agent_id, record) for record in found)
        return tuple(entry for entry in entries if (entry.relevance_score or 1.0) >= query.min_relevance)

    async def get(self, agent_id: str, memory_id: str) -> MemoryEntry | None:
        with raised_as(MemoryRetrievalError):
            page = await (await self._memory(agent_id)).memories([memory_id])
        return _entry(agent_id, page.memories[0]) if page.memories else None

    async def delete(self, agent_id: str, memory_id: str) -> bool:
        with raised_as(MemoryStoreError):
            return bool((await (await self._memory(agent_id, "senior")).forget([memory_id])).erased)

    async def count(self, agent_id: str, *, category: Category | None = None) -> int:
        arguments: dict[str, Any] = {
            "sources": ["memories"],
            "details": False,
            "limit": SEARCH_PAGE_SIZE,
            "include_compressed": True,
        }
        arguments |= {"categories": [category]} if category else {}
        with raised_as(MemoryRetrievalError):
            memory, total = await self._memory(agent_id), 0
            page = await memory.search(**arguments)
            while page.next_cursor:
                total += len(page.hits)
                page = await memory.search(**arguments, cursor=page.next_cursor)
        return total + len(page.hits)

    # --- what each agent keeps in its prompt

    async def core_blocks(self, agent_id: str) -> tuple[CoreBlock, ...]:
        with raised_as(MemoryRetrievalError):
            found = await (await self._memory(agent_id)).core_memory()
        return tuple(map(_core_block, found.blocks))

    async def edit_core_block(self, agent_id: str, edit: CoreBlockEdit) -> CoreBlock:
        with raised_as(MemoryStoreError):
            memory = await self._memory(agent_id)
            edited = await memory.edit_core_memory(
                edit.name, edit.text, version=edit.version, append=edit.append, old=edit.old or None
            )
        assert edited.block is not None
        return _core_block(edited.block)

    # --- what agents share

    async def publish(self, agent_id: str, request: MemoryStoreRequest) -> str:
        self._require_sharing()
        with raised_as(MemoryStoreError):
            shared = await (await self._memory(agent_id)).share(request.content, themes=request.metadata.tags)
        return shared.id

    async def search_shared(self, query: MemoryQuery, *, exclude_agent: str | None = None) -> tuple[MemoryEntry, ...]:
        self._require_sharing()
        with raised_as(MemoryRetrievalError):
            reader = await self._memory(SHARED_KNOWLEDGE_READER_ID)
            found = await reader.search_shared(query.text or "", kinds=["knowledge"], scope="shared", limit=50)
        wanted = (
            _entry(one.author, one)
            for one in found
            if one.author != exclude_agent
            and (one.score or 1.0) >= query.min_relevance
            and set(query.tags) <= set(one.themes)
        )
        return tuple(wanted)[: query.limit]

    async def retract(self, agent_id: str, memory_id: str) -> bool:
        self._require_sharing()
        with raised_as(MemoryStoreError):
            memory = await self._memory(agent_id)
            try:
                versions = await memory.search_shared(id=memory_id)
            except InvalidInput:
                return False
            if any(one.id == memory_id and one.status == "retracted" for one in versions):
                return False
            try:
                await memory.retract(memory_id, "retracted by its author")
            except NotCurrent:
                return False
        return True

    # --- what the organisation knows

    async def query(self, query: OrgMemoryQuery) -> tuple[OrgFact, ...]:
        given: dict[str, Any] = {"kinds": query.categories} if query.categories else {}
        given |= {"as_of": query.as_of} if query.as_of else {}
        with raised_as(MemoryRetrievalError):
            reader = await self._memory(SHARED_KNOWLEDGE_READER_ID)
            found = await reader.search_shared(query.text or "", scope="shared", limit=query.limit, **given)
        return tuple(map(_fact, found))

    async def write(self, request: OrgFactWriteRequest, *, author: OrgFactAuthor) -> str:
        given: dict[str, Any] = {"supersedes": request.supersedes} if request.supersedes else {}
        given |= {"themes": request.tags} if request.tags else {}
        with raised_as(MemoryStoreError):
            memory = await self._memory(author.agent_id, author.role)
            return (await memory.share(request.content, kind=request.category, **given)).id


async def _recalled(memory: Memory, query: MemoryQuery) -> tuple[models.MemoryRecord, ...]:
    result = await memory.recall(query.text or "", **_filters(query), token_budget=100_000)
    return (*result.preferences, *result.memories)[: query.limit]


async def _latest(memory: Memory, query: MemoryQuery) -> tuple[models.MemoryRecord, ...]:
    page = await memory.search(sources=["memories"], details=False, **_filters(query))
    return (await memory.memories([hit.id for hit in page.hits])).memories if page.hits else ()


def _filters(query: MemoryQuery) -> Any:
    given = {"categories": query.categories, "themes": query.tags, "since": query.since, "until": query.until}
    return {"limit": query.limit} | {name: value for name, value in given.items() if value}


def _core_block(block: models.CoreBlock) -> CoreBlock:
    return CoreBlock(name=block.name, version=block.version, text=block.text, max_chars=block.max_chars)


def _entry(agent_id: str, record: models.MemoryRecord) -> MemoryEntry:
    author = record.author if isinstance(record, models.SharedRecord) else ""
    category: Category = "semantic" if author else record.category
    return MemoryEntry(
        id=record.id,
        agent_id=agent_id,
        category=category,
        content=record.text,
        metadata=MemoryMetadata(tags=record.themes, source=record.provenance.session_id, author=author),
        created_at=record.provenance.stored_at,
        relevance_score=record.score,
    )


def _fact(record: models.SharedRecord) -> OrgFact:
    return OrgFact.model_validate(
        {
            "id": record.id,
            "category": record.kind,
            "content": record.text,
            "author": {"agent_id": record.author, "role": record.author_role},
            "relevance_score": record.score,
        }
    )
