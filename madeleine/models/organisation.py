"""What all beings share."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from madeleine.models.base import ClientAnswerBaseModel
from madeleine.models.memories import MemoryRecord, MemoryVersion


class KnowledgeSharingResult(ClientAnswerBaseModel):
    """`status`: "shared", or "known" if it was shared before, word for word or under this key."""

    id: str
    kind: str = ""
    status: str
    superseded: MemoryVersion | None = None
    redacted: Mapping[str, int] = Field(default_factory=dict)
    notice: str = ""


class SharedRecord(MemoryRecord):
    """What is shared has a kind and an author; a memory of the being's own has none."""

    kind: str = ""
    author: str = ""
    author_role: str = ""


class PageOfSharedMemories(ClientAnswerBaseModel):
    memories: tuple[SharedRecord, ...]
    notice: str = ""


class RetractionResult(ClientAnswerBaseModel):
    """`status`: its state now, or "erased". `changed`: others that the act has changed, as they are."""

    id: str
    status: str
    changed: tuple[MemoryVersion, ...] = ()
    copies: tuple[str, ...] = ()
    notice: str = ""
