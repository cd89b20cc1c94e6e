"""Erasing memories from what patrols wrote (ruling 11): diary, think_md, decision requests, and the journal, from which
an undo must not restore anything of them.

The journal grows with every patrol. SQL finds the rows that may tell of the memories, and a thread reads what SQL
cannot tell apart: the event loop has other calls to answer meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, exists, func, or_, select, update

from madeleine.memory.model import ContentHash, MemoryId, Scene, Scope
from madeleine.memory.rules.dynamics.mentions import (
    mentions_forgotten,
    remove_absorbed_lessons_from_text,
    scene_without_timeline_repeats_of_texts,
)
from madeleine.memory.searched_texts import timeline_as_search_text
from madeleine.storage.sql.database.dialect import (
    expression_setting_json_key,
    in_bound_list_condition,
    json_list_bind_value,
    json_list_item_rows,
    sql_contains_text,
    sql_json_field,
    sql_text_after_first_character,
)
from madeleine.storage.sql.database.engine import Row, Transaction
from madeleine.storage.sql.database.mapping import (
    decode_json_list,
    encode_column_value,
    first_column_of_row,
    first_two_columns_of_row,
)
from madeleine.storage.sql.database.memory_rows import decode_timeline
from madeleine.storage.sql.database.tables import (
    decision_requests_table,
    diary_entries_table,
    memories_table,
    metadata,
    patrol_changes_table,
)
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors
from madeleine.storage.sql.patrols.journal import PATROL_JOURNAL_ROW_MAPPER, JournalFields, PatrolJournalRow
from madeleine.storage.sql.tables.lifecycle import EraseRowsListingForgotten, tables_and_their_lifecycle_rules

_d, _j, _o = diary_entries_table.c, patrol_changes_table.c, decision_requests_table.c
_BEING_ID_BIND = bindparam("being", type_=_j.being_id.type)


def _json_list_has_bound_id(json_list: ColumnElement[Any]) -> ColumnElement[bool]:
    """One of the `ids` is in the JSON list."""
    listed = json_list_item_rows(json_list)
    return exists().select_from(listed).where(in_bound_list_condition(listed.c.value, "ids"))


_COUNT_DIARY_ENTRIES_LISTING_MEMORIES = select(func.count()).where(
    _d.being_id == _BEING_ID_BIND, _json_list_has_bound_id(_d.sources)
)
_ERASE_ROWS_LISTING_MEMORIES = [
    (update(table).values(listing.values) if listing.values else delete(table)).where(
        table.c.being_id == _BEING_ID_BIND, _json_list_has_bound_id(table.c[listing.column])
    )
    for table, listing in tables_and_their_lifecycle_rules(metadata, EraseRowsListingForgotten)
]
_SELECT_OPEN_DECISION_REQUESTS = select(_o.id, _o.body).where(_o.being_id == _BEING_ID_BIND, _o.settled_by.is_(None))
_DELETE_DECISION_REQUESTS = delete(decision_requests_table).where(
    _o.being_id == _BEING_ID_BIND, in_bound_list_condition(_o.id, "ids")
)

_SELECT_JOURNALLED_CHANGES = select(*PATROL_JOURNAL_ROW_MAPPER.columns)
_CHANGE_IS_OF_BOUND_MEMORY_OR_NOTE = (
    _j.being_id == _BEING_ID_BIND,
    in_bound_list_condition(_j.target, "ids"),
    or_(_j.kind == "memory", _j.kind == "note"),
)
_SELECT_CHANGES_OF_MEMORIES_AND_NOTES = _SELECT_JOURNALLED_CHANGES.where(*_CHANGE_IS_OF_BOUND_MEMORY_OR_NOTE)
_DELETE_CHANGES_OF_MEMORIES_AND_NOTES = delete(patrol_changes_table).where(*_CHANGE_IS_OF_BOUND_MEMORY_OR_NOTE)


def _change_contains_text(text: str) -> ColumnElement[bool]:
    return or_(sql_contains_text(_j.before, text), sql_contains_text(_j.after, text))


def _field_is_bound_id(field: str) -> ColumnElement[bool]:
    """The field is one of the `ids`."""
    return or_(*(in_bound_list_condition(sql_json_field(side, field), "ids") for side in (_j.before, _j.after)))


def _list_field_has_bound_id(field: str) -> ColumnElement[bool]:
    return or_(*(_json_list_has_bound_id(sql_json_field(side, field)) for side in (_j.before, _j.after)))


# An object inside the object: a timeline has entries with a date, and plain texts besides.
_CHANGE_HAS_DATED_TIMELINE_ENTRIES = or_(
    sql_contains_text(sql_text_after_first_character(_j.before), "{"),
    sql_contains_text(sql_text_after_first_character(_j.after), "{"),
)
_SELECT_MEMORIES_WITH_CHANGED_TIMELINE = (
    select(_j.target)
    .join(memories_table, (memories_table.c.id == _j.target) & (memories_table.c.being_id == _BEING_ID_BIND))
    .where(
        _j.being_id == _BEING_ID_BIND,
        _j.kind == "memory",
        _change_contains_text('"when_"'),
        sql_contains_text(memories_table.c.when_, "{"),
    )
    .distinct()
)
_SELECT_CHANGES_REFERRING_TO_MEMORIES = _SELECT_JOURNALLED_CHANGES.where(
    _j.being_id == _BEING_ID_BIND,
    or_(
        (_j.kind == "diary") & _list_field_has_bound_id("sources"),
        (_j.kind == "thoughts") & _list_field_has_bound_id("think_sources"),
        (_j.kind == "memory") & _change_contains_text('"when_"') & _CHANGE_HAS_DATED_TIMELINE_ENTRIES,
        (_j.kind == "memory") & _change_contains_text('"superseded_by"') & _field_is_bound_id("superseded_by"),
        (_j.kind == "memory")
        & _change_contains_text('_into"')
        & or_(_field_is_bound_id("absorbed_into"), _field_is_bound_id("compressed_into")),
    ),
)
_UPDATE_JOURNALLED_CHANGE = (
    update(patrol_changes_table)
    .where(_j.seq == bindparam("old_seq"))
    .values(before=bindparam("new_before"), after=bindparam("new_after"))
)
_DELETE_JOURNALLED_CHANGE = delete(patrol_changes_table).where(_j.seq == bindparam("old_seq"))
_SELECT_JOURNALLED_CLUSTER_NAMES = select(
    _j.seq, _j.target, sql_json_field(_j.before, "name"), sql_json_field(_j.after, "name")
).where(_j.being_id == _BEING_ID_BIND, _j.kind == "cluster")
# In SQL, so that the vectors beside the names are not moved. NULL stays NULL.
_RENAME_BEFORE, _RENAME_AFTER = (
    update(patrol_changes_table)
    .where(_j.seq == bindparam("old_seq"))
    .values({side.name: expression_setting_json_key(side, "name", bindparam("new_name"))})
    for side in (_j.before, _j.after)
)
_CLEAR_JOURNALLED_CLUSTER_VECTORS = (
    update(patrol_changes_table)
    .where(_j.being_id == _BEING_ID_BIND, _j.kind == "cluster", in_bound_list_condition(_j.target, "ids"))
    .values({side.name: expression_setting_json_key(side, "vector") for side in (_j.before, _j.after)})
)


async def memory_ids_with_patrol_changed_timeline(transaction: Transaction, scope: Scope) -> list[MemoryId]:
    """Memories with dated entries in a timeline that a patrol has ever changed: they may tell what others did."""
    return await transaction.rows(_SELECT_MEMORIES_WITH_CHANGED_TIMELINE, first_column_of_row, being=scope.being_id)


async def delete_diary_entries_about_memories(transaction: Transaction, scope: Scope, ids: Collection[MemoryId]) -> int:
    """Delete the diary entries that were written from the memories, and the points for the next session: a derived text
    may tell of what is forgotten. Return the number of entries."""
    binds = {"being": scope.being_id, "ids": json_list_bind_value(ids)}
    [entries] = await transaction.rows(_COUNT_DIARY_ENTRIES_LISTING_MEMORIES, first_column_of_row, **binds)
    for statement in _ERASE_ROWS_LISTING_MEMORIES:
        await transaction.execute_many(statement, [binds])
    return int(entries)


async def delete_decision_requests_about_memories(
    transaction: Transaction, scope: Scope, ids: Collection[MemoryId], words: str
) -> None:
    """Delete open requests that show the memories, or hold a text that was written from more than they show."""
    requests = await transaction.rows(_SELECT_OPEN_DECISION_REQUESTS, first_two_columns_of_row, being=scope.being_id)
    telling = await asyncio.to_thread(_ids_of_requests_telling_of_memories, requests, ids, words)
    await transaction.execute_many(
        _DELETE_DECISION_REQUESTS, [{"being": scope.being_id, "ids": json_list_bind_value(telling)}]
    )


def _ids_of_requests_telling_of_memories(
    requests: Iterable[tuple[str, str]], ids: Collection[MemoryId], words: str
) -> list[str]:
    return [request_id for request_id, body in requests if _request_tells_of_memories(json.loads(body), ids, words)]


def _request_tells_of_memories(body: Mapping[str, Any], ids: Collection[MemoryId], words: str) -> bool:
    if body.get("earlier") or body.get("think") or mentions_forgotten(body.get("cluster", ""), words):
        return True
    # A summary's request holds what its memories had absorbed when it was made.
    # A note's may tell the same once more.
    return body.get("kind") in ("compress", "repair") or any(memory["id"] in ids for memory in body.get("memories", ()))


# --- the journal ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ErasedMemoryTracesInPatrolJournal:
    """Memories that are erased, with all that the journal may hold of them."""

    heirs: Mapping[MemoryId, MemoryId | None]
    """Each memory, and the memory that gets what it had absorbed."""
    successors: Mapping[MemoryId, MemoryId | None]
    """Each memory, and the next version that remains of what it says."""
    timeline_texts: Collection[str]
    """Texts about them in the timelines of others."""
    words: str
    cluster_names: Mapping[str, str]
    """Names of today's clusters, by id."""
    note_ids: Collection[str]
    cluster_ids: Collection[str]
    """Clusters whose mean they were part of."""


