"""SQLite: one writer, a few readers, and what a transaction is.

aiosqlite gives each connection a thread of its own, and SQLAlchemy would go there three or four times for a statement:
up to 1 ms. So it only compiles them, the driver goes there once for each, and connections are opened once and kept: a
pool would roll back at each return.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import aiosqlite
from sqlalchemy import URL, ClauseElement, Compiled, Executable, NullPool, event, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from madeleine.memory.errors import LedgerLost, StorageBusy, StorageError
from madeleine.storage.resources import LEDGER_DISK_RESERVE_BYTES, require_disk_space
from madeleine.storage.sql.database.engine import (
    QUICK_QUERY_EXECUTION_OPTION,
    ROWS_PER_CHUNK,
    Database,
    Row,
    map_rows_in_chunks,
    run_to_end_despite_cancellation,
)
from madeleine.storage.sql.database.schema import migrate_ledger_file

_log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SQLITE_READER_CONNECTIONS = 4
_MAX_PENDING_ROWS_OR_WRITES = 20
"""Of one statement, or statements, that wait to be written with what follows."""
_DIALECT_WITH_NAMED_BINDS = sqlite.dialect(paramstyle="named")
_COMMON_PRAGMAS = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
)
_WRITER_PRAGMAS = (
    *_COMMON_PRAGMAS,
    "PRAGMA cache_size = -8000",  # KiB: what a patrol changes stays in memory until its end; a reader has 2,000
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_size_limit = 67108864",  # a patrol of 100,000 memories leaves a large log behind
)
_EVENT_LOOP_READER_PRAGMAS = ("PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY", "PRAGMA cache_size = -2000")
_MAX_BIND_CHARS_OF_EVENT_LOOP_READ = 4_000
"""Of the values of a brief read: a hundred ids."""
_TRUNCATE_WRITE_AHEAD_LOG = text("PRAGMA wal_checkpoint(TRUNCATE)")
_READER_PRAGMAS = (*_COMMON_PRAGMAS, "PRAGMA query_only = ON")


def _create_sqlite_engine(path: Path, begin: str | None, pragmas: Iterable[str]) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"isolation_level": begin, "cached_statements": 256},
        hide_parameters=True,  # no memory's text in an error's message, nor in the log
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: DBAPIConnection, _: object) -> None:
        try:
            cursor = connection.cursor()
            for pragma in pragmas:
                cursor.execute(pragma)
            cursor.close()
        except BaseException:
            connection.close()
            raise

    return engine


class _SqliteConnection(NamedTuple):
    sql: AsyncConnection
    driver: aiosqlite.Connection
    """It runs all statements; `sql` opens and closes it."""

    async def run_sql(self, sql: str) -> None:
        await run_to_end_despite_cancellation(self.driver.execute_fetchall(sql))

    async def read(
        self, statement: ClauseElement, binds: Mapping[str, Any], *, stop: Callable[[], Awaitable[None]] | None = None
    ) -> list[Row]:
        """The rows as SQLite has them: a truth value is 0 or 1."""
        compiled = compile_statement(statement)
        rows = await run_to_end_despite_cancellation(
            self.driver.execute_fetchall(str(compiled), cast(Any, compiled.construct_params(binds))), interrupt=stop
        )
        return cast(list[Row], rows)

    async def write_all(self, writes: Sequence[_WriteStatement], *, commit: bool = False) -> None:
        """Each in order, then the commit: one visit to the driver's thread for all of them."""
        # The driver has no public call for several statements at once.
        driver: Any = self.driver
        await run_to_end_despite_cancellation(driver._execute(partial(_run_writes, driver, writes, commit=commit)))


class _WriteStatement(NamedTuple):
    """A statement that is run once for each of the binds."""

    sql: str
    binds: Sequence[Any]


def _run_writes(driver: Any, writes: Sequence[_WriteStatement], *, commit: bool) -> None:
    """In the driver's thread."""
    connection: sqlite3.Connection = driver._conn
    for sql, binds in writes:
        if len(binds) == 1:
            connection.execute(sql, binds[0])
        else:
            connection.executemany(sql, binds)
    if commit:
        connection.commit()


@lru_cache(maxsize=512)
def compile_statement(statement: ClauseElement, columns: tuple[str, ...] | None = None) -> Compiled:
    """`columns`: the values that an INSERT or an UPDATE gets, where it does not name them itself."""
    return statement.compile(dialect=_DIALECT_WITH_NAMED_BINDS, column_keys=columns)


