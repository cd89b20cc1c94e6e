"""What calls of language models cost (spec O10). Madeleine's own are written by `PatrolRepository.record_cost`."""

from __future__ import annotations

from typing import Any, Unpack

from sqlalchemy import ColumnElement, Select, bindparam, func, insert, select

from madeleine.memory.operations.ports import DEFAULT_RECORD_LIMIT
from madeleine.memory.operations.values import CostFilter, CostGrouping, CostRecord, CostTotal
from madeleine.storage.sql.database.dialect import sql_utc_day
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.filters import equals_if_bound, period_binds, sql_is_in_bound_period
from madeleine.storage.sql.database.mapping import RowMap, first_column_of_row
from madeleine.storage.sql.database.tables import cost_records_table

_c = cost_records_table.c
_COST = RowMap(CostRecord, cost_records_table, agent_id=_c.being_id, task_id=_c.run_id)
_IS_ASKED_FOR = (
    equals_if_bound(_c.being_id, "agent_id"),
    equals_if_bound(_c.run_id, "task_id"),
    equals_if_bound(_c.model, "model"),
    equals_if_bound(_c.purpose, "purpose"),
    sql_is_in_bound_period(_c.at),
)
_GROUPS: dict[CostGrouping, ColumnElement[str]] = {
    "day": sql_utc_day(_c.at),
    "run": _c.run_id,
    "model": _c.model,
    "purpose": _c.purpose,
    "being": _c.being_id,
}


def _total(group: ColumnElement[str]) -> RowMap[CostTotal]:
    return RowMap(
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


def _select_totals(by: CostGrouping) -> Select[Any]:
    group = _GROUPS[by]
    tokens = func.sum(_c.input_tokens) + func.sum(_c.output_tokens)
    order = func.min(_c.at) if by in ("day", "run") else tokens.desc()
    return select(*_TOTALS[by].columns).where(*_IS_ASKED_FOR).group_by(group).order_by(order, group)


_TOTALS = {by: _total(group) for by, group in _GROUPS.items()}
_SELECT_TOTALS = {by: _select_totals(by) for by in _GROUPS}
_INSERT = insert(cost_records_table)
_SELECT = select(*_COST.columns).where(*_IS_ASKED_FOR).order_by(_c.at.desc(), _c.seq.desc()).limit(bindparam("limit"))
_SUM_USD = select(func.coalesce(func.sum(_c.usd), 0.0)).where(*_IS_ASKED_FOR)


class SqlCostRecordRepository(DatabaseRepository):
    """`CostRecordRepository`."""

    async def save(self, record: CostRecord) -> None:
        row = _COST.to_row(record, being_id=record.agent_id, run_id=record.task_id)
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_INSERT, [row])

    async def query(self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[CostFilter]) -> tuple[CostRecord, ...]:
        return tuple(await self._database.rows(_SELECT, _COST.from_row, limit=limit, **_binds(filter)))

    async def aggregate(self, **filter: Unpack[CostFilter]) -> float:
        return float((await self._database.rows(_SUM_USD, first_column_of_row, **_binds(filter)))[0])

    async def totals(self, by: CostGrouping, **filter: Unpack[CostFilter]) -> tuple[CostTotal, ...]:
        return tuple(await self._database.rows(_SELECT_TOTALS[by], _TOTALS[by].from_row, **_binds(filter)))


def _binds(filter: CostFilter) -> dict[str, Any]:
    named = {name: filter.get(name) for name in ("agent_id", "task_id", "model", "purpose")}
    return named | period_binds(filter.get("since"), filter.get("until"))
