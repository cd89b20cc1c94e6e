"""spec P6 ❷, ❸, ❺; rulings 2 and 3."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from madeleine.memory.model import Memory, MemoryId, MemoryStatus
from madeleine.patrol.steps.mechanical import (
    increment_active_memory_ages,
    revive_recalled_memories,
    set_active_or_dying_status,
)
from tests.doubles import NOW, a_memory
from tests.unit.patrol.step_fixtures import StepStore


@pytest.fixture
def store() -> StepStore:
    return StepStore()


# --- ❷ ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "after"), [("active", 4), ("dying", 3), ("dead", 3)])
async def test_one_cycle_is_added_for_every_active_memory_and_no_other(
    store: StepStore, status: MemoryStatus, after: int
) -> None:
    """spec P6 ❷: "adds 1 to `session_count` for every active node"."""
    memory = store.put(a_memory("ramen", status=status, session_count=3))
    work = await store.begin()
    counts = await increment_active_memory_ages(work)
    await store.write(work)
    assert store.now(memory).session_count == after
    assert counts == {"aged": after - 3}


async def test_a_pinned_memory_ages_too(store: StepStore) -> None:
    """spec P6 ❷: pinning keeps it from dying (❸), not from aging."""
    memory = store.put(a_memory("ramen", pinned=True))
    work = await store.begin()
    await increment_active_memory_ages(work)
    await store.write(work)
    assert store.now(memory).session_count == 1


async def test_seventy_patrols_without_a_recall_make_a_memory_dying(store: StepStore) -> None:
    """spec P6 ❷ ❸: importance 0.5 falls to 0.05 between cycle 69 and 70."""
    memory = store.put(a_memory("ramen"))
    statuses: list[MemoryStatus] = []
    for _ in range(70):
        work = await store.begin()
        await increment_active_memory_ages(work)
        await set_active_or_dying_status(work)
        await store.write(work)
        statuses.append(store.now(memory).status)
    assert statuses == ["active"] * 69 + ["dying"]


# --- ❸ ----------------------------------------------------------------------------------------------------------


async def flagged(store: StepStore, memory: Memory) -> tuple[MemoryStatus, dict[str, int]]:
    store.put(memory)
    work = await store.begin()
    counts = await set_active_or_dying_status(work)
    await store.write(work)
    return store.now(memory).status, dict(counts)


async def test_a_memory_that_has_faded_is_dying(store: StepStore) -> None:
    """spec P6 ❸: effective importance at or below 0.05."""
    assert await flagged(store, a_memory("ramen", session_count=70)) == (
        "dying",
        {"dying": 1, "active_again": 0, "still_kept": 0},
    )


async def test_a_memory_that_has_not_faded_stays_active(store: StepStore) -> None:
    """spec P6 ❸"""
    assert await flagged(store, a_memory("ramen", session_count=69)) == (
        "active",
        {"dying": 0, "active_again": 0, "still_kept": 0},
    )


async def test_a_pinned_memory_never_fades(store: StepStore) -> None:
    """spec P6 ❸: "Nodes with `pinned=true` are excluded"."""
    assert (await flagged(store, a_memory("ramen", session_count=9_999, pinned=True)))[0] == "active"


async def test_a_dying_memory_that_was_recalled_is_active_again(store: StepStore) -> None:
    """ruling 2: its recall set the clock to 0."""
    recalled = a_memory("ramen", status="dying", session_count=0)
    assert await flagged(store, recalled) == ("active", {"dying": 0, "active_again": 1, "still_kept": 0})


async def test_a_dying_memory_that_nobody_recalled_stays_dying(store: StepStore) -> None:
    """ruling 2"""
    assert (await flagged(store, a_memory("ramen", status="dying", session_count=80)))[0] == "dying"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"kept_until": NOW + timedelta(days=1)}, "active"),
        # the decision has run out
        ({"kept_until": NOW}, "dying"),
        # it would be dying with its clock at 0, too
        ({"kept_until": NOW + timedelta(days=1), "importance": 0.05}, "dying"),
        # an event, until its day has come
        ({"when": (f"{NOW + timedelta(days=9):%Y-%m-%d}",)}, "active"),
        ({"action": f"The roof is inspected on {NOW + timedelta(days=9):%-d %B %Y}"}, "active"),
        ({"when": (f"{NOW + timedelta(days=9):%Y-%m-%d}",), "importance": 0.05}, "dying"),
        ({"when": (f"{NOW:%Y-%m-%d}",)}, "dying"),
    ],
)
async def test_the_clock_of_what_was_kept_or_is_still_to_come_starts_again(
    store: StepStore, fields: dict[str, Any], status: MemoryStatus
) -> None:
    """ruling 20: what a mind has decided is not asked again until something has changed. ADR 100: an appointment four
    months ahead was dead before its day."""
    memory = store.put(a_memory(**{"action": "ramen", "session_count": 70, **fields}))
    work = await store.begin()
    counts = await set_active_or_dying_status(work)
    await store.write(work)
    now = store.now(memory)
    assert (now.status, now.session_count) == (status, 0 if status == "active" else 70)
    assert (counts["still_kept"], counts["dying"]) == ((1, 0) if status == "active" else (0, 1))


async def test_flagging_wakes_no_dead_memory(store: StepStore) -> None:
    """spec P6 ❺ alone does."""
    assert (await flagged(store, a_memory("ramen", status="dead", importance=1.0)))[0] == "dead"


# --- ❺ ----------------------------------------------------------------------------------------------------------


async def revived(store: StepStore, *memories: Memory) -> list[MemoryStatus]:
    for memory in memories:
        store.put(memory)
    work = await store.begin()
    await revive_recalled_memories(work)
    await store.write(work)
    return [store.now(memory).status for memory in memories]


async def test_a_dead_memory_that_was_recalled_comes_back_with_a_younger_clock(store: StepStore) -> None:
    """ruling 3: session_count // (1 + reactivation_count): 70 // 3 = 23."""
    memory = a_memory("ramen", status="dead", session_count=70, reactivation_count=2)
    assert await revived(store, memory) == ["active"]
    assert store.now(memory).session_count == 23


