"""What all beings share (spec O4, O5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, or_, select

from madeleine.memory.model import ORGANISATION_BEING_ID, KnowledgeKind, Memory
from madeleine.storage.sql.database import dialect
from madeleine.storage.sql.database.engine import SqlRowReader
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import (
    AS_OF_BIND,
    MEMORY_COLUMNS,
    MEMORY_WAS_TRUE_AS_OF,
    memory_from_row,
)
from madeleine.storage.sql.database.tables import memories_table
from madeleine.storage.sql.memories.reading import RecallRepository

_m = memories_table.c
_SELECT_ORGANISATION_KNOWLEDGE = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.knowledge.is_not(None),
        dialect.in_bound_list_condition(_m.knowledge, "kinds"),
        or_(AS_OF_BIND.is_not(None), _m.truth == "current"),
        or_(AS_OF_BIND.is_(None), MEMORY_WAS_TRUE_AS_OF),
        dialect.without_index_use(_m.being_id) == bindparam("being", type_=_m.being_id.type),
    )
    .order_by(_m.number.desc())
    .limit(bindparam("limit"))
)


async def read_organisation_knowledge(
    reads: SqlRowReader, kinds: Sequence[KnowledgeKind], *, as_of: datetime | None = None, limit: int
) -> list[Memory]:
    """As `SharedKnowledgeReader.knowledge_of_kinds`."""
    binds: dict[str, Any] = {"kinds": dialect.json_list_bind_value(kinds), "being": ORGANISATION_BEING_ID}
    binds["as_of"] = as_of and microseconds_from_moment(as_of)
    return await reads.rows(_SELECT_ORGANISATION_KNOWLEDGE, memory_from_row, limit=limit, **binds)


class OrganisationKnowledgeRepository(RecallRepository):
    """`SharedKnowledgeReader`."""

    async def knowledge_of_kinds(
        self, kinds: Sequence[KnowledgeKind], *, as_of: datetime | None = None, limit: int
    ) -> list[Memory]:
        return await read_organisation_knowledge(self._database, kinds, as_of=as_of, limit=limit)
