"""spec P6 ❶, rulings 1, 4, 5."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.memory.model import EmbeddingModelName, Memory, MemoryId, MemoryStatus
from madeleine.memory.rules.dynamics.topics import TopicAssignments, assign_unclustered_vectors_to_topics
from madeleine.patrol.steps.assign import assign_memories_to_clusters
from tests.doubles import BOB, a_memory, unit
from tests.unit.patrol.step_fixtures import BUSINESS, PRIVATE, StepStore, axis, lean


async def assigned(store: StepStore) -> Mapping[str, int]:
    work = await store.begin()
    counts = await assign_memories_to_clusters(work)
    await store.write(work)
    return counts


@pytest.fixture
def store() -> StepStore:
    return StepStore()


async def test_a_memory_joins_the_sub_cluster_it_is_like(store: StepStore) -> None:
    """spec P6 ❶ 5: threshold 0.45."""
    dinners = store.cluster("Dinners", axis(0))
    memory = store.put(a_memory("ramen"), lean(0.5))
    counts = await assigned(store)
    assert store.now(memory).cluster_id == dinners.id
    assert (counts["assigned"], counts["to_clusters"], counts["to_roots"]) == (1, 1, 0)


@pytest.mark.parametrize(("cosine", "home"), [(0.46, "Dinners"), (0.44, "Private"), (-0.9, "Private")])
async def test_a_memory_joins_from_0_45_and_not_below(store: StepStore, cosine: float, home: str) -> None:
    """spec P6 ❶ 5"""
    store.cluster("Dinners", axis(0))
    memory = store.put(a_memory("ramen"), lean(cosine, 7))
    await assigned(store)
    assert store.home(memory) == home


async def test_a_memory_joins_the_nearest_of_several_sub_clusters(store: StepStore) -> None:
    """spec P6 ❶ 5"""
    store.cluster("Dinners", lean(0.7))
    store.cluster("Ramen", lean(0.9))
    store.cluster("Lunches", lean(0.8))
    memory = store.put(a_memory("ramen"), axis(0))
    await assigned(store)
    assert store.home(memory) == "Ramen"


async def test_a_root_is_never_matched_however_near_it_is(store: StepStore) -> None:
    """ruling 4: ❶ matches memories to sub-clusters only."""
    root = store.ledger.state.clusters[store.business.id]
    store.ledger.state.clusters[root.id] = replace(root, vector=PRIVATE, model=EmbeddingModelName("words"))
    memory = store.put(a_memory("ramen"), PRIVATE)
    assert (await assigned(store))["to_clusters"] == 0
    assert store.home(memory) == "Private"


@pytest.mark.parametrize(("vector", "root"), [(BUSINESS, "Business"), (PRIVATE, "Private")])
async def test_a_memory_without_a_cluster_like_it_goes_under_the_nearer_root(
    store: StepStore, vector: np.typing.NDArray[np.float32], root: str
) -> None:
    """spec P6 ❶ 5, ruling 5"""
    memory = store.put(a_memory("ramen"), vector)
    assert (await assigned(store))["to_roots"] == 1
    assert store.home(memory) == root


async def test_the_roots_are_made_when_they_are_first_needed(store: StepStore) -> None:
    """spec P3: two roots, each its own parent."""
    store.ledger.state.clusters.clear()
    store.put(a_memory("ramen"), PRIVATE)
    await assigned(store)
    roots = list(store.ledger.state.clusters.values())
    assert {root.name for root in roots} == {"Business", "Private"}
    assert all(root.is_root and root.parent_id == root.id for root in roots)


async def test_the_vector_of_every_affected_cluster_is_recomputed(store: StepStore) -> None:
    """spec P6 ❶ 6, P3: the mean of its active memories."""
    dinners = store.cluster("Dinners", axis(0))
    store.put(a_memory("old", fresh=False), axis(0), dinners)
    store.put(a_memory("new"), lean(0.6))
    store.put(a_memory("elsewhere"), PRIVATE)
    await assigned(store)
    result = store.ledger.cluster("Dinners")
    assert result.vector is not None
    assert result.vector.tolist() == pytest.approx(unit(axis(0) + lean(0.6)).tolist(), abs=1e-6)
    private = store.ledger.cluster("Private").vector
    assert private is not None
    assert private.tolist() == pytest.approx(PRIVATE.tolist())


async def test_only_active_memories_make_a_clusters_vector(store: StepStore) -> None:
    """spec P3: dying and dead ones do not."""
    dinners = store.cluster("Dinners", axis(0))
    store.put(a_memory("dying", status="dying"), axis(3), dinners)
    store.put(a_memory("dead", status="dead"), axis(4), dinners)
    store.put(a_memory("new"), lean(0.6))
    await assigned(store)
    vector = store.ledger.cluster("Dinners").vector
    assert vector is not None
    assert vector.tolist() == pytest.approx(lean(0.6).tolist(), abs=1e-6)


async def test_a_memory_that_has_a_cluster_stays_there(store: StepStore) -> None:
    """spec P6 ❶: new memories are assigned."""
    store.cluster("Ramen", axis(0))
    other = store.cluster("Other", axis(3))
    memory = store.put(a_memory("ramen"), axis(0), other)
    assert (await assigned(store))["assigned"] == 0
    assert store.home(memory) == "Other"


async def test_a_dead_memory_without_a_cluster_is_not_assigned(store: StepStore) -> None:
    """spec P6 ❶"""
    memory = store.put(a_memory("ramen", status="dead"), PRIVATE)
    await assigned(store)
    assert store.home(memory) == ""


async def test_a_fresh_memory_stays_fresh(store: StepStore) -> None:
    """spec P6 ❶ 3, ruling 1: fresh until ❹ has seen it."""
    memory = store.put(a_memory("ramen"), PRIVATE)
    await assigned(store)
    assert store.now(memory).fresh


async def test_three_under_a_root_that_are_alike_become_a_sub_cluster(store: StepStore) -> None:
    """ruling 4: named after what they share."""
    alike = [store.put(a_memory(f"scene {i}", themes=("food",)), lean(0.9, i)) for i in (1, 2, 3)]
    alone = store.put(a_memory("alone"), PRIVATE)
    counts = await assigned(store)
    assert counts["new_clusters"] == 1
    assert [store.home(memory) for memory in [*alike, alone]] == ["food", "food", "food", "Private"]
    made = store.ledger.cluster("food")
    assert not made.is_root
    assert store.ledger.state.clusters[made.parent_id].is_root
    assert made.vector is not None


async def test_memories_that_were_under_the_root_before_join_the_new_group(store: StepStore) -> None:
    """ruling 4: among the memories that lie directly under a root."""
    old = [store.put(a_memory(f"old {i}", themes=("food",), fresh=False), lean(0.9, i), store.private) for i in (1, 2)]
    new = store.put(a_memory("new", themes=("food",)), unit(lean(0.9, 3) + PRIVATE * 0.1))
    await assigned(store)
    assert {store.home(memory) for memory in [*old, new]} == {"food"}


async def test_two_that_are_alike_stay_under_their_root(store: StepStore) -> None:
    """ruling 4: groups of 3 or more."""
    pair = [store.put(a_memory(f"scene {i}"), unit(PRIVATE + 0.1 * axis(i))) for i in (1, 2)]
    assert (await assigned(store))["new_clusters"] == 0
    assert {store.home(memory) for memory in pair} == {"Private"}


async def test_a_topic_lies_under_the_root_of_most_of_its_memories(store: StepStore) -> None:
    """rulings 4 and 17: a topic is not cut in two where the roots are hard to tell."""
    for i, root in enumerate((PRIVATE, PRIVATE, BUSINESS)):
        store.put(a_memory(f"scene {i}", themes=("food",)), unit(axis(0) + 0.3 * root))
    for i, vector in enumerate((axis(1), axis(2), axis(3), BUSINESS)):
        store.put(a_memory(f"stranger {i}"), vector)
    assert (await assigned(store))["new_clusters"] == 1
    assert store.ledger.cluster("food").parent_id == store.private.id


async def test_a_memory_under_a_root_joins_the_cluster_of_its_neighbours(store: StepStore) -> None:
    """ruling 17: ❶ looks again each night at all that lies directly under a root. The mean is far from it."""
    tea = store.cluster("Tea", axis(5))
    members = [store.put(a_memory(f"tea {i}", fresh=False), lean(0.9, i), tea) for i in (1, 2, 3)]
    old = store.put(a_memory("old", fresh=False), lean(0.95, 2), store.private)
    store.put(a_memory("new"), PRIVATE)
    counts = await assigned(store)
    assert (counts["to_clusters"], counts["to_roots"]) == (0, 1), "the old one is none of those that were assigned"
    assert {store.home(memory) for memory in [*members, old]} == {"Tea"}


async def test_the_first_memories_of_a_young_cluster_may_go_elsewhere(store: StepStore) -> None:
    """ruling 17: four were alike enough for one topic; what came since shows that they are two."""
    young = store.cluster("tea, cups", axis(0), decided=False)
    green = [store.put(a_memory(f"tea, cups {i}", fresh=False), lean(0.6, 1), young) for i in range(2)]
    black = [store.put(a_memory(f"cups of tea {i}", fresh=False), lean(0.6, 2), young) for i in range(2)]
    green += [store.put(a_memory(f"green tea {i}"), axis(1)) for i in range(4)]
    black += [store.put(a_memory(f"black cups {i}"), axis(2)) for i in range(3)]
    counts = await assigned(store)
    homes = {store.now(memory).cluster_id for memory in green}, {store.now(memory).cluster_id for memory in black}
    assert [len(home) for home in homes] == [1, 1]
    assert homes[0] != homes[1]
    assert young.id in homes[0] | homes[1], "the cluster goes on as one of the two"
    assert counts["new_clusters"] == 1
    assert "tea, cups" not in store.names(), "it is named anew"


@pytest.mark.parametrize(
    ("decided", "count", "status"),
    [(True, 4, "active"), (False, 25, "active"), (False, 25, "dying"), (False, 25, "dead")],
)
async def test_a_memory_of_a_decided_or_of_a_grown_cluster_stays(
    store: StepStore, decided: bool, count: int, status: MemoryStatus
) -> None:
    """ruling 17: what a mind has divided, or left as it is, and what has settled, though it has faded since."""
    home = store.cluster("tea, cups", axis(0), decided=decided)
    stray = store.put(a_memory("tea, cups", fresh=False), axis(1), home)
    for i in range(count):
        store.put(a_memory(f"tea, cups {i}", fresh=False, status=status), axis(0), home)
    for i in range(4):
        store.put(a_memory(f"mountain {i}"), lean(0.1, 1))
    await assigned(store)
    assert store.now(stray).cluster_id == home.id


async def test_a_cluster_that_holds_too_much_is_divided_into_its_topics(store: StepStore) -> None:
    """ruling 17: a cluster that swallows everything is a failure. The largest topic keeps it."""
    everything = store.cluster("Everything", axis(0))
    counts = (20, 12)
    topics = [
        [
            store.put(a_memory(f"{i} {k}", themes=(f"topic {i}",), fresh=False), lean(0.5, 1 + i), everything)
            for k in range(n)
        ]
        for i, n in enumerate(counts)
    ]
    store.put(a_memory("new"), lean(0.6, 1))
    assert len({store.home(memory) for memory in topics[0] + topics[1]}) == 1
    await assigned(store)
    assert {store.home(memory) for memory in topics[0]} == {"Everything"}
    assert {store.home(memory) for memory in topics[1]} == {"topic 1"}


async def test_a_new_sub_cluster_without_themes_is_named_after_its_words(store: StepStore) -> None:
    """ruling 4: their most telling BM25 terms."""
    for i in (1, 2, 3):
        store.put(a_memory(f"ramen and gyoza {'abc'[i - 1] * 3}"), lean(0.9, i))
    await assigned(store)
    assert "gyoza, ramen" in store.names()


@pytest.mark.parametrize(
    ("decided", "later"), [(False, "personal statement, festival, wedding, bryan"), (True, "wedding, Bryan, festival")]
)
async def test_a_cluster_that_has_grown_is_named_anew_but_not_if_a_mind_has_decided_about_it(
    store: StepStore, decided: bool, later: str
) -> None:
    """ruling 17: three first memories tell little of what becomes of a topic."""
    cluster = store.cluster("wedding, Bryan, festival", axis(0), decided=decided)
    for _ in range(3):
        store.put(a_memory("Bryan had a wedding at the festival", fresh=False), axis(0), cluster)
    for _ in range(6):
        store.put(a_memory("The personal statement, once more"), lean(0.9))
    await assigned(store)
    assert store.ledger.state.clusters[cluster.id].name == later
    assert (await assigned(store))["assigned"] == 0
    assert store.ledger.state.clusters[cluster.id].name == later


async def test_what_fades_goes_where_the_active_memories_of_its_topic_go(store: StepStore) -> None:
    """rulings 17 and 20: no cluster of dying ones alone is left behind."""
    tea, boats = store.cluster("Tea", axis(0)), store.cluster("Boats", axis(5))
    for i in range(20):
        store.put(a_memory(f"tea {i}", fresh=False), lean(0.9, 1 + i % 2), tea)
        store.put(a_memory(f"boat {i}", fresh=False), axis(5 + i % 2), boats)
    young = store.cluster("cups", axis(0), decided=False)
    active = [store.put(a_memory(f"cups {i}", fresh=False), lean(0.9, 1 + i), young) for i in range(2)]
    dying = [store.put(a_memory(f"saucer {i}", fresh=False, status="dying"), axis(7), young) for i in range(2)]
    store.put(a_memory("a mountain"), axis(5))
    await assigned(store)
    assert {store.home(memory) for memory in (*active, *dying)} == {"Tea"}


async def test_quiet_nights_move_nothing_and_the_ids_of_clusters_do_not_matter(store: StepStore) -> None:
    """ruling 17: a topic's memories leave it for a better one only."""
    partitions = set()
    for order in (1, -1):
        store = StepStore()
        names = ["tea", "boats", "taxes", "skis"][::order]
        homes = {name: store.cluster(name, decided=False) for name in names}
        rng = np.random.default_rng(3)
        memories = []
        for i in range(32):
            name = ["tea", "boats", "taxes", "skis"][i % 4]
            noisy = axis(["tea", "boats", "taxes", "skis"].index(name)) + 0.12 * rng.normal(size=axis(0).shape)
            memories.append(store.put(a_memory(f"{name} {i}", fresh=False), unit(noisy), homes[name]))
        store.put(a_memory("a mountain"), axis(6))
        await assigned(store)
        first = [store.now(memory).cluster_id for memory in memories]
        for night in range(3):
            store.put(a_memory(f"a mountain {night}"), axis((4, 5, 7)[night]))
            await assigned(store)
            assert [store.now(memory).cluster_id for memory in memories] == first
        partitions.add(tuple(first.index(id_) for id_ in first))
    assert len(partitions) == 1


