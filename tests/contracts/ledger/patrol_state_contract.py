"""What a patrol reads and changes of a ledger, and what is left when it is cut short."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from madeleine.memory.model import ClusterId, Provenance, RunId
from madeleine.memory.patrol_records import ActivitySinceLastPatrol, MemoryFieldsForPatrol, PatrolChanges
from madeleine.memory.recall.ports import MemoryReactivation
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MODEL,
    MOMENT,
    RUN,
    all_states,
    apply_changes,
    batch,
    cluster,
    ids,
    keyword_query,
    memory,
    note,
    reinforcement_of,
    states,
    stored_memory,
    vector,
)
from tests.waiting import DEADLOCK_S


class PatrolStateContract:
    """A fixture `ledger` gives an empty one."""

    # --- patrol

    async def test_the_patrol_reads_and_changes_a_being_s_state(self, ledger: AnyLedger) -> None:
        moved, counted, born = memory(importance=0.4), memory(), memory("From a note")
        await ledger.memories.commit_store_batch(ADA, batch(moved, counted, vectors={moved.content_hash: vector(1, 0)}))
        waiting = note("{}", type_="scene")
        await ledger.context.add_note(ADA, waiting)
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)]
        )
        root = cluster("r", "Private", "r", is_root=True)
        group = cluster("g", "Tea", "r", vector=vector(0.6, 0.8), model=MODEL)
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            read = {one.id: one for one in await all_states(ledger, transaction)}
            assert list(read) == [moved.id, counted.id]
            assert read[moved.id] == MemoryFieldsForPatrol(
                id=moved.id, content_hash=moved.content_hash, importance=0.4, status="active", fresh=True,
                pinned=False, cluster_id=None, absorbed_into=None, session_count=0, reactivation_count=0,
            )  # fmt: skip
            assert list(await transaction.cached_vectors_by_hash(MODEL, [moved.content_hash])) == [moved.content_hash]
            assert await transaction.memories_with_ids([counted.id]) == [counted]
            await transaction.apply_changes(
                PatrolChanges(
                    new_memories=(born,),
                    notes=(replace(waiting, state="done", reason="why"),),
                    states=(
                        replace(
                            read[moved.id],
                            status="dead",
                            cluster_id=group.id,
                            importance=0.9,
                            fresh=False,
                            absorbed_into=counted.id,
                            session_count=7,
                            reactivation_count=2,
                        ),
                        replace(read[counted.id], session_count=1),
                    ),
                    clusters=(root, group),
                ),
                run=RUN,
                step="assign",
            )
            assert len(await transaction.memory_states([moved.id, counted.id, born.id])) == 3
        await ledger.patrols.begin_run(ADA, RUN, MOMENT)
        await ledger.patrols.finish_run(ADA, RUN, MOMENT + timedelta(seconds=1), {"é": [1]})
        assert await stored_memory(ledger, moved) == replace(
            moved, status="dead", cluster_id=group.id, importance=0.9, fresh=False, absorbed_into=counted.id,
            session_count=7, reactivation_count=2,
        )  # fmt: skip
        assert await stored_memory(ledger, counted) == replace(counted, session_count=1)
        assert await stored_memory(ledger, born) == born
        assert {id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)} == {
            born.id,
            moved.id,
        }
        assert await ledger.patrols.unread_notes(ADA, type="scene") == []
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            first, second = await transaction.clusters()
            assert (first.id, second) == (group.id, root)
            assert await transaction.clusters([root.id, ClusterId("none")]) == [root]
            [count] = await transaction.memory_counts_of_each_cluster()
            assert (count.cluster_id, count.active, count.dead, count.total) == (group.id, 0, 1, 1)
            assert await transaction.memory_counts_of_each_cluster([root.id, ClusterId("none")]) == []
            assert await transaction.memory_counts_of_each_cluster([group.id, root.id]) == [count]
            there = await transaction.states_of_cluster_members(group.id)
            assert [one.id for one in there] == [moved.id]
            assert await transaction.states_of_cluster_members(root.id, group.id) == there
            assert await transaction.states_of_cluster_members(root.id) == []
            assert first.vector is not None
            assert first.vector.tolist() == vector(0.6, 0.8).tolist()
            await transaction.apply_changes(
                PatrolChanges(clusters=(replace(root, name="New"),), removed_clusters=(group.id,)),
                run=RUN,
                step="assign",
            )
        assert [one.name for one in await ledger.recall.clusters_with_memory_counts(ADA)] == ["New"]

    async def test_a_subject_leaves_a_mark_only_if_status_or_cluster_differ(self, ledger: AnyLedger) -> None:
        kept, died, joined, left = memory(), memory(), memory(), memory(cluster_id=ClusterId("c"))
        await ledger.memories.commit_store_batch(ADA, batch(kept, died, joined, left))
        read = await states(ledger)
        await ledger.index_source.clear_pending_index_marks(
            [mark for mark, _ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)]
        )
        changes = PatrolChanges(
            states=(
                replace(read[kept.id], session_count=9, importance=0.1, reactivation_count=3, fresh=False),
                replace(read[died.id], status="dead"),
                replace(read[joined.id], cluster_id=ClusterId("c")),
                replace(read[left.id], cluster_id=None),
            )
        )
        # Once as the patrol does it, with what it has read, and once more without: the second finds nothing to move.
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            await all_states(ledger, transaction)
            await transaction.apply_changes(changes, run=RUN, step="assign")
        await apply_changes(ledger, changes)
        assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)] == [
            died.id,
            joined.id,
            left.id,
        ]

    async def test_a_being_to_whom_nothing_came_since_its_last_patrol_is_left_alone(self, ledger: AnyLedger) -> None:
        """spec P12: what was there before does not count again; what came since does, and so does a recall."""

        def later(minutes: int) -> datetime:
            return MOMENT + timedelta(minutes=minutes)

        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == []
        old = [memory(f"Old {n}", created_at=later(n)) for n in range(3)]
        await ledger.memories.commit_store_batch(ADA, batch(*old))
        await ledger.memories.commit_store_batch(BOB, batch(memory("Another's", scope=BOB, created_at=later(1))))
        bobs = ActivitySinceLastPatrol(being_id=BOB.being_id, stored=1, first=later(1), latest=later(1))
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [
            ActivitySinceLastPatrol(being_id=ADA.being_id, stored=3, first=later(0), latest=later(2)), bobs
        ]  # fmt: skip
        await self.patrolled(ledger, RunId("one"), later(10))
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [bobs]
        ledger.activations.add_reactivations(ADA, [MemoryReactivation(old[1].id, 1, later(20))])
        await ledger.activations.flush()
        recalled = ActivitySinceLastPatrol(being_id=ADA.being_id, stored=0, first=later(20), latest=later(20))
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [recalled, bobs]
        await ledger.memories.commit_store_batch(ADA, batch(memory("New", created_at=later(30))))
        await ledger.context.add_note(ADA, note("{}", type_="scene", at=later(15)))
        everything = ActivitySinceLastPatrol(being_id=ADA.being_id, stored=2, first=later(15), latest=later(30))
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [everything, bobs]
        await self.patrolled(ledger, RunId("two"), later(40))
        await ledger.patrols.undo_run(ADA, RunId("two"), at=later(41))
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [bobs], (
            "what was undone is not done again by itself"
        )

    async def test_what_a_patrol_writes_is_nothing_new_and_what_comes_while_it_runs_is(self, ledger: AnyLedger) -> None:
        """spec P12: else each patrol would bring the next."""
        start, since = MOMENT, MOMENT + timedelta(minutes=1)
        await ledger.patrols.begin_run(ADA, RUN, start)
        await ledger.memories.commit_store_batch(ADA, batch(memory("Meanwhile", created_at=since)))
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            await transaction.age_active_memories(RUN)
            for tool in ("notes", "run_patrol"):
                written = memory(f"By {tool}", created_at=since, provenance=Provenance(tool=tool))
                await transaction.apply_changes(PatrolChanges(new_memories=(written,)), run=RUN, step="assign")
        await ledger.patrols.finish_run(ADA, RUN, since, {"steps": [{"name": "assign"}]})
        assert await ledger.patrols.activity_of_each_being_since_last_patrol() == [
            ActivitySinceLastPatrol(being_id=ADA.being_id, stored=1, first=since, latest=since)
        ]

    async def test_a_run_that_was_rolled_back_or_only_carried_out_decisions_was_no_patrol(
        self, ledger: AnyLedger
    ) -> None:
        """spec P12"""
        await ledger.memories.commit_store_batch(ADA, batch(memory("New", created_at=MOMENT)))
        await ledger.patrols.begin_run(ADA, RunId("killed"), MOMENT + timedelta(minutes=1))
        await ledger.patrols.undo_run(ADA, RunId("killed"), at=MOMENT, state="rolled_back")
        await ledger.patrols.begin_run(ADA, RunId("decided"), MOMENT + timedelta(minutes=2))
        await ledger.patrols.finish_run(ADA, RunId("decided"), MOMENT, {"steps": [], "decided": [{"offer": "x"}]})
        assert [one.stored for one in await ledger.patrols.activity_of_each_being_since_last_patrol()] == [1]

    async def patrolled(self, ledger: AnyLedger, run: RunId, started: datetime) -> None:
        await ledger.patrols.begin_run(ADA, run, started)
        async with ledger.patrols.patrol_transaction(ADA) as transaction:
            await transaction.age_active_memories(run)
        await ledger.patrols.finish_run(ADA, run, started + timedelta(seconds=1), {"steps": [{"name": "age"}]})

    async def test_a_patrol_left_with_an_exception_changes_nothing(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        marks = await ledger.index_source.pending_index_marks_with_memory_ids(limit=10)
        (subject,) = (await states(ledger)).values()

        async def fail_after_applying() -> None:
            async with ledger.patrols.patrol_transaction(ADA) as transaction:
                await transaction.apply_changes(
                    PatrolChanges(
                        new_memories=(memory("Never"),),
                        states=(replace(subject, status="dead"),),
                        clusters=(cluster("c", "C", "c"),),
                    ),
                    run=RUN,
                    step="assign",
                )
                raise RuntimeError("a step failed")

        with pytest.raises(RuntimeError):
            await fail_after_applying()
        assert await stored_memory(ledger, one) == one
        assert await ledger.index_source.count_memories() == 1
        assert await ledger.recall.clusters_with_memory_counts(ADA) == []
        assert await ledger.index_source.pending_index_marks_with_memory_ids(limit=10) == marks

    async def test_reads_go_on_while_a_patrol_holds_the_writer_and_see_what_was_before(self, ledger: AnyLedger) -> None:
        one, later = memory("tea"), memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        async with asyncio.timeout(DEADLOCK_S), ledger.patrols.patrol_transaction(ADA) as transaction:
            (subject,) = await all_states(ledger, transaction)
            await transaction.apply_changes(
                PatrolChanges(states=(replace(subject, status="dead"),)), run=RUN, step="assign"
            )
            store = asyncio.create_task(ledger.memories.commit_store_batch(ADA, batch(later)))
            reads = await asyncio.gather(*(ledger.memories.memories_with_ids(ADA, [one.id]) for _ in range(20)))
            assert reads == [[one]] * 20
            assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))) == [one.id]
            assert not store.done()
        await store
        assert (await stored_memory(ledger, one)).status == "dead"
        assert await stored_memory(ledger, later) == later

    async def test_a_patrol_that_is_cancelled_changes_nothing_and_frees_the_writer(self, ledger: AnyLedger) -> None:
        one = memory()
        await ledger.memories.commit_store_batch(ADA, batch(one))
        applied = asyncio.Event()

        async def patrol() -> None:
            async with ledger.patrols.patrol_transaction(ADA) as transaction:
                (subject,) = await all_states(ledger, transaction)
                await transaction.apply_changes(
                    PatrolChanges(states=(replace(subject, status="dead"),)), run=RUN, step="assign"
                )
                applied.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(patrol())
        await applied.wait()
        waiting = asyncio.create_task(ledger.memories.commit_store_batch(ADA, batch(memory("cancelled in the queue"))))
        await asyncio.sleep(0)
        waiting.cancel()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await stored_memory(ledger, one) == one
        await ledger.memories.commit_store_batch(ADA, batch(memory()))
        assert await ledger.index_source.count_memories() == 2

    @pytest.mark.parametrize("turns", range(0, 30, 3))
    async def test_a_store_that_is_cancelled_is_whole_or_absent(self, ledger: AnyLedger, turns: int) -> None:
        base = memory()
        await ledger.memories.commit_store_batch(ADA, batch(base))
        new = [memory(f"New {turns} {n}", key=f"k{n}") for n in range(20)]
        vectors = {one.content_hash: vector(1, 0) for one in new}
        store = asyncio.create_task(
            ledger.memories.commit_store_batch(ADA, batch(*new, again=[reinforcement_of(base)], vectors=vectors))
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        store.cancel()
        await asyncio.wait({store})
        memories = await ledger.memories.memories_with_ids(ADA, [one.id for one in new])
        assert memories in ([], new)
        share = 1 if memories else 0
        assert len(await ledger.index_source.pending_index_marks_with_memory_ids(limit=100)) == 1 + 20 * share
        assert len(await ledger.memories.cached_vectors_by_hash(MODEL, list(vectors))) == 20 * share
        assert (await stored_memory(ledger, base)).access_count == share
        await ledger.memories.commit_store_batch(ADA, batch(memory()))
        assert await ledger.index_source.count_memories() == 2 + 20 * share
