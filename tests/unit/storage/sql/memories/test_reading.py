"""What a recall reads beside memories: preferences (spec L2) and what ranking weighs (ruling 9)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.index import MemoryRankingState
from madeleine.memory.ingest.ports import Reinforcement, StoreBatch
from madeleine.memory.model import Memory, MemoryId, ModelName, Scope
from madeleine.memory.recall.ports import Activation, PreferenceQuery
from madeleine.storage.sql.database.engine import _compile
from madeleine.storage.sql.ledger import Ledger, open_ledger
from madeleine.storage.sql.memories import reading
from tests.doubles import ADA, BOB, NOW, a_memory
from tests.household import new_store, rows

DAY = timedelta(days=1)


@pytest.fixture
async def ledger(tmp_path: Path, templates: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(new_store(templates, tmp_path / "memory.db")) as ledger:
        yield ledger


async def put(ledger: Ledger, *memories: Memory, scope: Scope = ADA) -> None:
    await ledger.memories.commit(scope, StoreBatch(new=memories, model=ModelName("m"), vectors={}))


def a_preference(text: str, importance: float = 0.5, **fields: object) -> Memory:
    return replace(a_memory(text, category="procedural", importance=importance), **fields)  # type: ignore[arg-type]


def ids(memories: list[Memory]) -> list[MemoryId]:
    return [memory.id for memory in memories]


async def preferences(ledger: Ledger, scope: Scope = ADA, **asked: object) -> list[MemoryId]:
    _, found = await ledger.recall.with_preferences(scope, [], replace(PreferenceQuery(most=10), **asked))  # type: ignore[arg-type]
    return ids(found)


async def test_memories_come_as_they_are_asked_for_and_preferences_beside_them(ledger: Ledger) -> None:
    one, two, fond = a_memory("one"), a_memory("two"), a_preference("tea")
    await put(ledger, one, two, fond)
    wanted = [two.id, fond.id, MemoryId("nobody's"), one.id, two.id]
    found, preferred = await ledger.recall.with_preferences(ADA, wanted, PreferenceQuery(most=3))
    assert ids(found) == [two.id, fond.id, one.id]
    assert found == await ledger.memories.memories(ADA, wanted)
    assert preferred == await ledger.memories.memories(ADA, [fond.id])


async def test_those_that_match_are_first_then_the_important_then_the_new(ledger: Ledger) -> None:
    """spec L2"""
    low, high = a_preference("low", 0.2), a_preference("high", 0.9)
    old, new = a_preference("old"), a_preference("new", created_at=NOW + DAY)
    await put(ledger, low, high, old, new)
    assert await preferences(ledger) == [high.id, new.id, old.id, low.id]
    assert await preferences(ledger, matching=[old.id, MemoryId("x"), low.id]) == [old.id, low.id, high.id, new.id]
    assert await preferences(ledger, matching=[low.id], most=2) == [low.id, high.id]
    assert await preferences(ledger, most=0) == []


async def test_only_living_procedural_memories_that_are_not_switched_off_are_preferences(
    ledger: Ledger, tmp_path: Path
) -> None:
    kept, dying, dead, off = (a_preference(text) for text in ("kept", "dying", "dead", "off"))
    await put(
        ledger, kept, replace(dying, status="dying"), replace(dead, status="dead"), off, a_memory("no preference")
    )
    update = "UPDATE profile SET enabled = 0 WHERE memory_id = ? AND kind = 'preferences'"
    async with ledger.database.transaction() as transaction:
        await transaction._writer.sql.exec_driver_sql(update, (off.id,))
    assert len(rows(tmp_path / "memory.db", "SELECT * FROM profile WHERE being_id = 'ada'")) >= 3
    assert set(await preferences(ledger)) == {kept.id, dying.id}


async def test_preferences_can_be_asked_for_by_all_of_their_themes(ledger: Ledger) -> None:
    """spec O12"""
    both = a_preference("both", themes=("Food", "non-inferable"))
    await put(ledger, both, a_preference("one", themes=("food",)), a_preference("none"))
    assert await preferences(ledger, themes=("FOOD", "Non-Inferable")) == [both.id]
    assert len(await preferences(ledger, themes=("food",))) == 2
    assert await preferences(ledger, themes=("foo",)) == []


async def test_no_being_sees_anothers_preferences_or_vitals(ledger: Ledger) -> None:
    """spec P1"""
    mine = a_preference("mine")
    await put(ledger, mine)
    assert await preferences(ledger, BOB) == []
    assert await ledger.recall.with_preferences(BOB, [mine.id], PreferenceQuery(most=3, matching=[mine.id])) == ([], [])
    assert await ledger.recall.ranking_states(BOB, [mine.id]) == {}


async def test_vitals_tell_the_last_of_what_happened_to_a_memory(ledger: Ledger) -> None:
    """ruling 9"""
    plain, told, recalled = (
        a_memory("plain", when=("2026-02-01",), importance=0.7),
        a_memory("told"),
        a_memory("recalled"),
    )
    await put(ledger, plain, told, recalled)
    again = [Reinforcement(memory_id=told.id, text="told", at=NOW + days * DAY, tool="store") for days in (1, 2)]
    await ledger.memories.commit(ADA, StoreBatch(reinforcements=tuple(again), model=ModelName("m"), vectors={}))
    ledger.activations.add(ADA, [Activation(recalled.id, 1, NOW + 3 * DAY)])
    await ledger.activations.flush()
    found = await ledger.recall.ranking_states(ADA, [plain.id, told.id, recalled.id, MemoryId("nobody's")])
    assert found == {
        plain.id: MemoryRankingState(importance=0.7, happened_at=plain.happened_at, last_active=NOW, access_count=0),
        told.id: MemoryRankingState(importance=0.5, happened_at=NOW, last_active=NOW + 2 * DAY, access_count=2),
        recalled.id: MemoryRankingState(importance=0.5, happened_at=NOW, last_active=NOW + 3 * DAY, access_count=0),
    }


async def test_a_being_without_preferences_pays_for_a_look_into_an_index(ledger: Ledger, tmp_path: Path) -> None:
    """The default path of every recall: no table is walked for it."""
    statement = _compile(reading._SELECT_WITH_PREFERENCES)
    binds: Any = statement.construct_params({"ids": "[]", "matching": "[]", "themes": "[]", "most": 3, "being": "ada"})
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        plan = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}", binds)]
    assert any("ix_memories_procedural" in step for step in plan)
    assert not [step for step in plan if step.startswith("SCAN memories")]
