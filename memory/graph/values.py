"""What memories name, and how that is related (spec O14)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.text.normalization import fold_text

EntityKind = Literal["actor", "name", "place", "theme", "date"]
"""How a memory names an entity: who acts, a name in its text, its setting, a theme, a day or month."""
NAME_MENTION_KINDS: tuple[EntityKind, ...] = ("actor", "name")
MAX_ENTITY_CHARS, MAX_RELATION_CHARS = 120, 120


def entity_key(name: str) -> str:
    """Equal for names that differ in case, accents and spaces."""
    return fold_text(" ".join(name.split()))


@dataclass(frozen=True, slots=True)
class EntityMention:
    """A memory names an entity. `name`: as it is written there."""

    memory_id: MemoryId
    name: str
    kind: EntityKind

    @property
    def key(self) -> str:
        return entity_key(self.name)


@dataclass(frozen=True, slots=True)
class RelationTriple:
    """`subject` `relation` `object`, as the memory says, and for as long as it is true. `stated`: by a caller, else
    extracted from the text."""

    memory_id: MemoryId
    subject: str
    relation: str
    object: str
    stated: bool = False

    @property
    def subject_and_object_keys(self) -> tuple[str, str]:
        return entity_key(self.subject), entity_key(self.object)


@dataclass(frozen=True, slots=True)
class MemoryWithExtractedEntities:
    """The entities and relations of a memory as it was read."""

    memory: Memory
    mentions: Sequence[EntityMention]
    relations: Sequence[RelationTriple]


@dataclass(frozen=True, slots=True)
class EntityWithMemoryCount:
    """An entity with its commonest name and the number of memories that name it."""

    key: str
    name: str
    kind: EntityKind
    memories: int


@dataclass(frozen=True, slots=True)
class RelationWithMemory:
    """A relation with the memory that says it."""

    relation: RelationTriple
    memory: Memory


@dataclass(frozen=True, slots=True)
class NeighbourEntity:
    """An entity that memories name together with another. `hops`: 1 or 2; `via`: the entity between, "" for one hop.
    `weight`: number of memories that name both, each by one over the number of entities that it names, so that a list
    of many names relates each pair less. `memories`: a few of them, the latest first."""

    key: str
    name: str
    kind: EntityKind
    hops: int
    via: str
    weight: float
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedEntities:
    """What is known around an entity. `relations`: those true now, or as of the moment asked for; all of them have a
    side among the entities followed. `timeline`: memories that name the entity, the oldest first, superseded ones too.
    `named_like`: other entities whose names hold the words asked for. `omitted`: earlier memories of the timeline.
    `is_incomplete`: whether memories are still to be read."""

    entity: EntityWithMemoryCount | None
    relations: Sequence[RelationWithMemory] = ()
    neighbours: Sequence[NeighbourEntity] = ()
    timeline: Sequence[Memory] = ()
    named_like: Sequence[EntityWithMemoryCount] = ()
    omitted: int = 0
    is_incomplete: bool = False
