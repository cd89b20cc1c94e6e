"""A being's life over the real ledger: storing, recalling, patrols and undoing them, and what is then in the tables."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from madeleine.memory.errors import LanguageModelUnavailable, StorageError, UnusableAnswer
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.notes import add_note
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.ingest.update_and_forget import UpdateMemory
from madeleine.memory.ingest.write_lock import WriteLock
from madeleine.memory.language_model import AnswerModelT, ModelCallCost, Prompt
from madeleine.memory.model import (
    Memory,
    MemoryChanges,
    MemoryId,
    MemoryStatus,
    Note,
    RunId,
    Scene,
    Scope,
    Vector,
    content_hash,
)
from madeleine.memory.patrol_records import PatrolUndoResult
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.memory.rules.dynamics.clustering import ROOT_CLUSTER_PROTOTYPE_TEXTS
from madeleine.patrol.context import PatrolConfig, PatrolServices
from madeleine.patrol.ports import PatrolTransaction
from madeleine.patrol.report import PATROL_STEPS, PatrolReport, PatrolStepName
from madeleine.patrol.run import RunPatrols
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.database.postgresql import PostgresDatabase
from madeleine.storage.sql.database.schema import migrate_ledger_file
from madeleine.storage.sql.database.sqlite import SqliteDatabase
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from madeleine.storage.sql.patrols.repository import PatrolRepository
from tests.doubles import ADA, Clock, FakeWordStatistics, WordEmbedder

KEPT = {
    "memories": "*", "reinforcements": "*", "revisions": "*", "clusters": "*", "notes": "*", "diary": "*",
    "beings": "*", "embeddings": "model, content_hash, vector",
}  # fmt: skip
"""What an undo puts back: all but the journal, runs, offers, costs, the audit and marks for the index."""
MOMENT = timedelta(seconds=1)
"""Passes before each recall and each patrol."""
WITHOUT = frozenset({"seq"})
_STANDING = {
    "beings": "cycle > 0 OR think != '[]'",
    "embeddings": "content_hash IN (SELECT content_hash FROM memories)",
}


def sqlite_of(ledger: LedgerRepositories) -> SqliteDatabase:
    assert isinstance(ledger.database, SqliteDatabase)
    return ledger.database


def location_of(ledger: LedgerRepositories) -> LedgerLocation:
    database = ledger.database
    return database.location if isinstance(database, PostgresDatabase) else sqlite_of(ledger)._path


@cache
def _empty(directory: Path) -> Path:
    path = directory / "empty.db"
    migrate_ledger_file(path)
    return path


def new_store(directory: Path, path: Path) -> Path:
    """An empty store at `path`, sooner than the migrations make one. `directory`: where the one to copy is kept."""
    shutil.copy(_empty(directory), path)
    return path


def kept_rows(connection: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All that is kept of everybody (`KEPT`), sorted."""
    found = {}
    for table, columns in KEPT.items():
        cursor = connection.execute(f"SELECT {columns} FROM {table} WHERE {_STANDING.get(table, 'TRUE')}")
        shown = [i for i, column in enumerate(cursor.description) if column[0] not in WITHOUT]
        found[table] = sorted((tuple(row[i] for i in shown) for row in cursor), key=repr)
    return found


def rows(path: Path, statement: str, *binds: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.execute(statement, binds))


def all_texts(connection: sqlite3.Connection) -> str:
    """Every text in every table."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return "\n".join(
        value
        for table in tables
        for row in connection.execute(f"SELECT * FROM {table}")
        for value in row
        if isinstance(value, str)
    )


def orphaned_vectors(path: Path) -> set[str]:
    """Hashes of cached texts that no memory has, nor the prototypes of the roots."""
    known = {content_hash(text) for texts in ROOT_CLUSTER_PROTOTYPE_TEXTS.values() for text in texts}
    stored_rows = rows(
        path, "SELECT content_hash FROM embeddings WHERE content_hash NOT IN (SELECT content_hash FROM memories)"
    )
    return {hash_ for (hash_,) in stored_rows} - known


class NearbyIndex:
    """`IndexForStoringMemories` that compares with all it was ever given."""

    def __init__(self) -> None:
        self._points: dict[MemoryId, IndexPoint] = {}

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        self._points |= {point.memory.id: point for point in points}

    async def nearest(
        self, scope: Scope, vector: Vector, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[tuple[MemoryId, float]]:
        found = [
            (id_, float(np.dot(point.vector, vector)))
            for id_, point in self._points.items()
            if point.memory.being_id == scope.being_id and point.vector is not None
        ]
        return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]

    async def living_ids_sharing_most_words(
        self, scope: Scope, words: str, *, limit: int, statuses: Sequence[MemoryStatus]
    ) -> list[MemoryId]:
        own = [point for point in self._points.values() if point.memory.being_id == scope.being_id]
        shared = {point.memory.id: len({*words.split()} & {*point.words.split()}) for point in own}
        return sorted(filter(shared.get, shared), key=lambda id_: (-shared[id_], id_))[:limit]


class ProcessKilled(StorageError):
    """The process is dead: nothing is written any more."""


class MortalLedger:
    """A ledger that dies at its nth transaction of a patrol, or in whose nth something else goes wrong."""

    def __init__(self, ledger: PatrolRepository) -> None:
        self._ledger = ledger
        self.left: int | None = None
        """Transactions until then; None for one that lives."""
        self.raises: BaseException | None = None
        """What goes wrong then, once; None for death."""
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def _step(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                if self.raises is not None:
                    raise self.raises
                self.dead = True
        if self.dead:
            raise ProcessKilled("dead")

    @asynccontextmanager
    async def patrol_transaction(self, scope: Scope) -> AsyncIterator[PatrolTransaction]:
        self._step()
        async with self._ledger.patrol_transaction(scope) as transaction:
            yield transaction

    async def store_decision_requests_unless_erased(self, *args: Any, **fields: Any) -> bool:
        self._step()
        return await self._ledger.store_decision_requests_unless_erased(*args, **fields)

    async def finish_run(self, *args: Any) -> None:
        self._step()
        await self._ledger.finish_run(*args)

    async def undo_run(self, *args: Any, **fields: Any) -> PatrolUndoResult:
        if self.dead:
            raise ProcessKilled("dead")
        return await self._ledger.undo_run(*args, **fields)


class Household:
    """One store, and the use cases over it."""

    def __init__(self, path: Path, ledger: LedgerRepositories, clock: Clock, config: PatrolConfig) -> None:
        self.path = path
        self.ledger = ledger
        self.mortal = MortalLedger(ledger.patrols)
        self.clock = clock
        self.embedder = WordEmbedder()
        self.index = NearbyIndex()
        self.words = FakeWordStatistics()
        write_lock = WriteLock()
        self.store_scenes = StoreScenes(ledger.memories, self.index, self.embedder, now=clock, write_lock=write_lock)
        self.update = UpdateMemory(ledger.memories, self.index, self.embedder, write_lock, now=clock)
        journalled: Any = self.mortal
        services = PatrolServices(
            ledger=journalled, word_idf=self.words, embedder=self.embedder, now=clock, config=config
        )
        self.patrol = RunPatrols(services, ledger.activations)

    async def store(self, *texts: str, scope: Scope = ADA, **fields: Any) -> list[Memory]:
        return [one.memory for one in await self.stored(*texts, scope=scope, **fields)]

    async def stored(self, *texts: str, scope: Scope = ADA, **fields: Any) -> list[StoredSceneResult]:
        return await self.store_scenes(scope, [NewScene(scene=Scene(action=text), **fields) for text in texts])

    async def note(self, scene: object, scope: Scope = ADA) -> Note:
        text = scene if isinstance(scene, str) else json.dumps(scene)
        return (await add_note(self.ledger.context, scope, text, now=self.clock())).note

    async def recall(self, *ids: MemoryId, scope: Scope = ADA, times: int = 1) -> None:
        self.clock.advance(MOMENT)
        self.ledger.activations.add_reactivations(scope, [MemoryReactivation(id_, times, self.clock()) for id_ in ids])
        await self.ledger.activations.flush()

    async def correct(self, id_: MemoryId, scope: Scope = ADA, **changes: Any) -> None:
        await self.update(scope, id_, MemoryChanges(**changes))

    async def run_patrol(
        self, language: Any = None, *, scope: Scope = ADA, steps: Sequence[PatrolStepName] = PATROL_STEPS, **fields: Any
    ) -> PatrolReport:
        # A being ages once a day (ruling 20).
        self.clock.advance(MOMENT if "age" not in steps or steps == PATROL_STEPS else timedelta(days=1))
        return await self.patrol(scope, language=language, steps=steps, **fields)

    async def undo(self, run: RunId, scope: Scope = ADA) -> PatrolUndoResult:
        return await self.patrol.undo_patrol(scope, run)

    async def now(self, one: Memory | MemoryId, scope: Scope = ADA) -> Memory:
        [found] = await self.ledger.memories.memories_with_ids(scope, [one.id if isinstance(one, Memory) else one])
        return found

    async def all(self) -> list[Memory]:
        return await self.ledger.index_source.memories_after_id(after=None, limit=10_000)

    def told(self) -> dict[str, list[tuple[Any, ...]]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return kept_rows(connection)


def household(
    path: Path, clock: Clock | None = None, config: PatrolConfig | None = None, *, durable: bool = True
) -> AbstractAsyncContextManager[Household]:
    return _household(path, clock or Clock(), config or PatrolConfig(compression_threshold=1), durable)


@asynccontextmanager
async def _household(path: Path, clock: Clock, config: PatrolConfig, durable: bool) -> AsyncIterator[Household]:
    async with open_ledger(path) as ledger:
        if not durable:
            await sqlite_of(ledger)._writer.sql.exec_driver_sql("PRAGMA synchronous = OFF")
        yield Household(path, ledger, clock, config)


# --- minds ------------------------------------------------------------------------------------------------------


def shown_memories(prompt: Prompt) -> list[str]:
    """The lines of the memories that a prompt shows, in order: the number of each is its place, from 1."""
    inside = prompt.text.split("<memory>\n", 1)[1].split("\n</memory>", 1)[0].splitlines()
    return [line for line in inside if '"n": ' in line or line.startswith("- ") or '"text": ' in line]


class ScriptedModel:
    """`LanguageModel` that answers by purpose, at a hundred tokens each; what it is told nothing about it cannot."""

    def __init__(self, **answers: Callable[[Prompt], Any]) -> None:
        self.prompts: list[Prompt] = []
        self._answers: Mapping[str, Callable[[Prompt], Any]] = answers

    async def answer_prompt(
        self, prompt: Prompt, schema: type[AnswerModelT], on_cost: Callable[[ModelCallCost], None]
    ) -> AnswerModelT:
        self.prompts.append(prompt)
        if prompt.purpose not in self._answers:
            raise LanguageModelUnavailable("mind", "nobody told it what to say")
        on_cost(ModelCallCost(purpose=prompt.purpose, model="mind-1", input_tokens=90, output_tokens=10, usd=0.001))
        answer = self._answers[prompt.purpose](prompt)
        if isinstance(answer, BaseException):
            raise answer
        try:
            return schema.model_validate(answer)
        except ValueError as error:
            raise UnusableAnswer("mind-1", "it is of another shape") from error

    def asked(self, purpose: str) -> int:
        return sum(prompt.purpose == purpose for prompt in self.prompts)
