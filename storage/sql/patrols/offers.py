"""What was handed out to be decided (ruling 10)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, insert, select, update

from madeleine.memory.model import RunId
from madeleine.memory.patrol_records import DecisionRequestId, StoredDecisionRequest
from madeleine.memory.scope import Scope
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.engine import Database, Reads, Row, Transaction
from madeleine.storage.sql.database.patrol_tables import patrol_offers
from madeleine.storage.sql.database.times import to_micros

_o = patrol_offers.c
_BY_IDS = select(_o.id, _o.topic, _o.body, _o.settled_by).where(among(_o.id, "ids"), _o.being_id == bindparam("being"))
_OPEN = (
    select(_o.id, _o.topic, _o.body, _o.settled_by)
    .where(_o.being_id == bindparam("being"), _o.settled_by.is_(None))
    .order_by(_o.made_at, _o.id)
)
_OLD = delete(patrol_offers).where(
    _o.being_id == bindparam("being"), _o.settled_by.is_(None), _o.made_at < bindparam("before")
)
KEPT = timedelta(days=14)
_INSERT = insert(patrol_offers)
_SETTLE = (
    update(patrol_offers)
    .where(_o.id == bindparam("target"), _o.being_id == bindparam("being"))
    .values(settled_by=bindparam("run"), body="{}")
)


async def by_ids(reads: Reads, scope: Scope, ids: Sequence[DecisionRequestId]) -> list[StoredDecisionRequest]:
    found = {one.id: one for one in await reads.rows(_BY_IDS, _to_offer, being=scope.being_id, ids=as_list(ids))}
    return [found[id_] for id_ in dict.fromkeys(ids) if id_ in found]


async def unsettled(reads: Reads, scope: Scope) -> list[StoredDecisionRequest]:
    return await reads.rows(_OPEN, _to_offer, being=scope.being_id)


def _to_offer(row: Row) -> StoredDecisionRequest:
    id_, topic, body, decided_by = row
    return StoredDecisionRequest(id=id_, topic=topic, body=json.loads(body), decided_by=decided_by)


async def keep(database: Database, scope: Scope, offers: Sequence[StoredDecisionRequest], at: datetime) -> None:
    async with database.transaction() as transaction:
        await transaction.run(_OLD, [{"being": scope.being_id, "before": to_micros(at - KEPT)}])
        await transaction.run(
            _INSERT,
            [
                {
                    "id": one.id,
                    "being_id": scope.being_id,
                    "made_at": to_micros(at),
                    "topic": one.topic,
                    "body": json.dumps(one.body, ensure_ascii=False),
                    "settled_by": None,
                }
                for one in offers
            ],
        )


async def settle(transaction: Transaction, scope: Scope, ids: Sequence[DecisionRequestId], run: RunId) -> None:
    await transaction.run(_SETTLE, [{"target": id_, "being": scope.being_id, "run": run} for id_ in ids])
