"""Full ids by number or by their first signs, and numbers by full id (ruling 23)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Select, Table, Text, and_, bindparam, select, type_coerce, union_all

from madeleine.memory.model import MemoryId, Scope
from madeleine.memory.short_ids import IdKind
from madeleine.storage.sql.database import dialect, tables
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.mapping import first_column_of_row, first_two_columns_of_row
from madeleine.storage.sql.tables.archive import archived_memories_table
from madeleine.storage.sql.tables.conversations import messages_table

_m = tables.memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_number = dialect.json_list_item_rows(bindparam("numbers"))
_a = archived_memories_table.c
_REQUESTED_MEMORY_NUMBERS = select(dialect.sql_json_item_cast_to_integer(_number.c.value))
# What is archived keeps its number: it can be named, to be restored or forgotten.
_SELECT_MEMORY_IDS_OF_NUMBERS = union_all(
    select(_m.number, _m.id).where(_m.being_id == _BEING_ID_BIND, _m.number.in_(_REQUESTED_MEMORY_NUMBERS)),
    select(_a.number, _a.memory_id).where(_a.being_id == _BEING_ID_BIND, _a.number.in_(_REQUESTED_MEMORY_NUMBERS)),
)
_SELECT_NUMBERS_OF_MEMORY_IDS = union_all(
    select(_m.id, _m.number).where(
        dialect.in_bound_list_condition(_m.id, "ids"), dialect.without_index_use(_m.being_id) == _BEING_ID_BIND
    ),
    select(_a.memory_id, _a.number).where(
        dialect.in_bound_list_condition(_a.memory_id, "ids"), dialect.without_index_use(_a.being_id) == _BEING_ID_BIND
    ),
)
_TABLE_BY_ID_KIND: Mapping[IdKind, Table] = {
    "memory": tables.memories_table,
    "message": messages_table,
    "note": tables.notes_table,
    "cluster": tables.clusters_table,
    "run": tables.patrol_runs,
    "decision": tables.decision_requests_table,
}


def _select_ids_beginning_with(table: Table) -> Select[tuple[str]]:
    beginning = dialect.json_list_item_rows(bindparam("beginnings"))
    # "g" follows every hexadecimal digit: a range of the ids' index.
    in_range = and_(table.c.id >= beginning.c.value, table.c.id < type_coerce(beginning.c.value, Text) + "g")
    return (
        select(table.c.id)
        .join_from(beginning, table, in_range)
        .where(dialect.without_index_use(table.c.being_id) == _BEING_ID_BIND)
    )


_SELECT_IDS_BEGINNING_WITH_BY_KIND = {
    kind: _select_ids_beginning_with(table) for kind, table in _TABLE_BY_ID_KIND.items()
}


class ShortIdRepository(DatabaseRepository):
    """`ShortIdLedger`."""

    async def memory_id_by_number(self, scope: Scope, numbers: Sequence[int]) -> dict[int, MemoryId]:
        binds = {"being": scope.being_id, "numbers": str(list(numbers))}
        return dict(await self._database.rows(_SELECT_MEMORY_IDS_OF_NUMBERS, first_two_columns_of_row, **binds))

    async def number_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, int]:
        binds = {"being": scope.being_id, "ids": dialect.json_list_bind_value(ids)}
        return dict(await self._database.rows(_SELECT_NUMBERS_OF_MEMORY_IDS, first_two_columns_of_row, **binds))

    async def ids_beginning_with_any(self, scope: Scope, kind: IdKind, beginnings: Sequence[str]) -> list[str]:
        binds = {"being": scope.being_id, "beginnings": dialect.json_list_bind_value(beginnings)}
        return await self._database.rows(_SELECT_IDS_BEGINNING_WITH_BY_KIND[kind], first_column_of_row, **binds)