async def redact_patrol_journal(
    transaction: Transaction, scope: Scope, erased: ErasedMemoryTracesInPatrolJournal
) -> None:
    own = {"being": scope.being_id, "ids": json_list_bind_value([*erased.heirs, *erased.note_ids])}
    own_changes = await transaction.rows(
        _SELECT_CHANGES_OF_MEMORIES_AND_NOTES, PATROL_JOURNAL_ROW_MAPPER.from_row, **own
    )
    await transaction.execute_many(_DELETE_CHANGES_OF_MEMORIES_AND_NOTES, [own])
    related_to = {"being": scope.being_id, "ids": json_list_bind_value(erased.heirs)}
    related = await transaction.rows(
        _SELECT_CHANGES_REFERRING_TO_MEMORIES, PATROL_JOURNAL_ROW_MAPPER.from_row, **related_to
    )
    cleaned = await asyncio.to_thread(_redacted_changes, related, erased)
    await transaction.execute_many(
        _DELETE_JOURNALLED_CHANGE, [{"old_seq": new.seq} for _, new in cleaned if new.before == new.after]
    )
    updated = (
        {"old_seq": new.seq, "new_before": encode_column_value(new.before), "new_after": encode_column_value(new.after)}
        for _, new in cleaned
        if new.before != new.after
    )
    await transaction.execute_many(_UPDATE_JOURNALLED_CHANGE, updated)
    hashes = _values_of_field_in_changes(own_changes, "content_hash")
    for old, new in cleaned:
        hashes |= _values_of_field_in_changes([old], "content_hash") - _values_of_field_in_changes(
            [new], "content_hash"
        )
    await delete_orphaned_vectors(transaction, [ContentHash(hash_) for hash_ in hashes])
    clusters = json_list_bind_value({*erased.cluster_ids, *_values_of_field_in_changes(own_changes, "cluster_id")})
    await transaction.execute_many(_CLEAR_JOURNALLED_CLUSTER_VECTORS, [{"being": scope.being_id, "ids": clusters}])
    # Clusters of long ago are renamed too.
    names = await transaction.rows(_SELECT_JOURNALLED_CLUSTER_NAMES, tuple, being=scope.being_id)
    before, after = await asyncio.to_thread(_cluster_names_to_replace, names, erased)
    await transaction.execute_many(_RENAME_BEFORE, before)
    await transaction.execute_many(_RENAME_AFTER, after)