def _device_and_inode_of_ledger_files(path: Path) -> list[tuple[int, int]]:
    """Device and inode of the database, its log and the log's index. Raises `OSError`, and for an emptied database."""
    found = [Path(f"{path}{suffix}").stat() for suffix in ("", "-wal", "-shm")]
    if not found[0].st_size:
        raise OSError(f"{path} is empty")
    return [(status.st_dev, status.st_ino) for status in found]


class SqliteTransaction:
    """Few writes wait for the next read, for many writes or for the commit, to be carried out in one visit to the
    driver's thread, which takes longer than they do."""

    def __init__(self, writer: _SqliteConnection) -> None:
        self._writer = writer
        self._pending: list[_WriteStatement] = []

    async def execute_many(self, statement: ClauseElement, rows: Iterable[Mapping[str, Any]]) -> None:
        """Once for each of `rows`. An error may come with a later statement, or the commit."""
        remaining = iter(rows)
        while chunk := list(islice(remaining, ROWS_PER_CHUNK)):
            compiled = compile_statement(statement, tuple(chunk[0]))
            self._pending.append(_WriteStatement(str(compiled), [compiled.construct_params(row) for row in chunk]))
            if len(chunk) > _MAX_PENDING_ROWS_OR_WRITES or len(self._pending) > _MAX_PENDING_ROWS_OR_WRITES:
                await self._write_pending()

    async def _write_pending(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            await self._writer.write_all(pending)

    async def commit(self) -> None:
        await self._writer.write_all(self._pending, commit=True)

    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        await self._write_pending()
        if not self._writer.driver.in_transaction:
            # Before a write the driver says so itself, 0.2 ms sooner; before a read it would not.
            await self._writer.run_sql("BEGIN IMMEDIATE")
        return await map_rows_in_chunks(await self._writer.read(statement, binds), from_row)


class SqliteDatabase(Database):
    """One file. Reads never wait for the writer: with a write-ahead log they see the last commit."""

    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writers = _create_sqlite_engine(path, "IMMEDIATE", _WRITER_PRAGMAS)
        self._readers = _create_sqlite_engine(path, None, _READER_PRAGMAS)
        self._connections: list[_SqliteConnection] = []
        self._write_lock = asyncio.Lock()
        self._transactions = 0
        self._idle_readers: list[_SqliteConnection] = []
        self._reader_slots = asyncio.Semaphore(MAX_SQLITE_READER_CONNECTIONS)
        self._closed = False

    async def open(self) -> None:
        self._writer = await self._connect(self._writers)
        await self._writer.run_sql("SELECT 1 FROM sqlite_master")  # the first read makes the log
        self._brief_reader = sqlite3.connect(self._path, timeout=0, isolation_level=None, cached_statements=64)
        for pragma in _EVENT_LOOP_READER_PRAGMAS:
            self._brief_reader.execute(pragma)
        self._files = _device_and_inode_of_ledger_files(self._path)

    def require_files_not_replaced(self) -> None:
        """Raises `LedgerLost` unless the files at their paths are those that were opened: what is written to a deleted
        file goes with its last process. Three calls to the system, 5 µs."""
        try:
            if _device_and_inode_of_ledger_files(self._path) == self._files:
                return
            reason = "was replaced"
        except OSError as error:
            reason = f"cannot be reached any more ({error.strerror or 'it is empty'})"
        raise LedgerLost(
            f"The memory database {self._path}, or its -wal or -shm file, {reason} while it was open. What was not "
            "acknowledged may be lost, and this process ends: put the file back, or restore a backup."
        )

    async def _connect(self, engine: AsyncEngine) -> _SqliteConnection:
        sql = await engine.connect()
        driver = cast(aiosqlite.Connection, (await sql.get_raw_connection()).driver_connection)
        self._connections.append(_SqliteConnection(sql, driver))
        return self._connections[-1]

    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        rows = self._read_quick_query_on_event_loop(statement, binds)
        return await map_rows_in_chunks(
            await self._read_in_thread(statement, binds) if rows is None else rows, from_row
        )

    def _read_quick_query_on_event_loop(self, statement: ClauseElement, binds: Mapping[str, Any]) -> list[Row] | None:
        """What a `mark_query_as_runnable_on_event_loop` finds, on the event loop; None for another read, or one that
        cannot be made now."""
        is_brief = isinstance(statement, Executable) and statement.get_execution_options().get(
            QUICK_QUERY_EXECUTION_OPTION
        )
        if not is_brief or self._closed:
            return None
        if sum(len(bind) for bind in binds.values() if isinstance(bind, str)) > _MAX_BIND_CHARS_OF_EVENT_LOOP_READ:
            return None
        compiled = compile_statement(statement)
        with suppress(sqlite3.Error):  # a thread waits for who writes to the files, and says what is wrong
            return self._brief_reader.execute(str(compiled), cast(Any, compiled.construct_params(binds))).fetchall()
        return None

    async def _read_in_thread(self, statement: ClauseElement, binds: Mapping[str, Any]) -> list[Row]:
        async with self._reader_slots:
            self._refuse_if_closed()
            while not self._idle_readers:
                await run_to_end_despite_cancellation(self._open_reader())
            reader = self._idle_readers.pop()
            try:
                return await reader.read(statement, binds, stop=reader.driver.interrupt)
            finally:
                self._idle_readers.append(reader)

    async def _open_reader(self) -> None:
        self._idle_readers.append(await self._connect(self._readers))

    @asynccontextmanager
    async def transaction(
        self, *, durable: bool = True, needs_index_space: bool = False
    ) -> AsyncIterator[SqliteTransaction]:
        if needs_index_space:
            require_disk_space(self._path.parent, LEDGER_DISK_RESERVE_BYTES)
        async with self._write_lock:
            self._refuse_if_closed()
            self.require_files_not_replaced()
            self._transactions += 1
            try:
                if not durable:
                    await self._writer.run_sql("PRAGMA synchronous = NORMAL")
                transaction = SqliteTransaction(self._writer)
                yield transaction
                await transaction.commit()
                self.require_files_not_replaced()
            except BaseException:
                await self._roll_back()
                raise
            finally:
                if not durable:
                    await self._writer.run_sql("PRAGMA synchronous = FULL")

    async def _roll_back(self) -> None:
        try:
            # After a commit that failed, too. Outside a transaction the driver does nothing.
            await run_to_end_despite_cancellation(self._writer.driver.rollback())
        except StorageError:
            _log.exception("a transaction could not be rolled back")

    def version(self) -> int | None:
        return None if self._write_lock.locked() else self._transactions

    async def scrub_deleted_bytes(self) -> None:
        """Write the database anew from what is in its tables and empty the log: nothing that was ever deleted or
        overwritten is left in the two files. Writers wait meanwhile, readers do not (0.3 s for 10,000 memories).

        Deleted cells could be zeroed as they go (`secure_delete`), but pages that were rebuilt when a tree was balanced
        keep copies of rows that moved elsewhere, and nobody knows of those any more.
        Raises `StorageBusy` if another process reads, `StorageFull` if there is no room for the copy.
        """
        async with self._write_lock:
            self._refuse_if_closed()
            # Else the copy would be held in memory.
            await self._writer.run_sql("PRAGMA temp_store = FILE")
            try:
                await self._writer.run_sql("VACUUM")
                [(busy, _, _)] = await self._writer.read(_TRUNCATE_WRITE_AHEAD_LOG, {})
            finally:
                await self._writer.run_sql("PRAGMA temp_store = MEMORY")
        if busy:
            raise StorageBusy("Another process reads the memory database, so that its log cannot be emptied yet.")

    @asynccontextmanager
    async def try_named_lock(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """Nothing to be held: one process owns the data directory that the file lies in."""
        yield True

    async def close(self) -> None:
        """Close after running statements have ended; later ones are refused."""
        async with self._write_lock:
            self._closed = True
            for _ in range(MAX_SQLITE_READER_CONNECTIONS):
                await self._reader_slots.acquire()
            self._brief_reader.close()
            while self._connections:
                await self._connections.pop().sql.close()
            self._idle_readers.clear()
            for _ in range(MAX_SQLITE_READER_CONNECTIONS):
                self._reader_slots.release()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StorageError("The memory database is closed. Open it again to go on.")


@asynccontextmanager
async def open_sqlite_database(path: Path) -> AsyncIterator[SqliteDatabase]:
    """The file is made, for its owner alone, and brought to the newest schema. Raises `StorageError`."""
    await asyncio.to_thread(migrate_ledger_file, path)
    database = SqliteDatabase(path)
    try:
        await run_to_end_despite_cancellation(database.open())
        yield database
    finally:
        await run_to_end_despite_cancellation(database.close())
