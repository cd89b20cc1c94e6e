"""What language models cost (spec O10)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import bindparam, func, insert, select

from madeleine.memory.language_model import Spent
from madeleine.memory.model import RunId, Scope
from madeleine.storage.sql.database.engine import Repository
from madeleine.storage.sql.database.mapping import Mapped, scalar, to_micros
from madeleine.storage.sql.database.patrol_tables import cost_records

_c = cost_records.c
_SPENT = Mapped(Spent, cost_records)
_INSERT = insert(cost_records)
_TOKENS = select(func.sum(_c.input_tokens + _c.output_tokens)).where(
    _c.purpose == bindparam("purpose"), _c.at >= bindparam("since")
)


class CostRepository(Repository):
    """`CostLedger`."""

    async def record_cost(self, scope: Scope, run: RunId, spent: Spent, *, at: datetime) -> None:
        row = _SPENT.to_row(spent, being_id=scope.being_id, run_id=run, at=to_micros(at))
        async with self._database.transaction() as transaction:
            await transaction.run(_INSERT, [row])

    async def tokens_since(self, purpose: str, since: datetime) -> int:
        [found] = await self._database.rows(_TOKENS, scalar, purpose=purpose, since=to_micros(since))
        return int(found or 0)
