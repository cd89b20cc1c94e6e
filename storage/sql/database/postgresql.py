"""PostgreSQL over asyncpg (spec O10): several servers over one ledger.

A transaction holds an advisory lock of the ledger, so that writers follow each other, as over SQLite: what a use case
reads in its transaction stays so until its commit, the marks for the index are numbered in the order of their commits,
and no two wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ClauseElement, NullPool, event, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from madeleine.memory.errors import InvalidInput, StorageError
from madeleine.storage.sql.database.engine import (
    ROWS_PER_CHUNK,
    Database,
    Row,
    map_rows_in_chunks,
    run_to_end_despite_cancellation,
)
from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.database.postgresql_schema import (
    NOTIFY_CHANNEL,
    migrate_postgres_tables,
    use_type_compilers_matching_sqlite,
)
from madeleine.storage.sql.database.tables import metadata

_log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_POSTGRES_CONNECTIONS = 6
"""For reads and for the one transaction. Patrols and the follower of changes have connections of their own."""
POSTGRES_CONNECT_TIMEOUT_SECONDS = 10.0
MAX_LEDGER_LOCK_WAIT_SECONDS = 20
"""How long a transaction waits for those of other servers."""
POSTGRES_LISTEN_RETRY_SECONDS = 1.0
_MAX_IDLE_IN_TRANSACTION_SECONDS = 60
"""A server that is cut off from PostgreSQL in a transaction holds up the others no longer."""
# Two numbers name an advisory lock: of what it locks, and of the schema, so that two ledgers of a database are apart.
_TAKE_WRITER_LOCK_UNTIL_COMMIT = text(
    "SELECT set_config('synchronous_commit', :sync, true), "
    "pg_advisory_xact_lock(hashtext('madeleine writer'), hashtext(current_schema()))"
)
_TAKE_WRITER_LOCK_UNTIL_RELEASED = text(
    "SELECT pg_advisory_lock(hashtext('madeleine writer'), hashtext(current_schema()))"
)
_RELEASE_WRITER_LOCK = text("SELECT pg_advisory_unlock(hashtext('madeleine writer'), hashtext(current_schema()))")
_TRY_NAMED_LOCK = text("SELECT pg_try_advisory_lock(:lock, hashtext(current_schema()))")
_WAIT_FOR_NAMED_LOCK = text("SELECT pg_advisory_lock(:lock, hashtext(current_schema()))")
_SELECT_CURRENT_SCHEMA_NAME = text("SELECT current_schema()")


def _require_asyncpg() -> None:
    if find_spec("asyncpg") is None:
        raise InvalidInput(
            "MADELEINE_DATABASE_URL needs asyncpg, which is not installed. Run "
            '`pip install "madeleine-memory[postgres]"`, or leave the setting out to use SQLite.'
        )


def create_postgres_engine(
    url: str, *, name: str = "madeleine", pooled: bool = True, lock_seconds: int = MAX_LEDGER_LOCK_WAIT_SECONDS
) -> AsyncEngine:
    """`name`: what its connections are called in PostgreSQL. Connects to nothing yet. Raises `InvalidInput` without the
    driver, and for a URL that is none."""
    _require_asyncpg()
    try:
        parsed = make_url(url).set(drivername="postgresql+asyncpg")
    except ArgumentError as error:
        raise InvalidInput("MADELEINE_DATABASE_URL is no URL as postgresql://user@host:5432/database.") from error
    limits = {
        "lock_timeout": f"{lock_seconds}s",
        "idle_in_transaction_session_timeout": f"{_MAX_IDLE_IN_TRANSACTION_SECONDS}s",
        "application_name": name,
        "jit": "off",
    }
    pool: dict[str, Any] = {"pool_size": MAX_POSTGRES_CONNECTIONS, "max_overflow": 0, "pool_pre_ping": True}
    engine = create_async_engine(
        parsed,
        connect_args={"timeout": POSTGRES_CONNECT_TIMEOUT_SECONDS, "server_settings": limits},
        hide_parameters=True,  # no memory's text in an error's message, nor in the log
        **(pool if pooled else {"poolclass": NullPool}),
    )
    use_type_compilers_matching_sqlite(engine.sync_engine)

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, _: object) -> None:
        # The sum of integers is a NUMERIC; SQLite's is an integer.
        codec = {"schema": "pg_catalog", "encoder": str, "decoder": _number_from_text, "format": "text"}
        connection.run_async(lambda driver: driver.set_type_codec("numeric", **codec))

    return engine


def _number_from_text(written: str) -> int | float:
    return float(written) if "." in written else int(written)


async def run_postgres_work_to_end(work: Awaitable[T]) -> T:
    """`run_to_end_despite_cancellation`, with the errors of the connection as ours."""

    async def run() -> T:
        try:
            return await work
        except (OSError, TimeoutError) as error:
            raise StorageError(
                f"PostgreSQL cannot be reached ({type(error).__name__}). Check MADELEINE_DATABASE_URL and the server."
            ) from error

    return await run_to_end_despite_cancellation(run())


@asynccontextmanager
async def _open_connection(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    connection = engine.connect()
    try:
        await run_postgres_work_to_end(connection.start())
        yield connection
    finally:
        if connection.sync_connection is not None:
            with suppress(StorageError):
                await run_postgres_work_to_end(connection.close())


class PostgresTransaction:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute_many(self, statement: ClauseElement, rows: Iterable[Mapping[str, Any]]) -> None:
        remaining = iter(rows)
        execute: Any = self._connection.execute
        while chunk := list(islice(remaining, ROWS_PER_CHUNK)):
            await run_postgres_work_to_end(execute(statement, [dict(row) for row in chunk]))

    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        return await map_rows_in_chunks(
            await run_postgres_work_to_end(_fetch_rows(self._connection, statement, binds)), from_row
        )


async def _fetch_rows(connection: AsyncConnection, statement: Any, binds: Mapping[str, Any]) -> Sequence[Row]:
    """What holds a NUL is not here, and is looked for as what nothing else is."""
    asked = {name: value.replace("\0", "\ufffd") if isinstance(value, str) else value for name, value in binds.items()}
    return [tuple(row) for row in (await connection.execute(statement, asked)).fetchall()]


class PostgresDatabase(Database):
    """One schema of one database: the first of the search path of the URL's user."""

    dialect = "postgresql"

    def __init__(self, location: PostgresLocation) -> None:
        self.location = location
        self._name = f"madeleine {uuid.uuid4().hex[:12]}"
        self._engine = create_postgres_engine(location.url, name=self._name)
        self._readers = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._single = create_postgres_engine(
            location.url, name=self._name, pooled=False, lock_seconds=0
        ).execution_options(isolation_level="AUTOCOMMIT")
        self._write_lock = asyncio.Lock()
        self._closed = False

    async def open(self) -> None:
        await run_postgres_work_to_end(self._migrate_tables())

    async def _migrate_tables(self) -> None:
        async with self._engine.begin() as connection:
            await connection.run_sync(migrate_postgres_tables)

    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        self._refuse_if_closed()
        return await map_rows_in_chunks(await run_postgres_work_to_end(self._read_rows(statement, binds)), from_row)

    async def _read_rows(self, statement: ClauseElement, binds: Mapping[str, Any]) -> Sequence[Row]:
        async with self._readers.connect() as connection:
            return await _fetch_rows(connection, statement, binds)

    @asynccontextmanager
    async def transaction(
        self, *, durable: bool = True, needs_index_space: bool = False
    ) -> AsyncIterator[PostgresTransaction]:
        async with self._write_lock:
            self._refuse_if_closed()
            async with _open_connection(self._engine) as connection:
                try:
                    sync = "on" if durable else "off"
                    await run_postgres_work_to_end(
                        _fetch_rows(connection, _TAKE_WRITER_LOCK_UNTIL_COMMIT, {"sync": sync})
                    )
                    yield PostgresTransaction(connection)
                    await run_postgres_work_to_end(connection.commit())
                except BaseException:
                    with suppress(StorageError):
                        await run_postgres_work_to_end(connection.rollback())
                    raise

    async def scrub_deleted_bytes(self) -> None:
        """Write the tables anew from what is in them. PostgreSQL's log keeps what it holds until it is recycled."""
        async with self._write_lock:
            self._refuse_if_closed()
            await run_postgres_work_to_end(self._rewrite_tables())

    async def _rewrite_tables(self) -> None:
        async with self._readers.connect() as connection:
            await connection.execute(_TAKE_WRITER_LOCK_UNTIL_RELEASED)
            try:
                for table in metadata.sorted_tables:
                    await connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table.name}")
            finally:
                await connection.execute(_RELEASE_WRITER_LOCK)

    def require_files_not_replaced(self) -> None:
        """There are none: a database that is gone says so at the next statement."""

    @asynccontextmanager
    async def try_named_lock(self, name: str, *, wait: bool = True) -> AsyncIterator[bool]:
        """An advisory lock of a connection of its own, freed when the connection ends, however it ends."""
        self._refuse_if_closed()
        lock = zlib.crc32(name.encode()) - 2**31
        async with _open_connection(self._single) as connection:
            [(held,)] = await run_postgres_work_to_end(
                _fetch_rows(connection, _WAIT_FOR_NAMED_LOCK if wait else _TRY_NAMED_LOCK, {"lock": lock})
            )
            yield wait or bool(held)

    async def watch_commits_of_other_servers(self, on_change: Callable[[], None]) -> None:
        """Call it whenever another server has committed something for the index, and after each connection: what was
        notified while there was none is found then. Without an end."""
        while True:
            try:
                await self._listen_for_changes_until_disconnected(on_change)
            except StorageError as error:
                _log.warning("listening for the changes of other servers failed, retrying: %s", error)
            await asyncio.sleep(POSTGRES_LISTEN_RETRY_SECONDS)

    async def _listen_for_changes_until_disconnected(self, on_change: Callable[[], None]) -> None:
        ended = asyncio.Event()
        async with _open_connection(self._single) as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            [(schema,)] = await run_postgres_work_to_end(_fetch_rows(connection, _SELECT_CURRENT_SCHEMA_NAME, {}))

            def notified(_: object, process: int, channel: str, payload: str) -> None:
                where, _, writer = payload.partition(" ")
                if where == schema and writer != self._name:
                    on_change()

            driver.add_termination_listener(lambda _: ended.set())
            await run_postgres_work_to_end(driver.add_listener(NOTIFY_CHANNEL, notified))
            on_change()
            await ended.wait()

    async def close(self) -> None:
        async with self._write_lock:
            self._closed = True
            await self._engine.dispose()
            await self._single.dispose()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StorageError("The memory database is closed. Open it again to go on.")


@asynccontextmanager
async def open_postgres_database(location: PostgresLocation) -> AsyncIterator[PostgresDatabase]:
    """The tables are made, or brought to the newest schema. Raises `StorageError`, `InvalidInput`."""
    database = PostgresDatabase(location)
    try:
        await database.open()
        yield database
    finally:
        await run_to_end_despite_cancellation(database.close())
