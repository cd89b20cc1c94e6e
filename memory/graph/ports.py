"""What the entity graph needs of the ledger."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from madeleine.memory.graph.values import (
    EntityMention,
    EntityWithMemoryCount,
    MemoryWithExtractedEntities,
    RelationTriple,
)
from madeleine.memory.model import Memory, MemoryId, Scope


class GraphExtractionLedger(Protocol):
    """Entities and relations of memories: derived, and at any time extracted anew."""

    async def memories_to_extract_from(self, *, limit: int, after: MemoryId | None = None) -> list[Memory]:
        """Memories of any being that were not read by the present `GRAPH_EXTRACTION_VERSION`, or whose text or themes
        have changed since; those stored first come first. Only those stored after this one, while it is there."""

    async def known_entity_keys_among(self, scope: Scope, keys: Collection[str]) -> set[str]:
        """Those of these keys by which memories of the being name an actor or have a name in their text."""

    async def write_extracted_entities(self, extracted: Sequence[MemoryWithExtractedEntities]) -> None:
        """In place of what these memories had before. One that was erased or changed since it was read is left
        out."""


class GraphLedger(Protocol):
    """All of it is of the scope's being. Mentions and relations of absorbed and retracted memories are left out; those
    of superseded and faded ones are not."""

    async def entity_by_key(self, scope: Scope, key: str) -> EntityWithMemoryCount | None: ...

    async def entities_whose_name_contains(self, scope: Scope, key: str, *, limit: int) -> list[EntityWithMemoryCount]:
        """Those whose key holds this one, named by most memories first, then by key; all for ""."""

    async def memories_naming_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[Memory]:
        """Memories that name any of these entities, the latest by `happened_at` first."""

    async def entity_mentions_in_memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[EntityMention]:
        """What these memories name, each entity of a memory once."""

    async def relations_of_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[RelationTriple]:
        """Relations with one of these entities on either side, stated ones first, then those of later memories; drawn
        ones that are also stated of the same memory once."""

    async def memories_with_ids(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...

    async def add_stated_relations(self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime) -> int:
        """Durably; the number of those that were not stated before. Their memories must be the being's: others are
        skipped."""

    async def remove_relations_stated_by_agents(
        self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime
    ) -> int:
        """The number of those that were stated, and are gone."""
