"""Follow what memories name and how it is related (spec O14), and state relations that no rule can read."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.graph.extraction import (
    extract_entities_and_relations_by_rules,
    keys_of_capitalised_words_of_memory,
)
from madeleine.memory.graph.ports import GraphExtractionLedger, GraphLedger
from madeleine.memory.graph.values import (
    NAME_MENTION_KINDS,
    EntityMention,
    EntityWithMemoryCount,
    MemoryWithExtractedEntities,
    NeighbourEntity,
    RelatedEntities,
    RelationTriple,
    RelationWithMemory,
    entity_key,
)
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics.truth import beginning_of_validity, was_true_at
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets

GRAPH_EXTRACTION_BATCH_MEMORIES = 20
"""Memories read in one go: some 10 ms."""
MAX_MEMORIES_READ_FOR_GRAPH_PER_CALL = 400
"""Memories that a question has read before it is answered; the background reads the rest."""
MAX_MEMORIES_READ_PER_GRAPH_HOP = 300
"""Of an entity, the latest; a name that is in more of them relates little."""
MAX_NEIGHBOURS_FOLLOWED_TO_SECOND_HOP = 8
"""Neighbours from which the second hop goes on."""
MAX_MEMORIES_SHOWN_PER_NEIGHBOUR_ENTITY = 3
MAX_GRAPH_RELATIONS_READ = 400
DEFAULT_RELATED_ENTITIES_LIMIT = 10


@dataclass(frozen=True, eq=False)
class ExtractGraph:
    """Extracts entities and relations from memories that are new or changed."""

    ledger: GraphExtractionLedger

    async def __call__(self, *, most: int | None = None, pause_seconds: float = 0.0) -> bool:
        """Read at most `most` memories, all by default; whether all are read. Pauses between pages leave the processor
        to others. Raises `StorageError`."""
        done = 0
        last: MemoryId | None = None
        while most is None or done < most:
            page = await self.ledger.memories_to_extract_from(limit=GRAPH_EXTRACTION_BATCH_MEMORIES, after=last)
            if not page:
                return True
            extracted: list[MemoryWithExtractedEntities] = []
            for being in dict.fromkeys(memory.being_id for memory in page):
                extracted += await self._extract_from_memories_of_being(
                    Scope(being), [memory for memory in page if memory.being_id == being]
                )
            await self.ledger.write_extracted_entities(extracted)
            done, last = done + len(page), page[-1].id
            await asyncio.sleep(pause_seconds)
        return not await self.ledger.memories_to_extract_from(limit=1)

    async def _extract_from_memories_of_being(
        self, scope: Scope, memories: Sequence[Memory]
    ) -> list[MemoryWithExtractedEntities]:
        """A word with a capital at the beginning of a sentence is a name if it is one elsewhere: in memories that were
        read before, or in these."""
        possible = await asyncio.to_thread(lambda: [keys_of_capitalised_words_of_memory(memory) for memory in memories])
        known = await self.ledger.known_entity_keys_among(scope, set[str]().union(*possible))

        def extract() -> list[MemoryWithExtractedEntities]:
            first = [extract_entities_and_relations_by_rules(memory, known) for memory in memories]
            new = {
                mention.key for one in first for mention in one.mentions if mention.kind in NAME_MENTION_KINDS
            } - known
            again = [bool(new & keys) for keys in possible]
            return [
                extract_entities_and_relations_by_rules(one.memory, known | new) if is_repeated else one
                for one, is_repeated in zip(first, again, strict=True)
            ]

        return await asyncio.to_thread(extract)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRelationsResult:
    """`count`: of relations that were new, or are gone. `redacted`: number of secrets removed, by kind."""

    memory: Memory
    count: int
    redacted: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class ExploreEntityGraph:
    """The use case. Nothing that it shows counts as recalled (ruling 18)."""

    ledger: GraphLedger
    extract: ExtractGraph
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText = redact_secrets

    async def find_related(
        self,
        scope: Scope,
        name: str,
        *,
        hops: int = 1,
        limit: int = DEFAULT_RELATED_ENTITIES_LIMIT,
        as_of: datetime | None = None,
    ) -> RelatedEntities:
        """What memories tell around an entity: relations and neighbours true now, or `as_of`, and its timeline. At most
        `limit` of each, neighbours `limit` a hop. Raises `StorageError`."""
        is_incomplete = not await self.extract(most=MAX_MEMORIES_READ_FOR_GRAPH_PER_CALL)
        entity, like = await self._find_entity_or_similar_names(scope, entity_key(name), limit)
        if entity is None:
            return RelatedEntities(entity=None, named_like=like, is_incomplete=is_incomplete)
        naming = await self.ledger.memories_naming_entities(scope, [entity.key], limit=MAX_MEMORIES_READ_PER_GRAPH_HOP)
        direct = await self._neighbours(
            scope, self._memories_true_at(naming, as_of), [entity.key], known={entity.key}, hops=1
        )
        followed = (
            [one.key for one in direct if one.kind != "date"][:MAX_NEIGHBOURS_FOLLOWED_TO_SECOND_HOP]
            if hops > 1
            else []
        )
        further: Sequence[NeighbourEntity] = ()
        if followed:
            known = {entity.key, *(one.key for one in direct)}
            others = await self.ledger.memories_naming_entities(scope, followed, limit=MAX_MEMORIES_READ_PER_GRAPH_HOP)
            further = await self._neighbours(
                scope, self._memories_true_at(others, as_of), followed, known=known, hops=2
            )
        relations = await self._relations_true_at(scope, entity.key, followed, as_of)
        timeline = sorted(
            self._memories_begun_until(naming, as_of),
            key=lambda memory: (_start_of_validity_or_event(memory), memory.id),
        )
        return RelatedEntities(
            entity=entity,
            relations=relations[:limit],
            neighbours=(*direct[:limit], *further[:limit]),
            timeline=timeline[-limit:],
            named_like=[one for one in like if one.key != entity.key],
            omitted=max(0, len(timeline) - limit),
            is_incomplete=is_incomplete,
        )

    async def _find_entity_or_similar_names(
        self, scope: Scope, key: str, limit: int
    ) -> tuple[EntityWithMemoryCount | None, list[EntityWithMemoryCount]]:
        """The entity, or the only one whose name holds these words; and others whose names do."""
        like = await self.ledger.entities_whose_name_contains(scope, key, limit=limit + 1)
        entity = await self.ledger.entity_by_key(scope, key)
        if entity is None and key and len(like) == 1:
            return like[0], []
        return entity, like[:limit]

    def _memories_true_at(self, memories: Iterable[Memory], as_of: datetime | None) -> list[Memory]:
        if as_of is None:
            return [memory for memory in memories if memory.truth == "current" and not memory.compressed]
        return [memory for memory in memories if was_true_at(memory, as_of)]

    def _memories_begun_until(self, memories: Iterable[Memory], as_of: datetime | None) -> list[Memory]:
        """What belongs to a timeline: superseded ones too; looking back, nothing that came later."""
        return [memory for memory in memories if as_of is None or _start_of_validity_or_event(memory) <= as_of]

    async def _neighbours(
        self, scope: Scope, memories: Sequence[Memory], origins: Sequence[str], *, known: Collection[str], hops: int
    ) -> list[NeighbourEntity]:
        """Entities that these memories name beside the `origins`, the nearest first, without those `known`."""
        mentions: defaultdict[MemoryId, dict[str, EntityMention]] = defaultdict(dict)
        for mention in await self.ledger.entity_mentions_in_memories(scope, [memory.id for memory in memories]):
            mentions[mention.memory_id].setdefault(mention.key, mention)
        found: dict[str, NeighbourEntity] = {}
        for memory in memories:
            named = mentions[memory.id]
            via = next((key for key in origins if key in named), "")
            for key, mention in named.items():
                if key in known:
                    continue
                weight = 1 / len(named)
                one = found.get(key) or NeighbourEntity(
                    key, mention.name, mention.kind, hops, named[via].name if hops > 1 and via else "", 0.0, ()
                )
                shown = (*one.memories, memory)[:MAX_MEMORIES_SHOWN_PER_NEIGHBOUR_ENTITY]
                found[key] = replace(one, weight=one.weight + weight, memories=shown)
        return sorted(found.values(), key=lambda one: (-one.weight, one.key))

    async def _relations_true_at(
        self, scope: Scope, key: str, followed: Sequence[str], as_of: datetime | None
    ) -> list[RelationWithMemory]:
        """Each once, as the latest memory says it; those of the entity itself first, stated ones before others."""
        found = await self.ledger.relations_of_entities(scope, [key, *followed], limit=MAX_GRAPH_RELATIONS_READ)
        memories = await self.ledger.memories_with_ids(scope, list(dict.fromkeys(one.memory_id for one in found)))
        true = {memory.id: memory for memory in self._memories_true_at(memories, as_of)}
        dated: dict[tuple[str, ...], RelationWithMemory] = {}
        for relation in found:
            if memory := true.get(relation.memory_id):
                dated.setdefault(
                    (*relation.subject_and_object_keys, relation.relation.casefold()),
                    RelationWithMemory(relation, memory),
                )
        return sorted(dated.values(), key=lambda one: key not in one.relation.subject_and_object_keys)

    async def most_mentioned_entities(self, scope: Scope, *, limit: int) -> list[EntityWithMemoryCount]:
        """Those that most memories name."""
        await self.extract(most=MAX_MEMORIES_READ_FOR_GRAPH_PER_CALL)
        return await self.ledger.entities_whose_name_contains(scope, "", limit=limit)

    async def change_stated_relations(
        self, scope: Scope, memory_id: MemoryId, relations: Sequence[tuple[str, str, str]], *, remove: bool = False
    ) -> StatedRelationsResult:
        """State what a memory says, as (subject, relation, object), or take that back. It holds as long as the memory
        does. Secrets are redacted. Raises `InvalidInput` for an unknown memory and for a relation of an entity to
        itself, `StorageError`."""
        redactor = CountingRedactor(self.redact)
        stated = []
        for parts in relations:
            subject, relation, object_ = (" ".join(redactor.redact_text(part).split()) for part in parts)
            if entity_key(subject) == entity_key(object_):
                raise InvalidInput(f"Nothing was written: {subject[:100]!r} cannot be related to itself.")
            stated.append(RelationTriple(memory_id, subject, relation, object_, stated=True))
        found = await self.ledger.memories_with_ids(scope, [memory_id])
        if not found:
            raise InvalidInput(f"There is no memory {memory_id!r}. Nothing was written: store what says it first.")
        change = self.ledger.remove_relations_stated_by_agents if remove else self.ledger.add_stated_relations
        count = await change(scope, stated, at=self.now())
        return StatedRelationsResult(memory=found[0], count=count, redacted=redactor.found)


def _start_of_validity_or_event(memory: Memory) -> datetime:
    return beginning_of_validity(memory) or memory.happened_at
