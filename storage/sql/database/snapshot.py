"""Reading one state of a database file row by row, while others write to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import ClauseElement

from madeleine.memory.errors import StorageError
from madeleine.storage.sql.database.engine import Row, compile_statement
from madeleine.storage.sql.database.schema import SCHEMA_REVISION, schema_revision, translating_driver_errors


class Snapshot:
    """The database as it was when the snapshot was opened. Blocking; rows come one by one, and memory
    stays flat."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, statement: ClauseElement, **binds: Any) -> Iterator[Row]:
        compiled = compile_statement(statement)
        with translating_driver_errors(), closing(self._connection.cursor()) as cursor:
            cursor.execute(str(compiled), compiled.construct_params(binds) or {})
            yield from cursor


@contextmanager
def open_snapshot(path: Path) -> Iterator[Snapshot]:
    """Raises `StorageError` for a file that cannot be read, or is of another version."""
    revision = schema_revision(path)
    if revision != SCHEMA_REVISION:
        raise StorageError(
            f"The memory database {path} is of schema {revision}, this Madeleine's is {SCHEMA_REVISION}. Run "
            "`madeleine status` once with this version to bring it up to date."
        )
    with translating_driver_errors(), closing(sqlite3.connect(path, timeout=5, isolation_level=None)) as connection:
        # The sorting of a large table is to go to the disk, and not into memory.
        for pragma in ("query_only = ON", "temp_store = FILE", "cache_size = -8000", "busy_timeout = 5000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # a snapshot begins with its first read
        yield Snapshot(connection)
        connection.execute("ROLLBACK")
