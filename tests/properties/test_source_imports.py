"""What is taken over from other programs is there once, whatever order it comes in, and goes by one call."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from madeleine.memory.errors import CannotUndo, StorageError
from madeleine.memory.moving.import_sources import ImportFilesOfOtherPrograms, OtherProgramsImportReport
from madeleine.memory.moving.sources.values import ImportedStatement
from madeleine.memory.moving.statements import StatementImportCounts, StoreImportedStatements
from madeleine.memory.rules.storing.secrets import redact_secrets
from madeleine.memory.watch.observe import ObserveConversation
from madeleine.server.moving_in.source_files import find_import_files
from tests import other_programs as programs
from tests.chat_exports import claude
from tests.doubles import ADA
from tests.household import Household, household, new_store, rows

PROGRAMS = (
    programs.claude_code, programs.codex, programs.gemini, programs.cursor, programs.cursor_database,
    programs.mem0_history, programs.basic_memory, programs.claude_mem, programs.mcp_memory_service,
)  # fmt: skip
CONTENT = (
    "SELECT action, when_, themes, lesson, category, access_count FROM memories",
    "SELECT session_id, key, role, text, at FROM messages",
    "SELECT session_id, interface, first_at, last_at, messages, watched FROM sessions",
)


def content(path: Path) -> list[list[tuple[Any, ...]]]:
    """What a person sees of it: ids and numbers are each store's own."""
    return [sorted(map(_comparable, rows(path, statement))) for statement in CONTENT]


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(str(value) for value in row)


class Importer:
    """Imports into a store as the command does. `fails_at`: the number of the call to the host that is lost."""

    def __init__(self, home: Household) -> None:
        self._home = home
        self.fails_at = 0
        self._calls = 0

    async def take(
        self, *paths: Path, source: str = "s", dry_run: bool = False
    ) -> tuple[OtherProgramsImportReport, str]:
        """(report, id of the import)."""
        ledger, home = self._home.ledger, self._home
        import_id = "" if dry_run else await ledger.imports.begin_or_resume_import(ADA, source, at=home.clock())
        store = StoreImportedStatements(ledger.imports, home.store_scenes)

        async def send(statements: Mapping[str, ImportedStatement]) -> StatementImportCounts:
            self._calls += 1
            if self._calls == self.fails_at:
                raise StorageError("lost")
            return await store(ADA, import_id, statements)

        take = ImportFilesOfOtherPrograms(
            imports=ledger.imports, memories=ledger.memories, conversations=ledger.conversations,
            observe=ObserveConversation(ledger.conversations, now=home.clock), send=None if dry_run else send,
            redact=redact_secrets, max_text_chars=1_000, import_id=import_id,
        )  # fmt: skip
        report = await take(ADA, (file for path in paths for file in find_import_files(path)))
        if import_id:
            await ledger.imports.end_import_and_count_added_by_type(ADA, import_id, at=home.clock())
        return report, import_id


async def content_after(path: Path, imports: Sequence[Sequence[Path]]) -> list[list[tuple[Any, ...]]]:
    async with household(path) as home:
        for place, paths in enumerate(imports):
            await Importer(home).take(*paths, source=str(place))
    return content(path)


