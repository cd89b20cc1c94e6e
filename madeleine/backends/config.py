"""The configuration of a company's memory: frozen models (spec O6). Every field has an effect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from madeleine.backends.values import BackendBaseModel
from madeleine.memory.operations.values import NotBlankStr
from madeleine.memory.permissions import KnowledgeWriteAccess


class MemoryStorageConfig(BackendBaseModel):
    """`data_dir`: of this company alone; None for a backend that keeps nothing."""

    data_dir: Path | None = None


class MemoryOptionsConfig(BackendBaseModel):
    """`shared_knowledge_base`: whether agents may publish and search what others have published."""

    shared_knowledge_base: bool = True


class OrgMemoryConfig(BackendBaseModel):
    """`core_policies` are written when the backend connects, by `policy_author`, a human; those that are known already
    stay as they are."""

    core_policies: Annotated[tuple[NotBlankStr, ...], Field(max_length=10)] = ()
    policy_author: NotBlankStr = "owner"
    max_retrieved_per_query: Annotated[int, Field(ge=1, le=50)] = 5
    write_access: KnowledgeWriteAccess = KnowledgeWriteAccess()


class CompanyMemoryConfig(BackendBaseModel):
    """One company's memory."""

    backend: Literal["madeleine", "in_memory"] = "madeleine"
    storage: MemoryStorageConfig = MemoryStorageConfig()
    options: MemoryOptionsConfig = MemoryOptionsConfig()
    org_memory: OrgMemoryConfig = OrgMemoryConfig()


class EmbedderConfig(BackendBaseModel):
    """`model`: a name or a directory, as `MADELEINE_EMBEDDING_MODEL`; it takes effect when the process that owns the
    data directory starts."""

    model: NotBlankStr
