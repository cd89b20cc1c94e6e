"""Connections: one writer, a few readers, and what a transaction is.

Each connection lives in a thread of its own (aiosqlite). A hop to that thread and back costs 80 µs, so what belongs
together goes in one hop: a transaction gathers its statements and sends them with the next read or with the commit.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import aiosqlite

from memory.errors import StorageError
from storage.sql.failures import translated
from storage.sql.query import Query
from storage.sql.schema import prepare

_log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]
_Step = tuple[str, Iterable[Mapping[str, Any]]]

READERS = 4
_PRAGMAS = (
    "PRAGMA busy_timeout = 5000",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8000",  # KiB for each connection
)
_WRITER_PRAGMAS = (
    *_PRAGMAS,
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA journal_size_limit = 67108864",  # a patrol of 100,000 memories leaves a large log behind
)
_READER_PRAGMAS = (*_PRAGMAS, "PRAGMA query_only = ON")


class Reads(Protocol):
    """What answers a query: the readers, or a transaction that sees its own writes."""

    async def rows(self, query: Query, make: Callable[[Row], T], /, **binds: Any) -> list[T]:
        """Each row made a value, in the connection's thread, so that long results do not hold up the event loop."""
        ...


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile; the cancellation is passed on afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                continue
        if not task.cancelled() and (error := task.exception()):
            _log.error("a write failed after its caller had gone", exc_info=error)
        raise


class _Connection:
    """A SQLite connection in its thread. Calls are carried out in the order they were made, cancelled or not."""

    def __init__(self, driver: aiosqlite.Connection) -> None:
        self._driver = driver

    @classmethod
    async def open(cls, path: Path, pragmas: Iterable[str]) -> _Connection:
        with translated():
            # A daemon thread, so that a process that dies without closing does not hang on it.
            pending = aiosqlite.connect(path, isolation_level=None, cached_statements=256)
            pending._thread.daemon = True
            connection = cls(await pending)
        try:
            await connection.call(_run, [(pragma, ()) for pragma in pragmas])
        except BaseException:
            await connection.close()
            raise
        return connection

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """`function(sqlite3 connection, *arguments)` in the thread. aiosqlite has no public name for this;
        SQLAlchemy's dialect reaches for the same attributes."""
        with translated():
            result: T = await self._driver._execute(  # type: ignore[no-untyped-call]
                lambda: function(self._driver._conn, *arguments)
            )
        return result

    async def interrupt(self) -> None:
        await self._driver.interrupt()

    async def close(self) -> None:
        with translated():
            await self._driver.close()


def _run(connection: sqlite3.Connection, steps: Iterable[_Step]) -> None:
    for sql, rows in steps:
        if rows:
            connection.executemany(sql, rows)
        else:
            connection.execute(sql).fetchall()


def _fetch(
    connection: sqlite3.Connection,
    steps: Iterable[_Step],
    sql: str,
    binds: Mapping[str, Any],
    make: Callable[[Row], T],
) -> list[T]:
    _run(connection, steps)
    return [make(row) for row in connection.execute(sql, binds)]


class Transaction:
    """All or nothing. `run` only notes down; what it noted is sent before the next `rows` and at the commit."""

    def __init__(self, connection: _Connection, *, durable: bool) -> None:
        self._connection = connection
        self._durable = durable
        self._steps: list[_Step] = [] if durable else [("PRAGMA synchronous = NORMAL", ())]
        self._steps.append(("BEGIN IMMEDIATE", ()))

    def run(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Once for each of `rows`; a generator is drawn on in the connection's thread."""
        if not isinstance(rows, list | tuple) or rows:
            self._steps.append((query.sql, query.bind_each(rows)))

    async def rows(self, query: Query, make: Callable[[Row], T], /, **binds: Any) -> list[T]:
        return await self._connection.call(_fetch, self._taken(), query.sql, query.bind(binds), make)

    async def send(self) -> None:
        """What was noted, now; for what takes long, so that it does not come on top of the commit."""
        await self._connection.call(_run, self._taken())

    async def commit(self) -> None:
        steps = [*self._taken(), ("COMMIT", ())]
        if not self._durable:
            steps.append(("PRAGMA synchronous = FULL", ()))
        await self._connection.call(_run, steps)

    async def roll_back(self) -> None:
        try:
            await self._connection.call(_roll_back)
        except StorageError:
            _log.exception("a transaction could not be rolled back")

    def _taken(self) -> list[_Step]:
        steps, self._steps = self._steps, []
        return steps


def _roll_back(connection: sqlite3.Connection) -> None:
    connection.rollback()  # does nothing outside a transaction: one that never began, or that was committed
    connection.execute("PRAGMA synchronous = FULL")


class Database:
    """Reads never wait for the writer: with a write-ahead log they see the last commit."""

    def __init__(self, path: Path, writer: _Connection) -> None:
        self._path = path
        self._writer = writer
        self._turn = asyncio.Lock()
        self._idle: list[_Connection] = []
        self._free = asyncio.Semaphore(READERS)
        self._closed = False

    async def rows(self, query: Query, make: Callable[[Row], T], /, **binds: Any) -> list[T]:
        async with self._free:
            self._refuse_if_closed()
            reader = self._idle.pop() if self._idle else await _Connection.open(self._path, _READER_PRAGMAS)
            try:
                return await reader.call(_fetch, (), query.sql, query.bind(binds), make)
            except asyncio.CancelledError:
                await reader.interrupt()  # nothing else was given to this reader, so nothing else is stopped
                raise
            finally:
                self._idle.append(reader)

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """The writer, alone. Committed when left without an exception and then on disk; else rolled back, also on
        cancellation. Taking it twice in one task is a deadlock.

        `durable=False` leaves the commit in the log for the next durable one to sync: a power cut may undo it, a
        killed process does not. For what can be done again.
        """
        async with self._turn:
            self._refuse_if_closed()
            transaction = Transaction(self._writer, durable=durable)
            try:
                yield transaction
                await finish(transaction.commit())
            except BaseException:
                await finish(transaction.roll_back())
                raise

    async def checkpoint(self) -> None:
        """Move what the log holds into the database file."""
        async with self._turn:
            self._refuse_if_closed()
            await self._writer.call(_run, [("PRAGMA wal_checkpoint(PASSIVE)", ())])

    async def close(self) -> None:
        """What is under way ends first; what comes later is refused."""
        async with self._turn:
            self._closed = True
            for _ in range(READERS):
                await self._free.acquire()
            for connection in (*self._idle, self._writer):
                await connection.close()
            self._idle.clear()
            for _ in range(READERS):
                self._free.release()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StorageError("The memory database is closed. Open it again to go on.")


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Database]:
    """The file is made, for its owner alone, and brought to the newest schema. Raises `StorageError`."""
    await asyncio.to_thread(prepare, path)
    database = Database(path, await _Connection.open(path, _WRITER_PRAGMAS))
    try:
        yield database
    finally:
        await finish(database.close())
