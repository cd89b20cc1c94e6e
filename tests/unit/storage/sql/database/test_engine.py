from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, literal_column, select, text

from madeleine.memory.errors import StorageBusy, StorageError
from madeleine.storage.sql.administration import read_store_setting, write_store_settings
from madeleine.storage.sql.database import sqlite
from madeleine.storage.sql.database.engine import mark_query_as_runnable_on_event_loop, run_to_end_despite_cancellation
from madeleine.storage.sql.database.mapping import first_column_of_row
from madeleine.storage.sql.database.sqlite import SqliteDatabase, open_sqlite_database
from madeleine.storage.sql.database.tables import store_settings_table as table
from tests.remains import found_in

INSERT = insert(table)
ROOT = Path(__file__).parents[5]


@pytest.fixture
async def database(new_db: Path) -> AsyncIterator[SqliteDatabase]:
    async with open_sqlite_database(new_db) as database:
        yield database


class Stopper:
    """Holds the writer's thread at the statement that starts with `text` until let go."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self.go_on = threading.Event()

    def __call__(self, statement: str) -> None:
        if statement.startswith(self._text):
            self._loop.call_soon_threadsafe(self.reached.set)
            self.go_on.wait(10)


async def _cancelled_while_writing(database: SqliteDatabase, *, at: str) -> None:
    stopper = Stopper(at)
    await database._writer.driver.set_trace_callback(stopper)

    async def write() -> None:
        async with database.transaction() as transaction:
            await transaction.execute_many(INSERT, [{"name": name, "value": "1"} for name in ("first", "second")])
            await read_store_setting(transaction, "first")  # what is written goes to the driver by then

    task = asyncio.create_task(write())
    await asyncio.wait_for(stopper.reached.wait(), 10)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    stopper.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelled_before_its_commit_a_transaction_leaves_nothing(database: SqliteDatabase) -> None:
    await _cancelled_while_writing(database, at="INSERT")
    assert await read_store_setting(database, "first") is None
    await write_store_settings(database, {"after": 1})
    assert await read_store_setting(database, "after") == 1


async def test_cancelled_in_its_commit_a_transaction_is_whole(database: SqliteDatabase) -> None:
    await _cancelled_while_writing(database, at="COMMIT")
    assert [await read_store_setting(database, name) for name in ("first", "second")] == [1, 1]
    await write_store_settings(database, {"after": 1})


async def test_a_transaction_reads_what_it_wrote_and_an_error_at_the_end_undoes_all(database: SqliteDatabase) -> None:
    async def write() -> None:
        async with database.transaction() as transaction:
            await transaction.execute_many(INSERT, [{"name": "first", "value": "1"}])
            assert await read_store_setting(transaction, "first") == 1
            await transaction.execute_many(INSERT, [{"name": "second", "value": "2"}])
            await transaction.execute_many(INSERT, [{"name": "first", "value": "3"}])

    with pytest.raises(StorageError):
        await write()
    assert [await read_store_setting(database, name) for name in ("first", "second")] == [None, None]


async def test_a_brief_read_sees_each_commit_and_is_answered_while_another_writes(database: SqliteDatabase) -> None:
    names = mark_query_as_runnable_on_event_loop(
        select(table.c.name).where(literal_column("name IN ('a', 'b')")).order_by(table.c.name)
    )
    await write_store_settings(database, {"a": 1})
    async with database.transaction() as transaction:
        await transaction.execute_many(INSERT, [{"name": "b", "value": "1"}])
        await transaction.rows(names, first_column_of_row)
        assert await database.rows(names, first_column_of_row) == ["a"]
    assert await database.rows(names, first_column_of_row) == ["a", "b"]


async def test_a_closed_database_refuses_a_brief_read(database: SqliteDatabase) -> None:
    await database.close()
    with pytest.raises(StorageError):
        await database.rows(mark_query_as_runnable_on_event_loop(select(table.c.name)), first_column_of_row)


async def test_a_read_that_is_cancelled_stops_and_its_connection_serves_the_next(database: SqliteDatabase) -> None:
    endless = text("WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    await write_store_settings(database, {"a": 1})
    for pause in (0, 0, 0.001, 0.1):
        task = asyncio.create_task(database.rows(endless, tuple))
        await asyncio.sleep(pause)
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
    assert await asyncio.gather(*(read_store_setting(database, "a") for _ in range(20))) == [1] * 20


async def test_reads_do_not_wait_for_a_write_that_is_under_way(database: SqliteDatabase) -> None:
    await write_store_settings(database, {"a": 1})
    stopper = Stopper("INSERT")
    await database._writer.driver.set_trace_callback(stopper)
    task = asyncio.create_task(write_store_settings(database, {"a": 2}))
    await asyncio.wait_for(stopper.reached.wait(), 10)
    assert await asyncio.wait_for(read_store_setting(database, "a"), 5) == 1
    stopper.go_on.set()
    await task
    assert await read_store_setting(database, "a") == 2


async def test_a_transaction_holds_the_lock_from_its_first_read(database: SqliteDatabase) -> None:
    async with database.transaction() as transaction:
        assert not database._writer.driver.in_transaction
        await read_store_setting(transaction, "a")
        assert database._writer.driver.in_transaction
    assert not database._writer.driver.in_transaction


async def test_a_commit_that_fails_leaves_nothing_and_a_usable_writer(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_writes = sqlite._run_writes

    def full(driver: Any, writes: Any, *, commit: bool) -> None:
        run_writes(driver, writes, commit=False)
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_run_writes", full)
        with pytest.raises(StorageError):
            await write_store_settings(database, {"a": 1})
    assert await read_store_setting(database, "a") is None
    await write_store_settings(database, {"a": 2})
    assert await read_store_setting(database, "a") == 2


async def test_a_statement_that_fails_takes_the_whole_transaction_with_it(database: SqliteDatabase) -> None:
    async def write() -> None:
        async with database.transaction() as transaction:
            await transaction.execute_many(INSERT, [{"name": "a", "value": "1"}])
            await transaction.execute_many(INSERT, [{"name": "a", "value": "2"}])

    with pytest.raises(StorageError):
        await write()
    assert await read_store_setting(database, "a") is None


async def test_a_transaction_reads_what_it_has_noted_to_write(database: SqliteDatabase) -> None:
    async with database.transaction() as transaction:
        await transaction.execute_many(INSERT, [{"name": "a", "value": "1"}])
        assert await read_store_setting(transaction, "a") == 1
        assert await read_store_setting(database, "a") is None


async def test_a_transaction_without_statements_is_no_trouble(database: SqliteDatabase) -> None:
    async with database.transaction():
        pass
    async with database.transaction(durable=False) as transaction:
        await transaction.execute_many(INSERT, [])


async def test_work_to_finish_ends_before_the_cancellation_goes_on() -> None:
    ended = False
    go_on = asyncio.Event()

    async def work() -> None:
        nonlocal ended
        await go_on.wait()
        ended = True

    task = asyncio.create_task(run_to_end_despite_cancellation(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_scrubbing_leaves_nothing_of_rows_that_moved_changed_or_went(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    """SQLite leaves them in free pages, in gaps of pages that were balanced, and in the log; ruling 11."""
    chance = random.Random(4)
    async with database.transaction() as transaction:
        await transaction.rows(
            text("PRAGMA secure_delete = OFF"), tuple
        )  # as builds of SQLite have it that do not set it
        words = {f"name {n}": f"word-{n:04}-of-it" for n in range(400)}
        for name, word in words.items():
            await transaction.execute_many(INSERT, [{"name": name, "value": f'"{word}{"x" * chance.randrange(900)}"'}])
    for name in chance.sample(sorted(words), 300):
        await write_store_settings(database, {name: "y" * chance.randrange(900)})
        await read_store_setting(database, name)
    await database.scrub_deleted_bytes()
    await write_store_settings(database, {"new": 1})
    left = {name: word for name, word in words.items() if word in str(await read_store_setting(database, name))}
    assert len(left) == 100
    assert set(found_in(tmp_path, words.values())) == set(left.values())


async def test_scrubbing_fails_while_another_process_reads_and_can_be_done_again(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    await write_store_settings(database, {"a": "before"})
    with closing(sqlite3.connect(tmp_path / "memory.db", isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM settings").fetchall()
        async with database.transaction() as transaction:
            await transaction.rows(text("PRAGMA busy_timeout = 1"), tuple)
        with pytest.raises(StorageBusy):
            await database.scrub_deleted_bytes()
    await database.scrub_deleted_bytes()
    assert (tmp_path / "memory.db-wal").stat().st_size == 0
    assert await read_store_setting(database, "a") == "before"


def test_a_process_that_does_not_close_can_exit(tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from madeleine.storage.sql.administration import read_store_setting, write_store_settings
from madeleine.storage.sql.database.sqlite import open_sqlite_database

async def main():
    opened = open_sqlite_database(Path({str(tmp_path / "memory.db")!r}))
    database = await opened.__aenter__()
    await write_store_settings(database, {{"a": 1}})
    print(await read_store_setting(database, "a"), flush=True)
    globals()["kept"] = opened, database

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=False, cwd=ROOT
    )
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended.stderr
