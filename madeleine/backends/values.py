"""What memory backends take and return: frozen models (spec O3 to O5)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from madeleine.memory.model import Category, KnowledgeKind, Role
from madeleine.memory.operations.values import NotBlankStr


class BackendBaseModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class MemoryMetadata(BackendBaseModel):
    """`tags`: topics, to filter by. `source`: the session or task that it comes from."""

    tags: tuple[NotBlankStr, ...] = ()
    source: str = ""
    author: str = ""
    """Of what is shared: the agent that shared it."""


class MemoryStoreRequest(BackendBaseModel):
    category: Category
    content: NotBlankStr
    metadata: MemoryMetadata = MemoryMetadata()


class MemoryQuery(BackendBaseModel):
    """Without a text: the latest. `tags`: all of them. `min_relevance`: of the score that the entry has."""

    text: NotBlankStr | None = None
    categories: tuple[Category, ...] = ()
    tags: tuple[NotBlankStr, ...] = ()
    min_relevance: Annotated[float, Field(ge=0, le=1)] = 0.0
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    since: datetime | None = None
    until: datetime | None = None


class MemoryEntry(BackendBaseModel):
    """`id` is unique for the agent. `relevance_score`: to the text of the query; None where there was none."""

    id: NotBlankStr
    agent_id: NotBlankStr
    category: Category
    content: str
    metadata: MemoryMetadata = MemoryMetadata()
    created_at: datetime | None = None
    relevance_score: float | None = None


class OrgFactAuthor(BackendBaseModel):
    """Who writes. The application answers for the role, as it does for the agent's id."""

    agent_id: NotBlankStr
    role: Role = "agent"


class OrgFactWriteRequest(BackendBaseModel):
    """`supersedes`: the fact of the same category that was true until now."""

    category: KnowledgeKind
    content: NotBlankStr
    tags: tuple[NotBlankStr, ...] = ()
    supersedes: NotBlankStr | None = None


class OrgMemoryQuery(BackendBaseModel):
    """Without a text: all, policies first. `as_of`: what was true then."""

    text: NotBlankStr | None = None
    categories: tuple[KnowledgeKind, ...] = ()
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    as_of: datetime | None = None


class OrgFact(BackendBaseModel):
    id: NotBlankStr
    category: KnowledgeKind
    content: str
    author: OrgFactAuthor
    relevance_score: float | None = None


class ChatMessage(BackendBaseModel):
    role: Literal["system", "user"]
    content: str


class ToolDefinition(BackendBaseModel):
    """`parameters`: JSON Schema of the arguments."""

    name: NotBlankStr
    description: str
    parameters: Mapping[str, Any]


class CoreBlock(BackendBaseModel):
    """A text that stands in every prompt of the agent. Versions count from 1."""

    name: NotBlankStr
    version: int
    text: str
    max_chars: int


class CoreBlockEdit(BackendBaseModel):
    """`version`: the one that was read, 0 for a new block. `text` is the whole block, or takes the place of `old`, or
    is added behind what stands there."""

    name: NotBlankStr
    version: Annotated[int, Field(ge=0)] = 0
    text: str = ""
    old: str = ""
    append: bool = False
