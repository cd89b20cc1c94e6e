"""The operational data of an application, opened beside a running host (spec O10)."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from madeleine.memory.errors import StorageError
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import ledger_location
from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.operations.repositories import OperationalRepositories, open_application_record_repositories


def open_operational_data_of_directory(data_dir: Path) -> AbstractAsyncContextManager[OperationalRepositories]:
    """Those of the memory in this directory, which is made if there is none. Raises `StorageError`."""
    settings = Settings(data_dir=data_dir)
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{data_dir} cannot be used: {error}. Name a directory that can be written.") from error
    return open_application_record_repositories(ledger_location(settings))


def open_operational_data_of_url(database_url: str) -> AbstractAsyncContextManager[OperationalRepositories]:
    """Those of the ledger on PostgreSQL. Raises `StorageError`, `InvalidInput`."""
    return open_application_record_repositories(PostgresLocation(database_url, ""))
