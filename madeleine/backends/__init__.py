"""Memory for the agents of a company behind protocols (spec O3 to O5): an application depends on these alone.

    async with connected_backend(create_memory_backend(CompanyMemoryConfig(storage=…))) as backend:
        await backend.store("ada", MemoryStoreRequest(category="episodic", content="The deploy failed"))

`protocols` has the protocols, `values` what they take and return, `config` the configuration, `errors` the errors,
`local` Madeleine over its own process, `in_memory` a backend for tests, `injection` how memory reaches a model.
"""

from __future__ import annotations

from madeleine.backends.config import (
    CompanyMemoryConfig,
    EmbedderConfig,
    MemoryOptionsConfig,
    MemoryStorageConfig,
    OrgMemoryConfig,
)
from madeleine.backends.errors import (
    MemoryCapabilityError,
    MemoryConfigError,
    MemoryConnectionError,
    MemoryError,
    MemoryNotFoundError,
    MemoryRetrievalError,
    MemoryStoreError,
)
from madeleine.backends.factory import connected_backend, create_memory_backend
from madeleine.backends.in_memory import InMemoryBackend
from madeleine.backends.injection import (
    ContextInjectionStrategy,
    SelfEditingInjectionStrategy,
    ToolBasedInjectionStrategy,
)
from madeleine.backends.local import MadeleineBackend
from madeleine.backends.protocols import (
    CoreBlockStore,
    MemoryBackend,
    MemoryCapabilities,
    MemoryInjectionStrategy,
    OrgMemoryBackend,
    SharedKnowledgeStore,
)
from madeleine.backends.values import (
    ChatMessage,
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
    ToolDefinition,
)

__all__ = [
    "ChatMessage",
    "CompanyMemoryConfig",
    "ContextInjectionStrategy",
    "CoreBlock",
    "CoreBlockEdit",
    "CoreBlockStore",
    "EmbedderConfig",
    "InMemoryBackend",
    "MadeleineBackend",
    "MemoryBackend",
    "MemoryCapabilities",
    "MemoryCapabilityError",
    "MemoryConfigError",
    "MemoryConnectionError",
    "MemoryEntry",
    "MemoryError",
    "MemoryInjectionStrategy",
    "MemoryMetadata",
    "MemoryNotFoundError",
    "MemoryOptionsConfig",
    "MemoryQuery",
    "MemoryRetrievalError",
    "MemoryStorageConfig",
    "MemoryStoreError",
    "MemoryStoreRequest",
    "OrgFact",
    "OrgFactAuthor",
    "OrgFactWriteRequest",
    "OrgMemoryBackend",
    "OrgMemoryConfig",
    "OrgMemoryQuery",
    "SelfEditingInjectionStrategy",
    "SharedKnowledgeStore",
    "ToolBasedInjectionStrategy",
    "ToolDefinition",
    "connected_backend",
    "create_memory_backend",
]  # fmt: skip
