"""spec O4, O10: what was done is written down with it, once, in order, and cannot be changed afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from madeleine.memory.audit import AuditEntry, AuditQuery, build_audit_entry
from madeleine.memory.errors import KeyConflict, StorageError
from madeleine.memory.model import Provenance, RunId, Scope
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, apply_changes, batch, memory, note, reinforcement_of
from tests.contracts.test_sql_ledger import no_room

DESK = Scope(ADA.being_id, "desk", "senior")
EVERYTHING = AuditQuery()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
async def ledger(new_db: Path) -> AsyncIterator[LedgerRepositories]:
    async with open_ledger(new_db) as ledger:
        yield ledger


def told(entries: list[AuditEntry]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(entry.event, entry.being_id, entry.tool, entry.ids) for entry in entries]


async def test_every_write_is_audited_by_whom_and_of_what_in_its_own_transaction(
    sql_ledger: LedgerRepositories,
) -> None:
    ledger = sql_ledger
    one, two = memory("one"), memory("two", provenance=Provenance(tool="import"))
    await ledger.memories.commit_store_batch(DESK, batch(one, two))
    await ledger.memories.commit_store_batch(
        DESK, batch(again=(reinforcement_of(one), reinforcement_of(one, "yet again")))
    )
    await ledger.context.add_note(BOB, waiting := note("later", scope=BOB))
    fresh = memory("three", provenance=Provenance(tool="notes"))
    await apply_changes(ledger, PatrolChanges(new_memories=(fresh,)))
    await ledger.patrols.begin_run(DESK, RunId("run"), MOMENT)
    await ledger.patrols.finish_run(DESK, RunId("run"), MOMENT + timedelta(seconds=3), {})
    entries = await ledger.audit.audit_entries(EVERYTHING)
    assert told(entries) == [
        ("store", "ada", "store", (one.id,)),
        ("store", "ada", "import", (two.id,)),
        ("reinforce", "ada", "store", (one.id,)),
        ("note", "bob", "", (waiting.id,)),
        ("store", "ada", "notes", (fresh.id,)),
        ("patrol", "ada", "run_patrol", ("run",)),
    ]
    assert [entry.seq for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert {(entry.client, entry.role) for entry in entries[:3]} == {("desk", "senior")}
    assert entries[0].at == one.created_at
    assert entries[-1].at == MOMENT + timedelta(seconds=3)


async def test_a_write_that_fails_leaves_no_entry_and_no_gap(sql_ledger: LedgerRepositories) -> None:
    ledger = sql_ledger
    await ledger.memories.commit_store_batch(ADA, batch(memory(key="k")))
    with pytest.raises(KeyConflict):
        await ledger.memories.commit_store_batch(ADA, batch(memory(key="k")))
    await ledger.memories.commit_store_batch(ADA, batch(memory()))
    assert [entry.seq for entry in await ledger.audit.audit_entries(EVERYTHING)] == [1, 2]
    assert await ledger.audit.count_missing_entries() == 0


async def test_a_recall_is_there_at_the_latest_after_the_end(path: Path) -> None:
    entry = build_audit_entry(DESK, "recall", MOMENT, tool="recall", ids=["a", "b", "a"])
    async with open_ledger(path) as ledger:
        ledger.activations.add_audit_entry(entry)
        await ledger.activations.flush()
        [found] = await ledger.audit.audit_entries(EVERYTHING)
        assert told([found]) == [("recall", "ada", "recall", ("a", "b"))]
        assert (found.client, found.role, found.at) == ("desk", "senior", MOMENT)
        ledger.activations.add_audit_entry(entry)
    async with open_ledger(path) as ledger:
        assert [entry.seq for entry in await ledger.audit.audit_entries(EVERYTHING)] == [1, 2]


async def test_recalls_that_could_not_be_written_are_written_later_in_order(ledger: LedgerRepositories) -> None:
    async with no_room(ledger):
        for number in range(1000):
            ledger.activations.add_audit_entry(build_audit_entry(ADA, "recall", MOMENT, ids=[f"{number}"]))
        with pytest.raises(StorageError):
            await ledger.activations.flush()
        ledger.activations.add_audit_entry(build_audit_entry(ADA, "recall", MOMENT, ids=["last"]))
    await ledger.activations.flush()
    entries = await ledger.audit.audit_entries(AuditQuery(limit=5000))
    assert [entry.ids[0] for entry in entries] == [*(f"{number}" for number in range(1000)), "last"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET event = 'other'",
        "DELETE FROM audit",
        "DELETE FROM audit WHERE seq = 1",
        "REPLACE INTO audit SELECT seq, at, 'other', being_id, client, role, tool, ids, author, token FROM audit",
        "INSERT INTO audit SELECT * FROM audit WHERE true ON CONFLICT (seq) DO UPDATE SET event = 'other'",
    ],
)
async def test_what_was_audited_cannot_be_changed(ledger: LedgerRepositories, path: Path, change: str) -> None:
    await ledger.memories.commit_store_batch(ADA, batch(memory()))
    before = await ledger.audit.audit_entries(EVERYTHING)
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        pytest.raises(sqlite3.IntegrityError, match="only be appended to"),
    ):
        other.execute(change)
    assert await ledger.audit.audit_entries(EVERYTHING) == before


@pytest.mark.parametrize("removed", ["seq = 1", "seq = 2", "seq = 3", "true"])
async def test_entries_that_were_removed_with_the_triggers_are_missed(
    ledger: LedgerRepositories, path: Path, removed: str
) -> None:
    for _ in range(3):
        await ledger.memories.commit_store_batch(ADA, batch(memory()))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("DROP TRIGGER audit_no_delete")
        gone = other.execute(f"DELETE FROM audit WHERE {removed}").rowcount
    assert await ledger.audit.count_missing_entries() == gone > 0


async def test_the_last_entries_are_read_by_being_event_and_time(sql_ledger: LedgerRepositories) -> None:
    ledger = sql_ledger
    for number in range(6):
        scope = BOB if number % 2 else ADA
        at = MOMENT + timedelta(hours=number)
        ledger.activations.add_audit_entry(build_audit_entry(scope, "recall" if number < 4 else "reindex", at))
    await ledger.activations.flush()

    async def found(**asked: object) -> list[int]:
        return [entry.seq for entry in await ledger.audit.audit_entries(AuditQuery(**asked))]  # type: ignore[arg-type]

    assert await found() == [1, 2, 3, 4, 5, 6]
    assert await found(limit=2) == [5, 6]
    assert await found(being_id=BOB.being_id) == [2, 4, 6]
    assert await found(event="reindex") == [5, 6]
    assert await found(since=MOMENT + timedelta(hours=1), until=MOMENT + timedelta(hours=3)) == [2, 3, 4]
    assert await found(being_id="nobody") == []


async def test_nothing_was_done_in_a_new_ledger(sql_ledger: LedgerRepositories) -> None:
    ledger = sql_ledger
    assert await ledger.audit.audit_entries(EVERYTHING) == []
    assert await ledger.audit.count_missing_entries() == 0
