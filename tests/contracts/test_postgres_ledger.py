"""The ledger on PostgreSQL keeps the contracts of the ledger on SQLite (spec O3, O10)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, NullPool, SelectBase, UpdateBase
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from madeleine.memory.errors import InvalidInput, StorageError
from madeleine.storage.sql.database import postgresql
from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.database.postgresql import create_postgres_engine
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.database_ledger_contract import DatabaseLedgerContract
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, memory, note, stored_memory
from tests.postgres import PostgresCluster, postgres_ledger
from tests.unit.storage.sql.database.test_dialect import statements


class TestPostgresLedger(DatabaseLedgerContract):
    @pytest.fixture
    async def ledger(self, postgres: PostgresCluster) -> AsyncIterator[AnyLedger]:
        async with postgres_ledger(postgres) as ledger:
            yield ledger


async def test_it_is_made_once_migrated_by_the_same_migrations_and_not_by_an_older_version(
    postgres: PostgresCluster,
) -> None:
    async with postgres.database(empty=True) as url:
        location = PostgresLocation(url, "first")
        one = memory("tea")
        async with open_ledger(location) as first, open_ledger(location) as second:
            await first.memories.commit_store_batch(ADA, batch(one))
            assert (await stored_memory(second, one)).id == one.id
        engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"), poolclass=NullPool)
        async with engine.begin() as connection:
            assert await connection.run_sync(differences_from_the_tables) == []
            savepoint = await connection.begin_nested()
            with pytest.raises(DBAPIError, match="only be appended to"):
                await connection.exec_driver_sql("DELETE FROM audit")
            await savepoint.rollback()
            await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(StorageError, match=r"newer Madeleine.*upgrade"):
            async with open_ledger(location):
                pass


def differences_from_the_tables(connection: Connection) -> list[Any]:
    def is_declared(thing: Any, name: str | None, type_: str, *_: object) -> bool:
        return type_ != "table" or name != "audit_numbers"

    # Its integers have 64 bits.
    options = {"include_object": is_declared, "compare_type": False}
    differences: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    return differences


async def test_postgresql_understands_every_statement(postgres: PostgresCluster) -> None:
    whole = {name: one for name, one in statements().items() if isinstance(one, SelectBase | UpdateBase)}
    assert len(whole) > 300
    async with postgres.database() as url:
        engine = create_postgres_engine(url, pooled=False)
        async with engine.connect() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            for name, statement in whole.items():
                if name not in UNFINISHED_STATEMENTS:
                    await driver.prepare(str(statement.compile(dialect=engine.sync_engine.dialect)))


UNFINISHED_STATEMENTS = {"patrols.patrol._memory_counts_by_cluster.0"}
"""Others are made from them."""


async def test_each_server_takes_in_every_change_once_and_a_lost_notification_is_made_up_for(
    postgres: PostgresCluster,
) -> None:
    """ADR 69: marks stay for the other servers, and each remembers how far it has come."""
    async with postgres.database() as url:
        one, two, three = (memory(f"memory {n}") for n in range(3))
        async with server_over(url, "first") as first, server_over(url, "second") as second:
            told = asyncio.Event()
            follow = second.database.watch_commits_of_other_servers(told.set)
            assert follow
            following = asyncio.create_task(follow)
            await asyncio.wait_for(told.wait(), 10)  # at its beginning
            told.clear()
            await first.memories.commit_store_batch(ADA, batch(one, two))
            await asyncio.wait_for(told.wait(), 10)
            told.clear()
            await second.memories.commit_store_batch(ADA, batch(three))
            assert await taken_in(first) == [one.id, two.id, three.id]
            assert await taken_in(first) == []
            assert await taken_in(second) == [one.id, two.id, three.id]
            assert not told.is_set(), "its own commits are no news"
            following.cancel()
            await asyncio.wait({following})
            await first.erasure.forget(ADA, [one.id], at=MOMENT)
            for ledger in (first, second):
                [(mark, id_)] = await ledger.erasure.pending_scrub_marks_with_memory_ids()
                assert id_ == one.id
                await ledger.erasure.scrub_deleted_bytes()
                await ledger.erasure.clear_scrub_marks([mark])
                assert await ledger.erasure.pending_scrub_marks_with_memory_ids() == []
        async with server_over(url, "second") as again:
            assert await taken_in(again) == []
        async with server_over(url, "third") as new:
            assert await taken_in(new) == [two.id, three.id]


async def test_of_two_servers_one_patrols_a_being_and_a_dead_one_s_lock_is_free(postgres: PostgresCluster) -> None:
    async with (
        postgres.database() as url,
        server_over(url, "first") as first,
        server_over(url, "second") as second,
        first.patrols.patrol_lock(ADA) as held,
        second.patrols.patrol_lock(BOB, wait=False) as other,
    ):
        assert held
        assert other, "another being's"
        async with second.patrols.patrol_lock(ADA, wait=False) as refused:
            assert not refused
        waiting = asyncio.create_task(_patrolled(second))
        await asyncio.wait({waiting}, timeout=0.2)
        assert not waiting.done()
        await postgres.command("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
        await asyncio.wait_for(waiting, 10)


async def _patrolled(ledger: LedgerRepositories) -> None:
    async with ledger.patrols.patrol_lock(ADA):
        pass


def server_over(url: str, server: str) -> AbstractAsyncContextManager[LedgerRepositories]:
    return open_ledger(PostgresLocation(url, server))


async def taken_in(ledger: LedgerRepositories) -> list[str]:
    """What its index had still to take in, which it has now."""
    marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=99)
    await ledger.index_source.clear_pending_index_marks([mark for mark, _ in marks])
    return [id_ for _, id_ in marks]


async def test_what_postgresql_cannot_do_is_said_with_the_next_step(postgres: PostgresCluster) -> None:
    with pytest.raises(StorageError, match=r"refuses the user or the database.*MADELEINE_DATABASE_URL"):
        async with server_over(postgres.url("nowhere"), ""):
            pass
    with pytest.raises(StorageError, match=r"cannot be reached.*MADELEINE_DATABASE_URL"):
        async with server_over("postgresql://madeleine@/x?host=/nowhere", ""):
            pass
    async with postgres_ledger(postgres) as ledger:
        with pytest.raises(InvalidInput, match=r"U\+0000"):
            await ledger.context.add_note(ADA, note("half \0 text"))
        with pytest.raises(InvalidInput, match="surrogate"):
            await ledger.context.add_note(ADA, note("half a \ud83d pair"))
        await ledger.context.add_note(ADA, note("whole"))


async def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"madeleine-memory\[postgres\]"):
        async with server_over("postgresql://localhost/x", ""):
            pass
