"""All that is kept of one being or of all, as records of an export, from one state of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from sqlalchemy import func, select

from madeleine.memory.errors import StorageError
from madeleine.memory.moving.export_file import export_lines
from madeleine.memory.moving.record_base import ExportHeader, ExportRecord
from madeleine.memory.moving.records import PATROL_JOURNAL_RECORD_TYPES, PatrolChangeExportRecord
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.database.schema import DAMAGED_ROW_MESSAGE
from madeleine.storage.sql.database.snapshot import DatabaseSnapshot, open_database_snapshot
from madeleine.storage.sql.moving.exported_tables import EXPORTED_TABLES, ExportedTable


class LedgerExport:
    """What one snapshot holds. Blocking."""

    def __init__(self, snapshot: DatabaseSnapshot, being: str | None, *, journal: bool) -> None:
        self._snapshot = snapshot
        self._being = being
        self._tables = [
            table for table in EXPORTED_TABLES if journal or table.record_type_name not in PATROL_JOURNAL_RECORD_TYPES
        ]

    def header(self) -> ExportHeader:
        beings = [row[0] for row in self._snapshot.rows(EXPORTED_TABLES[0].select_statement(), being=self._being)]
        counts = {table.record_type_name: count for table in self._tables if (count := self._count(table))}
        return ExportHeader(beings=tuple(beings), counts=counts)

    def records(self) -> Iterator[ExportRecord]:
        for table in self._tables:
            for row in self._snapshot.rows(table.select_statement(), being=self._being):
                try:
                    record = table.to_record(row)
                except (ValueError, TypeError, ValidationError) as error:
                    raise StorageError(DAMAGED_ROW_MESSAGE.format(f"a {table.record_type_name}")) from error
                yield _without_vector(record) if isinstance(record, PatrolChangeExportRecord) else record

    def lines(self) -> Iterator[bytes]:
        return export_lines(self.header(), self.records())

    def _count(self, table: ExportedTable) -> int:
        statement = select(func.count()).select_from(table.select_statement().order_by(None).subquery())
        return int(next(self._snapshot.rows(statement, being=self._being))[0])


def _without_vector(change: PatrolChangeExportRecord) -> PatrolChangeExportRecord:
    """The value before a change may hold the mean of a cluster, which is computed anew; after it stands its digest."""
    if not (change.before or {}).get("vector"):
        return change
    return change.model_copy(update={"before": {**(change.before or {}), "vector": None}})


@contextmanager
def open_ledger_snapshot_for_export(
    ledger: LedgerLocation, being: str | None, *, journal: bool = False
) -> Iterator[LedgerExport]:
    """Of the being, or of all. Stores go on meanwhile. Raises `StorageError`."""
    with open_database_snapshot(ledger) as snapshot:
        yield LedgerExport(snapshot, being, journal=journal)
