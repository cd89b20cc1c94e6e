"""Searching memories (spec P11): text, feeling, `when`, and themes as a whole."""

from __future__ import annotations

from sqlalchemy import ColumnElement, bindparam

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance, Scene, scene_to_text
from madeleine.storage.sql.database.dialect import among, contains_text
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.mapping import decode_texts, from_micros
from madeleine.storage.sql.database.memory_rows import to_when
from madeleine.storage.sql.database.tables import memories
from madeleine.storage.sql.search.asked import Shape
from madeleine.storage.sql.search.source import Source

_m = memories.c
_HIT = (
    _m.id, _m.happened_at, _m.action, _m.when_, _m.setting, _m.dialogue, _m.feeling, _m.themes, _m.status,
    _m.actors, _m.created_at, _m.tool, _m.client, _m.session_id,
)  # fmt: skip


def _filter(shape: Shape) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    found += [contains_text(_m.folded_themes, bindparam(f"theme_{n}")) for n in range(shape.themes)]
    if shape.some_categories:
        found.append(among(_m.category, "categories"))
    if not shape.dead:
        found.append(_m.status != "dead")
    if not shape.compressed:
        found.append(_m.compressed.is_(False))
    return found


def _to_hit(row: Row) -> SearchHit:
    (
        id_, happened_at, action, when, setting, dialogue, feeling, themes, status,
        actors, created_at, tool, client, session_id,
    ) = row  # fmt: skip
    scene = Scene(action=action, when=to_when(when), setting=setting, dialogue=decode_texts(dialogue))
    return SearchHit(
        source="memories",
        id=id_,
        timestamp=from_micros(happened_at),
        text=scene_to_text(scene, feeling),
        stored_at=from_micros(created_at),
        provenance=Provenance(tool=tool, client=client, session_id=session_id),
        actors=decode_texts(actors),
        tags=decode_texts(themes),
        status=status,
        position=(happened_at, id_),
    )


SOURCE = Source(
    columns=_HIT,
    to_hit=_to_hit,
    being=_m.being_id,
    time=_m.happened_at,
    id=_m.id,
    folded=_m.folded,
    themes=_m.folded_themes,
    filter=_filter,
)
