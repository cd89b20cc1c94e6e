"""What patrols have made of memories that are to be forgotten (ruling 11): diary, think_md, offers, and the journal,
from which an undo must not bring anything of them back.

The journal grows with every night. So SQL finds the rows that may tell of them, and a thread reads what SQL cannot tell
apart: the event loop has other calls to answer meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Column, ColumnElement, bindparam, delete, exists, func, or_, select, update

from madeleine.memory.model import ContentHash, MemoryId, Scene, Scope, when_as_searched
from madeleine.memory.rules.dynamics.mentions import mentions, without_timeline_texts
from madeleine.storage.sql.database.dialect import (
    among,
    as_list,
    contains_text,
    json_field,
    json_items,
    json_with_field,
)
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.lifecycle import EraseListing, tables_declaring
from madeleine.storage.sql.database.mapping import decode_texts, pair, scalar
from madeleine.storage.sql.database.memory_rows import to_when
from madeleine.storage.sql.database.tables import beings, diary, memories, metadata, patrol_changes, patrol_offers
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors
from madeleine.storage.sql.patrols.journal import Fields, from_json, to_json

_b, _d, _j, _o = beings.c, diary.c, patrol_changes.c, patrol_offers.c
_BEING = bindparam("being", type_=_j.being_id.type)


def _lists_any(column: Column[Any]) -> ColumnElement[bool]:
    """One of the `ids` is in the JSON list."""
    listed = json_items(column)
    return exists().select_from(listed).where(among(listed.c.value, "ids"))


_DAYS = select(func.count()).where(_d.being_id == _BEING, _lists_any(_d.sources))
_ERASE_LISTING = tuple(
    (update(table).values(one.values) if one.values else delete(table)).where(
        table.c.being_id == _BEING, _lists_any(table.c[one.column])
    )
    for table, one in tables_declaring(metadata, EraseListing)
)
_OPEN = select(_o.id, _o.body).where(_o.being_id == _BEING, _o.settled_by.is_(None))
_DELETE_OFFERS = delete(patrol_offers).where(_o.being_id == _BEING, among(_o.id, "ids"))

_OF_THEM = (_j.being_id == _BEING, among(_j.target, "ids"), or_(_j.kind == "memory", _j.kind == "note"))
_ROWS_OF = select(_j.kind, _j.before, _j.after).where(*_OF_THEM)
_DELETE_ROWS_OF = delete(patrol_changes).where(*_OF_THEM)


def _holds(what: str) -> ColumnElement[bool]:
    return or_(contains_text(_j.before, what), contains_text(_j.after, what))


def _says(name: str) -> ColumnElement[bool]:
    """One of the `ids` stands under that name."""
    return or_(*(among(json_field(side, name), "ids") for side in (_j.before, _j.after)))


def _lists(name: str) -> ColumnElement[bool]:
    """One of the `ids` is in the list of that name."""
    listed = (json_items(json_field(side, name)) for side in (_j.before, _j.after))
    return or_(*(exists().select_from(one).where(among(one.c.value, "ids")) for one in listed))


def _holds_dated() -> ColumnElement[bool]:
    """An object inside the object: a timeline retells by entries with a date, and has plain texts besides."""
    return or_(contains_text(func.substr(_j.before, 2), "{"), contains_text(func.substr(_j.after, 2), "{"))


_RETOLD = (
    select(_j.target)
    .join(memories, (memories.c.id == _j.target) & (memories.c.being_id == _BEING))
    .where(_j.being_id == _BEING, _j.kind == "memory", _holds('"when_"'), contains_text(memories.c.when_, "{"))
    .distinct()
)
_TIED = select(_j.seq, _j.kind, _j.before, _j.after).where(
    _j.being_id == _BEING,
    or_(
        (_j.kind == "diary") & _lists("sources"),
        (_j.kind == "thoughts") & _lists("think_sources"),
        (_j.kind == "memory") & _holds('"when_"') & _holds_dated(),
        (_j.kind == "memory") & _holds('_into"') & or_(_says("absorbed_into"), _says("compressed_into")),
    ),
)  # fmt: skip
_REWRITE = (
    update(patrol_changes)
    .where(_j.seq == bindparam("old_seq"))
    .values(before=bindparam("new_before"), after=bindparam("new_after"))
)
_DELETE_ROW = delete(patrol_changes).where(_j.seq == bindparam("old_seq"))
_NAMED = select(_j.seq, _j.target, json_field(_j.before, "name"), json_field(_j.after, "name")).where(
    _j.being_id == _BEING, _j.kind == "cluster"
)
# Without moving the vectors in them to here and back. NULL stays NULL.
_RENAME_BEFORE, _RENAME_AFTER = (
    update(patrol_changes)
    .where(_j.seq == bindparam("old_seq"))
    .values({side: json_with_field(patrol_changes.c[side], "name", bindparam("new_name"))})
    for side in ("before", "after")
)
_WITHOUT_MEANS = (
    update(patrol_changes)
    .where(_j.being_id == _BEING, _j.kind == "cluster", among(_j.target, "ids"))
    .values(
        before=json_with_field(_j.before, "vector"),
        after=json_with_field(_j.after, "vector"),
    )
)


async def retelling_sources(transaction: Transaction, scope: Scope) -> list[MemoryId]:
    """Memories with dated entries in a timeline that a patrol has ever changed: they may tell what others did."""
    return await transaction.rows(_RETOLD, scalar, being=scope.being_id)


async def remove_diary(transaction: Transaction, scope: Scope, gone: Collection[MemoryId]) -> int:
    """Remove the diary entries that were written from them, and the points for the next session: a derived text may
    tell of what is forgotten. The number of entries."""
    binds = {"being": scope.being_id, "ids": as_list(gone)}
    [entries] = await transaction.rows(_DAYS, scalar, **binds)
    for statement in _ERASE_LISTING:
        await transaction.run(statement, [binds])
    return int(entries)


async def remove_offers(transaction: Transaction, scope: Scope, gone: Collection[MemoryId], words: str) -> None:
    """Open ones that show them, or that hold a text which was written from more than they show."""
    found = await transaction.rows(_OPEN, pair, being=scope.being_id)
    telling = await asyncio.to_thread(_showing, found, gone, words)
    await transaction.run(_DELETE_OFFERS, [{"being": scope.being_id, "ids": as_list(telling)}])


def _showing(offers: Sequence[tuple[str, str]], gone: Collection[MemoryId], words: str) -> list[str]:
    return [id_ for id_, body in offers if _shows(json.loads(body), gone, words)]


def _shows(body: Mapping[str, Any], gone: Collection[MemoryId], words: str) -> bool:
    if body.get("earlier") or body.get("think") or mentions(body.get("cluster", ""), words):
        return True
    if body.get("kind") == "compress":  # it holds what its memories had absorbed when it was made
        return True
    return any(one["id"] in gone for one in body.get("memories", ()))


# --- the journal ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ErasedMemories:
    """`into`: each memory that goes, and who is to have what it absorbed. `told`: what timelines say of them. `names`:
    of today's clusters. `clusters`: those whose mean they were part of."""

    into: Mapping[MemoryId, MemoryId | None]
    told: Collection[str]
    words: str
    names: Mapping[str, str]
    notes: Collection[str]
    clusters: Collection[str]


