"""❷ Memories age, ❸ fade, and ❺ come back (spec P6 ❷ ❸ ❺, rulings 2 and 3)."""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.model import ClusterId
from madeleine.memory.patrol_records import MemoryState
from madeleine.memory.rules.dynamics.importance import flagged_status, revived_session_count
from madeleine.patrol.unit_of_work import UnitOfWork


async def age_memories(work: UnitOfWork) -> dict[str, int]:
    """❷ One more cycle has passed for every active memory."""
    return {"aged": await work.transaction.increment_session_counts(work.run)}


async def flag_faded_memories(work: UnitOfWork) -> dict[str, int]:
    """❸ A memory that has faded is dying; a dying one that was recalled is active again."""
    counts = {"dying": 0, "active_again": 0}
    touched: set[ClusterId | None] = set()
    for state in work.current(await work.transaction.with_outdated_status()):
        status = flagged_status(
            state.status, importance=state.importance, session_count=state.session_count, pinned=state.pinned
        )
        work.put(replace(state, status=status))
        counts["dying" if status == "dying" else "active_again"] += 1
        touched.add(state.cluster_id)
    await work.recompute(touched)
    return counts


async def revive_recalled_memories(work: UnitOfWork) -> dict[str, int]:
    """❺ Dead memories that were recalled since they died come back. Survivors first, so that one that comes back in
    this very step keeps those that it absorbed dead."""
    dead = work.current(await work.transaction.recalled_dead())
    depths = {state.id: len(await surviving_memories(work, state)) for state in dead}
    touched: set[ClusterId | None] = set()
    revived = 0
    for state in sorted(dead, key=lambda state: depths[state.id]):
        if any(survivor.status != "dead" for survivor in await surviving_memories(work, state)):
            continue
        session_count = revived_session_count(
            importance=state.importance, session_count=state.session_count, reactivation_count=state.reactivation_count
        )
        if session_count is not None:
            work.put(replace(state, status="active", session_count=session_count, absorbed_into=None))
            revived += 1
            touched.add(state.cluster_id)
    await work.recompute(touched)
    return {"revived": revived}


async def surviving_memories(work: UnitOfWork, state: MemoryState) -> list[MemoryState]:
    """The memory that absorbed it, the one that absorbed that, and so on."""
    chain: list[MemoryState] = []
    while state.absorbed_into and (survivor := await work.states([state.absorbed_into])) and survivor[0] not in chain:
        chain += survivor
        state = survivor[0]
    return chain
