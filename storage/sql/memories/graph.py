"""The entity graph, followed and added to (spec O14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Subquery,
    Table,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from madeleine.memory.graph.values import EntityKind, EntityMention, EntityWithMemoryCount, RelationTriple
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    insert_if_missing_statement,
    json_list_bind_value,
    sql_contains_text,
    without_index_use,
)
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.mapping import first_two_columns_of_row
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.memories.graph_extraction import relation_row
from madeleine.storage.sql.memories.reading import MemoryReadRepository, memories_with_ids
from madeleine.storage.sql.tables.graph import extracted_relations_table, mentions_table, stated_relations_table

_m, _n, _s = memories_table.c, mentions_table.c, stated_relations_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
# Without the index on absorbed memories, by which SQLite would read all that are not.
_IS_NEITHER_ABSORBED_NOR_RETRACTED = (
    without_index_use(_m.absorbed_into).is_(None),
    _m.truth != literal_column("'retracted'"),
)
_NAMED_ENTITY_SOURCE_COLUMNS = (
    (_n.being_id, _n.memory_id, _n.entity, _n.name, _n.kind),
    *(
        (_s.being_id, _s.memory_id, key.label("entity"), name.label("name"), literal_column("'name'").label("kind"))
        for key, name in ((_s.subject_key, _s.subject), (_s.object_key, _s.object))
    ),
)
"""Being, memory, key, name, kind: what memories name by their text, and by what is stated of them; some of it twice."""


MemoryEntityConditionBuilder = Callable[[ColumnElement[Any], ColumnElement[Any]], ColumnElement[bool]]
"""On the memory's id and the entity's key."""


def _named_entities_subquery(condition: MemoryEntityConditionBuilder, *, by_memory: bool = False) -> Subquery:
    """Of the being. The condition is looked up in each part, by the index on entities unless `by_memory`."""
    return union_all(
        *(
            select(*part).where(
                (without_index_use(part[0]) if by_memory else part[0]) == _BEING_ID_BIND, condition(part[1], part[2])
            )
            for part in _NAMED_ENTITY_SOURCE_COLUMNS
        )
    ).subquery("named")


def _select_entity_keys_and_memory_counts(named: Subquery) -> Select[Any]:
    count = func.count(named.c.memory_id.distinct())
    return (
        select(named.c.entity, count)
        .join_from(named, memories_table, _m.id == named.c.memory_id)
        .where(*_IS_NEITHER_ABSORBED_NOR_RETRACTED)
        .group_by(named.c.entity)
        .order_by(count.desc(), named.c.entity)
        .limit(bindparam("limit"))
    )


_SELECT_ALL_ENTITY_KEYS = _select_entity_keys_and_memory_counts(_named_entities_subquery(lambda memory, key: true()))
_SELECT_ONE_ENTITY_KEY = _select_entity_keys_and_memory_counts(
    _named_entities_subquery(lambda memory, key: key == bindparam("key"))
)
_SELECT_ENTITY_KEYS_CONTAINING_TEXT = _select_entity_keys_and_memory_counts(
    _named_entities_subquery(lambda memory, key: sql_contains_text(key, bindparam("key")))
)
_wanted = _named_entities_subquery(lambda memory, key: in_bound_list_condition(key, "keys"))
_SELECT_ENTITY_NAMES = (
    select(_wanted.c.entity, _wanted.c.name, _wanted.c.kind)
    .join_from(_wanted, memories_table, _m.id == _wanted.c.memory_id)
    .where(*_IS_NEITHER_ABSORBED_NOR_RETRACTED)
    .group_by(_wanted.c.entity, _wanted.c.name, _wanted.c.kind)
    .order_by(_wanted.c.entity, func.count(_wanted.c.memory_id.distinct()).desc(), _wanted.c.name, _wanted.c.kind)
)
_SELECT_MEMORIES_NAMING_ENTITIES = (
    select(*MEMORY_COLUMNS)
    .where(_m.id.in_(select(_wanted.c.memory_id)), *_IS_NEITHER_ABSORBED_NOR_RETRACTED)
    .order_by(_m.happened_at.desc(), _m.id)
    .limit(bindparam("limit"))
)
_of_memories = _named_entities_subquery(lambda memory, key: in_bound_list_condition(memory, "ids"), by_memory=True)
_SELECT_ENTITY_MENTIONS_IN_MEMORIES = select(
    _of_memories.c.memory_id, _of_memories.c.name, _of_memories.c.kind, _of_memories.c.entity
).order_by(_of_memories.c.memory_id, _of_memories.c.entity, _of_memories.c.name)


def _select_relations(table: Table, *, stated: bool) -> Select[Any]:
    _r = table.c
    return (
        select(
            _r.memory_id,
            _r.subject,
            _r.relation,
            _r.object,
            literal_column("1" if stated else "0").label("stated"),
            _m.happened_at.label("happened"),
        )
        .join_from(table, memories_table, _m.id == _r.memory_id)
        .where(
            _r.being_id == _BEING_ID_BIND,
            or_(in_bound_list_condition(_r.subject_key, "keys"), in_bound_list_condition(_r.object_key, "keys")),
            *_IS_NEITHER_ABSORBED_NOR_RETRACTED,
        )
    )


_all_relations = union_all(
    _select_relations(stated_relations_table, stated=True), _select_relations(extracted_relations_table, stated=False)
).subquery("relations")
_SELECT_RELATIONS_OF_ENTITIES = (
    select(*(_all_relations.c[name] for name in ("memory_id", "subject", "relation", "object", "stated")))
    .order_by(
        _all_relations.c.stated.desc(),
        _all_relations.c.happened.desc(),
        *(_all_relations.c[name] for name in ("memory_id", "subject", "relation", "object")),
    )
    .limit(bindparam("limit"))
)
_INSERT_STATED_RELATION = insert_if_missing_statement(stated_relations_table)
_DELETE_STATED_RELATION = delete(stated_relations_table).where(
    *(_s[name] == bindparam(f"own_{name}") for name in ("memory_id", "subject_key", "relation", "object_key"))
)
_SELECT_STATED_RELATIONS = select(_s.memory_id, _s.subject, _s.relation, _s.object).where(
    _s.being_id == _BEING_ID_BIND, in_bound_list_condition(_s.memory_id, "ids")
)


def _relation_from_row(row: Row) -> RelationTriple:
    memory_id, subject, words, object_, stated = row
    return RelationTriple(memory_id, subject, words, object_, stated=bool(stated))


def _relation_identity(relation: RelationTriple) -> tuple[str, ...]:
    return (relation.memory_id, *relation.subject_and_object_keys, relation.relation)


class GraphRepository(MemoryReadRepository):
    """`GraphLedger`."""

    async def entity_by_key(self, scope: Scope, key: str) -> EntityWithMemoryCount | None:
        found = await self._entities_with_memory_counts(scope, _SELECT_ONE_ENTITY_KEY, key=key, limit=1)
        return found[0] if found else None

    async def entities_whose_name_contains(self, scope: Scope, key: str, *, limit: int) -> list[EntityWithMemoryCount]:
        statement, binds = (_SELECT_ENTITY_KEYS_CONTAINING_TEXT, {"key": key}) if key else (_SELECT_ALL_ENTITY_KEYS, {})
        return await self._entities_with_memory_counts(scope, statement, limit=limit, **binds)

    async def _entities_with_memory_counts(
        self, scope: Scope, statement: Select[Any], **binds: Any
    ) -> list[EntityWithMemoryCount]:
        """With the name that most memories have for each."""
        counted = await self._database.rows(statement, first_two_columns_of_row, being=scope.being_id, **binds)
        keys = {"keys": json_list_bind_value(key for key, _ in counted)}
        names: dict[str, tuple[str, EntityKind]] = {}
        for key, name, kind in await self._database.rows(_SELECT_ENTITY_NAMES, tuple, being=scope.being_id, **keys):
            names.setdefault(key, (name, kind))
        return [EntityWithMemoryCount(key, *names[key], count) for key, count in counted if key in names]

    async def memories_naming_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[Memory]:
        binds = {"being": scope.being_id, "keys": json_list_bind_value(keys), "limit": limit}
        return await self._database.rows(_SELECT_MEMORIES_NAMING_ENTITIES, memory_from_row, **binds)

    async def entity_mentions_in_memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[EntityMention]:
        binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
        found: dict[tuple[str, str], EntityMention] = {}
        for memory_id, name, kind, entity in await self._database.rows(
            _SELECT_ENTITY_MENTIONS_IN_MEMORIES, tuple, **binds
        ):
            found.setdefault((memory_id, entity), EntityMention(memory_id, name, kind))
        return list(found.values())

    async def relations_of_entities(self, scope: Scope, keys: Sequence[str], *, limit: int) -> list[RelationTriple]:
        binds = {"being": scope.being_id, "keys": json_list_bind_value(keys), "limit": limit}
        found = await self._database.rows(_SELECT_RELATIONS_OF_ENTITIES, _relation_from_row, **binds)
        distinct: dict[tuple[str, ...], RelationTriple] = {}
        for relation in found:
            distinct.setdefault(_relation_identity(relation), relation)
        return list(distinct.values())

    async def add_stated_relations(self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime) -> int:
        async with self._database.transaction() as transaction:
            own = await self._own_memory_ids_of_relations(transaction, scope, relations)
            stated = await self._stated_relation_identities(transaction, scope, own)
            new = {
                _relation_identity(one): one
                for one in relations
                if one.memory_id in own and _relation_identity(one) not in stated
            }
            rows = [
                relation_row(
                    stated_relations_table,
                    scope.being_id,
                    one,
                    client=scope.client,
                    at=at,
                )
                for one in new.values()
            ]
            if new:
                await transaction.execute_many(_INSERT_STATED_RELATION, rows)
                await record_audit_entry(
                    transaction, scope, "update", at, tool="relate", ids=[one.memory_id for one in new.values()]
                )
            return len(new)

    async def remove_relations_stated_by_agents(
        self, scope: Scope, relations: Sequence[RelationTriple], *, at: datetime
    ) -> int:
        async with self._database.transaction() as transaction:
            own = await self._own_memory_ids_of_relations(transaction, scope, relations)
            stated = await self._stated_relation_identities(transaction, scope, own)
            gone = {_relation_identity(one): one for one in relations if _relation_identity(one) in stated}
            if gone:
                names = ("memory_id", "subject_key", "object_key", "relation")
                rows = [{f"own_{name}": part for name, part in zip(names, id_, strict=True)} for id_ in gone]
                await transaction.execute_many(_DELETE_STATED_RELATION, rows)
                ids = [one.memory_id for one in gone.values()]
                await record_audit_entry(transaction, scope, "update", at, tool="relate", ids=ids)
            return len(gone)

    async def _own_memory_ids_of_relations(
        self, transaction: Transaction, scope: Scope, relations: Iterable[RelationTriple]
    ) -> set[MemoryId]:
        ids = list(dict.fromkeys(one.memory_id for one in relations))
        return {memory.id for memory in await memories_with_ids(transaction, scope, ids)}

    async def _stated_relation_identities(
        self, transaction: Transaction, scope: Scope, ids: Iterable[MemoryId]
    ) -> set[tuple[str, ...]]:
        binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
        return {
            _relation_identity(RelationTriple(*row))
            for row in await transaction.rows(_SELECT_STATED_RELATIONS, tuple, **binds)
        }
