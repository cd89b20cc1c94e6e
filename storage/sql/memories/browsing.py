"""Whole memories again, by id or by cluster, with what they were before (spec P10)."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BindParameter, ColumnElement, and_, bindparam, case, func, or_, select

from madeleine.memory.model import ClusterId, Memory, MemoryId, Revision, Scope, Status
from madeleine.memory.recall.ports import ClusterSummary
from madeleine.storage.sql.database.mapping import Mapped, scalar
from madeleine.storage.sql.database.memory_rows import MEMORY, to_memory
from madeleine.storage.sql.database.tables import clusters, memories
from madeleine.storage.sql.memories.memories import MemoryReads
from madeleine.storage.sql.memories.revisions import revisions_of

_c, _m = clusters.c, memories.c
_parents = clusters.alias("parents")
_BEING: BindParameter[str] = bindparam("being")


def _number(status: Status) -> ColumnElement[int]:
    return func.count(case((_m.status == status, 1)))


_EXISTS = select(_c.id).where(_c.id == bindparam("cluster"), _c.being_id == _BEING)
_SUMMARY = Mapped(
    ClusterSummary,
    clusters,
    parent=func.coalesce(_parents.c.name, ""),
    active=_number("active"),
    dying=_number("dying"),
    dead=_number("dead"),
)
_SUMMARIES = (
    select(*_SUMMARY.columns)
    .select_from(clusters)
    .outerjoin(_parents, and_(_parents.c.id == _c.parent_id, _parents.c.being_id == _c.being_id))
    .outerjoin(memories, and_(_m.being_id == _c.being_id, _m.cluster_id == _c.id))
    .where(_c.being_id == _BEING)
    .group_by(_c.id)
    .order_by(_c.is_root.desc(), _number("active").desc(), _c.name, _c.id)
)
_MEMBERS = (
    select(*MEMORY)
    .where(_m.being_id == _BEING, _m.cluster_id == bindparam("cluster"))
    .order_by(_m.happened_at.desc(), _m.id)
    .limit(bindparam("limit"))
)
_last = memories.alias("last")
_last_at = (
    select(_last.c.happened_at).where(_last.c.id == bindparam("after"), _last.c.being_id == _BEING).scalar_subquery()
)
_MEMBERS_AFTER = _MEMBERS.where(
    or_(_m.happened_at < _last_at, and_(_m.happened_at == _last_at, _m.id > bindparam("after")))
)


class BrowsingRepository(MemoryReads):
    """`BrowseLedger`."""

    async def revisions(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Revision]:
        return await revisions_of(self._database, scope, ids)

    async def cluster_memories(
        self, scope: Scope, cluster_id: ClusterId, *, limit: int, after: str | None
    ) -> list[Memory] | None:
        if after is None:
            found = await self._database.rows(
                _MEMBERS, to_memory, being=scope.being_id, cluster=cluster_id, limit=limit
            )
        else:
            # After a memory that is not the being's comes nothing: a page is never shown twice.
            found = await self._database.rows(
                _MEMBERS_AFTER, to_memory, being=scope.being_id, cluster=cluster_id, limit=limit, after=after
            )
        if found or await self._database.rows(_EXISTS, scalar, being=scope.being_id, cluster=cluster_id):
            return found
        return None

    async def cluster_summaries(self, scope: Scope) -> list[ClusterSummary]:
        return await self._database.rows(_SUMMARIES, _SUMMARY.from_row, being=scope.being_id)
