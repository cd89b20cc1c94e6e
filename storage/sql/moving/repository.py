"""Imports, and what the ledger knows of its copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, select, update

from madeleine.memory.model import ORGANISATION_BEING_ID, BeingId, ClusterId, EmbeddingModelName, Scope
from madeleine.memory.moving.ports import ImportReport, ImportUndoResult, LedgerCopyFileRecord, PastImport
from madeleine.memory.moving.record_base import ExportHeader
from madeleine.memory.moving.records import AnyExportRecord
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import in_bound_list_condition, json_list_bind_value, upsert_statement
from madeleine.storage.sql.database.engine import DatabaseRepository
from madeleine.storage.sql.database.mapping import RowMapper, first_column_of_row
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.moving import source_imports
from madeleine.storage.sql.moving.importing import ExportFileImport
from madeleine.storage.sql.moving.undo_import import ImportUndo

_i, _c = tables.imports_table.c, tables.clusters_table.c
_PAST_IMPORT_ROW_MAPPER = RowMapper(PastImport, tables.imports_table)
_SELECT_IMPORTS = select(*_PAST_IMPORT_ROW_MAPPER.columns).order_by(_i.at.desc(), _i.id)
_SET_MODEL_OF_CLUSTERS_WITHOUT_ONE = (
    update(tables.clusters_table)
    .where(in_bound_list_condition(_c.id, "ids"), _c.model.is_(None))
    .values(model=bindparam("new_model"))
)
_r, _m = tables.imported_rows_table.c, tables.memories_table.c
_SELECT_IMPORTED_SHARED_MEMORY = (
    select(_m.id)
    .join_from(tables.imported_rows_table, tables.memories_table, _m.id == _r.memory_id)
    .where(_r.import_id == bindparam("import"), _m.being_id == bindparam("organisation"))
    .limit(1)
)
_SELECT_CLUSTER_BEINGS = select(_c.being_id).where(in_bound_list_condition(_c.id, "ids")).distinct()


_p = tables.ledger_copies_table.c
_LEDGER_COPY_ROW_MAPPER = RowMapper(LedgerCopyFileRecord, tables.ledger_copies_table)
_SELECT_LEDGER_COPY_RECORDS = select(*_LEDGER_COPY_ROW_MAPPER.columns).order_by(_p.made_at, _p.path)
_UPSERT_LEDGER_COPY_RECORD = upsert_statement(tables.ledger_copies_table, "kind", "being_id", "made_at")
_DELETE_LEDGER_COPY_RECORD = delete(tables.ledger_copies_table).where(_p.path == bindparam("old_path"))


class _RollBackImport(Exception):
    """Ends a transaction that is not to be kept."""


def _roll_back_if_dry_run_or_empty(report: ImportReport, *, dry_run: bool) -> None:
    if dry_run or not report.added:
        raise _RollBackImport


class ImportRepository(DatabaseRepository):
    """`ImportLedger`."""

    async def import_records(
        self,
        header: ExportHeader,
        records: Iterator[AnyExportRecord],
        *,
        source: str,
        client: str,
        at: datetime,
        dry_run: bool,
    ) -> ImportReport:
        report: ImportReport | None = None
        try:
            async with self._database.transaction(needs_index_space=True) as transaction:
                work = ExportFileImport(transaction, source=source, client=client, at=at)
                await work.load_import_target_state(header)
                await work.import_all_records(records)
                report = await work.finish(header)
                _roll_back_if_dry_run_or_empty(report, dry_run=dry_run)
        except _RollBackImport:
            assert report is not None
            return replace(report, id="")
        return report

    async def undo_import(self, import_id: str, *, client: str, at: datetime) -> ImportUndoResult:
        async with self._database.transaction() as transaction:
            return await ImportUndo(transaction, import_id, client=client, at=at).undo()

    async def begin_or_resume_import(self, scope: Scope, source: str, *, at: datetime) -> str:
        async with self._database.transaction() as transaction:
            return await source_imports.begin_or_resume_import(transaction, scope, source, at)

    async def end_import_and_count_added_by_type(self, scope: Scope, import_id: str, *, at: datetime) -> dict[str, int]:
        async with self._database.transaction() as transaction:
            return await source_imports.end_import_and_count_added_by_type(transaction, scope, import_id, at)

    async def forgotten_imported_memory_keys(self, scope: Scope, keys: Sequence[str]) -> set[str]:
        return await source_imports.forgotten_imported_memory_keys(self._database, scope, keys)

    async def import_holds_shared_knowledge(self, import_id: str) -> bool:
        binds = {"import": import_id, "organisation": ORGANISATION_BEING_ID}
        return bool(await self._database.rows(_SELECT_IMPORTED_SHARED_MEMORY, first_column_of_row, **binds))

    async def past_imports(self) -> list[PastImport]:
        return await self._database.rows(_SELECT_IMPORTS, _PAST_IMPORT_ROW_MAPPER.from_row)

    async def recompute_cluster_vectors(self, ids: Sequence[ClusterId], *, model: EmbeddingModelName) -> None:
        if not ids:
            return
        async with self._database.transaction() as transaction:
            binds = {"ids": json_list_bind_value(ids)}
            await transaction.execute_many(_SET_MODEL_OF_CLUSTERS_WITHOUT_ONE, [binds | {"new_model": model}])
            for being in await transaction.rows(_SELECT_CLUSTER_BEINGS, first_column_of_row, **binds):
                await recompute_cluster_vectors(transaction, Scope(BeingId(being)), ids)


class LedgerCopyRecordRepository(DatabaseRepository):
    """`LedgerCopyRegister`."""

    async def record_ledger_copy(self, copy: LedgerCopyFileRecord) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_UPSERT_LEDGER_COPY_RECORD, [_LEDGER_COPY_ROW_MAPPER.to_row(copy)])

    async def recorded_ledger_copies(self) -> list[LedgerCopyFileRecord]:
        return await self._database.rows(_SELECT_LEDGER_COPY_RECORDS, _LEDGER_COPY_ROW_MAPPER.from_row)

    async def delete_ledger_copy_records(self, paths: Sequence[str]) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_DELETE_LEDGER_COPY_RECORD, [{"old_path": path} for path in paths])
