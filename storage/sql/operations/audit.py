"""What an application has decided, beside what was done to memories (spec O10)."""

from __future__ import annotations

from typing import Any, Unpack

from sqlalchemy import FromClause, Select, Text, bindparam, case, cast, insert, literal, select, union_all

from madeleine.memory.operations.ports import DEFAULT_RECORD_LIMIT
from madeleine.memory.operations.refusals import (
    MEMORY_AUDIT_RECORD_ID_PREFIX,
    ActionAlreadyRecorded,
    require_audit_record_written_by_application,
)
from madeleine.memory.operations.risk import RISK_BY_AUDIT_EVENT
from madeleine.memory.operations.values import AuditFilter, AuditRecord
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.filters import equals_if_bound, period_binds, sql_is_in_bound_period
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.database.tables import audit_entries_table
from madeleine.storage.sql.tables.operations import audited_actions_table

_FILTER_FIELD_NAMES = ("agent_id", "action", "verdict", "risk")
_w, _a = audited_actions_table.c, audit_entries_table.c
_of_application = select(*audited_actions_table.c, literal("application", Text).label("source"))
_of_memory = select(
    _a.seq,
    (literal(MEMORY_AUDIT_RECORD_ID_PREFIX, Text) + cast(_a.seq, Text)).label("id"),
    case((_a.author != "", _a.author), else_=_a.being_id).label("agent_id"),
    _a.event.label("action"),
    literal("allow", Text).label("verdict"),
    case(dict(RISK_BY_AUDIT_EVENT), value=_a.event, else_="high").label("risk"),
    *(_a.tool, _a.at, _a.ids, literal("memory", Text).label("source")),
)


def _latest_filtered_actions(actions: Select[Any], *order: str) -> FromClause:
    """The last ones of those that meet the bound filter, so that the union has few to sort."""
    rows = actions.subquery()
    is_asked_for = (equals_if_bound(rows.c[name], name) for name in _FILTER_FIELD_NAMES)
    return (
        select(*rows.c)
        .where(*is_asked_for, sql_is_in_bound_period(rows.c.at))
        .order_by(*(rows.c[name].desc() for name in order))
        .limit(bindparam("limit"))
        .subquery()
    )


# The memory's are numbered as they happened, and have no index by time.
_latest_of_each_source = (
    _latest_filtered_actions(_of_application, "at", "seq"),
    _latest_filtered_actions(_of_memory, "seq"),
)
_all = union_all(*(select(*actions.c) for actions in _latest_of_each_source)).subquery("all_actions")
_columns: dict[str, Any] = {name: _all.c[name] for name in AuditRecord.model_fields}
_ANY_AUDIT_RECORD_ROW_MAPPER = RowMapper(AuditRecord, **_columns)
_APPLICATION_AUDIT_RECORD_ROW_MAPPER = RowMapper(AuditRecord, audited_actions_table)
_SELECT_AUDIT_RECORDS = (
    select(*_ANY_AUDIT_RECORD_ROW_MAPPER.columns)
    .order_by(_all.c.at.desc(), _all.c.seq.desc())
    .limit(bindparam("limit"))
)
_INSERT_AUDIT_RECORD = insert(audited_actions_table)
_SELECT_AUDIT_RECORD_ID = select(_w.id).where(_w.id == bindparam("record_id"))


class SqlAuditRepository(DatabaseRepository):
    """`AuditRepository`."""

    async def save(self, record: AuditRecord) -> None:
        require_audit_record_written_by_application(record)
        async with self._database.transaction() as transaction:
            if await transaction.rows(_SELECT_AUDIT_RECORD_ID, first_column_of_row, record_id=record.id):
                raise ActionAlreadyRecorded(record.id)
            await transaction.execute_many(_INSERT_AUDIT_RECORD, [_APPLICATION_AUDIT_RECORD_ROW_MAPPER.to_row(record)])

    async def query(
        self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[AuditFilter]
    ) -> tuple[AuditRecord, ...]:
        binds: dict[str, Any] = {name: filter.get(name) for name in _FILTER_FIELD_NAMES}
        binds |= period_binds(filter.get("since"), filter.get("until"))
        return tuple(
            await self._database.rows(
                _SELECT_AUDIT_RECORDS, _ANY_AUDIT_RECORD_ROW_MAPPER.from_row, limit=limit, **binds
            )
        )
