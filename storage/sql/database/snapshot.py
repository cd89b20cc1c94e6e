"""Reading one state of a database row by row, while others write to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import ClauseElement

from madeleine.memory.errors import StorageError
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.database.schema import (
    NEWEST_SCHEMA_REVISION,
    schema_revision_of_file,
    translating_driver_errors,
)
from madeleine.storage.sql.database.sqlite import compile_statement


class DatabaseSnapshot(Protocol):
    """The database as it was when the snapshot was opened. Blocking; rows come one by one, and memory stays flat."""

    def rows(self, statement: ClauseElement, **binds: Any) -> Iterator[Row]: ...


class _SqliteSnapshot:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: ClauseElement, **binds: Any) -> Iterator[Row]:
        compiled = compile_statement(statement)
        with translating_driver_errors(), closing(self._connection.cursor()) as cursor:
            cursor.execute(str(compiled), compiled.construct_params(binds) or {})
            yield from cursor


@contextmanager
def open_database_snapshot(ledger: LedgerLocation) -> Iterator[DatabaseSnapshot]:
    """Raises `StorageError` for one that cannot be read, or is of another version."""
    if isinstance(ledger, Path):
        with _open_sqlite_snapshot(ledger) as snapshot:
            yield snapshot
    else:
        from madeleine.storage.sql.database.postgresql_snapshot import open_postgres_snapshot

        with open_postgres_snapshot(ledger.url) as snapshot:
            yield snapshot


@contextmanager
def _open_sqlite_snapshot(path: Path) -> Iterator[DatabaseSnapshot]:
    revision = schema_revision_of_file(path)
    if revision != NEWEST_SCHEMA_REVISION:
        raise StorageError(
            f"The memory database {path} is of schema {revision}, this Madeleine's is {NEWEST_SCHEMA_REVISION}. Run "
            "`madeleine status` once with this version to bring it up to date."
        )
    with translating_driver_errors(), closing(sqlite3.connect(path, timeout=5, isolation_level=None)) as connection:
        # The sorting of a large table is to go to the disk, and not into memory.
        for pragma in ("query_only = ON", "temp_store = FILE", "cache_size = -8000", "busy_timeout = 5000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # a snapshot begins with its first read
        yield _SqliteSnapshot(connection)
        connection.execute("ROLLBACK")
