"""spec T6: one that says much the same and is not taken for the same is linked to the nearest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from madeleine.memory.ingest.index_keeper import IndexKeeper, index_points_from_memories
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import MemoryId, Scene
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.search import BrowseMemories
from madeleine.memory.rules.storing.likeness import DuplicateThresholds
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import open_ledger
from madeleine.tools.replies import detailed_memory_as_json
from tests.contracts.ledger.ledger_values import apply_changes, states
from tests.doubles import ADA, BOB, Clock, WordEmbedder
from tests.household import Household

PAID_40 = "we paid 40 euros for the old green boat with the two long oars"
PAID_45 = PAID_40.replace("40", "45")
NEARER = PAID_45 + " 45"
ELSE = "nobody has ever seen a dragon in this valley"


async def test_one_that_differs_in_a_number_is_kept_and_linked(home: Household) -> None:
    [first, second] = await home.stored(PAID_40, PAID_45)
    [third] = await home.stored(NEARER)
    [other] = await home.stored(ELSE)
    assert (second.status, second.resembled_memory_id) == ("stored", first.memory.id)
    assert (third.status, third.resembled_memory_id) == ("stored", second.memory.id), "the nearest"
    assert first.resembled_memory_id is None
    assert other.resembled_memory_id is None


async def test_one_that_is_reinforced_answers_no_link_of_its_own(home: Household) -> None:
    await home.store(PAID_40)
    [second] = await home.stored(PAID_45)
    [again] = await home.stored(PAID_45)
    assert again.status == "reinforced"
    assert again.memory.id == second.memory.id
    assert again.resembled_memory_id is None


async def test_neither_near_nor_worded_alike_is_no_link(home: Household) -> None:
    one, other = "boat oars lake house green", "wolf snow hill fire brown"
    cosine = float(np.dot(home.embedder.vector(one), home.embedder.vector(other)))
    assert cosine < DuplicateThresholds().resembling
    [_, found] = await home.stored(one, other)
    assert found.resembled_memory_id is None


async def test_nobody_is_linked_to_another_being_s_memory(home: Household) -> None:
    await home.store(PAID_40)
    [found] = await home.stored(PAID_45, scope=BOB)
    assert found.resembled_memory_id is None


async def test_a_dead_memory_is_linked_to_by_nobody(home: Household) -> None:
    [dead] = await home.store(PAID_40)
    died = replace((await states(home.ledger))[dead.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(died,)))
    [found] = await home.stored(PAID_45)
    assert found.resembled_memory_id is None


async def test_the_link_is_shown_with_the_whole_memory(home: Household) -> None:
    [first, second] = await home.store(PAID_40, PAID_45)
    found = await BrowseMemories(home.ledger.recall, home.ledger.activations, now=home.clock).by_ids(
        ADA, [first.id, second.id]
    )
    assert [detailed_memory_as_json(memory, {first.id: "m1"}).get("resembles") for memory in found.memories] == [
        None,
        "m1",
    ]


async def test_a_forgotten_memory_leaves_no_link_to_it(home: Household) -> None:
    [first, second] = await home.store(PAID_40, PAID_45)
    await home.ledger.erasure.forget(ADA, [first.id], at=home.clock())
    assert (await home.now(second)).resembles is None


@pytest.mark.parametrize("which", [0, 1])
async def test_a_memory_with_another_text_resembles_nothing_any_more(home: Household, which: int) -> None:
    """Neither side of the link is what it was."""
    both = await home.store(PAID_40, PAID_45)
    await home.correct(both[which].id, text=ELSE)
    assert [(await home.now(one)).resembles for one in both] == [None, None]


async def test_another_importance_leaves_the_link(home: Household) -> None:
    [first, second] = await home.store(PAID_40, PAID_45)
    await home.correct(second.id, importance=0.9)
    assert (await home.now(second)).resembles == first.id


async def test_an_undone_note_takes_the_links_to_its_memory_with_it(home: Household) -> None:
    """What a patrol has made is gone; nothing points there."""
    await home.note({"action": PAID_40})
    report = await home.run_patrol(steps=["assign"])
    [made] = await home.all()
    vectors = await home.ledger.memories.cached_vectors_by_hash(home.embedder.model_name, [made.content_hash])
    await home.index.upsert(await index_points_from_memories([made], vectors, home.embedder))
    [found] = await home.stored(PAID_45)
    assert found.resembled_memory_id == made.id
    await home.undo(report.run_id)
    assert (await home.now(found.memory)).resembles is None


async def test_the_link_survives_a_reopening_and_a_rebuilt_index(tmp_path: Path) -> None:
    embedder, clock = WordEmbedder(), Clock()
    made = IndexFingerprint(embedder.model_name, embedder.dim)

    async def store(text: str) -> tuple[MemoryId, MemoryId | None]:
        async with open_ledger(tmp_path / "memory.db") as ledger:
            index = await EmbeddedQdrantIndex.recreate(tmp_path / "index", made)
            await IndexKeeper(ledger.index_source, index, embedder).rebuild()
            [found] = await StoreScenes(ledger.memories, index, embedder, now=clock)(
                ADA, [NewScene(scene=Scene(action=text))]
            )
            await index.close()
            return found.memory.id, found.resembled_memory_id

    first, _ = await store(PAID_40)
    second, link = await store(PAID_45)
    assert link == first
    third, link = await store(NEARER)
    assert link == second
    async with open_ledger(tmp_path / "memory.db") as ledger:
        assert [one.resembles for one in await ledger.memories.memories_with_ids(ADA, [first, second, third])] == [
            None,
            first,
            second,
        ]
