"""What calls of language models cost (spec O10). Madeleine's own are written by `PatrolRepository.record_cost`."""

from __future__ import annotations

from typing import Any, Unpack

from sqlalchemy import ColumnElement, Select, bindparam, func, insert, select

from madeleine.memory.operations.ports import DEFAULT_RECORD_LIMIT
from madeleine.memory.operations.values import CostFilter, CostGrouping, CostRecord, CostTotal
from madeleine.storage.sql.database.dialect import sql_utc_day
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.filters import equals_if_bound, period_binds, sql_is_in_bound_period
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.database.tables import cost_records_table

_c = cost_records_table.c
_COST_RECORD_ROW_MAPPER = RowMapper(CostRecord, cost_records_table, agent_id=_c.being_id, task_id=_c.run_id)
_MATCHES_BOUND_COST_FILTER = (
    equals_if_bound(_c.being_id, "agent_id"),
    equals_if_bound(_c.run_id, "task_id"),
    equals_if_bound(_c.model, "model"),
    equals_if_bound(_c.purpose, "purpose"),
    sql_is_in_bound_period(_c.at),
)
_GROUP_COLUMN_BY_COST_GROUPING: dict[CostGrouping, ColumnElement[str]] = {
    "day": sql_utc_day(_c.at),
    "run": _c.run_id,
    "model": _c.model,
    "purpose": _c.purpose,
    "being": _c.being_id,
}


def _cost_total_row_map(group: ColumnElement[str]) -> RowMapper[CostTotal]:
    return RowMapper(
        CostTotal,
        group=group,
        calls=func.count(),
        input_tokens=func.sum(_c.input_tokens),
        output_tokens=func.sum(_c.output_tokens),
        usd=func.sum(_c.usd),
        unpriced_calls=func.count() - func.count(_c.usd),
        first=func.min(_c.at),
        last=func.max(_c.at),
    )


def _select_cost_totals(by: CostGrouping) -> Select[Any]:
    group = _GROUP_COLUMN_BY_COST_GROUPING[by]
    tokens = func.sum(_c.input_tokens) + func.sum(_c.output_tokens)
    order = func.min(_c.at) if by in ("day", "run") else tokens.desc()
    return (
        select(*_COST_TOTAL_ROW_MAP_BY_GROUPING[by].columns)
        .where(*_MATCHES_BOUND_COST_FILTER)
        .group_by(group)
        .order_by(order, group)
    )


_COST_TOTAL_ROW_MAP_BY_GROUPING = {
    by: _cost_total_row_map(group) for by, group in _GROUP_COLUMN_BY_COST_GROUPING.items()
}
_SELECT_COST_TOTALS_BY_GROUPING = {by: _select_cost_totals(by) for by in _GROUP_COLUMN_BY_COST_GROUPING}
_INSERT_COST_RECORD = insert(cost_records_table)
_SELECT_COST_RECORDS = (
    select(*_COST_RECORD_ROW_MAPPER.columns)
    .where(*_MATCHES_BOUND_COST_FILTER)
    .order_by(_c.at.desc(), _c.seq.desc())
    .limit(bindparam("limit"))
)
_SUM_COST_USD = select(func.coalesce(func.sum(_c.usd), 0.0)).where(*_MATCHES_BOUND_COST_FILTER)


class SqlCostRecordRepository(DatabaseRepository):
    """`CostRecordRepository`."""

    async def save(self, record: CostRecord) -> None:
        row = _COST_RECORD_ROW_MAPPER.to_row(record, being_id=record.agent_id, run_id=record.task_id)
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_INSERT_COST_RECORD, [row])

    async def query(self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[CostFilter]) -> tuple[CostRecord, ...]:
        return tuple(
            await self._database.rows(
                _SELECT_COST_RECORDS, _COST_RECORD_ROW_MAPPER.from_row, limit=limit, **_cost_filter_binds(filter)
            )
        )

    async def aggregate(self, **filter: Unpack[CostFilter]) -> float:
        return float((await self._database.rows(_SUM_COST_USD, first_column_of_row, **_cost_filter_binds(filter)))[0])

    async def totals(self, by: CostGrouping, **filter: Unpack[CostFilter]) -> tuple[CostTotal, ...]:
        return tuple(
            await self._database.rows(
                _SELECT_COST_TOTALS_BY_GROUPING[by],
                _COST_TOTAL_ROW_MAP_BY_GROUPING[by].from_row,
                **_cost_filter_binds(filter),
            )
        )


def _cost_filter_binds(filter: CostFilter) -> dict[str, Any]:
    named = {name: filter.get(name) for name in ("agent_id", "task_id", "model", "purpose")}
    return named | period_binds(filter.get("since"), filter.get("until"))
