"""What a recall reads beside memories: preferences (spec L2, ruling 15), and what ranking weighs (ruling 9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.index import MemoryRankingState
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import EmbeddingModelName, Memory, MemoryId, Scope
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.memory.rules.storing.retelling import MemoryRetelling
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.doubles import ADA, BOB, NOW, a_memory
from tests.household import new_store

DAY = timedelta(days=1)


@pytest.fixture
async def ledger(tmp_path: Path, templates: Path) -> AsyncIterator[LedgerRepositories]:
    async with open_ledger(new_store(templates, tmp_path / "memory.db")) as ledger:
        yield ledger


async def put(ledger: LedgerRepositories, *memories: Memory, scope: Scope = ADA) -> None:
    await ledger.memories.commit_store_batch(scope, StoreBatch(new=memories, model=EmbeddingModelName("m"), vectors={}))


def a_preference(text: str, importance: float = 0.5, **fields: object) -> Memory:
    return replace(a_memory(text, category="procedural", importance=importance), **fields)  # type: ignore[arg-type]


def ids(memories: list[Memory]) -> list[MemoryId]:
    return [memory.id for memory in memories]


async def preferences(ledger: LedgerRepositories, scope: Scope = ADA, **asked: object) -> list[MemoryId]:
    query: dict[str, Any] = {"matching_ids": (), "limit": 10, "include_standing": True} | asked
    return ids(await ledger.recall.preferences(scope, **query))


async def test_those_that_match_are_first_then_the_important_then_the_new(ledger: LedgerRepositories) -> None:
    """spec L2, ruling 15"""
    low, high = a_preference("low", 0.2), a_preference("high", 0.9)
    old, new = a_preference("old"), a_preference("new", created_at=NOW + DAY)
    await put(ledger, low, high, old, new)
    assert await preferences(ledger) == [high.id, new.id, old.id, low.id]
    matching = [old.id, MemoryId("x"), low.id]
    assert await preferences(ledger, matching_ids=matching) == [old.id, low.id, high.id, new.id]
    assert await preferences(ledger, matching_ids=matching, include_standing=False) == [old.id, low.id]
    assert await preferences(ledger, matching_ids=[low.id], limit=2) == [low.id, high.id]
    assert await preferences(ledger, limit=0) == []


async def test_only_procedural_memories_that_are_not_switched_off_are_preferences(ledger: LedgerRepositories) -> None:
    """Of the being's own (spec P1). Those that match may be of a time that is asked for; the others live."""
    kept, dying, dead, off = (a_preference(text) for text in ("kept", "dying", "dead", "off"))
    fact = a_memory("no preference")
    await put(ledger, kept, replace(dying, status="dying"), replace(dead, status="dead"), off, fact)
    [entry] = [entry for entry in await ledger.context.profile_entries(ADA) if entry.memory_id == off.id]
    await ledger.context.write_profile_entry(ADA, replace(entry, enabled=False))
    assert set(await preferences(ledger)) == {kept.id, dying.id}
    matching = [off.id, dead.id, fact.id, kept.id]
    assert await preferences(ledger, matching_ids=matching, include_standing=False) == [dead.id, kept.id]
    assert await preferences(ledger, BOB, matching_ids=matching) == []


async def test_vitals_tell_the_last_of_what_happened_to_a_memory(ledger: LedgerRepositories) -> None:
    """ruling 9"""
    plain, told, recalled = (
        a_memory("plain", when=("2026-02-01",), importance=0.7),
        a_memory("told"),
        a_memory("recalled"),
    )
    await put(ledger, plain, told, recalled)
    again = [MemoryRetelling(memory_id=told.id, text="told", at=NOW + days * DAY, tool="store") for days in (1, 2)]
    await ledger.memories.commit_store_batch(
        ADA, StoreBatch(reinforcements=tuple(again), model=EmbeddingModelName("m"), vectors={})
    )
    ledger.activations.add_reactivations(ADA, [MemoryReactivation(recalled.id, 1, NOW + 3 * DAY)])
    await ledger.activations.flush()
    found = await ledger.recall.ranking_state_by_memory_id(ADA, [plain.id, told.id, recalled.id, MemoryId("nobody's")])
    assert found == {
        plain.id: MemoryRankingState(importance=0.7, happened_at=plain.happened_at, last_active=NOW, access_count=0),
        told.id: MemoryRankingState(importance=0.5, happened_at=NOW, last_active=NOW + 2 * DAY, access_count=2),
        recalled.id: MemoryRankingState(importance=0.5, happened_at=NOW, last_active=NOW + 3 * DAY, access_count=0),
    }
