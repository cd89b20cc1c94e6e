"""Searching conversations as they were observed (spec H1): who said what."""

from __future__ import annotations

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.mapping import from_micros
from madeleine.storage.sql.database.tables import messages
from madeleine.storage.sql.search.source import Source

_s = messages.c


def _to_hit(row: Row) -> SearchHit:
    id_, at, text, role, speaker, stored_at, client, session_id = row
    return SearchHit(
        source="chat",
        id=id_,
        timestamp=from_micros(at),
        text=text,
        stored_at=from_micros(stored_at),
        provenance=Provenance(tool="chat", client=client, session_id=session_id),
        actors=(speaker or role,),
        position=(at, id_),
    )


SOURCE = Source(
    columns=(_s.id, _s.at, _s.text, _s.role, _s.speaker, _s.stored_at, _s.client, _s.session_id),
    to_hit=_to_hit,
    being=_s.being_id,
    time=_s.at,
    id=_s.id,
    folded=_s.folded,
    themes=None,
    filter=lambda _: [],
)