async def clean_journal(transaction: Transaction, scope: Scope, going: ErasedMemories) -> None:
    own = as_list([*going.into, *going.notes])
    rows = await transaction.rows(_ROWS_OF, _to_sides, being=scope.being_id, ids=own)
    clusters = set(going.clusters) | _values(rows, "cluster_id")
    hashes = _values(rows, "content_hash")
    await transaction.run(_DELETE_ROWS_OF, [{"being": scope.being_id, "ids": own}])
    tied = await transaction.rows(_TIED, tuple, being=scope.being_id, ids=as_list(going.into))
    cleaned = await asyncio.to_thread(_cleaned, tied, going)
    await transaction.run(_DELETE_ROW, cleaned.empty)
    await transaction.run(_REWRITE, cleaned.rewritten)
    await delete_orphaned_vectors(transaction, [ContentHash(hash_) for hash_ in hashes | cleaned.hashes])
    await transaction.run(_WITHOUT_MEANS, [{"being": scope.being_id, "ids": as_list(clusters)}])
    await _rename(transaction, scope, going)


def _to_sides(row: Row) -> tuple[Fields | None, Fields | None]:
    _, before, after = row
    return from_json(before), from_json(after)


def _values(rows: Sequence[tuple[Fields | None, Fields | None]], name: str) -> set[str]:
    return {value for sides in rows for side in sides if side and (value := side.get(name))}


