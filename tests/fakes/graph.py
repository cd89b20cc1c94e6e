"""The entity graph and core blocks in dictionaries; they pass the suites of the SQL ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from madeleine.memory.core_blocks.values import CoreBlock
from madeleine.memory.graph.extraction import GRAPH_EXTRACTION_VERSION
from madeleine.memory.graph.values import (
    NAME_MENTION_KINDS,
    EntityMention,
    EntityWithMemoryCount,
    MemoryWithExtractedEntities,
    RelationTriple,
)
from madeleine.memory.model import Memory, MemoryId, Scope
from tests.fakes.ledger import InMemoryMemories
from tests.fakes.store import Store


def _identity(relation: RelationTriple) -> tuple[str, ...]:
    return (relation.memory_id, *relation.subject_and_object_keys, relation.relation)


class InMemoryGraph(InMemoryMemories):
    """`GraphExtractionLedger` and `GraphLedger`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._read: dict[MemoryId, tuple[Memory, int]] = {}
        self._mentions: dict[MemoryId, list[EntityMention]] = defaultdict(list)
        self._relations: dict[MemoryId, list[RelationTriple]] = defaultdict(list)
        self._stated: dict[tuple[str, ...], RelationTriple] = {}

    def _is_read(self, memory: Memory) -> bool:
        read, version = self._read.get(memory.id, (None, 0))
        return read is not None and version == GRAPH_EXTRACTION_VERSION and _says_the_same(read, memory)

    async def memories_to_extract_from(self, *, limit: int, after: MemoryId | None = None) -> list[Memory]:
        ids = [*self._store.memories]
        later = ids[ids.index(after) + 1 :] if after in ids else ids
        return [one for id_ in later if not self._is_read(one := self._store.memories[id_])][:limit]

    async def known_entity_keys_among(self, scope: Scope, keys: Collection[str]) -> set[str]:
        mentions = (mention for memory in self._store.own(scope) for mention in self._mentions[memory.id])
        return {mention.key for mention in mentions if mention.kind in NAME_MENTION_KINDS and mention.key in keys}

    async def write_extracted_entities(self, extracted: Sequence[MemoryWithExtractedEntities]) -> None:
        for one in extracted:
            id_ = one.memory.id
            if (memory := self._store.memories.get(id_)) is not None and _says_the_same(memory, one.memory):
                self._read[id_] = (memory, GRAPH_EXTRACTION_VERSION)
                self._mentions[id_], self._relations[id_] = [*one.mentions], [*one.relations]

    def _told(self, scope: Scope) -> list[Memory]:
        return [one for one in self._store.own(scope) if one.absorbed_into is None and one.truth != "retracted"]

    def _all_mentions(self, id_: MemoryId) -> list[EntityMention]:
        sides = (side for one in self._stated.values() if one.memory_id == id_ for side in (one.subject, one.object))
        found: dict[str, list[EntityMention]] = defaultdict(list)
        for mention in (*self._mentions[id_], *(EntityMention(id_, side, "name") for side in sides)):
            found[mention.key].append(mention)
        return [min(found[key], key=lambda mention: mention.name) for key in sorted(found)]

    async def entity_by_key(self, scope: Scope, key: str) -> EntityWithMemoryCount | None:
        return next(
            (one for one in await self.entities_whose_name_contains(scope, key, limit=10**6) if one.key == key), None
        )

    async def entities_whose_name_contains(self, scope: Scope, key: str, *, limit: int) -> list[EntityWithMemoryCount]:
        names: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        for memory in self._told(scope):
            for mention in self._all_mentions(memory.id):
                if key in mention.key:
                    names[mention.key][mention.name, mention.kind] += 1
        entities = []
        for entity, counted in names.items():
            (name, kind), _ = min(counted.items(), key=lambda one: (-one[1], one[0]))
            entities.append(EntityWithMemoryCount(entity, name, kind, counted.total()))  # type: ignore[arg-type]
        return sorted(entities, key=lambda one: (-one.memories, one.key))[:limit]

    async def memories_naming_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[Memory]:
        naming = [
            memory
            for memory in self._told(scope)
            if any(mention.key in keys for mention in self._all_mentions(memory.id))
        ]
        return sorted(naming, key=lambda one: (-one.happened_at.timestamp(), one.id))[:limit]

    async def entity_mentions_in_memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[EntityMention]:
        own = sorted({memory.id for memory in self._store.own(scope)}.intersection(ids))
        return [mention for id_ in own for mention in self._all_mentions(id_)]

    async def relations_of_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[RelationTriple]:
        told = {memory.id: memory for memory in self._told(scope)}
        drawn = (relation for id_ in told for relation in self._relations[id_])
        found = [one for one in (*self._stated.values(), *drawn) if one.memory_id in told]
        found = [one for one in found if not set(keys).isdisjoint(one.subject_and_object_keys)]
        found.sort(
            key=lambda one: (
                not one.stated,
                -told[one.memory_id].happened_at.timestamp(),
                one.memory_id,
                one.subject,
                one.relation,
                one.object,
            )
        )
        distinct: dict[tuple[str, ...], RelationTriple] = {}
        for relation in found[:limit]:
            distinct.setdefault(_identity(relation), relation)
        return list(distinct.values())

    async def add_stated_relations(self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime) -> int:
        own = {memory.id for memory in self._store.own(scope)}
        new = {_identity(one): one for one in relations if one.memory_id in own and _identity(one) not in self._stated}
        self._stated |= new
        return len(new)

    async def remove_relations_stated_by_agents(
        self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime
    ) -> int:
        own = {memory.id for memory in self._store.own(scope)}
        gone = {_identity(one) for one in relations if one.memory_id in own} & self._stated.keys()
        for identity in gone:
            del self._stated[identity]
        return len(gone)


def _says_the_same(one: Memory, other: Memory) -> bool:
    return (one.content_hash, one.themes) == (other.content_hash, other.themes)


class InMemoryCoreBlocks:
    """`CoreBlockLedger`."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, str], list[CoreBlock]] = {}

    async def core_blocks(self, scope: Scope) -> list[CoreBlock]:
        return [versions[-1] for versions in self._of(scope)]

    def _of(self, scope: Scope) -> Iterable[list[CoreBlock]]:
        return (self._versions[key] for key in sorted(self._versions) if key[0] == scope.being_id)

    async def core_block_versions(self, scope: Scope, name: str) -> list[CoreBlock]:
        return [*self._versions.get((scope.being_id, name), ())]

    async def write_core_block_if_next_version(self, scope: Scope, block: CoreBlock) -> bool:
        versions = self._versions.get((scope.being_id, block.name), [])
        if len(versions) != block.version - 1:
            return False
        self._versions[scope.being_id, block.name] = [*versions, block]
        return True

    async def erase_core_block(self, scope: Scope, name: str, *, at: datetime) -> int:
        return len(self._versions.pop((scope.being_id, name), ()))