async def test_without_a_model_memories_wait_for_their_vectors(store: StepStore) -> None:
    """spec P6 ❶: nothing is guessed; they are recallable by their words meanwhile."""
    waiting = store.put(a_memory("ramen"))
    counts = await assigned(store)
    assert store.home(waiting) == ""
    assert counts["waiting_for_vectors"] == 1
    assert counts["assigned"] == 0


async def test_without_prototypes_no_memory_is_put_anywhere(store: StepStore) -> None:
    """ruling 5: Business or Private needs the model."""
    memory = store.put(a_memory("ramen"), PRIVATE)
    work = await store.begin(prototypes={})
    counts = await assign_memories_to_clusters(work)
    await store.write(work)
    assert store.home(memory) == ""
    assert counts["waiting_for_vectors"] == 1


async def test_a_cluster_of_another_model_is_not_compared(store: StepStore) -> None:
    """ruling 6: never silent garbage."""
    store.ledger.put_cluster("Dinners", store.private, PRIVATE, model="another")
    memory = store.put(a_memory("ramen"), PRIVATE)
    await assigned(store)
    assert store.home(memory) == "Private"


async def test_a_cluster_is_compared_again_when_its_memories_have_vectors_of_this_model(store: StepStore) -> None:
    """ruling 6. Its vector was computed with the model before; no memory ever matched it again, so none was ever
    recomputed either."""
    dinners = store.ledger.put_cluster("Dinners", store.private, axis(3), model="another")
    store.ledger.state.declined[f"split:{dinners.id}"] = 3
    for i in range(3):
        store.put(a_memory(f"old {i}", fresh=False), axis(0), dinners)
    memory = store.put(a_memory("ramen"), lean(0.6))
    await assigned(store)
    assert store.home(memory) == "Dinners"
    assert store.ledger.cluster("Dinners").model == "words"


