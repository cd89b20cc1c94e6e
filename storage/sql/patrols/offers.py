"""What was handed out to be decided (ruling 10)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, insert, literal_column, select

from madeleine.memory.model import RunId, Scope
from madeleine.memory.patrol_records import DecisionRequestId, StoredDecisionRequest
from madeleine.storage.sql.database.dialect import among, as_list, last_issued
from madeleine.storage.sql.database.engine import Database, Reads, Transaction
from madeleine.storage.sql.database.mapping import Mapped, own_row_binds, scalar, to_micros, update_own_row
from madeleine.storage.sql.database.patrol_tables import patrol_offers

_o = patrol_offers.c
_REQUEST = Mapped(StoredDecisionRequest, patrol_offers, decided_by=_o.settled_by)
_BY_IDS = select(*_REQUEST.columns).where(among(_o.id, "ids"), _o.being_id == bindparam("being"))
_OPEN = (
    select(*_REQUEST.columns)
    .where(_o.being_id == bindparam("being"), _o.settled_by.is_(None))
    .order_by(_o.made_at, _o.id)
)
_OLD = delete(patrol_offers).where(
    _o.being_id == bindparam("being"), _o.settled_by.is_(None), _o.made_at < bindparam("before")
)
_LAST_ERASURE = select(last_issued(literal_column("'forgotten'"), literal_column("'mark'")))
KEPT_FOR = timedelta(days=14)
_INSERT = insert(patrol_offers)
_SETTLE = update_own_row(patrol_offers, "settled_by", "body")


async def by_ids(reads: Reads, scope: Scope, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]:
    found = {
        one.id: one for one in await reads.rows(_BY_IDS, _REQUEST.from_row, being=scope.being_id, ids=as_list(ids))
    }
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]


async def open_offers(reads: Reads, scope: Scope) -> list[StoredDecisionRequest]:
    return await reads.rows(_OPEN, _REQUEST.from_row, being=scope.being_id)


async def last_erasure(reads: Reads) -> int:
    return int((await reads.rows(_LAST_ERASURE, scalar))[0])


async def store_requests(
    database: Database, scope: Scope, offers: Sequence[StoredDecisionRequest], at: datetime, read_at_erasure: int
) -> bool:
    async with database.transaction() as transaction:
        if await last_erasure(transaction) != read_at_erasure:
            return False
        await transaction.run(_OLD, [{"being": scope.being_id, "before": to_micros(at - KEPT_FOR)}])
        rows = [_REQUEST.to_row(one, being_id=scope.being_id, made_at=to_micros(at), settled_by=None) for one in offers]
        await transaction.run(_INSERT, rows)
    return True


async def close_offers(transaction: Transaction, scope: Scope, ids: Sequence[DecisionRequestId], run: RunId) -> None:
    await transaction.run(_SETTLE, [own_row_binds(scope, id_, settled_by=run, body={}) for id_ in ids])
