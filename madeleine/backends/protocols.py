"""The protocols of a company's memory (spec O3 to O5, O12). `isinstance` checks them at run time.

Every method but those of the life cycle raises `MemoryConnectionError` before `connect` and after `disconnect`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from madeleine.backends.values import (
    ChatMessage,
    CoreBlock,
    CoreBlockEdit,
    MemoryEntry,
    MemoryQuery,
    MemoryStoreRequest,
    OrgFact,
    OrgFactAuthor,
    OrgFactWriteRequest,
    OrgMemoryQuery,
    ToolDefinition,
)
from madeleine.memory.model import Category


@runtime_checkable
class BackendLifecycle(Protocol):
    async def connect(self) -> None:
        """Safe to repeat. Raises `MemoryConnectionError`."""

    async def disconnect(self) -> None:
        """Safe to repeat; what was stored stays."""

    async def health_check(self) -> bool:
        """Whether it answers now; never raises."""

    @property
    def is_connected(self) -> bool: ...

    @property
    def backend_name(self) -> str: ...


@runtime_checkable
class MemoryBackend(BackendLifecycle, Protocol):
    """The memory of each agent, which no other agent sees."""

    async def store(self, agent_id: str, request: MemoryStoreRequest) -> str:
        """Store durably and return the entry's id; that of an earlier entry that says the same, if the backend joins
        them. Raises `MemoryStoreError`."""

    async def retrieve(self, agent_id: str, query: MemoryQuery) -> tuple[MemoryEntry, ...]:
        """Best first; without a text the latest first. Raises `MemoryRetrievalError`."""

    async def get(self, agent_id: str, memory_id: str) -> MemoryEntry | None:
        """Raises `MemoryRetrievalError`."""

    async def delete(self, agent_id: str, memory_id: str) -> bool:
        """Erase it; False if the agent has none with this id. Raises `MemoryStoreError`."""

    async def count(self, agent_id: str, *, category: Category | None = None) -> int:
        """Raises `MemoryRetrievalError`."""


@runtime_checkable
class MemoryCapabilities(Protocol):
    """What a backend supports, to be asked before it is tried."""

    @property
    def supported_categories(self) -> frozenset[Category]: ...

    @property
    def supports_graph(self) -> bool: ...

    @property
    def supports_temporal(self) -> bool: ...

    @property
    def supports_vector_search(self) -> bool: ...

    @property
    def supports_shared_access(self) -> bool: ...

    @property
    def max_memories_per_agent(self) -> int | None: ...


@runtime_checkable
class SharedKnowledgeStore(Protocol):
    """What agents share with all others."""

    async def publish(self, agent_id: str, request: MemoryStoreRequest) -> str:
        """Share it under the agent's name and return its id. Raises `MemoryStoreError`."""

    async def search_shared(self, query: MemoryQuery, *, exclude_agent: str | None = None) -> tuple[MemoryEntry, ...]:
        """Best first, without what `exclude_agent` has shared; `agent_id` of an entry is its author. Raises
        `MemoryRetrievalError`."""

    async def retract(self, agent_id: str, memory_id: str) -> bool:
        """Take back what the agent has shared; False for what is not there any more. Raises `MemoryStoreError` for what
        another has shared."""


@runtime_checkable
class OrgMemoryBackend(BackendLifecycle, Protocol):
    """What the organisation knows, written by role."""

    async def query(self, query: OrgMemoryQuery) -> tuple[OrgFact, ...]:
        """Raises `MemoryRetrievalError`."""

    async def write(self, request: OrgFactWriteRequest, *, author: OrgFactAuthor) -> str:
        """Add a fact, or a version in place of one, and return its id. Nothing is overwritten. Raises
        `MemoryStoreError` for a category that the author's role may not write."""

    async def list_policies(self) -> Sequence[OrgFact]:
        """The core policies that are true now, oldest first: part of every system prompt."""


@runtime_checkable
class CoreBlockStore(Protocol):
    """Texts that each agent keeps in its prompt and edits itself; no other agent sees them (spec O12)."""

    async def core_blocks(self, agent_id: str) -> tuple[CoreBlock, ...]:
        """The current versions, by name. Raises `MemoryRetrievalError`."""

    async def edit_core_block(self, agent_id: str, edit: CoreBlockEdit) -> CoreBlock:
        """Write the next version. Raises `MemoryStoreError` for an edit of another version than the current one, with
        the difference, and for a text that is too long."""


@runtime_checkable
class MemoryInjectionStrategy(Protocol):
    """How memory reaches a model."""

    async def prepare_messages(self, agent_id: str, query_text: str, token_budget: int) -> tuple[ChatMessage, ...]:
        """Messages to stand between the system prompt and the task; at most `token_budget` tokens of memory."""

    def get_tool_definitions(self) -> tuple[ToolDefinition, ...]: ...

    @property
    def strategy_name(self) -> str: ...
