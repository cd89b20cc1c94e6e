"""Takes back what an import has added, except what was changed or built upon since."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, exists, select, true, union, update

from madeleine.memory.errors import CannotUndo
from madeleine.memory.ingest.ports import ErasureResult
from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.moving.ports import ImportUndoResult
from madeleine.memory.rules.storing.retelling import RetellingAdditions
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.archive.restoring import restore_archived_memories
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, json_list_item_rows
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_column_of_row
from madeleine.storage.sql.erasing.memories import erase_memories
from madeleine.storage.sql.erasing.scrub_marks import mark_erased_ids_for_scrubbing
from madeleine.storage.sql.memories.reading import memories_with_ids
from madeleine.storage.sql.memories.reinforcing import remove_reinforcement_additions
from madeleine.storage.sql.moving.added_rows import UNFINISHED_IMPORT_STATE
from madeleine.storage.sql.moving.exported_tables import ExportedTable
from madeleine.storage.sql.moving.import_work import (
    EXPORTED_TABLE_BY_RECORD_TYPE,
    SELECT_EXISTING_BY_RECORD_TYPE,
    SELECT_OWNERS_OF_ARCHIVED_MEMORIES,
    export_record_digest,
)
from madeleine.storage.sql.tables.archive import archive_groups_table, archived_memories_table
from madeleine.storage.sql.tables.conversations import message_memories_table, messages_table, sessions

_i, _r, _m = tables.imports_table.c, tables.imported_rows_table.c, tables.memories_table.c
_messages, _links, _s = messages_table.c, message_memories_table.c, sessions.c
_SELECT_IMPORT = select(_i.id, _i.state, _i.last_numbers).where(_i.id == bindparam("import"))
_SELECT_IMPORTED_ROW_RECORDS = select(_r.type, _r.key, _r.digest).where(_r.import_id == bindparam("import"))
_SELECT_BEINGS_OF_MEMORIES = select(_m.id, _m.being_id).where(in_bound_list_condition(_m.id, "ids"))
_own = json_list_item_rows(bindparam("ids"))
_COLUMNS_POINTING_TO_MEMORIES = (_m.absorbed_into, _m.compressed_into, _m.superseded_by)
_SELECT_MEMORIES_CHANGED_SINCE_IMPORT = union(
    *(
        select(table.c.memory_id).where(
            table.c.seq > bindparam(table.name), in_bound_list_condition(table.c.memory_id, "ids")
        )
        for table in (tables.reinforcements_table, tables.revisions_table, tables.truth_changes_table)
    ),
    # Others that point to them, and those of them that point to others.
    *(
        select(pointer).where(in_bound_list_condition(pointer, "ids"), ~in_bound_list_condition(_m.id, "ids"))
        for pointer in _COLUMNS_POINTING_TO_MEMORIES
    ),
    *(
        select(_m.id).where(
            in_bound_list_condition(_m.id, "ids"), pointer.is_not(None), ~in_bound_list_condition(pointer, "ids")
        )
        for pointer in _COLUMNS_POINTING_TO_MEMORIES
    ),
)
_source = json_list_item_rows(tables.diary_entries_table.c.sources)
_SELECT_DIARY_SOURCES = (
    select(tables.diary_entries_table.c.date, _source.c.value)
    .select_from(tables.diary_entries_table)
    .join(_source, true())
)
_MESSAGE_HAS_BOUND_ID = (in_bound_list_condition(_messages.id, "ids"),)
_DELETE_EMPTY_SESSION = delete(sessions).where(
    _s.being_id == bindparam("own_being"),
    _s.session_id == bindparam("own_session"),
    ~exists().where(_messages.being_id == _s.being_id, _messages.session_id == _s.session_id),
)
_c = tables.clusters_table.c
_child = tables.clusters_table.alias("child")
_DELETE_EMPTY_CLUSTER = delete(tables.clusters_table).where(
    in_bound_list_condition(_c.id, "ids"),
    ~exists().where(_m.cluster_id == _c.id),
    ~exists().where(_child.c.parent_id == _c.id, _child.c.id != _c.id),
)
_DELETE_BEING_WITHOUT_MEMORIES = delete(tables.beings_table).where(
    tables.beings_table.c.being_id == bindparam("own_being"),
    ~exists().where(_m.being_id == tables.beings_table.c.being_id),
)
_MARK_IMPORT_UNDONE = update(tables.imports_table).where(_i.id == bindparam("import")).values(state="undone")
_DELETE_IMPORTED_ROW_RECORDS = delete(tables.imported_rows_table).where(_r.import_id == bindparam("import"))
_SELECT_REINFORCEMENTS_ADDED_BY_IMPORT = select(_r.key, _r.memory_id, _r.digest).where(
    _r.import_id == bindparam("import"), _r.type == "reinforcement"
)
_told = tables.reinforcements_table.c
_DELETE_REINFORCEMENTS = delete(tables.reinforcements_table).where(
    _told.being_id == bindparam("own_being"), in_bound_list_condition(_told.key, "keys")
)
_w, _g = archived_memories_table.c, archive_groups_table.c
_DELETE_ARCHIVED_MEMORIES = delete(archived_memories_table).where(in_bound_list_condition(_w.id, "ids"))
_DELETE_EMPTY_ARCHIVE_GROUPS = delete(archive_groups_table).where(
    in_bound_list_condition(_g.id, "ids"), ~exists().where(_w.group_id == _g.id)
)
_RECORD_TYPES_REMOVED_IF_UNCHANGED = ("note", "profile", "core_block", "diary", "patrol_run")


class ImportUndo:
    """The undo of one import, in its transaction."""

    def __init__(self, transaction: Transaction, import_id: str, *, client: str, at: datetime) -> None:
        self._transaction = transaction
        self._import_id = import_id
        self._client = client
        self._at = at
        self._removed: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()

    async def undo(self) -> ImportUndoResult:
        """Raises `CannotUndo`."""
        last_numbers = await self._require_undoable()
        rows = await self._rows(_SELECT_IMPORTED_ROW_RECORDS, tuple, **{"import": self._import_id})
        keys: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
        digests = {(type_, key): digest for type_, key, digest in rows}
        for type_, key, _ in rows:
            keys[type_].append(tuple(json.loads(key)))
        await self._remove_archived_memories(keys)
        await self._remove_reinforcements()
        # What lists memories goes before them, while it can be told from what was written since.
        for type_ in _RECORD_TYPES_REMOVED_IF_UNCHANGED:
            await self._remove_unchanged_records(EXPORTED_TABLE_BY_RECORD_TYPE[type_], keys[type_], digests)
        erased = await self._remove_memories([key[0] for key in keys["memory"]], last_numbers)
        await self._remove_messages([key[0] for key in keys["message"]])
        sessions = [{"own_being": being, "own_session": session} for being, session in keys["session"]]
        await self._transaction.execute_many(_DELETE_EMPTY_SESSION, sessions)
        clusters = json_list_bind_value(key[0] for key in keys["cluster"])
        for _ in range(2):  # a root after what lies below it
            await self._transaction.execute_many(_DELETE_EMPTY_CLUSTER, [{"ids": clusters}])
        await self._transaction.execute_many(
            _DELETE_BEING_WITHOUT_MEMORIES, [{"own_being": key[0]} for key in keys["being"]]
        )
        await self._transaction.execute_many(_MARK_IMPORT_UNDONE, [{"import": self._import_id}])
        await self._transaction.execute_many(_DELETE_IMPORTED_ROW_RECORDS, [{"import": self._import_id}])
        scope = Scope(BeingId(""), self._client)
        await record_audit_entry(
            self._transaction, scope, "import", self._at, tool="madeleine import --undo", ids=[self._import_id]
        )
        return ImportUndoResult(removed=dict(+self._removed), kept=dict(+self._kept), erased=erased)

    async def _rows(self, statement: Any, make: Any = first_column_of_row, **binds: Any) -> list[Any]:
        return await self._transaction.rows(statement, make, **binds)

    async def _require_undoable(self) -> dict[str, int]:
        found = await self._rows(_SELECT_IMPORT, tuple, **{"import": self._import_id})
        if not found:
            raise CannotUndo(
                f"There is no import {self._import_id!r}. Nothing was changed: `madeleine import --list` shows all."
            )
        _, state, last_numbers = found[0]
        if state not in ("imported", UNFINISHED_IMPORT_STATE):
            raise CannotUndo(f"The import {self._import_id} was undone before. Nothing was changed.")
        return dict(json.loads(last_numbers))

    async def _remove_memories(self, ids: list[str], last_numbers: dict[str, int]) -> ErasureResult:
        kept = await self._memory_ids_changed_since_import(ids, last_numbers)
        self._kept["memory"] = len(kept)
        beings: defaultdict[str, list[MemoryId]] = defaultdict(list)
        removable = json_list_bind_value(id_ for id_ in ids if id_ not in kept)
        for id_, being in await self._rows(_SELECT_BEINGS_OF_MEMORIES, tuple, ids=removable):
            beings[being].append(MemoryId(id_))
        erased: list[MemoryId] = []
        for being, own in beings.items():
            scope = Scope(BeingId(being), self._client)
            result = await erase_memories(
                self._transaction, scope, await memories_with_ids(self._transaction, scope, own)
            )
            erased += result.erased_ids
        await mark_erased_ids_for_scrubbing(self._transaction, erased)
        self._removed["memory"] = len(erased)
        return ErasureResult(erased_ids=tuple(erased))

    async def _remove_archived_memories(self, keys: Mapping[str, Sequence[tuple[str, ...]]]) -> None:
        """What came as archived goes; what was archived since it came is looked at as a memory."""
        ids = json_list_bind_value(key[0] for key in keys["memory"])
        beings: defaultdict[str, list[str]] = defaultdict(list)
        for id_, being in await self._rows(SELECT_OWNERS_OF_ARCHIVED_MEMORIES, tuple, ids=ids):
            beings[being].append(id_)
        for being, own in beings.items():
            await restore_archived_memories(self._transaction, Scope(BeingId(being), self._client), own)
        entries = [key[0] for key in keys["archived_memory"]]
        await self._transaction.execute_many(_DELETE_ARCHIVED_MEMORIES, [{"ids": json_list_bind_value(entries)}])
        groups = json_list_bind_value(key[0] for key in keys["archive_group"])
        await self._transaction.execute_many(_DELETE_EMPTY_ARCHIVE_GROUPS, [{"ids": groups}])
        self._removed["archived_memory"] = len(entries)

    async def _remove_reinforcements(self) -> None:
        """Retellings that the import has added, of memories that were here and of its own."""
        rows = await self._rows(_SELECT_REINFORCEMENTS_ADDED_BY_IMPORT, tuple, **{"import": self._import_id})
        added: defaultdict[str, list[RetellingAdditions]] = defaultdict(list)
        keys: defaultdict[str, list[str]] = defaultdict(list)
        for key, memory_id, digest in rows:
            being, own_key = json.loads(key)
            added[memory_id].append(RetellingAdditions.from_json(digest))
            keys[being].append(own_key)
        for being, own_keys in keys.items():
            scope = Scope(BeingId(being), self._client)
            for memory in await memories_with_ids(self._transaction, scope, [MemoryId(id_) for id_ in added]):
                await remove_reinforcement_additions(self._transaction, scope, memory, added[memory.id])
            binds = {"own_being": being, "keys": json_list_bind_value(own_keys)}
            await self._transaction.execute_many(_DELETE_REINFORCEMENTS, [binds])
            self._removed["reinforcement"] += len(own_keys)

    async def _memory_ids_changed_since_import(self, ids: list[str], last_numbers: dict[str, int]) -> set[str]:
        """Those that were told again, corrected, superseded or retracted, merged, summarised or written of since; and
        those that they hang together with."""
        kept: set[str] = set()
        written = {source for _, source in await self._rows(_SELECT_DIARY_SOURCES, tuple)}
        new = written.intersection(ids)
        while True:
            kept |= new
            others = json_list_bind_value(id_ for id_ in ids if id_ not in kept)
            numbers = {name: last_numbers[name] for name in ("reinforcements", "revisions", "truth_acts")}
            new = set(
                await self._rows(_SELECT_MEMORIES_CHANGED_SINCE_IMPORT, first_column_of_row, ids=others, **numbers)
            )
            if not new:
                return kept

    async def _remove_messages(self, ids: list[str]) -> None:
        drawn_from = select(_links.message_id).where(in_bound_list_condition(_links.message_id, "ids"))
        kept = set(await self._rows(drawn_from, first_column_of_row, ids=json_list_bind_value(ids)))
        removable = [id_ for id_ in ids if id_ not in kept]
        statement = delete(messages_table).where(*_MESSAGE_HAS_BOUND_ID)
        await self._transaction.execute_many(statement, [{"ids": json_list_bind_value(removable)}])
        self._removed["message"], self._kept["message"] = len(removable), len(kept)

    async def _remove_unchanged_records(
        self, exported: ExportedTable, keys: Iterable[tuple[str, ...]], digests: dict[tuple[str, str], str]
    ) -> None:
        identities = set(keys)
        binds: dict[str, Any] = {"keys": json_list_bind_value({identity[-1] for identity in identities})}
        if "being" in exported.record.key_fields:
            binds["beings"] = json_list_bind_value({identity[0] for identity in identities})
        records = await self._rows(
            SELECT_EXISTING_BY_RECORD_TYPE[exported.record_type_name], exported.to_record, **binds
        )
        for record in records:
            if record.identity not in identities:
                continue
            key = json.dumps(record.identity, ensure_ascii=False)
            if export_record_digest(record) != digests[exported.record_type_name, key]:
                self._kept[exported.record_type_name] += 1
                continue
            named = {exported.column_name(name): getattr(record, name) for name in exported.record.key_fields}
            where = [exported.table.c[column] == bindparam(f"own_{column}") for column in named]
            binds_of_row = {f"own_{column}": value for column, value in named.items()}
            if exported.record_type_name == "patrol_run":
                changes = tables.patrol_changes_table
                statement = delete(changes).where(changes.c.run_id == bindparam("own_run"))
                await self._transaction.execute_many(statement, [{"own_run": record.identity[0]}])
            await self._transaction.execute_many(delete(exported.table).where(*where), [binds_of_row])
            self._removed[exported.record_type_name] += 1