async def test_another_beings_memories_and_clusters_are_not_seen(store: StepStore) -> None:
    """spec P1"""
    theirs = store.ledger.put_cluster("Theirs", scope=BOB, vector=PRIVATE)
    store.ledger.state.clusters[theirs.id] = replace(theirs, is_root=False)
    foreign = store.put(a_memory("ramen", being_id=BOB.being_id), PRIVATE)
    mine = store.put(a_memory("ramen"), PRIVATE)
    counts = await assigned(store)
    assert (store.home(foreign), store.home(mine), counts["assigned"]) == ("", "Private", 1)


async def test_memories_of_notes_are_assigned_like_others(store: StepStore) -> None:
    """spec P6 ❶ 1 to 5, ruling 1"""
    store.cluster("Dinners", axis(0))
    memory = a_memory("ramen", id=MemoryId("new"))
    store.ledger.cached["words", memory.content_hash] = axis(0)
    note = replace(store.ledger.put_note("{}"), state="done")
    work = await store.begin((memory,), (note,))
    counts = await assign_memories_to_clusters(work)
    await store.write(work)
    stored: Memory = store.now(memory)
    assert (store.home(stored), stored.fresh, stored.status) == ("Dinners", True, "active")
    assert store.ledger.state.notes[note.id].state == "done"
    assert counts["notes_read"] == 1