def _values_of_field_in_changes(changes: Iterable[PatrolJournalRow], field: str) -> set[str]:
    sides = (side for change in changes for side in (change.before, change.after))
    return {value for side in sides if side and (value := side.get(field))}


def _redacted_changes(
    changes: Iterable[PatrolJournalRow], erased: ErasedMemoryTracesInPatrolJournal
) -> list[tuple[PatrolJournalRow, PatrolJournalRow]]:
    """The changes that told of the memories, as they are and as they are to be."""
    cleaned = ((change, _change_without_erased_memories(change, erased)) for change in changes)
    return [(old, new) for old, new in cleaned if old != new]


def _change_without_erased_memories(
    change: PatrolJournalRow, erased: ErasedMemoryTracesInPatrolJournal
) -> PatrolJournalRow:
    before, after = change.before, change.after
    if change.kind == "memory":
        told = _timeline_repeats_erased_texts(before, erased) or _timeline_repeats_erased_texts(after, erased)
        before, after = (_fields_without_links_to_erased(fields, erased, told=told) for fields in (before, after))
        return replace(change, before=before, after=after)
    sources = "sources" if change.kind == "diary" else "think_sources"
    return replace(
        change,
        before=_fields_unless_written_from_erased(before, sources, erased),
        after=_fields_unless_written_from_erased(after, sources, erased),
    )


