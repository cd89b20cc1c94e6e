"""Migration of a database file to this version's schema, and the driver's errors as Madeleine's."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError, StorageFull

SCHEMA_REVISION = "0018"
MIGRATIONS_FOLDER = Path(__file__).parents[1] / "migrations"
_MIGRATION_LOCK = threading.Lock()
"""A server opens the same file for its memory and for its tokens: Alembic's context is global, and a change to the
write-ahead log does not wait for other connections."""


def migrate_to_head(path: Path) -> None:
    """Make the file if there is none (mode 0600; SQLite gives its log the same), migrate it if it is behind.

    Blocking. Alembic takes 0.4 s to import, so a file that is up to date never gets that far.
    """
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        message = f"The memory database {path} cannot be opened ({error.strerror}). Check the directory and its owner."
        raise StorageError(message) from error
    with _MIGRATION_LOCK, translating_driver_errors():
        revision = schema_revision(path)
        if revision != SCHEMA_REVISION:
            _run_migrations(path, revision)
            with closing(sqlite3.connect(path, timeout=5)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")


def schema_revision(path: Path) -> str | None:
    with closing(sqlite3.connect(path, timeout=5)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _run_migrations(path: Path, revision: str | None) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from sqlalchemy import URL, NullPool, create_engine, event

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        raise StorageError(
            f"The memory database {path} was written by a newer Madeleine (schema {revision}, this one knows "
            f"{SCHEMA_REVISION}). Nothing was changed: upgrade Madeleine to open it."
        )
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"isolation_level": None}
    )
    # The driver's own idea of a transaction leaves table definitions outside; this one holds the whole migration.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGED_ROW_MESSAGE = (
    "A row of the memory database is damaged ({}). All other rows can be read; to have it back, end Madeleine "
    "(madeleine stop) and restore the file from a backup."
)


@contextmanager
def translating_driver_errors() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise translate_driver_error(error.orig) from error.orig
    except sqlite3.Error as error:
        raise translate_driver_error(error) from error
    except UnicodeEncodeError as error:
        message = "The text holds half of a surrogate pair, which is no character. Nothing was stored: leave it out."
        raise InvalidInput(message) from error


def translate_driver_error(error: BaseException | None) -> StorageError:
    # The low byte is the primary code; the rest says which operation it was.
    extended_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended_code & 0xFF
    if {code, extended_code} & _FULL_CODES:
        return StorageFull("The disk is full. Nothing was stored: free some space and try again.")
    if code in _BUSY_CODES:
        return StorageBusy(
            "Another process is writing to the memory database. Nothing was stored: try again, "
            "or stop the other process if it should not be running."
        )
    if code in _DAMAGED_CODES:
        return StorageError(f"The memory database cannot be read ({error}). Restore the file from a backup.")
    if str(error).startswith("Could not decode to UTF-8"):  # the rest of it quotes the text
        return StorageError(DAMAGED_ROW_MESSAGE.format("a text is not UTF-8"))
    if code == sqlite3.SQLITE_READONLY:
        return StorageError("The memory database is read-only. Nothing was stored: check the file's permissions.")
    return StorageError(f"The memory database failed ({error}). Try again; if it goes on, check the disk and the log.")