async def test_an_imported_history_is_grouped_and_others_have_their_turns_meanwhile(
    store: StepStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ruling 4. A first patrol over thousands of memories kept the event loop for itself while it compared them."""
    alike = [store.put(a_memory(f"scene {i}", themes=("food",)), lean(0.9)) for i in range(1_500)]
    strangers = [store.put(a_memory(f"stranger {i}"), vector) for i, vector in enumerate((BUSINESS, PRIVATE))]
    turns = 0
    another_turn = threading.Event()

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            another_turn.set()
            await asyncio.sleep(0)

    def topics_after_three_turns(
        vectors: NDArray[np.float32], clusters: Sequence[int | None], groups_before: Sequence[Hashable | None]
    ) -> TopicAssignments:
        start = turns
        while turns < start + 3:
            another_turn.clear()
            assert another_turn.wait(timeout=5), "the event loop stood still"
        return assign_unclustered_vectors_to_topics(vectors, clusters, groups_before)

    monkeypatch.setattr(
        "madeleine.patrol.steps.assign.topics.assign_unclustered_vectors_to_topics", topics_after_three_turns
    )
    ticking = asyncio.create_task(others())
    counts = await assigned(store)
    ticking.cancel()
    assert counts["new_clusters"] == 1
    assert {store.home(memory) for memory in alike} == {"food"}
    assert [store.home(memory) for memory in strangers] == ["Business", "Private"]
