"""What was extracted from memories into the entity graph (spec O14): derived, and extracted anew where a text has
changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import Table, bindparam, delete, func, insert, or_, select

from madeleine.memory.graph.extraction import GRAPH_EXTRACTION_VERSION
from madeleine.memory.graph.values import NAME_MENTION_KINDS, EntityMention, MemoryWithExtractedEntities, RelationTriple
from madeleine.memory.model import BeingId, Memory, MemoryId, Scope
from madeleine.storage.sql.database.dialect import (
    equals_any,
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
)
from madeleine.storage.sql.database.engine import DatabaseRepository, Transaction
from madeleine.storage.sql.database.mapping import RowMapper, decode_json_list, first_column_of_row
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.tables.graph import extracted_relations_table, graph_extractions_table, mentions_table

_d, _m = graph_extractions_table.c, memories_table.c
_previous_page_end = memories_table.alias("last").c
_SELECT_MEMORIES_TO_EXTRACT_FROM = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.seq.in_(
            select(_m.seq)
            .join_from(memories_table, graph_extractions_table, _d.memory_id == _m.id, isouter=True)
            .where(
                # A page goes on where the last one ended, instead of finding again what was read.
                _m.seq
                > func.coalesce(
                    select(_previous_page_end.seq).where(_previous_page_end.id == bindparam("last")).scalar_subquery(),
                    0,
                ),
                or_(_d.memory_id.is_(None), _d.content_hash != _m.content_hash, _d.version != GRAPH_EXTRACTION_VERSION),
            )
            .order_by(_m.seq)
            .limit(bindparam("limit"))
        )
    )
    .order_by(_m.seq)
)
_n = mentions_table.c
_SELECT_KNOWN_ENTITY_KEYS = (
    select(_n.entity)
    .where(
        _n.being_id == bindparam("being", type_=_n.being_id.type),
        in_bound_list_condition(_n.entity, "keys"),
        equals_any(_n.kind, *NAME_MENTION_KINDS),
    )
    .distinct()
)
_SELECT_CURRENT_HASH_AND_THEMES = select(_m.id, _m.content_hash, _m.themes).where(in_bound_list_condition(_m.id, "ids"))
_DELETE_EXTRACTION_RESULTS = [
    delete(table).where(in_bound_list_condition(table.c.memory_id, "ids"))
    for table in (graph_extractions_table, mentions_table, extracted_relations_table)
]
_MARK_FOR_EXTRACTION = _DELETE_EXTRACTION_RESULTS[0]
_INSERT_EXTRACTION_RECORD = insert(graph_extractions_table)
_INSERT_MENTION, _INSERT_RELATION = map(insert_if_missing_statement, (mentions_table, extracted_relations_table))
_MENTION_ROW_MAPPER = RowMapper(EntityMention, mentions_table)


def relation_row(table: Table, being: BeingId, relation: RelationTriple, **others: object) -> dict[str, object]:
    subject_key, object_key = relation.subject_and_object_keys
    keys = {"being_id": being, "subject_key": subject_key, "object_key": object_key}
    return RowMapper(RelationTriple, table).to_row(relation, **keys, **others)


async def mark_for_graph_extraction(transaction: Transaction, ids: Iterable[MemoryId]) -> None:
    """Have these memories read again: something of them has changed that the hash of their text does not tell."""
    await transaction.execute_many(_MARK_FOR_EXTRACTION, [{"ids": json_list_bind_value(ids)}])


class GraphExtractionRepository(DatabaseRepository):
    """`GraphExtractionLedger`."""

    async def memories_to_extract_from(self, *, limit: int, after: MemoryId | None = None) -> list[Memory]:
        return await self._database.rows(_SELECT_MEMORIES_TO_EXTRACT_FROM, memory_from_row, limit=limit, last=after)

    async def known_entity_keys_among(self, scope: Scope, keys: Collection[str]) -> set[str]:
        binds = {"being": scope.being_id, "keys": json_list_bind_value(keys)}
        return set(await self._database.rows(_SELECT_KNOWN_ENTITY_KEYS, first_column_of_row, **binds))

    async def write_extracted_entities(self, extracted: Sequence[MemoryWithExtractedEntities]) -> None:
        by_id = {one.memory.id: one for one in extracted}
        ids = {"ids": json_list_bind_value(by_id)}
        # It can be done again: no need to sync the disk for it.
        async with self._database.transaction(durable=False) as transaction:
            rows = await transaction.rows(_SELECT_CURRENT_HASH_AND_THEMES, tuple, **ids)
            kept = [
                by_id[id_]
                for id_, hash_, themes in rows
                if (hash_, decode_json_list(themes)) == (by_id[id_].memory.content_hash, by_id[id_].memory.themes)
            ]
            for statement in _DELETE_EXTRACTION_RESULTS:
                await transaction.execute_many(statement, [ids])
            await transaction.execute_many(
                _INSERT_EXTRACTION_RECORD,
                [
                    {
                        "memory_id": one.memory.id,
                        "content_hash": one.memory.content_hash,
                        "version": GRAPH_EXTRACTION_VERSION,
                    }
                    for one in kept
                ],
            )
            await transaction.execute_many(
                _INSERT_MENTION,
                [
                    _MENTION_ROW_MAPPER.to_row(mention, being_id=one.memory.being_id, entity=mention.key)
                    for one in kept
                    for mention in one.mentions
                ],
            )
            await transaction.execute_many(
                _INSERT_RELATION,
                [
                    relation_row(extracted_relations_table, one.memory.being_id, relation)
                    for one in kept
                    for relation in one.relations
                ],
            )