@pytest.mark.slow
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip
@given(data=st.data())
def test_sources_in_any_order_and_number_give_the_same_store(data: st.DataObject, templates: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [make(Path(folder, str(place))) for place, make in enumerate(PROGRAMS)]
        once, often = (new_store(templates, Path(folder) / name) for name in ("a.db", "b.db"))
        expected = asyncio.run(content_after(once, [paths]))
        orders = data.draw(st.lists(st.lists(st.sampled_from(paths), max_size=4), max_size=3))
        last = data.draw(st.permutations(paths))
        found = asyncio.run(content_after(often, [*orders, last]))
        # A conversation that two programs know has the messages of both, in the order in which they came.
        assert found == expected


def whole(home: Path) -> list[Path]:
    return sorted(home.iterdir())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return programs.whole_home(tmp_path / "home")


async def test_an_undo_leaves_what_was_there_before_and_nothing_else(home: Household, source: Path) -> None:
    await home.store("Harbour Crane belongs to Harbour Office", "The tide was high.", themes=("sea",))
    before, told = content(home.path), home.told()
    paths = whole(source)
    report, import_id = await Importer(home).take(*paths)
    assert report.formats["basic-memory"].statements["reinforced"] == 1
    assert content(home.path) != before
    await home.ledger.imports.undo_import(import_id, client="tests", at=home.clock())
    assert content(home.path) == before
    counts = {name for name, found in home.told().items() if len(found) != len(told[name])}
    assert counts == set()
    assert rows(home.path, "SELECT count(*) FROM reinforcements") == [(0,)]
    again, _ = await Importer(home).take(*paths)
    assert again.new_item_count == report.new_item_count


async def test_what_was_told_again_since_stays_when_an_import_is_undone(home: Household, tmp_path: Path) -> None:
    _, import_id = await Importer(home).take(programs.mem0_history(tmp_path))
    await home.store("Ada lives in Rome.")
    undone = await home.ledger.imports.undo_import(import_id, client="tests", at=home.clock())
    assert undone.kept == {"memory": 1}
    assert [memory.scene.action for memory in await home.all()] == ["Ada lives in Rome."]


async def test_what_was_forgotten_does_not_come_back(home: Household, tmp_path: Path) -> None:
    """Ruling 25; also where the statement had reinforced a memory that was there."""
    paths = [programs.mem0_history(tmp_path), programs.basic_memory(tmp_path)]
    await home.store("Harbour Crane belongs to Harbour Office")
    report, _ = await Importer(home).take(*paths)
    assert +report.formats["basic-memory"].statements == {"stored": 3, "reinforced": 1}
    found = {memory.scene.action: memory.id for memory in await home.all()}
    gone = [found["Ada lives in Rome."], found["Harbour Crane belongs to Harbour Office"]]
    await home.ledger.erasure.forget(ADA, gone, at=home.clock())
    for dry_run in (True, False):
        again, _ = await Importer(home).take(*paths, dry_run=dry_run)
        assert again.new_item_count == 0
        assert again.formats["mem0"].statements["forgotten"] == 1
        assert again.formats["basic-memory"].statements["forgotten"] == 1
    assert not {"Ada lives in Rome.", "Harbour Crane belongs to Harbour Office"} & {
        memory.scene.action for memory in await home.all()
    }


async def test_a_dry_run_changes_nothing_and_tells_what_comes(home: Household, source: Path) -> None:
    paths = whole(source)
    before = content(home.path)
    foretold, _ = await Importer(home).take(*paths, dry_run=True)
    assert content(home.path) == before
    assert rows(home.path, "SELECT count(*) FROM imports") == [(0,)]
    done, _ = await Importer(home).take(*paths)
    assert (done.formats.keys(), done.new_item_count) == (
        foretold.formats.keys(),
        foretold.new_item_count - 1,
    )  # one prompt stands in two
    assert foretold.formats["mem0"].samples == ["2026-03-01 — Ada lives in Rome."]


@pytest.mark.parametrize("fails_at", [1, 2, 3])
async def test_an_import_that_was_cut_off_is_continued_as_one(home: Household, tmp_path: Path, fails_at: int) -> None:
    paths = [programs.markdown(tmp_path), programs.claude_code(tmp_path), programs.mcp_memory_service(tmp_path)]
    first = Importer(home)
    first.fails_at = fails_at
    with pytest.raises(StorageError):
        await first.take(*paths)
    assert [one.state for one in await home.ledger.imports.past_imports()] == ["unfinished"]
    await Importer(home).take(*paths)
    [done] = await home.ledger.imports.past_imports()
    assert (done.state, done.counts) == ("imported", {"memory": 7, "session": 1, "message": 2})
    texts = [memory.scene.action for memory in await home.all()]
    assert len(texts) == len(set(texts)) == 7
    await home.ledger.imports.undo_import(done.id, client="tests", at=home.clock())
    assert content(home.path) == [[], [], []]


async def test_an_import_that_was_undone_takes_nothing_more(home: Household, tmp_path: Path) -> None:
    import_id = await home.ledger.imports.begin_or_resume_import(ADA, "s", at=home.clock())
    await home.ledger.imports.undo_import(import_id, client="tests", at=home.clock())
    store = StoreImportedStatements(home.ledger.imports, home.store_scenes)
    with pytest.raises(CannotUndo):
        await store(ADA, import_id, {"import:1": ImportedStatement(text="late")})
    assert await home.all() == []


async def test_a_conversation_whose_id_is_a_secret_keeps_no_other_back(home: Household, tmp_path: Path) -> None:
    secret = claude(("human", "Ahoy"), uuid="ghp_" + "a1B2" * 9)
    path = programs.json_file(tmp_path / "c.json", [secret, claude(("human", "Hello"))])
    report, _ = await Importer(home).take(path)
    assert (report.new_item_count, report.damaged_count) == (1, 1)
    assert secret["uuid"] not in report.damaged[0]


async def test_secrets_are_taken_out_and_counted(home: Household, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 23
    path = programs.write(tmp_path / "n.md", f"The key is {key}.\n")
    report, _ = await Importer(home).take(path)
    assert sum(report.redacted.values()) == 1
    [memory] = await home.all()
    assert key not in memory.scene.action