async def test_a_dead_memory_that_nobody_recalled_stays_dead(store: StepStore) -> None:
    """ruling 3: or ❺ would undo in the same patrol what ❹ has just merged away."""
    memory = a_memory("ramen", status="dead", session_count=0, importance=1.0)
    assert await revived(store, memory) == ["dead"]
    assert store.now(memory) == memory


async def test_a_memory_that_faded_too_far_stays_dead(store: StepStore) -> None:
    """ruling 3: 0.5 × exp(−(140 / 2) / 30) = 0.0485."""
    memory = a_memory("ramen", status="dead", session_count=140, reactivation_count=1)
    assert await revived(store, memory) == ["dead"]


async def test_a_memory_in_no_cluster_comes_back_too(store: StepStore) -> None:
    """spec P6 ❺: "checks all `dead` nodes"."""
    memory = a_memory("ramen", status="dead", reactivation_count=1)
    assert await revived(store, memory) == ["active"]


async def test_an_absorbed_memory_stays_dead_while_its_survivor_lives(store: StepStore) -> None:
    """ruling 3"""
    survivor = a_memory("ramen and gyoza")
    absorbed = a_memory("ramen", status="dead", reactivation_count=5, absorbed_into=survivor.id)
    assert await revived(store, survivor, absorbed) == ["active", "dead"]


async def test_a_dying_survivor_still_lives(store: StepStore) -> None:
    """ruling 3"""
    survivor = a_memory("ramen and gyoza", status="dying")
    absorbed = a_memory("ramen", status="dead", reactivation_count=5, absorbed_into=survivor.id)
    assert await revived(store, survivor, absorbed) == ["dying", "dead"]


async def test_an_absorbed_memory_may_come_back_when_its_survivor_is_dead_or_gone(store: StepStore) -> None:
    """ruling 3; a survivor may have been forgotten (ruling 11)."""
    survivor = a_memory("ramen and gyoza", status="dead")
    absorbed = a_memory("ramen", status="dead", reactivation_count=5, absorbed_into=survivor.id)
    orphan = a_memory("gyoza", status="dead", reactivation_count=5, absorbed_into=MemoryId("forgotten"))
    assert await revived(store, survivor, absorbed, orphan) == ["dead", "active", "active"]


@pytest.mark.parametrize("status", ["active", "dying"])
async def test_revival_leaves_the_living_alone(store: StepStore, status: MemoryStatus) -> None:
    """spec P6 ❺"""
    memory = a_memory("ramen", status=status, session_count=70, reactivation_count=3)
    assert await revived(store, memory) == [status]
    assert store.now(memory) == memory


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_survivor_that_comes_back_keeps_those_it_absorbed_at_rest(store: StepStore, reverse: bool) -> None:
    """spec P6 ❺, ruling 3: whatever the order of the rows."""
    survivor = a_memory("survivor", status="dead", reactivation_count=1)
    absorbed = a_memory("absorbed", status="dead", reactivation_count=1, absorbed_into=survivor.id)
    memories = [absorbed, survivor] if reverse else [survivor, absorbed]
    statuses = dict(zip([m.id for m in memories], await revived(store, *memories), strict=True))
    assert (statuses[survivor.id], statuses[absorbed.id]) == ("active", "dead")


async def test_a_living_survivor_of_the_survivor_counts_too(store: StepStore) -> None:
    """ruling 3."""
    last = a_memory("last")
    middle = a_memory("middle", status="dead", absorbed_into=last.id)
    first = a_memory("first", status="dead", reactivation_count=3, absorbed_into=middle.id)
    assert await revived(store, first, middle, last) == ["dead", "dead", "active"]