def _timeline_repeats_erased_texts(fields: JournalFields | None, erased: ErasedMemoryTracesInPatrolJournal) -> bool:
    return (
        fields is not None
        and "when_" in fields
        and _timeline_without_erased_texts(fields["when_"], erased) != fields["when_"]
    )


def _timeline_without_erased_texts(when: str, erased: ErasedMemoryTracesInPatrolJournal) -> str:
    scene = Scene(action="", when=decode_timeline(when))
    return timeline_as_search_text(scene_without_timeline_repeats_of_texts(scene, erased.timeline_texts).when)


def _fields_without_links_to_erased(
    fields: JournalFields | None, erased: ErasedMemoryTracesInPatrolJournal, *, told: bool
) -> JournalFields | None:
    """The fields as if the memories had never been merged or summarised, or superseded anything. `told`: a timeline
    repeated their texts; the content hash was made with them."""
    if fields is None:
        return None
    cleaned = dict(fields)
    if "when_" in cleaned:
        cleaned["when_"] = _timeline_without_erased_texts(cleaned["when_"], erased)
    if told:
        cleaned.pop("content_hash", None)
        taken_over = {name: cleaned[name] for name in ("feeling", "lesson") if name in cleaned}
        cleaned |= {n: remove_absorbed_lessons_from_text(text, erased.timeline_texts) for n, text in taken_over.items()}
    if cleaned.get("absorbed_into") in erased.heirs:
        cleaned["absorbed_into"] = erased.heirs[cleaned["absorbed_into"]]
    if cleaned.get("compressed_into") in erased.heirs:
        cleaned |= {"compressed_into": None, "compressed": False}
    if cleaned.get("superseded_by") in erased.successors:
        cleaned["superseded_by"] = erased.successors[cleaned["superseded_by"]]
        # Without a next version it counts as if it had never been superseded (`memories.truth.relink_version_chains`).
        cleaned |= {} if cleaned["superseded_by"] else {"truth": "current", "valid_until": None}
    return cleaned


def _fields_unless_written_from_erased(
    fields: JournalFields | None, sources: str, erased: ErasedMemoryTracesInPatrolJournal
) -> JournalFields | None:
    return fields if fields and erased.heirs.keys().isdisjoint(decode_json_list(fields[sources])) else None


def _cluster_names_to_replace(
    names: Iterable[Row], erased: ErasedMemoryTracesInPatrolJournal
) -> tuple[list[JournalFields], list[JournalFields]]:
    """The names to replace before and after each change. A few names occur again and again: each is read once."""
    before: list[JournalFields] = []
    after: list[JournalFields] = []
    tells = cache(lambda name: mentions_forgotten(name, erased.words))
    for seq, cluster_id, old_before, old_after in names:
        name = erased.cluster_names.get(cluster_id, "")
        for renamed, old in ((before, old_before), (after, old_after)):
            if old and old != name and tells(old):
                renamed.append({"old_seq": seq, "new_name": name})
    return before, after
