from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from madeleine.memory.errors import CannotUndo, InvalidInput, KeyConflict, StorageBusy, StorageError, StorageFull
from madeleine.memory.ingest.ports import CommittedMemories
from madeleine.memory.model import DatedAction, MemoryStatus, RunId, Scene
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.database.schema import MIGRATIONS_FOLDER, NEWEST_SCHEMA_REVISION
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.database_ledger_contract import DatabaseLedgerContract
from tests.contracts.ledger.ledger_values import (
    ADA,
    MODEL,
    MOMENT,
    RUN,
    all_states,
    batch,
    ids,
    keyword_query,
    memory,
    note,
    stored_memory,
    vector,
)
from tests.household import sqlite_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def ledger(new_db: Path) -> AsyncIterator[AnyLedger]:
    async with open_ledger(new_db) as ledger:
        yield ledger


async def pragma(ledger: LedgerRepositories, text: str) -> object:
    """Of the writer."""
    return (await sqlite_of(ledger)._writer.sql.exec_driver_sql(f"PRAGMA {text}")).scalar()


@asynccontextmanager
async def no_room(ledger: LedgerRepositories) -> AsyncIterator[None]:
    """The database file may not grow by a page."""
    greatest = await pragma(ledger, "max_page_count")
    await pragma(ledger, f"max_page_count = {await pragma(ledger, 'page_count')}")
    try:
        yield
    finally:
        await pragma(ledger, f"max_page_count = {greatest}")


