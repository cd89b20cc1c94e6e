from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory.errors import StorageError
from storage.sql import settings
from storage.sql.engine import Database, finish, open_database
from storage.sql.query import insert_into
from storage.sql.tables import settings as table

INSERT = insert_into(table)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(tmp_path / "memory.db") as database:
        yield database


class Stopper:
    """Rows for a statement that holds the writer's thread between the first and the second until let go."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self.go_on = threading.Event()

    def rows(self) -> Iterator[dict[str, Any]]:
        yield {"name": "first", "value": "1"}
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self.go_on.wait(10)
        yield {"name": "second", "value": "2"}


async def _cancelled_while_writing(database: Database, *, at_commit: bool) -> None:
    stopper = Stopper()

    async def write() -> None:
        async with database.transaction() as transaction:
            transaction.run(INSERT, stopper.rows())
            if not at_commit:
                await transaction.send()

    task = asyncio.create_task(write())
    await asyncio.wait_for(stopper.reached.wait(), 10)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    stopper.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelled_before_its_commit_a_transaction_leaves_nothing(database: Database) -> None:
    await _cancelled_while_writing(database, at_commit=False)
    assert await settings.read(database, "first") is None
    await settings.write(database, "after", 1)
    assert await settings.read(database, "after") == 1


async def test_cancelled_in_its_commit_a_transaction_is_whole(database: Database) -> None:
    await _cancelled_while_writing(database, at_commit=True)
    assert [await settings.read(database, name) for name in ("first", "second")] == [1, 2]
    await settings.write(database, "after", 1)


async def test_a_read_that_is_cancelled_stops_and_its_connection_serves_the_next(database: Database) -> None:
    entered, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_: object) -> None:
        loop.call_soon_threadsafe(entered.set)
        go_on.wait(10)

    await settings.write(database, "a", 1)
    task = asyncio.create_task(database.rows(settings._GET, slow, wanted="a"))
    await asyncio.wait_for(entered.wait(), 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    assert await asyncio.gather(*(settings.read(database, "a") for _ in range(20))) == [1] * 20


async def test_a_statement_that_fails_takes_the_whole_transaction_with_it(database: Database) -> None:
    async def write() -> None:
        async with database.transaction() as transaction:
            transaction.run(INSERT, [{"name": "a", "value": "1"}])
            transaction.run(INSERT, [{"name": "a", "value": "2"}])

    with pytest.raises(StorageError):
        await write()
    assert await settings.read(database, "a") is None


async def test_a_transaction_reads_what_it_has_noted_to_write(database: Database) -> None:
    async with database.transaction() as transaction:
        transaction.run(INSERT, [{"name": "a", "value": "1"}])
        assert await settings.read(transaction, "a") == 1
        assert await settings.read(database, "a") is None


async def test_a_transaction_without_statements_is_no_trouble(database: Database) -> None:
    async with database.transaction():
        pass
    async with database.transaction(durable=False) as transaction:
        transaction.run(INSERT, [])


async def test_work_to_finish_ends_before_the_cancellation_goes_on() -> None:
    ended = False
    go_on = asyncio.Event()

    async def work() -> None:
        nonlocal ended
        await go_on.wait()
        ended = True

    task = asyncio.create_task(finish(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended
