"""Kills a piece of work at every statement that it sends and at every step on the index's files, one after the other.

A program of its own, for it forks: `python -m tests.faults.fault_points DIRECTORY WORK [STRIDE]` prints the number of
kills and the faults as JSON. With a stride of 2 each other point, from the first or the second on by chance. After each
kill the files are opened as a next process would.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, event
from sqlalchemy.engine import Engine

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import EmbeddingModelName, Scene, model_name_in_both_precisions
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.archiving.retention import EndedSessionOrProject
from madeleine.server.background.model_records import EmbeddingModelRecords
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.open_memory import OpenedMemoryStore, open_memory_store
from madeleine.storage.qdrant import edge, edge_engine
from madeleine.storage.qdrant.edge_files import IndexManifest, copy_sparse_tree
from madeleine.storage.sql.database import engine as database_engine
from madeleine.storage.sql.database.memory_rows import row_from_memory
from madeleine.storage.sql.database.schema import MIGRATIONS_FOLDER, NEWEST_SCHEMA_REVISION, migrate_ledger_file
from tests.contracts.ledger.ledger_values import memory
from tests.doubles import ADA, WordEmbedder

MEMORIES = 70
SWITCHED_MODEL = "other words"
NEW_MODEL, OLD_MODEL = model_name_in_both_precisions(EmbeddingModelName("words@int8"))


class FaultPoints:
    """Counts the points of this process, and kills it at one of them."""

    def __init__(self, kill_at: int) -> None:
        self.passed = 0
        self._kill_at = kill_at

    def reach(self, *_: Any, **__: Any) -> None:
        self.passed += 1
        if self.passed == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        for name in ("before_cursor_execute", "commit"):
            event.listen(Engine, name, self.reach)
        self._around(database_engine, "run_to_end_despite_cancellation")
        self._around(edge_engine, "apply_index_point_changes")
        self._around(IndexManifest, "write")
        self._around(edge, "remove_index_files")

    def _around(self, owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def reached(*arguments: Any, **named: Any) -> Any:
            self.reach()
            return function(*arguments, **named)

        setattr(owner, name, reached)


def in_child(work: Callable[[], object], kill_at: int = 0) -> tuple[int, int]:
    """(exit code, points): -9 for a killed one, 1 for one that failed; points only of one that came to its end."""
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            points = FaultPoints(kill_at)
            points.install()
            work()
            os.write(write, str(points.passed).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with os.fdopen(read) as source:
        passed = source.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(passed or 0)


# --- works: how a store is prepared, what is killed, and what must hold afterwards ----------------------------------


def _text(number: int) -> str:
    return f"Brick{number} lies in cellar{number}"


def _settings(data_dir: Path) -> Settings:
    return Settings(data_dir=data_dir, being="ada", patrol_auto=False)


def _made(model: str) -> WordEmbedder:
    return WordEmbedder(96 if model == SWITCHED_MODEL else 64, model)


def _embedder(model: str = NEW_MODEL) -> WordEmbedder:
    return WordEmbedder(model=model)


async def _opened(
    data_dir: Path, work: Callable[[OpenedMemoryStore], Any], *, rebuild: bool = False, model: str | None = NEW_MODEL
) -> None:
    """`model`: None for the one that serves."""
    embedder = _embedder(model) if model else None
    opening = open_memory_store(
        _settings(data_dir), rebuild=rebuild, embedder=embedder, make_embedder=_made, background=False
    )
    async with opening as opened:
        if (result := work(opened)) is not None:
            await result


def prepare_memories(data_dir: Path, model: str = OLD_MODEL) -> None:
    scenes = [NewScene(scene=Scene(action=_text(number))) for number in range(MEMORIES)]
    asyncio.run(_opened(data_dir, lambda opened: opened.use_cases.store(ADA, scenes), model=model))


async def _check(opened: OpenedMemoryStore) -> None:
    assert await opened.index.count() == await opened.ledger.index_source.count_memories() == MEMORIES
    for number in range(0, MEMORIES, 7):
        found = await opened.use_cases.recall(ADA, RecallQuery(text=_text(number)))
        assert [found_one.scene.action for found_one, _ in found.memories].count(_text(number)) == 1, number


def check_memories(data_dir: Path) -> None:
    asyncio.run(_opened(data_dir, _check))


def reindex(data_dir: Path) -> None:
    asyncio.run(_opened(data_dir, lambda opened: None, rebuild=True))


def embed_anew(data_dir: Path) -> None:
    asyncio.run(_opened(data_dir, lambda opened: opened.index_keeper.embed_memories_without_vector()))


def check_embedded_anew(data_dir: Path) -> None:
    """Before it goes on, and after: the old vectors serve, and what was done is not done again."""
    check_memories(data_dir)
    embed_anew(data_dir)
    check_memories(data_dir)
    with closing(sqlite3.connect(data_dir / "memory.db")) as connection:
        rows = connection.execute(
            "SELECT model, count(*) FROM embeddings WHERE vector IS NOT NULL GROUP BY 1"
        ).fetchall()
        of_model = dict(rows)
    assert of_model.get(NEW_MODEL, 0) >= MEMORIES
    assert not of_model.get(OLD_MODEL, 0)


def prepare_switchable(data_dir: Path) -> None:
    prepare_memories(data_dir, PACKAGED_MODEL_NAME)


def switch_model(data_dir: Path) -> None:
    async def switch(opened: OpenedMemoryStore) -> None:
        records = EmbeddingModelRecords(opened.ledger.index_source)
        if await records.model_to_serve(PACKAGED_MODEL_NAME) != SWITCHED_MODEL:
            await opened.model_switch.switch_or_record_refusal(await records.request_switch(SWITCHED_MODEL))
        assert opened.embedder.model_name == SWITCHED_MODEL

    asyncio.run(_opened(data_dir, switch, model=None))


def check_switched(data_dir: Path) -> None:
    """Whichever model serves is whole; the switch goes on from there."""
    asyncio.run(_opened(data_dir, _check, model=None))
    switch_model(data_dir)
    asyncio.run(_opened(data_dir, _check, model=None))


def prepare_old_store(data_dir: Path) -> None:
    from alembic import command
    from alembic.config import Config

    data_dir.mkdir(parents=True)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    made = create_engine(f"sqlite:///{data_dir / 'memory.db'}")
    with made.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
    made.dispose()
    with closing(sqlite3.connect(data_dir / "memory.db")) as raw, raw:
        columns = [row[1] for row in raw.execute("PRAGMA table_info(memories)")][1:]
        for number in range(3):
            old = memory(_text(number))
            row = row_from_memory(old) | {"session_count": 0}
            marks = ", ".join("?" * len(columns))
            raw.execute(
                f"INSERT INTO memories ({', '.join(columns)}) VALUES ({marks})", [row[name] for name in columns]
            )


def migrate(data_dir: Path) -> None:
    migrate_ledger_file(data_dir / "memory.db")


def check_migrated(data_dir: Path) -> None:
    """Either before or behind all migrations, and whole."""
    path = data_dir / "memory.db"
    with closing(sqlite3.connect(path)) as raw:
        [(revision,)] = raw.execute("SELECT version_num FROM alembic_version").fetchall()
        assert revision in ("0001", NEWEST_SCHEMA_REVISION), revision
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    migrate_ledger_file(path)
    with closing(sqlite3.connect(path)) as raw:
        found = [row[0] for row in raw.execute("SELECT action FROM memories ORDER BY seq")]
        assert found == [_text(number) for number in range(3)], found
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


SESSION = replace(ADA, level="session")
KEPT_FOR_SESSION = MEMORIES // 2


def prepare_session(data_dir: Path) -> None:
    async def store(opened: OpenedMemoryStore) -> None:
        for number in range(MEMORIES):
            scene = NewScene(scene=Scene(action=_text(number)), session_id="s", key=f"k{number}")
            await opened.use_cases.store(SESSION if number < KEPT_FOR_SESSION else ADA, [scene])

    asyncio.run(_opened(data_dir, store))


def archive_and_restore(data_dir: Path) -> None:
    """A session ends, half of what it has archived comes back, the rest of the archive is undone with its run."""

    async def work(opened: OpenedMemoryStore) -> None:
        use, ended = opened.use_cases, EndedSessionOrProject(session_id="s")
        report = await use.patrol(ADA, steps=["retention"], ended=ended, offer_pending=False)
        archived = await use.archive.archival_index(ADA)
        await use.archive.restore(ADA, [entry.memory_id for entry in archived[::2]])
        await use.patrol.undo_patrol(ADA, report.run_id)

    asyncio.run(_opened(data_dir, work))


async def _check_archive(opened: OpenedMemoryStore) -> None:
    use = opened.use_cases
    archived = await use.archive.archival_index(ADA)
    live = await opened.ledger.index_source.memories_after_id(after=None, limit=1_000)
    assert await opened.index.count() == len(live) == MEMORIES - len(archived)
    assert not {entry.memory_id for entry in archived} & {memory.id for memory in live}, "it is in one place"
    await use.archive.restore(ADA, [entry.memory_id for entry in archived])
    await opened.index_keeper.embed_memories_without_vector()  # as the background does after an undo
    await _check(opened)
    whole = await opened.ledger.index_source.memories_after_id(after=None, limit=1_000)
    assert sorted(memory.key or "" for memory in whole) == sorted(f"k{number}" for number in range(MEMORIES))


def check_archive(data_dir: Path) -> None:
    asyncio.run(_opened(data_dir, _check_archive))


WORKS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object], Callable[[Path], object]]] = {
    "migrations": (prepare_old_store, migrate, check_migrated),
    "reindex": (prepare_memories, reindex, check_memories),
    "switch": (prepare_switchable, switch_model, check_switched),
    "embedding": (prepare_memories, embed_anew, check_embedded_anew),
    "archive": (prepare_session, archive_and_restore, check_archive),
}


def main() -> None:
    directory, name, stride = Path(sys.argv[1]), sys.argv[2], int((*sys.argv[3:], "1")[0])
    prepare, work, check = WORKS[name]
    os.umask(0o077)
    whole, copy = directory / "whole", directory / "copy"

    def fresh() -> Path:
        shutil.rmtree(copy, ignore_errors=True)
        copy_sparse_tree(whole, copy)
        return copy

    assert in_child(lambda: prepare(whole))[0] == 0, "it could not be prepared"
    code, points = in_child(lambda: work(fresh()))
    assert code == 0, "the work itself failed"
    killed_at, faults = range(random.randint(1, stride), points + 1, stride), []
    for number in killed_at:
        fresh()
        code, _ = in_child(lambda: work(copy), kill_at=number)
        if code not in (-signal.SIGKILL, 0) or in_child(lambda: check(copy))[0]:
            faults.append(number)
    print(json.dumps({"work": name, "points": len(killed_at), "faults": faults}))


if __name__ == "__main__":
    main()
