"""What the ledger promises of profile data and of what a context reads (`memory.profile`)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import NoteId, RunId
from madeleine.memory.patrol_records import DiaryEntry, PatrolChanges
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.storage.sql.conversations import context
from madeleine.storage.sql.database.sqlite import compile_statement
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, memory, note


@pytest.fixture
def ledger(sql_ledger: LedgerRepositories) -> LedgerRepositories:
    return sql_ledger


def entry(name: str, value: str = "x", **fields: Any) -> ProfileEntry:
    given: dict[str, Any] = {"kind": "map", "name": name, "value": value, "updated_at": MOMENT}
    return ProfileEntry(**(given | fields))


async def test_an_entry_is_kept_whole_and_replaced_by_the_next_of_its_kind_and_name(ledger: LedgerRepositories) -> None:
    first, other = entry("a", enabled=False), entry("a", kind="tools")
    for one in (first, other):
        assert await ledger.context.write_profile_entry(ADA, one) is None
    assert await ledger.context.profile_entries(ADA) == [first, other]
    later = replace(first, value="y", enabled=True, updated_at=MOMENT + timedelta(days=1))
    await ledger.context.write_profile_entry(ADA, later)
    assert await ledger.context.profile_entries(ADA) == [later, other]
    assert await ledger.context.profile_entries(BOB) == []


async def test_an_entry_is_removed_once_and_by_its_owner_alone(ledger: LedgerRepositories) -> None:
    await ledger.context.write_profile_entry(ADA, entry("a"))
    assert not await ledger.context.remove_profile_entry(BOB, entry("a"), at=MOMENT)
    assert await ledger.context.remove_profile_entry(ADA, entry("a"), at=MOMENT)
    assert not await ledger.context.remove_profile_entry(ADA, entry("a"), at=MOMENT)


async def test_one_memory_has_one_entry_and_one_that_loses_its_entry_is_told(ledger: LedgerRepositories) -> None:
    first, second = memory("Tea: green", category="procedural"), memory("Tea: black", category="procedural")
    await ledger.memories.commit_store_batch(ADA, batch(first, second))

    def tea(name: str, id_: Any) -> ProfileEntry:
        return entry(name, kind="preferences", memory_id=id_)

    assert await ledger.context.write_profile_entry(ADA, tea("Tea", first.id)) is None
    with pytest.raises(InvalidInput, match="preference 'Tea' says that already"):
        await ledger.context.write_profile_entry(ADA, tea("Drink", first.id))
    assert [(one.name, one.value) for one in await ledger.context.profile_entries(ADA)] == [
        ("Tea", "green"),
        (second.id, "Tea: black"),
    ]
    await ledger.context.write_profile_entry(ADA, tea(second.id, second.id))
    assert await ledger.context.write_profile_entry(ADA, tea("Tea", second.id)) == first.id
    assert [one.name for one in await ledger.context.profile_entries(ADA)] == ["Tea", first.id]


async def test_notes_that_are_open_are_the_latest_and_no_scenes(ledger: LedgerRepositories) -> None:
    notes = [note(f"n{n}", at=MOMENT + timedelta(hours=n)) for n in range(4)]
    for one in [*notes, note("{}", type_="scene"), note("bob's", scope=BOB)]:
        await ledger.context.add_note(BOB if one.being_id == "bob" else ADA, one)
    assert await ledger.context.list_open_notes(ADA, limit=3) == notes[1:]
    assert await ledger.context.close_note(ADA, notes[3].id, at=MOMENT)
    assert not await ledger.context.close_note(BOB, notes[2].id, at=MOMENT, remove=True)
    assert not await ledger.context.close_note(ADA, NoteId("nobody"), at=MOMENT)
    assert await ledger.context.list_open_notes(ADA, limit=9) == notes[:3]


async def test_the_diary_since_a_day_is_oldest_first(ledger: LedgerRepositories) -> None:
    days = [DiaryEntry(date=f"2026-02-0{n}", text=str(n), sources=(), written_at=MOMENT) for n in range(1, 6)]
    async with ledger.patrols.patrol_transaction(ADA) as transaction:
        for day in days:
            await transaction.apply_changes(PatrolChanges(diary=day), run=RunId("r"), step="diary")
    assert await ledger.context.diary_entries_since(ADA, "2026-02-02", limit=9) == days[1:]
    assert await ledger.context.diary_entries_since(ADA, "2026-02-02", limit=2) == days[3:]
    assert await ledger.context.diary_entries_since(BOB, "2026-02-02", limit=2) == []


async def test_recently_activated_are_alive_activated_and_ones_own_the_latest_first(ledger: LedgerRepositories) -> None:
    found = [memory(f"m{n}") for n in range(4)]
    dead, told, never = memory("d", status="dead"), memory("c", compressed=True), memory("never")
    bobs = memory("bob's", scope=BOB)
    await ledger.memories.commit_store_batch(ADA, batch(*found, dead, told, never))
    await ledger.memories.commit_store_batch(BOB, batch(bobs))
    for n, one in enumerate([*found, dead, told]):
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(one.id, 1, MOMENT + timedelta(minutes=n))])
    ledger.activations.add_reactivations(BOB, [MemoryReactivation(bobs.id, 1, MOMENT + timedelta(days=1))])
    await ledger.activations.flush()
    recent_ones = await ledger.context.recently_activated_memories(ADA, limit=3)
    assert [one.scene.action for one in recent_ones] == ["m3", "m2", "m1"]


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (context._SELECT_RECENTLY_ACTIVATED_MEMORIES, "ix_memories_activated"),
        (context._SELECT_UNNAMED_PREFERENCES, "ix_memories_procedural"),
    ],
    ids=["recent", "preferences"],
)
async def test_of_a_being_with_many_memories_only_the_few_that_matter_are_looked_at(
    new_db: Path, statement: Any, index: str
) -> None:
    compiled = compile_statement(statement)
    binds: Any = compiled.construct_params({"being": "ada", "project": "", "limit": 5, "most": 5})
    with closing(sqlite3.connect(new_db)) as connection:
        plan = " ".join(str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {compiled}", binds))
    assert f"memories USING INDEX {index}" in plan
    if index == "ix_memories_activated":
        assert "TEMP B-TREE" not in plan