class TestSqlLedger(DatabaseLedgerContract):
    def test_it_was_thought_of_what_each_table_holds_of_a_memory(self) -> None:
        """One that is not in this list: see `storage.sql.erasing` and `tests/faults/test_forgotten_bytes.py`."""
        assert set(metadata.tables) == {
            "memories", "reinforcements", "revisions", "notes", "embeddings", "index_pending", "clusters",
            "patrol_runs", "forgotten", "settings", "audit", "tokens",
            "memory_numbers", "beings", "patrol_changes", "patrol_offers", "diary", "cost_records",
            "sessions", "messages", "message_memories", "forgotten_keys", "profile", "ingested",
            "truth_acts",
            "copies", "imports", "imported_rows", "lessons",
            "drawn_memories", "mentions", "drawn_relations", "stated_relations", "core_blocks",
            "archive_groups", "archived_memories",
            "tasks", "channel_messages", "audited_actions", "agent_states", "application_settings", "projects",
        }  # fmt: skip

    async def test_everything_acknowledged_is_there_after_reopening(self, path: Path) -> None:
        one = memory("tea", key="k")
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(one, vectors={one.content_hash: vector(1, 0)}))
            await ledger.context.add_note(ADA, waiting := note("later"))
            await ledger.index_source.set_setting("a", [1])
            ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 3, MOMENT)])
        async with open_ledger(path) as ledger:
            assert (await stored_memory(ledger, one)).reactivation_count == 3
            assert list(await ledger.memories.cached_vectors_by_hash(MODEL, [one.content_hash])) == [one.content_hash]
            assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)] == [
                one.id
            ]
            assert await ledger.patrols.unread_notes(ADA, type="todo") == [waiting]
            assert await ledger.index_source.setting("a") == [1]
            with pytest.raises(KeyConflict):
                await ledger.memories.commit_store_batch(ADA, batch(memory(key="k")))

    async def test_a_commit_that_returned_is_in_the_files_though_nobody_closed(
        self, path: Path, tmp_path: Path
    ) -> None:
        one = memory()
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(one))
            killed = tmp_path / "killed.db"
            for suffix in ("", "-wal"):
                killed.with_name(killed.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
        async with open_ledger(killed) as ledger:
            assert await stored_memory(ledger, one) == one

    async def test_the_files_are_for_their_owner_alone(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(memory()))
            files = sorted(path.parent.glob("memory.db*"))
            assert [file.name for file in files] == ["memory.db", "memory.db-shm", "memory.db-wal"]
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}

    async def test_the_writer_syncs_every_commit_also_after_one_that_need_not(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(memory()))
            await ledger.index_source.clear_pending_index_marks([1])
            with pytest.raises(StorageError):
                await ledger.index_source.clear_pending_index_marks(["not a number" * 2, object()])  # type: ignore[list-item]
            assert await pragma(ledger, "synchronous") == 2
            assert await pragma(ledger, "journal_mode") == "wal"
            assert await pragma(ledger, "foreign_keys") == 1
            assert await pragma(ledger, "busy_timeout") == 5000

    # --- schema

    async def test_the_migrations_lead_to_the_tables(self, path: Path) -> None:
        async with open_ledger(path):
            pass
        with create_engine(f"sqlite:///{path}").connect() as connection:
            context = MigrationContext.configure(connection)
            assert compare_metadata(context, metadata) == []
            assert context.get_current_revision() == NEWEST_SCHEMA_REVISION
        connection.engine.dispose()

    async def test_a_patrol_from_before_there_was_a_journal_is_listed_and_not_undone(self, path: Path) -> None:
        """ruling 11. It was answered as undone, with nothing put back."""
        _migrate_to("0004", path)
        with closing(sqlite3.connect(path)) as connection, connection:
            report = json.dumps({"run_id": "old", "steps": [{"name": "age", "aged": 3}]})
            connection.execute("INSERT INTO patrol_runs VALUES ('old', ?, 1, 2, ?)", (ADA.being_id, report))
        async with open_ledger(path) as ledger:
            [run] = await ledger.patrols.runs(ADA, limit=9)
            assert (run.id, run.state) == ("old", "unjournalled")
            with pytest.raises(CannotUndo, match="before there was a journal"):
                await ledger.patrols.undo_run(ADA, RunId("old"), at=MOMENT)
            assert await ledger.patrols.runs(ADA, limit=9) == [run]
            await ledger.memories.commit_store_batch(ADA, batch(memory(created_at=run.started)))
            assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [], "it was a patrol all the same"

    async def test_a_store_from_before_the_clock_keeps_every_count_and_what_it_embeds_is_found_again(
        self, path: Path
    ) -> None:
        """spec P2 `session_count`, P4."""
        statuses: tuple[MemoryStatus, ...] = ("active", "dying", "dead", "active")
        timeline = ("2026-01-01", DatedAction("2026-01-02", "It rained"))
        olds = [
            memory(f"old {n}", status=status, session_count=7 * n, scene=Scene(action=f"old {n}", when=timeline))
            for n, status in enumerate(statuses)
        ]
        _migrate_to("0004", path)
        with closing(sqlite3.connect(path)) as connection, connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(memories)")][1:]
            for old in olds:
                row = row_from_memory(old) | {"session_count": old.session_count, "content_hash": "as it was"}
                values = [row[name] for name in columns]
                marks = ", ".join("?" * len(columns))
                connection.execute(f"INSERT INTO memories ({', '.join(columns)}) VALUES ({marks})", values)
        async with open_ledger(path) as ledger:
            assert await ledger.memories.memories_with_ids(ADA, [old.id for old in olds]) == olds
            found = await ledger.patrols.memory_reader_for_patrol(ADA).memory_states([old.id for old in olds])
            assert [one.content_hash for one in found] == [old.content_hash for old in olds]
            assert [one.number for one in await ledger.memories.memories_with_ids(ADA, [old.id for old in olds])] == [
                1,
                2,
                3,
                4,
            ]
            [next_one] = (await ledger.memories.commit_store_batch(ADA, batch(memory()))).new
            assert next_one.short_id == "m5"

    async def test_an_older_store_is_searched_without_accents_and_its_odd_dates_still_show(self, path: Path) -> None:
        """issue 12.3 and 12.6. A month was no date then, and what is none stays as it was written."""
        scenes = [
            Scene(action="Café", actors=("Zoë",), when=("2025-03",)),
            Scene(action="Dentist", when=("tomorrow", DatedAction("Day7", "moved"))),
        ]
        olds = [memory(scene=scene, themes=("Thé",), created_at=MOMENT, happened_at=MOMENT) for scene in scenes]
        _migrate_to("0007", path)
        with closing(sqlite3.connect(path)) as connection, connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(memories)")][1:]
            for old in olds:
                row = row_from_memory(old) | {"since": 0, "folded": "café", "folded_themes": "\x1fthé\x1f"}
                values = {name: row[name] for name in columns if name in row}
                marks = ", ".join("?" * len(values))
                connection.execute(f"INSERT INTO memories ({', '.join(values)}) VALUES ({marks})", [*values.values()])
        async with open_ledger(path) as ledger:
            march, tomorrow = await ledger.memories.memories_with_ids(ADA, [old.id for old in olds])
            assert march == replace(olds[0], happened_at=datetime(2025, 3, 1, tzinfo=UTC))
            assert tomorrow == olds[1]
            assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("zoe", themes=("the",)))) == [
                march.id
            ]

    async def test_a_store_of_a_newer_version_is_refused_and_left_alone(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(memory()))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
        before = _files(path)
        with pytest.raises(StorageError, match=r"newer Madeleine.*upgrade"):
            await _open_and_close(open_ledger(path))
        assert _files(path) == before

    async def test_two_that_open_a_new_store_at_once_both_get_it(self, path: Path) -> None:
        async with open_ledger(path) as first, open_ledger(path) as second:
            await first.memories.commit_store_batch(ADA, batch(one := memory()))
            assert await stored_memory(second, one) == one

    async def test_a_file_that_is_no_database_is_refused_and_left_alone(self, path: Path) -> None:
        _write_rubbish(path)
        before = _files(path)
        with pytest.raises(StorageError, match="backup"):
            await _open_and_close(open_ledger(path))
        assert _files(path) == before

    async def test_a_directory_that_is_not_there_is_a_storage_error(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError):
            await _open_and_close(open_ledger(tmp_path / "none" / "memory.db"))

    # --- failures

    async def test_two_processes_racing_for_a_key_do_not_both_get_it(self, path: Path) -> None:
        async with open_ledger(path) as one, open_ledger(path) as other:
            stores = [ledger.memories.commit_store_batch(ADA, batch(memory(key="k"))) for ledger in (one, other) * 4]
            ends = await asyncio.gather(*stores, return_exceptions=True)
            assert sum(isinstance(end, CommittedMemories) for end in ends) == 1
            assert sum(isinstance(end, KeyConflict) for end in ends) == 7
            assert await one.index_source.count_memories() == 1

    async def test_a_full_disk_stores_nothing_and_says_so(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(kept := memory()))
            large = [memory("word " * 500) for _ in range(100)]
            async with no_room(ledger):
                with pytest.raises(StorageFull):
                    await ledger.memories.commit_store_batch(ADA, batch(*large))
                assert await stored_memory(ledger, kept) == kept
            assert await ledger.index_source.count_memories() == 1
            await ledger.memories.commit_store_batch(ADA, batch(*large))
            assert await ledger.index_source.count_memories() == 101

    async def test_a_database_locked_by_another_is_busy(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await pragma(ledger, "busy_timeout = 1")
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(StorageBusy):
                    await ledger.memories.commit_store_batch(ADA, batch(memory()))
                other.rollback()
            await ledger.memories.commit_store_batch(ADA, batch(memory()))

    async def test_text_that_cannot_be_written_is_refused(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            with pytest.raises(InvalidInput):
                await ledger.context.add_note(ADA, note("half a \ud83d pair"))
            assert await ledger.patrols.unread_notes(ADA, type="todo") == []

    async def test_a_closed_ledger_says_so(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(one := memory()))
            await ledger.memories.memories_with_ids(ADA, [one.id])
        with pytest.raises(StorageError, match="closed"):
            await ledger.memories.memories_with_ids(ADA, [one.id])
        with pytest.raises(StorageError, match="closed"):
            await ledger.memories.commit_store_batch(ADA, batch(memory()))

    async def test_activations_that_cannot_be_written_are_kept_and_written_later(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(one := memory()))
            failed = asyncio.Event()

            @asynccontextmanager
            async def full(**_: object) -> AsyncIterator[Transaction]:
                failed.set()
                raise StorageFull("The disk is full.")
                yield

            with monkeypatch.context() as patch:
                patch.setattr(ledger.database, "transaction", full)
                ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT)])
                await asyncio.wait_for(failed.wait(), 10)
                with pytest.raises(StorageFull):
                    await ledger.activations.flush()
                ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 2, MOMENT)])
            await ledger.activations.flush()
            assert (await stored_memory(ledger, one)).reactivation_count == 3

    async def test_a_settle_that_is_cancelled_counts_each_activation_once(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            await ledger.memories.commit_store_batch(ADA, batch(one := memory()))
            for turns in range(20):
                ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT)])
                settle = asyncio.create_task(ledger.activations.flush())
                for _ in range(turns):
                    await asyncio.sleep(0)
                settle.cancel()
                await asyncio.wait({settle})
            await ledger.activations.flush()
            assert (await stored_memory(ledger, one)).reactivation_count == 20

    async def test_a_patrol_of_many_memories_is_applied_whole(self, path: Path) -> None:
        async with open_ledger(path) as ledger:
            many = [memory(f"Memory {n}") for n in range(2000)]
            await ledger.memories.commit_store_batch(ADA, batch(*many))
            async with ledger.patrols.patrol_transaction(ADA) as transaction:
                read = await all_states(ledger, transaction)
                assert [one.id for one in read] == [one.id for one in many]
                await transaction.apply_changes(PatrolChanges(states=tuple(read)), run=RUN, step="assign")
            assert len(await ledger.index_source.pending_index_marks_with_memory_ids(limit=5000)) == 2000


def _migrate_to(revision: str, path: Path) -> None:
    """A store as an earlier version made it."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()


def _files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


def _write_rubbish(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


async def _open_and_close(ledger: AbstractAsyncContextManager[LedgerRepositories]) -> None:
    async with ledger:
        pass
