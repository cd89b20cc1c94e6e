"""`ImportLedger` and `LedgerCopyRegister`: nothing lost, doubled or overwritten, and what was forgotten stays
forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.memory.errors import CannotUndo, InvalidInput
from madeleine.memory.model import BeingId, MemoryId, Scope
from madeleine.memory.moving import records as r
from madeleine.memory.moving.ports import LedgerCopyFileRecord
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.values import reassign_export_record_to_being
from madeleine.storage.sql.database.tables import metadata
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.storage.sql.moving.exported_tables import EXPORTED_TABLES, TABLES_LEFT_OUT_OF_EXPORT
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, memory, stored_memory
from tests.household import location_of
from tests.moving_values import NOW, exported, file_of, imported, parsed
from tests.rows import for_each_row


@pytest.fixture
def ledger(sql_ledger: LedgerRepositories) -> LedgerRepositories:
    return sql_ledger


@pytest.fixture
async def source(tmp_path: Path, templates: Path) -> AsyncIterator[Source]:
    from tests.household import new_store

    path = new_store(templates, tmp_path / "source.db")
    async with open_ledger(path) as opened:
        yield Source(opened, path)


class Source:
    """Another store, to export from."""

    def __init__(self, ledger: LedgerRepositories, path: Path) -> None:
        self.ledger = ledger
        self.path = path

    def file(self) -> list[bytes]:
        return exported(self.path, journal=False)

    async def store(self, *memories: Any) -> None:
        await self.ledger.memories.commit_store_batch(ADA, batch(*memories))


def changed(lines: list[bytes], id_: str, **values: Any) -> list[bytes]:
    """The file with other values in the memory."""
    return file_of(
        [
            record.model_copy(update=values)
            if isinstance(record, r.MemoryExportRecord) and record.id == id_
            else record
            for record in parsed(lines)
        ]
    )


def test_every_table_is_exported_or_says_why_not() -> None:
    tables = {exported.table.name for exported in EXPORTED_TABLES}
    assert tables.isdisjoint(TABLES_LEFT_OUT_OF_EXPORT)
    assert tables | set(TABLES_LEFT_OUT_OF_EXPORT) == set(metadata.tables)


@for_each_row("exported_table", EXPORTED_TABLES)
def test_every_column_is_exported_or_computed(exported_table: Any) -> None:
    named = {exported_table.column_name(name) for name in exported_table.columns_by_field}
    columns = set(exported_table.table.c.keys())
    assert columns <= named | exported_table.derived, columns - named


async def test_an_import_marks_what_it_adds_for_the_index(ledger: LedgerRepositories, source: Source) -> None:
    tea, cake = memory("tea"), memory("cake")
    await source.store(tea, cake)
    report = await imported(ledger, source.file())
    assert dict(report.added) == {"memory": 2}
    assert [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)] == [
        tea.id,
        cake.id,
    ]
    assert (await stored_memory(ledger, tea)).created_at == MOMENT


async def test_a_second_import_adds_nothing(ledger: LedgerRepositories, source: Source) -> None:
    await source.store(memory("tea"))
    await imported(ledger, source.file())
    again = await imported(ledger, source.file())
    assert (dict(again.added), again.known["memory"], again.id) == ({}, 1, "")
    assert len(await ledger.imports.past_imports()) == 1


async def test_a_dry_run_changes_nothing_and_says_what_would_come(
    ledger: LedgerRepositories, source: Source, new_db: Path
) -> None:
    await source.store(memory("tea"))
    before = exported(new_db)
    report = await imported(ledger, source.file(), dry_run=True)
    assert dict(report.added) == {"memory": 1}
    assert exported(new_db) == before


async def test_a_torn_file_changes_nothing(ledger: LedgerRepositories, source: Source, new_db: Path) -> None:
    await source.store(memory("tea"))
    before = exported(new_db)
    with pytest.raises(InvalidInput, match="torn"):
        await imported(ledger, source.file()[:-1])
    assert exported(new_db) == before


async def test_another_text_under_the_same_id_is_named_and_changes_nothing(
    ledger: LedgerRepositories, source: Source
) -> None:
    tea = memory("tea")
    await source.store(tea)
    await imported(ledger, source.file())
    report = await imported(ledger, changed(source.file(), tea.id, action="gin"))
    assert [(one.reason, one.id) for one in report.left_out] == [("different", tea.id)]
    assert (await stored_memory(ledger, tea)).scene.action == "tea"


async def test_another_life_under_the_same_id_is_no_difference(ledger: LedgerRepositories, source: Source) -> None:
    tea = memory("tea")
    await source.store(tea)
    await imported(ledger, source.file())
    report = await imported(ledger, changed(source.file(), tea.id, importance=0.9, access_count=7))
    assert (report.left_out, report.known["memory"]) == ([], 1)
    assert (await stored_memory(ledger, tea)).importance == 0.5


async def test_what_was_forgotten_here_does_not_come_back(
    ledger: LedgerRepositories, source: Source, new_db: Path
) -> None:
    """Ruling 25: neither it nor what tells of it."""
    tea, cake = memory("tea with Fridolin"), memory("cake")
    await source.store(tea, cake)
    lines = source.file()
    merged = changed(
        lines, cake.id, when=("2026-03-01", r.DatedActionExportRecord(date="2026-03-02", action=tea.scene.action))
    )
    merged = changed(merged, tea.id, absorbed_into=cake.id, status="dead")
    diary = r.DiaryExportRecord(being="ada", date="2026-03-01", text="Fridolin!", sources=(tea.id,), written_at=NOW)
    await imported(ledger, lines)
    await ledger.erasure.forget(ADA, [tea.id, cake.id], at=NOW)
    for _ in range(2):
        report = await imported(ledger, file_of([*parsed(merged), diary]))
        assert {one.id for one in report.left_out} == {tea.id, cake.id, "2026-03-01"}
        assert b"Fridolin" not in b"".join(exported(new_db))
        assert dict(report.added) == {}


async def test_a_survivor_comes_without_the_words_of_what_was_forgotten(
    ledger: LedgerRepositories, source: Source
) -> None:
    tea, cake = memory("tea with Fridolin"), memory("cake")
    await source.store(tea)
    await imported(ledger, source.file())
    await ledger.erasure.forget(ADA, [tea.id], at=NOW)
    await source.store(cake)
    told = ("2026-03-01", r.DatedActionExportRecord(date="2026-03-02", action=tea.scene.action))
    lines = changed(changed(source.file(), cake.id, when=told), tea.id, absorbed_into=cake.id, status="dead")
    report = await imported(ledger, lines)
    assert (dict(report.added), report.left_out_counts["forgotten"]) == ({"memory": 1}, 1)
    assert "Fridolin" not in repr(await stored_memory(ledger, cake))


async def test_no_being_gets_the_memory_of_another(ledger: LedgerRepositories, source: Source) -> None:
    tea = memory("tea")
    await source.store(tea)
    await imported(ledger, source.file())
    as_bob = [record.model_copy(update={"being": "bob"}) for record in parsed(source.file())]
    report = await imported(ledger, file_of(as_bob))
    assert [one.reason for one in report.left_out] == ["taken"]
    assert (await stored_memory(ledger, tea)).being_id == "ada"


async def test_for_another_being_it_has_ids_of_its_own_and_comes_once(
    ledger: LedgerRepositories, source: Source
) -> None:
    tea, cake = memory("tea"), memory("cake")
    await source.store(tea, cake)
    lines = changed(source.file(), tea.id, superseded_by=cake.id, truth="superseded")
    await imported(ledger, lines)
    for added in ({"memory": 2}, {}):
        theirs = [reassign_export_record_to_being(record, "bob") for record in parsed(lines)]  # type: ignore[arg-type]
        report = await imported(ledger, file_of(theirs))
        assert dict(report.added) == added
    lines = await asyncio.to_thread(exported, location_of(ledger), "bob")
    memories = [record for record in parsed(lines) if isinstance(record, r.MemoryExportRecord)]
    assert [record.action for record in memories] == ["tea", "cake"]
    assert memories[0].superseded_by == memories[1].id != cake.id


async def test_a_living_store_gives_taken_numbers_anew(ledger: LedgerRepositories, source: Source) -> None:
    mine, theirs = memory("mine"), memory("theirs")
    await ledger.memories.commit_store_batch(ADA, batch(mine))
    await source.store(theirs)
    report = await imported(ledger, source.file())
    assert report.renumbered == 1
    assert [(await stored_memory(ledger, one)).number for one in (mine, theirs)] == [1, 2]


async def test_the_same_telling_under_the_same_key_is_not_doubled(ledger: LedgerRepositories, source: Source) -> None:
    mine, theirs, other = memory("tea", key="k"), memory("tea", key="k"), memory("cake", resembles=None)
    await ledger.memories.commit_store_batch(ADA, batch(mine))
    await source.store(theirs, other)
    report = await imported(ledger, changed(source.file(), other.id, resembles=theirs.id))
    assert dict(report.added) == {"memory": 1}
    assert (await stored_memory(ledger, other)).resembles == mine.id


async def test_an_import_is_undone_by_one_call(ledger: LedgerRepositories, source: Source, new_db: Path) -> None:
    mine = memory("mine")
    await ledger.memories.commit_store_batch(ADA, batch(mine))
    await source.store(memory("tea"), memory("cake"))
    before = memories_of(new_db)
    report = await imported(ledger, source.file())
    undone = await ledger.imports.undo_import(report.id, client="tests", at=NOW)
    assert dict(undone.removed) == {"memory": 2}
    assert memories_of(new_db) == before
    assert [one.state for one in await ledger.imports.past_imports()] == ["undone"]
    with pytest.raises(CannotUndo, match="before"):
        await ledger.imports.undo_import(report.id, client="tests", at=NOW)
    assert dict((await imported(ledger, source.file())).added) == {"memory": 2}


async def test_undo_keeps_what_was_built_upon_since(ledger: LedgerRepositories, source: Source) -> None:
    """What a person has said since of something imported is not lost with it."""
    from madeleine.memory.rules.storing.retelling import MemoryRetelling

    tea, cake = memory("tea"), memory("cake")
    await source.store(tea, cake)
    report = await imported(ledger, source.file())
    told = MemoryRetelling(memory_id=tea.id, text="tea again", at=NOW, tool="store")
    await ledger.memories.commit_store_batch(ADA, replace(batch(), reinforcements=(told,)))
    undone = await ledger.imports.undo_import(report.id, client="tests", at=NOW)
    assert (dict(undone.removed), dict(undone.kept)) == ({"memory": 1}, {"memory": 1})
    assert (await stored_memory(ledger, tea)).scene.action == "tea"


async def test_an_unknown_import_cannot_be_undone(ledger: LedgerRepositories) -> None:
    with pytest.raises(CannotUndo, match="no import"):
        await ledger.imports.undo_import("x", client="tests", at=NOW)


def memories_of(path: Path) -> list[ExportRecord]:
    return [record for record in parsed(exported(path)) if record.type not in ("being",)]


async def test_forgetting_names_the_copies_that_may_still_hold_it(ledger: LedgerRepositories) -> None:
    """Ruling 25."""
    tea, cake = memory("tea"), memory("cake", created_at=MOMENT + timedelta(days=2))
    await ledger.memories.commit_store_batch(ADA, batch(tea, cake))
    for path, being, day in (("/all", "", 1), ("/ada", "ada", 1), ("/bob", "bob", 1), ("/old", "", -1)):
        made_at = MOMENT + timedelta(days=day)
        copy = LedgerCopyFileRecord(path=path, kind="export", being_id=BeingId(being), made_at=made_at)
        await ledger.copies.record_ledger_copy(copy)
    assert (await ledger.erasure.forget(ADA, [cake.id], at=NOW)).copies == ()
    assert (await ledger.erasure.forget(ADA, [tea.id], at=NOW)).copies == ("/ada", "/all")
    assert (await ledger.erasure.forget(ADA, [MemoryId("x")], at=NOW)).copies == ()


async def test_copies_are_remembered_until_they_are_removed(ledger: LedgerRepositories) -> None:
    copies = [LedgerCopyFileRecord(path=p, kind="backup", being_id=BeingId(""), made_at=MOMENT) for p in ("/a", "/b")]
    for copy in (*copies, copies[0]):
        await ledger.copies.record_ledger_copy(copy)
    assert await ledger.copies.recorded_ledger_copies() == copies
    await ledger.copies.delete_ledger_copy_records(["/a"])
    assert await ledger.copies.recorded_ledger_copies() == copies[1:]


async def test_a_message_that_was_forgotten_by_its_key_does_not_come_back(
    ledger: LedgerRepositories, source: Source
) -> None:
    records = [
        r.BeingExportRecord(being="ada", cycle=0, think=(), think_sources=(), last_number=0),
        r.SessionExportRecord(
            being="ada", session_id="s", title="", interface="", first_at=NOW, last_at=NOW,
            messages=2, watched=2, put_off=0, abandoned=0,
            failures=0, next_try=NOW,
        ),
        *(
            r.MessageExportRecord(
                being="ada", session_id="s", id=f"m{n}", position=n, role="user", speaker="", text=f"said {n}", at=NOW,
                stored_at=NOW, client="", key=f"k{n}",
            )
            for n in range(2)
        ),
    ]  # fmt: skip
    await imported(ledger, file_of(records))
    await ledger.erasure.forget(Scope(BeingId("ada")), [MemoryId("m0")], at=NOW)
    other_id = [
        record.model_copy(update={"id": f"x{record.position}"}) if isinstance(record, r.MessageExportRecord) else record
        for record in records
    ]
    report = await imported(ledger, file_of(other_id))
    assert (dict(report.added), report.left_out_counts["forgotten"], report.known["message"]) == ({}, 1, 1)


async def test_bob_sees_nothing_of_what_is_imported_for_ada(ledger: LedgerRepositories, source: Source) -> None:
    tea = memory("tea")
    await source.store(tea)
    await imported(ledger, source.file())
    assert await ledger.recall.memories_with_ids(BOB, [tea.id]) == []