@dataclass(slots=True)
class _Cleaned:
    """`hashes`: of texts that told of them."""

    rewritten: list[dict[str, Any]] = field(default_factory=list)
    empty: list[dict[str, Any]] = field(default_factory=list)
    hashes: set[str] = field(default_factory=set)


def _cleaned(rows: Sequence[Row], going: ErasedMemories) -> _Cleaned:
    cleaned = _Cleaned()
    for row in rows:
        _clean(cleaned, row, going)
    return cleaned


def _clean(cleaned: _Cleaned, row: Row, going: ErasedMemories) -> None:
    seq, kind, stored_before, stored_after = row
    before, after = from_json(stored_before), from_json(stored_after)
    if kind == "memory":
        hashes: set[str] = set()
        if _is_retold(before, going.told) or _is_retold(after, going.told):
            hashes = _values([(before, after)], "content_hash")
            cleaned.hashes |= hashes
        new_before, new_after = _untied(before, going, hashes), _untied(after, going, hashes)
    else:
        new_before, new_after = _untold(kind, before, going), _untold(kind, after, going)
    if (new_before, new_after) == (before, after):
        return
    if new_before == new_after:
        cleaned.empty.append({"old_seq": seq})
    else:
        new = {"old_seq": seq, "new_before": to_json(new_before), "new_after": to_json(new_after)}
        cleaned.rewritten.append(new)


def _is_retold(side: Fields | None, told: Collection[str]) -> bool:
    return side is not None and "when_" in side and _stripped(side["when_"], told) != side["when_"]


def _stripped(when: str, told: Collection[str]) -> str:
    return when_as_searched(without_timeline_texts(Scene(action="", when=to_when(when)), told).when)


def _untied(side: Fields | None, going: ErasedMemories, hashes: Collection[str]) -> Fields | None:
    """As it would be if there had never been anything to merge or to summarise."""
    if side is None:
        return None
    found = dict(side)
    if "when_" in found:
        found["when_"] = _stripped(found["when_"], going.told)
    if hashes:
        found.pop("content_hash", None)
    survivor = found.get("absorbed_into")
    if survivor is not None and survivor in going.into:
        found["absorbed_into"] = going.into[survivor]
    if found.get("compressed_into") in going.into:
        found |= {"compressed_into": None, "compressed": False}
    return found


def _untold(kind: str, side: Fields | None, going: ErasedMemories) -> Fields | None:
    name = "sources" if kind == "diary" else "think_sources"
    return None if side is None or not set(going.into).isdisjoint(decode_texts(side[name])) else side


async def _rename(transaction: Transaction, scope: Scope, going: ErasedMemories) -> None:
    """Clusters of long ago, too. What one is called today is what its members tell."""
    named = await transaction.rows(_NAMED, tuple, being=scope.being_id)
    before, after = await asyncio.to_thread(_renamed, named, going)
    await transaction.run(_RENAME_BEFORE, before)
    await transaction.run(_RENAME_AFTER, after)


def _renamed(named: Sequence[Row], going: ErasedMemories) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """On either side. A few names are told again and again: each is looked at once."""
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    tells = cache(lambda name: mentions(name, going.words))
    for seq, target, was, became in named:
        name = going.names.get(target, "")
        for side, found in ((before, was), (after, became)):
            if found and found != name and tells(found):
                side.append({"old_seq": seq, "new_name": name})
    return before, after
