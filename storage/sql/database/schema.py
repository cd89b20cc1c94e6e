"""Migration of a database file to this version's schema, and the driver's errors as Madeleine's."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from madeleine.memory.errors import InvalidInput, MadeleineError, StorageBusy, StorageError, StorageFull

NEWEST_SCHEMA_REVISION = "0026"
MIGRATIONS_FOLDER = Path(__file__).parents[1] / "migrations"
_MIGRATION_LOCK = threading.Lock()
"""A server opens the same file for its memory and for its tokens: Alembic's context is global, and a change to the
write-ahead log does not wait for other connections."""


def migrate_ledger_file(path: Path) -> None:
    """Make the file if there is none (mode 0600; SQLite gives its log the same), migrate it if it is behind.

    Blocking. Alembic takes 0.4 s to import, so a file that is up to date never gets that far.
    """
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        message = f"The memory database {path} cannot be opened ({error.strerror}). Check the directory and its owner."
        raise StorageError(message) from error
    with _MIGRATION_LOCK, translating_driver_errors():
        revision = schema_revision_of_file(path)
        if revision != NEWEST_SCHEMA_REVISION:
            _run_migrations(path, revision)
            with closing(sqlite3.connect(path, timeout=5)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")


def schema_revision_of_file(path: Path) -> str | None:
    with closing(sqlite3.connect(path, timeout=5)) as connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
            return None
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(row[0]) if row else None


def _run_migrations(path: Path, revision: str | None) -> None:
    from sqlalchemy import URL, NullPool, create_engine, event

    require_known_schema_revision(revision, str(path))
    engine = create_engine(
        URL.create("sqlite", database=str(path)), poolclass=NullPool, connect_args={"isolation_level": None}
    )
    # The driver's own idea of a transaction leaves table definitions outside; this one holds the whole migration.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            migrate_connection_to_newest(connection)
    finally:
        engine.dispose()


def require_known_schema_revision(revision: str | None, name: str) -> None:
    """`name` says which database it is. Raises `StorageError` for one of a newer version."""
    from alembic.script import ScriptDirectory

    known = {script.revision for script in ScriptDirectory(str(MIGRATIONS_FOLDER)).walk_revisions()}
    if revision is not None and revision not in known:
        raise StorageError(
            f"The memory database {name} was written by a newer Madeleine (schema {revision}, this one knows "
            f"{NEWEST_SCHEMA_REVISION}). Nothing was changed: upgrade Madeleine to open it."
        )


def migrate_connection_to_newest(connection: Connection) -> None:
    """Migrate to the newest revision, within the connection's transaction."""
    from alembic import command

    command.upgrade(_alembic_config(connection), "head")


def stamp_newest_schema_revision(connection: Connection) -> None:
    """Note that the tables are those of the newest revision."""
    from alembic import command

    command.stamp(_alembic_config(connection), "head")


def _alembic_config(connection: Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


_SQLITE_DISK_FULL_CODES = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_SQLITE_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_DAMAGED_FILE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
DAMAGED_ROW_MESSAGE = (
    "A row of the memory database is damaged ({}). All other rows can be read; to have it back, end Madeleine "
    "(madeleine stop) and restore the file from a backup."
)
_LONE_SURROGATE_MESSAGE = (
    "The text holds half of a surrogate pair, which is no character. Nothing was stored: leave it out."
)


@contextmanager
def translating_driver_errors() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        # PostgreSQL's messages quote what they refuse; no memory's text comes into the log.
        cause = None if getattr(error.orig, "sqlstate", None) else error.orig
        raise translate_driver_error(error.orig) from cause
    except sqlite3.Error as error:
        raise translate_driver_error(error) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(_LONE_SURROGATE_MESSAGE) from error


def translate_driver_error(error: BaseException | None) -> MadeleineError:
    if sqlstate := getattr(error, "sqlstate", None):
        return _error_of_sqlstate(str(sqlstate), error)
    # The low byte is the primary code; the rest says which operation it was.
    extended_code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    code = extended_code & 0xFF
    if {code, extended_code} & _SQLITE_DISK_FULL_CODES:
        return StorageFull("The disk is full. Nothing was stored: free some space and try again.")
    if code in _SQLITE_BUSY_CODES:
        return StorageBusy(
            "Another process is writing to the memory database. Nothing was stored: try again, "
            "or stop the other process if it should not be running."
        )
    if code in _SQLITE_DAMAGED_FILE_CODES:
        return StorageError(f"The memory database cannot be read ({error}). Restore the file from a backup.")
    if str(error).startswith("Could not decode to UTF-8"):  # the rest of it quotes the text
        return StorageError(DAMAGED_ROW_MESSAGE.format("a text is not UTF-8"))
    if code == sqlite3.SQLITE_READONLY:
        return StorageError("The memory database is read-only. Nothing was stored: check the file's permissions.")
    return StorageError(f"The memory database failed ({error}). Try again; if it goes on, check the disk and the log.")


_UNSTORABLE_CHARACTER_SQLSTATES = {"22021", "22P05"}
_DISK_FULL_SQLSTATES = {"53100", "53200"}
_LOCKED_SQLSTATES = {"55P03", "40P01", "57014"}
_ACCESS_REFUSED_SQLSTATES = {"28000", "28P01", "3D000", "42501"}


def _error_of_sqlstate(sqlstate: str, error: BaseException | None) -> StorageError | InvalidInput:
    """PostgreSQL's codes. The messages may quote a text, and are left out."""
    while error is not None:
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput(_LONE_SURROGATE_MESSAGE)
        error = error.__cause__
    if sqlstate in _UNSTORABLE_CHARACTER_SQLSTATES:
        return InvalidInput("The text holds the character U+0000, which PostgreSQL cannot keep. Nothing was stored.")
    if sqlstate in _DISK_FULL_SQLSTATES:
        return StorageFull("The disk of PostgreSQL is full. Nothing was stored: free some space and try again.")
    if sqlstate in _LOCKED_SQLSTATES:
        return StorageBusy("Another server is writing to the memory database. Nothing was stored: try again.")
    if sqlstate in _ACCESS_REFUSED_SQLSTATES:
        return StorageError(
            f"PostgreSQL refuses the user or the database of MADELEINE_DATABASE_URL (SQLSTATE {sqlstate}). Check the "
            "name, the password and the rights: the user must be allowed to create tables in the database."
        )
    return StorageError(
        f"PostgreSQL failed (SQLSTATE {sqlstate}). Try again; if it goes on, see the log of PostgreSQL for the reason."
    )
