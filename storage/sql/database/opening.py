"""Where a ledger is, and how it is opened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from madeleine.storage.sql.database.engine import Database
from madeleine.storage.sql.database.location import PostgresLocation

LedgerLocation = Path | PostgresLocation
"""A file of SQLite, or a database of PostgreSQL."""


@asynccontextmanager
async def open_database(location: LedgerLocation) -> AsyncIterator[Database]:
    """It is made if there is none, a file for its owner alone, and brought to the newest schema. Raises
    `StorageError`."""
    if isinstance(location, Path):
        from madeleine.storage.sql.database.sqlite import open_sqlite_database

        async with open_sqlite_database(location) as file:
            yield file
    else:
        from madeleine.storage.sql.database.postgresql import open_postgres_database

        async with open_postgres_database(location) as database:
            yield database
