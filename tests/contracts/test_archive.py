"""The archive of the ledger: what goes comes back as it was, is found there, and is forgotten there too (spec O8)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import KeyConflict
from madeleine.memory.graph.values import RelationTriple
from madeleine.memory.lessons.values import Lesson
from madeleine.memory.model import MEMORY_CATEGORIES, DatedAction, EmotionVector, Memory, MemoryChanges, RunId, Scene
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.retention.ports import ArchiveQuery
from madeleine.memory.retention.values import groups_to_archive
from madeleine.memory.rules.dynamics.truth import Supersession
from madeleine.storage.sql.archive.packing import MEMORY_PART_RECORD_TYPES
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.storage.sql.moving.import_work import EXPORTED_TABLE_BY_RECORD_TYPE
from madeleine.storage.sql.tables.lifecycle import ArchiveWithMemoryRule, tables_and_their_lifecycle_rules
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MODEL,
    MOMENT,
    RUN,
    apply_changes,
    batch,
    cluster,
    memory,
    reinforcement_of,
    stored_memory,
    vector,
)
from tests.household import location_of
from tests.moving_values import exported, file_of, imported, parsed
from tests.unit.memory.rules.archiving.test_density import DENSE, SPARSE

LATER = MOMENT + timedelta(days=400)


@pytest.fixture
def ledger(sql_ledger: LedgerRepositories) -> LedgerRepositories:
    return sql_ledger


async def archive(ledger: LedgerRepositories, *memories: Memory, run: RunId = RUN) -> None:
    async with ledger.archive.retention_transaction(ADA) as transaction:
        known = await transaction.memories_with_ids([one.id for one in memories])
        groups = groups_to_archive(known, dict.fromkeys((one.id for one in known), "expired"))
        archived = await transaction.archive(groups, run=run, at=LATER)
    assert sorted(archived) == sorted(one.id for one in memories)


async def exported_of(ledger: LedgerRepositories) -> list[bytes]:
    return await asyncio.to_thread(exported, location_of(ledger), journal=False)


async def lines_of(ledger: LedgerRepositories) -> list[bytes]:
    """All but the header, the end, and the runs."""
    return [line for line in (await exported_of(ledger))[1:-1] if b'"type":"patrol' not in line]


async def lived(ledger: LedgerRepositories) -> tuple[Memory, Memory]:
    """A memory with every part that one can have, and another."""
    rich = memory(
        DENSE[4], scene=Scene(action=DENSE[4], actors=("Zoë",), when=(DatedAction("2025-02-01", "x"), "2025-02-03"),
        setting="office", dialogue=("At last",), sensory=("cardboard",)), feeling="glad", lesson="Order earlier",
        themes=("orders",), emotions=("joy",), emotion=EmotionVector(0.5, 0.1, 0, 0, 0, 0.2), key="k", importance=0.7,
        category="procedural", session_count=3, fresh=False, project="shop",
    )  # fmt: skip
    other = memory(SPARSE[0], key="other")
    lesson = Lesson(
        discovery="Orders are late", condition="c", action="a", rationale="r", steps=("one", "two"), confidence=0.8
    )
    stored = replace(batch(rich, other, vectors={rich.content_hash: vector(1, 0)}), lessons={rich.id: lesson})
    await ledger.memories.commit_store_batch(ADA, stored)
    await ledger.memories.commit_store_batch(ADA, batch(again=[reinforcement_of(rich, "Again", key="told again")]))
    changes = MemoryChanges(importance=0.9, themes=("orders", "late"))
    await ledger.memories.change_memory(ADA, rich.id, changes, at=MOMENT, model=MODEL, vectors={})
    await ledger.graph.add_stated_relations(
        ADA, [RelationTriple(rich.id, "Zoë", "runs", "the shop", stated=True)], at=MOMENT
    )
    return rich, other


async def test_an_archived_memory_comes_back_with_every_part_byte_for_byte(ledger: LedgerRepositories) -> None:
    rich, other = await lived(ledger)
    await apply_changes(ledger, PatrolChanges(clusters=(cluster("c", "Orders", "c", is_root=True),)))
    [state] = await ledger.patrols.memory_reader_for_patrol(ADA).memory_states([rich.id])
    await apply_changes(ledger, PatrolChanges(states=(replace(state, cluster_id="c"),)))  # type: ignore[arg-type]
    before = await lines_of(ledger)
    assert sum(b'"memory_id":"%s"' % rich.id.encode() in line for line in before) == 5
    await archive(ledger, rich)
    assert await ledger.memories.memories_with_ids(ADA, [rich.id, other.id]) == [await stored_memory(ledger, other)]
    assert await ledger.memories.cached_vectors_by_hash(MODEL, [rich.content_hash]) == {}
    assert rich.id in [id_ for _, id_ in await ledger.erasure.pending_scrub_marks_with_memory_ids()], (
        "so that the index loses it"
    )
    async with ledger.patrols.patrol_transaction(ADA) as transaction:
        await transaction.age_active_memories(RUN)  # time does not pass in the archive
    [back] = await ledger.archive.restore(ADA, [rich.id], at=LATER)
    assert back.session_count == 3
    assert [line for line in await lines_of(ledger) if rich.id.encode() in line] == [
        line for line in before if rich.id.encode() in line
    ]
    assert rich.id in [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=99)]
    assert rich.id not in [id_ for _, id_ in await ledger.erasure.pending_scrub_marks_with_memory_ids()]
    assert await ledger.archive.restore(ADA, [rich.id, "nothing"], at=LATER) == []
    assert await ledger.archive.groups(ADA, limit=9) == []


async def test_the_archive_is_found_by_words_and_number_by_its_being_and_in_its_project_alone(
    ledger: LedgerRepositories,
) -> None:
    rich, other = await lived(ledger)
    await archive(ledger, rich, other)
    shop = replace(ADA, project="shop")
    for terms, scope, found in (
        (("invoice",), shop, [rich]), (("invoice",), ADA, []), (("invoice",), BOB, []),
        (("grandmother's",), ADA, [other]), ((), shop, [rich, other]), (("invoice", "harbour"), shop, [rich, other]),
    ):  # fmt: skip
        entries = await ledger.archive.search_archived(scope, ArchiveQuery(terms=terms))
        assert {entry.memory.id for entry in entries} == {one.id for one in found}, (terms, scope)
    assert await ledger.archive.search_archived(shop, ArchiveQuery(terms=("invoice", "harbour"), mode="and")) == []
    assert await ledger.short_ids.memory_id_by_number(ADA, [1, 2]) == {1: rich.id, 2: other.id}
    index = await ledger.archive.archival_index(ADA)
    assert [(one.memory_id, one.short_id, one.mode) for one in index] == [
        (rich.id, "m1", "extractive"), (other.id, "m2", "abstractive"),
    ]  # fmt: skip
    assert [one.memory_id for one in await ledger.archive.archival_index(ADA, [other.id])] == [other.id]
    [entry, *_] = await ledger.archive.archived_memories_with_ids(ADA, [index[0].archival_id])
    assert entry.memory.id == rich.id
    group = await ledger.archive.groups(ADA, limit=9)
    assert await ledger.archive.store_group_summary(ADA, group[0].id, "A summary")
    assert not await ledger.archive.store_group_summary(BOB, group[0].id, "Not theirs")
    assert [(one.digest, one.is_summary) for one in await ledger.archive.groups(ADA, limit=1)] == [("A summary", True)]


async def test_what_hangs_together_comes_back_together(ledger: LedgerRepositories) -> None:
    old, new, summary = memory("The fee is 5"), memory("The fee is 6"), memory("Fees", compression_source=True)
    part = memory("Paid", compressed=True, compressed_into=summary.id)
    await ledger.memories.commit_store_batch(ADA, batch(old, new, summary, part))
    act = Supersession(old=old.id, new=new.id, since=MOMENT, at=MOMENT, tool="store")
    await ledger.memories.commit_store_batch(ADA, replace(batch(), supersessions=(act,)))
    before = await lines_of(ledger)
    await archive(ledger, old, new, summary, part)
    for asked, back in ((new, {old, new}), (part, {part, summary})):
        restored = await ledger.archive.restore(ADA, [asked.id], at=LATER)
        assert {one.id for one in restored} == {one.id for one in back}
    assert sorted(await lines_of(ledger)) == sorted(before)
    assert await ledger.memories.undo_last_truth_change(ADA, new.id, at=LATER) is not None, "its acts came back too"


async def test_a_key_that_was_used_again_meanwhile_stays_with_the_later_memory(ledger: LedgerRepositories) -> None:
    first = memory("first", key="k")
    await ledger.memories.commit_store_batch(ADA, batch(first))
    await archive(ledger, first)
    second = memory("second", key="k")
    await ledger.memories.commit_store_batch(ADA, batch(second))
    [back] = await ledger.archive.restore(ADA, [first.id], at=LATER)
    assert (back.key, (await stored_memory(ledger, second)).key) == (None, "k")
    with pytest.raises(KeyConflict):
        await ledger.memories.commit_store_batch(ADA, batch(memory("third", key="k")))


async def test_forgetting_erases_in_the_archive_and_what_tells_of_it_there(ledger: LedgerRepositories) -> None:
    """rulings 11 and 25."""
    summary = memory("Zanzibar in short", compression_source=True)
    part = memory("We went to Zanzibar", compressed=True, compressed_into=summary.id)
    others = [memory("We stayed at home"), memory("We read 3 books")]
    await ledger.memories.commit_store_batch(ADA, batch(summary, part, *others))
    await archive(ledger, part, *others)
    [group] = await ledger.archive.groups(ADA, limit=9)
    assert await ledger.archive.store_group_summary(ADA, group.id, "Zanzibar, then home")
    erased = await ledger.erasure.forget(ADA, [summary.id], at=LATER)
    assert erased.erased_ids == (summary.id,)
    [entry] = await ledger.archive.archived_memories_with_ids(ADA, [part.id])
    assert (entry.memory.compressed, entry.memory.compressed_into) == (False, None), "its summary is gone"
    assert (await ledger.erasure.forget(ADA, [part.id], at=LATER)).erased_ids == (part.id,)
    assert b"Zanzibar" not in b"".join(await lines_of(ledger))
    if isinstance(location := location_of(ledger), Path):
        assert await _scrubbed(ledger, location, b"Zanzibar")
    [group] = await ledger.archive.groups(ADA, limit=9)
    assert (group.memories, group.is_summary) == (2, False)
    assert {one.id for one in await ledger.archive.restore(ADA, [one.id for one in others], at=LATER)} == {
        one.id for one in others
    }


async def _scrubbed(ledger: LedgerRepositories, location: Path, secret: bytes) -> bool:
    await ledger.erasure.scrub_deleted_bytes()
    return all(secret not in file.read_bytes() for file in location.parent.glob("memory.db*"))


async def test_undoing_a_run_brings_back_what_it_has_archived_and_what_it_changed_and_went_later(
    ledger: LedgerRepositories,
) -> None:
    """ruling 11."""
    one, two = memory("one"), memory("two")
    await ledger.memories.commit_store_batch(ADA, batch(one, two))
    first, second = RunId("first"), RunId("second")
    await ledger.patrols.begin_run(ADA, first, MOMENT)
    [state, _] = await ledger.patrols.memory_reader_for_patrol(ADA).memory_states([one.id, two.id])
    async with ledger.patrols.patrol_transaction(ADA) as transaction:
        dying = PatrolChanges(states=(replace(state, status="dying"),))
        await transaction.apply_changes(dying, run=first, step="flag")
    await ledger.patrols.finish_run(ADA, first, MOMENT, {})
    await ledger.patrols.begin_run(ADA, second, LATER)
    await archive(ledger, one, two, run=second)
    await ledger.patrols.finish_run(ADA, second, LATER, {})
    undone = await ledger.patrols.undo_run(ADA, second, at=LATER)
    assert undone.counts["unarchived"] == 2
    assert (await stored_memory(ledger, one)).status == "dying"
    await archive(ledger, one, run=RunId("third"))
    await ledger.patrols.undo_run(ADA, first, at=LATER)
    assert (await stored_memory(ledger, one)).status == "active"


async def test_an_export_carries_the_archive_and_its_import_can_be_undone(
    ledger: LedgerRepositories, tmp_path: Path, templates: Path
) -> None:
    from tests.household import new_store

    rich, other = await lived(ledger)
    await archive(ledger, rich, other)
    before = await lines_of(ledger)
    file = await exported_of(ledger)
    async with open_ledger(new_store(templates, tmp_path / "other.db")) as elsewhere:
        report = await imported(elsewhere, file)
        assert (report.added["archived_memory"], report.added["archive_group"]) == (2, 2)
        assert await lines_of(elsewhere) == before
        assert (await imported(elsewhere, file)).known["archived_memory"] == 2
        assert len(await elsewhere.archive.restore(ADA, [rich.id], at=LATER)) == 1
        await elsewhere.imports.undo_import(report.id, client="tests", at=LATER)
        assert [entry.memory.id for entry in await elsewhere.archive.search_archived(ADA, ArchiveQuery())] == []
    async with open_ledger(new_store(templates, tmp_path / "third.db")) as third:
        await third.memories.commit_store_batch(ADA, batch(memory("here before")))
        await third.memories.commit_store_batch(ADA, batch(gone := memory("gone")))
        await third.erasure.forget(ADA, [gone.id], at=LATER)
        forgotten = [
            record.model_copy(update={"memory_id": gone.id}) if getattr(record, "memory_id", "") == other.id else record
            for record in parsed(file)
        ]
        report = await imported(third, file_of(forgotten))
        assert (report.renumbered, report.left_out_counts) == (1, {"forgotten": 1})
        [back] = await third.archive.restore(ADA, [rich.id], at=LATER)
        assert (back.number, back.scene.action) == (3, DENSE[4])


MIXED = [*SPARSE, *DENSE]


def many(chance: random.Random, count: int) -> Sequence[Memory]:
    made: list[Memory] = []
    for number in range(count):
        other: dict[str, Any] = {"category": MEMORY_CATEGORIES[number % 5], "importance": chance.random()}
        if number % 7 == 0 and made:
            other |= {"status": "dead", "absorbed_into": made[-1].id}
        if number % 11 == 0:
            other |= {"status": "dying", "session_count": chance.randrange(90), "fresh": False}
        text = (
            f"{chance.choice(MIXED)} {number}\n{chance.choice(MIXED)}"
            if number % 3
            else f"{number} {MIXED[number % 24]}"
        )
        made.append(memory(text, key=f"k{number}", themes=(f"t{number % 9}",), **other))
    return made


@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=pytest.mark.slow)])
async def test_a_large_archive_of_mixed_density_gives_back_identical_bytes(
    ledger: LedgerRepositories, count: int
) -> None:
    memories = many(random.Random(7), count)
    for start in range(0, count, 500):
        await ledger.memories.commit_store_batch(ADA, batch(*memories[start : start + 500]))
    before = await exported_of(ledger)
    for start in range(0, count, 500):
        await archive(ledger, *memories[start : start + 500])
    assert await ledger.index_source.count_memories() == 0
    assert {group.mode for group in await ledger.archive.groups(ADA, limit=1_000)} == {"abstractive", "extractive"}
    ids = [one.id for one in memories]
    random.Random(8).shuffle(ids)
    for start in range(0, count, 333):
        await ledger.archive.restore(ADA, ids[start : start + 333], at=LATER)
    assert await exported_of(ledger) == before


def test_what_is_declared_to_go_with_a_memory_is_in_its_lines_or_is_derived() -> None:
    derived = {"drawn_memories", "mentions", "drawn_relations", "index_pending"}
    declared = {table.name for table, _ in tables_and_their_lifecycle_rules(metadata, ArchiveWithMemoryRule)}
    assert {
        EXPORTED_TABLE_BY_RECORD_TYPE[type_].table.name for type_ in ("memory", *MEMORY_PART_RECORD_TYPES)
    } == declared - derived
