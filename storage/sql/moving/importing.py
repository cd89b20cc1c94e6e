"""Adds the records of an export to the ledger, and takes them back (rulings 14, 25).

One transaction for a whole file: it is there with all that belongs together, or not at all, whatever is killed.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.moving.archive_records import ArchivedMemoryExportRecord
from madeleine.memory.moving.ports import ImportReport
from madeleine.memory.moving.record_base import ExportHeader, ExportRecord
from madeleine.memory.moving.records import (
    AnyExportRecord,
    BeingExportRecord,
    ClusterExportRecord,
    CoreBlockExportRecord,
    ExportRecordBelongingToMemory,
    MemoryExportRecord,
    MessageExportRecord,
    MessageMemoryExportRecord,
    NoteExportRecord,
    PatrolChangeExportRecord,
    ProfileExportRecord,
    ReinforcementExportRecord,
)
from madeleine.memory.moving.values import memory_from_export_record
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.archive.erasing import rebuild_archive_group_digests
from madeleine.storage.sql.conversations.chat import message_key_hash
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, upsert_statement
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import encode_json_list, microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.erasing.memories import erase_memories
from madeleine.storage.sql.erasing.scrub_marks import mark_erased_ids_for_scrubbing
from madeleine.storage.sql.memories.index_source import mark_memories_for_index
from madeleine.storage.sql.memories.reading import memories_with_ids
from madeleine.storage.sql.memories.storing import INSERT_MEMORY, read_idempotency_key_outcomes
from madeleine.storage.sql.moving.import_work import (
    EXPORTED_TABLE_BY_RECORD_TYPE,
    INSERT_BY_RECORD_TYPE,
    SELECT_FORGOTTEN_IDS,
    SELECT_OWNERS_OF_ARCHIVED_MEMORIES,
    UPDATE_SESSION_AFTER_IMPORT,
    ImportInTransaction,
    batch_records_by_type,
    being_and_records_pairs,
    derived_columns_of_record,
    ids_referenced_by_record,
)
from madeleine.storage.sql.moving.source_imports import last_sequence_numbers
from madeleine.storage.sql.tables.conversations import forgotten_keys_table, messages_table, sessions
from madeleine.storage.sql.tables.core_blocks import core_blocks_table

_COLUMNS_POINTING_TO_MEMORIES = ("absorbed_into", "compressed_into", "resembles", "superseded_by", "may_supersede")
_m, _s = tables.memories_table.c, sessions.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_SELECT_LAST_MEMORY_NUMBER = select(tables.last_memory_numbers_table.c.last).where(
    tables.last_memory_numbers_table.c.being_id == _BEING_ID_BIND
)
_UPSERT_LAST_MEMORY_NUMBER = upsert_statement(tables.last_memory_numbers_table, "last")
_SELECT_TAKEN_MEMORY_NUMBERS = select(_m.number).where(_m.being_id == _BEING_ID_BIND, _m.number > bindparam("floor"))
_SELECT_PATROL_CYCLE = select(tables.beings_table.c.cycle).where(tables.beings_table.c.being_id == _BEING_ID_BIND)
_SELECT_NEXT_MESSAGE_POSITIONS = select(_s.session_id, _s.messages).where(
    _s.being_id == _BEING_ID_BIND, in_bound_list_condition(_s.session_id, "sessions")
)
_messages = messages_table.c
_SELECT_MESSAGE_KEYS = select(_messages.session_id, _messages.position, _messages.key).where(
    _messages.being_id == _BEING_ID_BIND, in_bound_list_condition(_messages.session_id, "sessions")
)
_SELECT_FORGOTTEN_MESSAGE_KEY_HASHES = select(forgotten_keys_table.c.key_hash).where(
    forgotten_keys_table.c.being_id == _BEING_ID_BIND,
    in_bound_list_condition(forgotten_keys_table.c.key_hash, "hashes"),
)
_SELECT_BLOCK_NAMES = select(core_blocks_table.c.name).where(core_blocks_table.c.being_id == _BEING_ID_BIND).distinct()
_SELECT_BEINGS_WITH_PATROL_RUNS = select(tables.patrol_runs.c.being_id).distinct()
_REPLACE_POINTERS_TO_ALIASED_MEMORY = [
    update(tables.memories_table)
    .where(_m[name] == bindparam("old"), _m.being_id == _BEING_ID_BIND)
    .values({name: bindparam("new")})
    for name in _COLUMNS_POINTING_TO_MEMORIES
]
_INSERT_IMPORT = insert(tables.imports_table)


class ExportFileImport(ImportInTransaction):
    """One import, in its transaction."""

    def __init__(self, transaction: Transaction, *, source: str, client: str, at: datetime) -> None:
        super().__init__(transaction, source=source, client=client, at=at)
        self._forgotten: set[str] = set()
        self._is_fresh: dict[str, bool] = {}
        """Beings that had no memory here: theirs keep their numbers."""
        self._number_floor: dict[str, int] = {}
        self._renumbered = 0
        self._memories: dict[MemoryId, str] = {}
        """Added ones, and their beings."""
        self._to_erase: defaultdict[str, list[MemoryId]] = defaultdict(list)
        self._clusters: list[str] = []
        self._stale_groups: set[str] = set()
        """Of the archive: what is told of them tells of what was forgotten here."""
        self._runs: set[str] = set()
        self._beings_with_runs: set[str] = set()
        self._blocks_here: set[tuple[str, str]] = set()
        self._aliases: dict[str, str] = {}
        """Ids of memories that are here under another id."""

    async def load_import_target_state(self, header: ExportHeader) -> None:
        self._forgotten = set(await self._rows(SELECT_FORGOTTEN_IDS))
        self._beings_with_runs = set(await self._rows(_SELECT_BEINGS_WITH_PATROL_RUNS))
        for being in header.beings:
            lasts = await self._rows(_SELECT_LAST_MEMORY_NUMBER, being=being)
            self._is_fresh[being] = not lasts
            self._number_floor[being] = max([0, *lasts])
            self._blocks_here |= {(being, name) for name in await self._rows(_SELECT_BLOCK_NAMES, being=being)}

    async def import_all_records(self, records: Iterator[AnyExportRecord]) -> None:
        batches = batch_records_by_type(records)
        by_type: Mapping[str, Callable[[Any], Awaitable[None]]] = {
            "being": self._import_beings,
            "memory": self._import_memories,
            "reinforcement": self._import_reinforcements,
            "revision": self._import_memory_parts,
            "truth_act": self._import_memory_parts,
            "lesson": self._import_memory_parts,
            "stated_relation": self._import_memory_parts,
            "core_block": self._import_core_blocks,
            "message": self._import_messages,
            "message_memory": self._import_message_memory_links,
            "forgotten_key": self._import_forgotten_message_keys,
            "archived_memory": self._import_archived_memories,
            "patrol_run": self._import_patrol_runs,
            "patrol_change": self._import_patrol_changes,
        }
        while batch := await asyncio.to_thread(next, batches, None):
            await by_type.get(batch[0].type, self._import_records_without_special_rules)(batch)

    async def finish(self, header: ExportHeader) -> ImportReport:
        for old, new in self._aliases.items():
            for being in header.beings:
                for statement in _REPLACE_POINTERS_TO_ALIASED_MEMORY:
                    await self._transaction.execute_many(statement, [{"old": old, "new": new, "being": being}])
        await self._transaction.execute_many(
            _UPSERT_LAST_MEMORY_NUMBER,
            [{"being_id": being, "last": last} for being, last in self._number_floor.items() if last],
        )
        await self._erase_imported_forgotten_memories()
        await rebuild_archive_group_digests(self._transaction, self._stale_groups)
        kept = [id_ for id_ in self._memories if self._memories[id_]]
        await mark_memories_for_index(self._transaction, kept)
        counts = {type_: self._added[type_] for type_ in EXPORTED_TABLE_BY_RECORD_TYPE if self._added[type_]}
        last = await last_sequence_numbers(self._transaction)
        await self._transaction.execute_many(
            _INSERT_IMPORT,
            [
                {
                    "id": self.id,
                    "source": self._source,
                    "being_id": header.beings[0] if len(header.beings) == 1 else "",
                    "state": "imported",
                    "at": microseconds_from_moment(self._at),
                    "counts": json.dumps(counts),
                    "last_numbers": json.dumps(last),
                }
            ],
        )
        for being in header.beings:
            own = [id_ for id_ in kept if self._memories[id_] == being]
            scope = Scope(BeingId(being), self._client)
            await record_audit_entry(
                self._transaction, scope, "import", self._at, tool="madeleine import", ids=[self.id, *own]
            )
        return ImportReport(
            id=self.id,
            added=counts,
            known={type_: self._known[type_] for type_ in EXPORTED_TABLE_BY_RECORD_TYPE if self._known[type_]},
            left_out_counts=dict(self._left_out_counts),
            left_out=self._left_out,
            renumbered=self._renumbered,
            memory_ids=kept,
            cluster_ids=self._clusters,  # type: ignore[arg-type]
        )

    async def _erase_imported_forgotten_memories(self) -> None:
        """What was forgotten here was added, so that all that tells of it is found; now it is erased with that."""
        for being, ids in self._to_erase.items():
            scope = Scope(BeingId(being), self._client)
            await erase_memories(self._transaction, scope, await memories_with_ids(self._transaction, scope, ids))
            await mark_erased_ids_for_scrubbing(self._transaction, ids)
            for id_ in ids:
                self._memories[id_] = ""

    # --- by type

    async def _import_records_without_special_rules(self, batch: Sequence[ExportRecord]) -> None:
        """Records that nothing but their key ties to what is here."""
        new: list[ExportRecord] = []
        for record in await self._new_records(batch):
            if not self._forgotten.isdisjoint(ids_referenced_by_record(record)):
                self._leave_out("forgotten", record)
            elif isinstance(record, ProfileExportRecord | NoteExportRecord) and record.memory_id in self._aliases:
                new.append(record.model_copy(update={"memory_id": self._aliases[record.memory_id]}))
            else:
                new.append(record)
        self._clusters += [record.id for record in new if isinstance(record, ClusterExportRecord)]
        await self._insert(new)

    async def _import_beings(self, batch: Sequence[BeingExportRecord]) -> None:
        for record in batch:
            if self._is_fresh[record.being]:
                self._number_floor[record.being] = record.last_number
            has_clock = await self._rows(_SELECT_PATROL_CYCLE, being=record.being)
            if not has_clock and (record.cycle or record.think):
                row: dict[str, Any] = {"being_id": record.being, "cycle": record.cycle}
                row |= {name: encode_json_list(getattr(record, name)) for name in ("think", "think_sources")}
                await self._transaction.execute_many(insert(tables.beings_table), [row])
                await self._record_as_added([record])
            else:
                self._known["being"] += 1

    async def _import_memories(self, batch: Sequence[MemoryExportRecord]) -> None:
        new = await self._new_records(batch)
        for being, records in being_and_records_pairs(new):
            await self._insert_memories(being, records)

    async def _insert_memories(self, being: str, records: Sequence[MemoryExportRecord]) -> None:
        scope = Scope(BeingId(being), self._client)
        keys = [record.key for record in records if record.key is not None]
        outcomes = await read_idempotency_key_outcomes(self._transaction, scope, keys)
        rows, added = [], []
        # Where the being had memories, a number up to the last may have been a forgotten one's.
        floor = 0 if self._is_fresh[being] else self._number_floor[being]
        taken = set(await self._rows(_SELECT_TAKEN_MEMORY_NUMBERS, being=being, floor=floor))
        for record in records:
            if record.key is not None and (outcome := outcomes.get(record.key)):
                if outcome.text == record.action:
                    self._aliases[record.id] = outcome.memory_id
                    self._known["memory"] += 1
                    continue
                record = record.model_copy(update={"key": None})  # noqa: PLW2901
            id_ = MemoryId(record.id)
            number = record.number
            if id_ in self._forgotten:
                number = -1 - len(self._to_erase[being])
                self._to_erase[being].append(id_)
                self._leave_out("forgotten", record)
            elif number <= floor or number in taken:
                number = self._number_floor[being] = self._number_floor[being] + 1
                self._renumbered += 1
            self._number_floor[being] = max(self._number_floor[being], number)
            taken.add(number)
            self._memories[id_] = being
            record = record.model_copy(update={"number": number})  # noqa: PLW2901
            rows.append(
                {f"new_{name}": value for name, value in row_from_memory(memory_from_export_record(record)).items()}
            )
            if id_ not in self._forgotten:
                added.append(record)
        await self._transaction.execute_many(INSERT_MEMORY, rows)
        await self._record_as_added(added)

    async def _import_archived_memories(self, batch: Sequence[ArchivedMemoryExportRecord]) -> None:
        new = await self._new_records(batch)
        here = await self._owner_being_by_record_id("memory", [record.memory_id for record in new])
        archived = json_list_bind_value(record.memory_id for record in new)
        known = {*here, *dict(await self._rows(SELECT_OWNERS_OF_ARCHIVED_MEMORIES, tuple, ids=archived))}
        self._known["archived_memory"] += sum(record.memory_id in known for record in new)
        for record in new:
            if record.memory_id in self._forgotten:
                self._leave_out("forgotten", record)
                self._stale_groups.add(record.group_id)
        kept = [record for record in new if record.memory_id not in self._forgotten | known]
        await self._insert([self._renumbered_archived_memory(record) for record in kept])

    def _renumbered_archived_memory(self, record: ArchivedMemoryExportRecord) -> ArchivedMemoryExportRecord:
        floor = self._number_floor[record.being]
        if self._is_fresh[record.being] or record.number > floor:
            return record
        number = self._number_floor[record.being] = floor + 1
        self._renumbered += 1
        memory, *parts = record.records
        return record.model_copy(update={"number": number, "records": ({**memory, "number": number}, *parts)})

    async def _import_memory_parts(self, batch: Sequence[ExportRecordBelongingToMemory]) -> None:
        """What belongs to a memory comes with it, and not to one that is here."""
        if not batch:
            return
        own = [record for record in batch if record.memory_id in self._memories]
        self._known[batch[0].type] += len(batch) - len(own)
        table = EXPORTED_TABLE_BY_RECORD_TYPE[batch[0].type]
        rows = [table.to_row(record) | derived_columns_of_record(record) for record in own]
        await self._transaction.execute_many(INSERT_BY_RECORD_TYPE[batch[0].type], rows)
        self._added[batch[0].type] += len(own)

    async def _import_core_blocks(self, batch: Sequence[CoreBlockExportRecord]) -> None:
        """A block with all its versions, where there is none of its name: versions of two stores make no history."""
        here = [record for record in batch if (record.being, record.name) in self._blocks_here]
        for record in await self._new_records(here) if here else ():
            self._leave_out("different", record)
        if new := [record for record in batch if (record.being, record.name) not in self._blocks_here]:
            await self._import_records_without_special_rules(new)

    async def _import_reinforcements(self, batch: Sequence[ReinforcementExportRecord]) -> None:
        kept: list[ReinforcementExportRecord] = []
        for being, records in being_and_records_pairs(batch):
            keys = [record.key for record in records if record.key is not None]
            scope = Scope(BeingId(being), self._client)
            taken = await read_idempotency_key_outcomes(self._transaction, scope, keys)
            kept += [r.model_copy(update={"key": None}) if r.key in taken else r for r in records]
        await self._import_memory_parts(kept)

    async def _import_messages(self, batch: Sequence[MessageExportRecord]) -> None:
        for being, records in being_and_records_pairs(await self._new_records(batch)):
            await self._insert_messages(being, records)

    async def _insert_messages(self, being: str, records: Sequence[MessageExportRecord]) -> None:
        names = json_list_bind_value({record.session_id for record in records})
        ends = dict(await self._rows(_SELECT_NEXT_MESSAGE_POSITIONS, tuple, being=being, sessions=names))
        places: defaultdict[str, set[int]] = defaultdict(set)
        keys: set[tuple[str, str]] = set()
        for session, position, key in await self._rows(_SELECT_MESSAGE_KEYS, tuple, being=being, sessions=names):
            places[session].add(position)
            keys.add((session, key))
        hashes = {r.id: message_key_hash(r.session_id, r.key) for r in records if r.key is not None}
        binds = {"being": being, "hashes": json_list_bind_value(hashes.values())}
        forgotten = set(await self._rows(_SELECT_FORGOTTEN_MESSAGE_KEY_HASHES, **binds))
        added: list[MessageExportRecord] = []
        for record in records:
            if record.id in self._forgotten or hashes.get(record.id) in forgotten:
                self._leave_out("forgotten", record)
                continue
            if record.key is not None and (record.session_id, record.key) in keys:
                self._known["message"] += 1
                continue
            position = record.position
            if position in places[record.session_id]:
                position = max(ends.get(record.session_id, 0), *places[record.session_id], position) + 1
            places[record.session_id].add(position)
            added.append(record.model_copy(update={"position": position}))
        await self._insert(added)
        extended = [
            {
                "being": being,
                "session": session,
                "end": max(message.position for message in messages) + 1,
                "earliest": microseconds_from_moment(min(message.at for message in messages)),
                "latest": microseconds_from_moment(max(message.at for message in messages)),
            }
            for session in ends
            if (messages := [message for message in added if message.session_id == session])
        ]
        # A session that came with this file says itself where it ends.
        await self._transaction.execute_many(
            UPDATE_SESSION_AFTER_IMPORT, [row for row in extended if row["end"] > ends[row["session"]]]
        )

    async def _import_message_memory_links(self, batch: Sequence[MessageMemoryExportRecord]) -> None:
        links = [
            record.model_copy(update={"memory_id": self._aliases.get(record.memory_id, record.memory_id)})
            for record in batch
        ]
        messages = await self._owner_being_by_record_id("message", [record.message_id for record in links])
        memories = await self._owner_being_by_record_id("memory", named := [record.memory_id for record in links])
        memories |= dict(await self._rows(SELECT_OWNERS_OF_ARCHIVED_MEMORIES, tuple, ids=json_list_bind_value(named)))
        kept = [
            record
            for record in links
            if record.being == messages.get(record.message_id) == memories.get(record.memory_id)
        ]
        rows = [EXPORTED_TABLE_BY_RECORD_TYPE["message_memory"].to_row(record) for record in kept]
        await self._transaction.execute_many(INSERT_BY_RECORD_TYPE["message_memory"], rows)

    async def _import_forgotten_message_keys(self, batch: Sequence[ExportRecord]) -> None:
        rows = [EXPORTED_TABLE_BY_RECORD_TYPE["forgotten_key"].to_row(record) for record in batch]
        await self._transaction.execute_many(INSERT_BY_RECORD_TYPE["forgotten_key"], rows)

    async def _import_patrol_runs(self, batch: Sequence[ExportRecord]) -> None:
        """The journal of a being that has none here: undo needs what follows a run to be behind it."""
        new = [record for record in batch if record.being not in self._beings_with_runs]
        self._known["patrol_run"] += len(batch) - len(new)
        self._runs.update(record.identity[0] for record in new)
        await self._insert(new)

    async def _import_patrol_changes(self, batch: Sequence[PatrolChangeExportRecord]) -> None:
        own = [record for record in batch if record.run_id in self._runs]
        table = EXPORTED_TABLE_BY_RECORD_TYPE["patrol_change"]
        await self._transaction.execute_many(
            INSERT_BY_RECORD_TYPE["patrol_change"], [table.to_row(record) for record in own]
        )
        self._added["patrol_change"] += len(own)
