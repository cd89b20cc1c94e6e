"""Searching notes: what they say."""

from __future__ import annotations

from sqlalchemy import or_

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.mapping import from_micros
from madeleine.storage.sql.database.tables import notes
from madeleine.storage.sql.search.source import Source

_n = notes.c


def _to_hit(row: Row) -> SearchHit:
    id_, created_at, content = row
    return SearchHit(
        source="notes",
        id=id_,
        timestamp=from_micros(created_at),
        text=content,
        stored_at=from_micros(created_at),
        provenance=Provenance(tool="notes"),
        position=(created_at, id_),
    )


SOURCE = Source(
    columns=(_n.id, _n.created_at, _n.content),
    to_hit=_to_hit,
    being=_n.being_id,
    time=_n.created_at,
    id=_n.id,
    folded=_n.folded,
    themes=None,
    # A scene note that was taken in is found as the memory it became.
    filter=lambda _: [or_(_n.type != "scene", _n.state != "done")],
)
