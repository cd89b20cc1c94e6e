"""What the mean of a being's memories is taken from (`memory.ingest.centroid`)."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, case, func, select

from madeleine.memory.model import ModelName, Scope, Vector
from madeleine.storage.sql.database.dialect import either, unindexed
from madeleine.storage.sql.database.engine import Repository, Row
from madeleine.storage.sql.database.mapping import pair, to_vector
from madeleine.storage.sql.database.tables import audit, embeddings, memories

_a, _e, _m = audit.c, embeddings.c, memories.c
_upsets = and_(_a.being_id == bindparam("being"), either(_a.event, "update", "forget", "patrol"))
_UPSETS = select(func.max(_a.seq), func.count(case((_upsets, 1)))).where(_a.seq > bindparam("after"))
# By number, whosever they are: what was stored since is read, and no more.
_STORED = (
    select(_m.seq, _e.vector)
    .outerjoin(embeddings, and_(_e.model == bindparam("model"), _e.content_hash == _m.content_hash))
    .where(_m.seq > bindparam("after"), unindexed(_m.being_id) == bindparam("being"), unindexed(_m.status) != "dead")
    .order_by(_m.seq)
    .limit(bindparam("limit"))
)


def _to_entry(row: Row) -> tuple[int, Vector | None]:
    seq, vector = row
    return seq, None if vector is None else to_vector(vector)


class CentroidRepository(Repository):
    """`CentroidSource`."""

    async def last_upset(self, scope: Scope, *, after: int) -> tuple[int, bool]:
        [(last, upsets)] = await self._database.rows(_UPSETS, pair, being=scope.being_id, after=after)
        return (after if last is None else last), upsets > 0

    async def stored_after(
        self, scope: Scope, model: ModelName, *, after: int, limit: int
    ) -> list[tuple[int, Vector | None]]:
        return await self._database.rows(
            _STORED, _to_entry, being=scope.being_id, model=model, after=after, limit=limit
        )
