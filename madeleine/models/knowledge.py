"""The graph of what memories name, and the blocks that an agent keeps in its prompt."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from madeleine.models.base import ClientAnswerBaseModel
from madeleine.models.memories import MemoryRecord


class Entity(ClientAnswerBaseModel):
    """`kind`: "actor", "name", "place", "theme" or "date". `memories`: how many name it."""

    name: str
    kind: str
    memories: int


class EntityRelation(ClientAnswerBaseModel):
    """`memory`: id of the memory that says so, which is true from `since` until `until`, each "" while unknown."""

    subject: str
    relation: str
    object: str
    memory: str
    since: str = ""
    until: str = ""
    stated: bool = False


class EntityNeighbour(ClientAnswerBaseModel):
    """`via`: the entity between, "" for a neighbour of the first hop. `memories`: ids of a few that name both."""

    name: str
    kind: str
    via: str = ""
    weight: float
    memories: tuple[str, ...]


class TimelineRecord(MemoryRecord):
    until: str = ""


class Related(ClientAnswerBaseModel):
    """`entities`: others whose names hold the words asked for."""

    entity: Entity | None = None
    relations: tuple[EntityRelation, ...] = ()
    neighbours: tuple[EntityNeighbour, ...] = ()
    timeline: tuple[TimelineRecord, ...] = ()
    entities: tuple[Entity, ...] = ()
    notice: str = ""


class CoreBlock(ClientAnswerBaseModel):
    name: str
    version: int
    text: str
    max_chars: int
    description: str = ""
    client: str = ""


class CoreBlocks(ClientAnswerBaseModel):
    blocks: tuple[CoreBlock, ...]


class EditedCoreBlock(ClientAnswerBaseModel):
    """`block` is None where it was erased."""

    block: CoreBlock | None = None
    redacted: Mapping[str, int] = Field(default_factory=dict)
