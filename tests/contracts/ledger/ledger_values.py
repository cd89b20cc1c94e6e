"""Values for the contract suites of a ledger, and how they are put there and looked at."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from hypothesis import HealthCheck

from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import (
    BeingId,
    Cluster,
    ClusterId,
    ContentHash,
    EmbeddingModelName,
    Memory,
    MemoryId,
    Note,
    NoteId,
    Provenance,
    RunId,
    Scene,
    Scope,
    Vector,
)
from madeleine.memory.patrol_records import MemoryFieldsForPatrol, PatrolChanges
from madeleine.memory.rules.storing.retelling import MemoryRetelling
from madeleine.patrol.ports import PatrolMemoryReader
from tests.contracts.ledger.any_ledger import StoringLedger

ADA = Scope(BeingId("ada"))
BOB = Scope(BeingId("bob"))
MODEL = EmbeddingModelName("tests")
MOMENT = datetime(2025, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
"""How long a test waits for what should come at once."""
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""Every ledger runs the same property, each example over a being of its own."""
_numbers = itertools.count(1)


def memory_id(number: int) -> MemoryId:
    return MemoryId(str(UUID(int=number)))


def memory(action: str = "Ate a madeleine", *, scope: Scope = ADA, number: int | None = None, **other: Any) -> Memory:
    """One of its own id, minutes after the one before unless told."""
    number = next(_numbers) if number is None else number
    given: dict[str, Any] = {
        "id": memory_id(number),
        "being_id": scope.being_id,
        "scene": Scene(action=action),
        "provenance": Provenance(tool="store"),
        "created_at": MOMENT,
        "happened_at": MOMENT + timedelta(minutes=number),
    }
    return Memory(**(given | other))


def vector(*values: float) -> Vector:
    return np.asarray(values, dtype=np.float32)


def batch(
    *new: Memory, again: Sequence[MemoryRetelling] = (), vectors: dict[ContentHash, Vector] | None = None
) -> StoreBatch:
    return StoreBatch(new=new, reinforcements=tuple(again), model=MODEL, vectors=vectors or {})


def reinforcement_of(of: Memory, text: str = "Ate one again", **other: Any) -> MemoryRetelling:
    given: dict[str, Any] = {"memory_id": of.id, "text": text, "at": MOMENT + timedelta(days=1), "tool": "store"}
    return MemoryRetelling(**(given | other))


def note(content: str, *, scope: Scope = ADA, type_: str = "todo", at: datetime = MOMENT, **other: Any) -> Note:
    id_ = NoteId(f"note-{next(_numbers):06}")
    return Note(id=id_, being_id=scope.being_id, type=type_, content=content, created_at=at, **other)


def cluster(id_: str, name: str, parent: str, *, scope: Scope = ADA, **other: Any) -> Cluster:
    return Cluster(id=ClusterId(id_), being_id=scope.being_id, name=name, parent_id=ClusterId(parent), **other)


def keyword_query(*terms: str, **other: Any) -> KeywordQuery:
    return KeywordQuery(terms=tuple(term.casefold() for term in terms), **other)


def ids(hits: Sequence[SearchHit]) -> list[str]:
    return [hit.id for hit in hits]


async def stored_memory(ledger: StoringLedger, one: Memory, scope: Scope = ADA) -> Memory:
    (found,) = await ledger.memories.memories_with_ids(scope, [one.id])
    return found


RUN = RunId("run")


async def all_states(ledger: StoringLedger, patrol: PatrolMemoryReader) -> list[MemoryFieldsForPatrol]:
    """Of all that were committed those that the patrol's being has."""
    return await patrol.memory_states(
        [one.id for one in await ledger.index_source.memories_after_id(after=None, limit=10_000)]
    )


async def states(ledger: StoringLedger, scope: Scope = ADA) -> dict[MemoryId, MemoryFieldsForPatrol]:
    return {one.id: one for one in await all_states(ledger, ledger.patrols.memory_reader_for_patrol(scope))}


async def apply_changes(ledger: StoringLedger, changes: PatrolChanges, scope: Scope = ADA) -> None:
    async with ledger.patrols.patrol_transaction(scope) as transaction:
        await transaction.apply_changes(changes, run=RUN, step="assign")
