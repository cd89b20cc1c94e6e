"""What repositories use of a database: reads, transactions, and repositories themselves. `sqlite` and `postgresql`
implement it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from sqlalchemy import ClauseElement, Executable

from madeleine.memory.errors import StorageError
from madeleine.storage.sql.database.dialect import DialectName
from madeleine.storage.sql.database.schema import DAMAGED_ROW_MESSAGE, translating_driver_errors

_log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]
"""Declared as SQLAlchemy declares its rows; the driver's are tuples."""

ROWS_PER_CHUNK = 1000
"""Rows made or sent at a time: a few milliseconds, after which the event loop has its turn."""
_INTERRUPT_EVERY_SECONDS = 0.02


QUICK_QUERY_EXECUTION_OPTION = "brief_read"
SelectT = TypeVar("SelectT", bound=Executable)


def mark_query_as_runnable_on_event_loop(select: SelectT) -> SelectT:
    """Mark a query for a few rows by their keys: 0.03 ms, where a visit to a reader's thread takes up to 0.5 ms. It is
    made on the event loop where the database is a file."""
    return select.execution_options(**{QUICK_QUERY_EXECUTION_OPTION: True})


class SqlRowReader(Protocol):
    """Answers queries: the readers, or a transaction that sees its own writes."""

    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        """Return the value that `from_row` makes of each row."""


class Transaction(SqlRowReader, Protocol):
    """Statements that are committed together or not at all. Reads see its own writes."""

    async def execute_many(self, statement: ClauseElement, rows: Iterable[Mapping[str, Any]]) -> None:
        """Once for each of `rows`. An error may come with a later statement, or the commit."""


class Database(ABC):
    """An open database. Transactions exclude each other, also those of other processes; reads never wait for them, and
    see the last commit."""

    dialect: DialectName

    @abstractmethod
    async def rows(self, statement: ClauseElement, from_row: Callable[[Row], T], /, **binds: Any) -> list[T]:
        """Return the value that `from_row` makes of each row."""

    @abstractmethod
    def transaction(
        self, *, durable: bool = True, needs_index_space: bool = False
    ) -> AbstractAsyncContextManager[Transaction]:
        """The writer, alone. Committed when left without an exception and then on disk; else rolled back, also on
        cancellation. Taking it twice in one task is a deadlock.

        `durable=False` leaves the commit in the log for the next durable one to sync: a power cut may undo it, a
        killed process does not. For what can be done again. `needs_index_space`: for what the index has to take in,
        too; refused with `StorageFull` while the index would not.
        """

    def version(self) -> int | None:
        """The same number as long as nothing has been committed. None while something is written, or where others
        write, too."""
        return None

    @abstractmethod
    async def scrub_deleted_bytes(self) -> None:
        """Return when the database's files hold nothing that is not in its tables. Raises `StorageBusy`,
        `StorageFull`."""

    @abstractmethod
    def require_files_not_replaced(self) -> None:
        """Raises `LedgerLost` unless what was opened is still what is there."""

    def watch_commits_of_other_servers(self, on_change: Callable[[], None]) -> Coroutine[Any, Any, None] | None:
        """Work without an end that calls `on_change` whenever another server has committed something for the index.
        None where no other server can."""
        return None

    @abstractmethod
    def try_named_lock(self, name: str, *, wait: bool = True) -> AbstractAsyncContextManager[bool]:
        """Hold the lock of that name against other processes over this database; True while it is held. Without `wait`
        False if another process holds it. Freed when its holder dies."""


async def run_to_end_despite_cancellation(
    work: Coroutine[Any, Any, T], *, interrupt: Callable[[], Awaitable[None]] | None = None
) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile; the cancellation is passed on afterwards. Raises
    the driver's errors as ours.

    SQLAlchemy gives up a connection whose statement is cancelled, so every statement is run by this. `interrupt` makes
    the end come sooner; it is called until it does, as SQLite forgets an interrupt that comes between statements.
    """
    task = asyncio.ensure_future(work)
    try:
        with translating_driver_errors():
            return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                if interrupt:
                    await interrupt()
                await asyncio.wait({task}, timeout=_INTERRUPT_EVERY_SECONDS if interrupt else None)
            except asyncio.CancelledError:
                continue
        if not task.cancelled() and (error := task.exception()) and not interrupt:
            _log.error("a write failed after its caller had gone", exc_info=error)
        raise


async def map_rows_in_chunks(rows: Sequence[Row], make: Callable[[Row], T]) -> list[T]:
    made: list[T] = []
    for start in range(0, len(rows), ROWS_PER_CHUNK):
        if made:
            await asyncio.sleep(0)
        try:
            made += map(make, rows[start : start + ROWS_PER_CHUNK])
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            # A value that no writer leaves there, as half of a JSON list. Its text is no message.
            raise StorageError(DAMAGED_ROW_MESSAGE.format(type(error).__name__)) from error
    return made


class DatabaseRepository:
    """Implements ports of use cases over one open database; repositories of one database share its connections."""

    def __init__(self, database: Database) -> None:
        self._database = database
