"""What our backends have in common: their capabilities, their policies, and whether agents share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from madeleine.backends.config import CompanyMemoryConfig
from madeleine.backends.errors import MemoryCapabilityError, require_connected
from madeleine.backends.values import OrgFact, OrgFactAuthor, OrgFactWriteRequest, OrgMemoryQuery
from madeleine.memory.model import MEMORY_CATEGORIES, Category


class CompanyBackend(ABC):
    def __init__(self, config: CompanyMemoryConfig) -> None:
        self._config = config

    @property
    @abstractmethod
    def is_connected(self) -> bool: ...

    @abstractmethod
    async def query(self, query: OrgMemoryQuery) -> tuple[OrgFact, ...]: ...

    @abstractmethod
    async def write(self, request: OrgFactWriteRequest, *, author: OrgFactAuthor) -> str: ...

    @property
    def supported_categories(self) -> frozenset[Category]:
        return frozenset(MEMORY_CATEGORIES)

    @property
    def supports_graph(self) -> bool:
        return False

    @property
    def supports_temporal(self) -> bool:
        return True

    @property
    def supports_shared_access(self) -> bool:
        return self._config.options.shared_knowledge_base

    @property
    def max_memories_per_agent(self) -> int | None:
        return None

    async def list_policies(self) -> tuple[OrgFact, ...]:
        return (await self.query(OrgMemoryQuery(categories=("policy",), limit=50)))[::-1]

    async def _write_core_policies(self) -> None:
        owner = OrgFactAuthor(agent_id=self._config.org_memory.policy_author, role="human")
        for policy in self._config.org_memory.core_policies:
            await self.write(OrgFactWriteRequest(category="policy", content=policy), author=owner)

    def _require_sharing(self) -> None:
        require_connected(self.is_connected)
        if not self.supports_shared_access:
            raise MemoryCapabilityError("Sharing is switched off: options.shared_knowledge_base.")
