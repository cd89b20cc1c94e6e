"""The use case: statements of other programs become memories, by the rules of a store (rulings 13 and 14)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import MemoryAndIdempotencyKeyReader
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.model import Category, Scene, Scope
from madeleine.memory.moving.ports import OtherProgramImportLedger
from madeleine.memory.moving.sources.values import ImportedStatement
from madeleine.memory.rules.storing.chunk_scoring import chunk_category
from madeleine.memory.text.reading import AnalysedText

IMPORT_PROVENANCE_TOOL = "import"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementImportCounts:
    """Numbers of statements. `reinforced`: an earlier memory says the same. `known`: imported before. `forgotten`: was
    imported before, and its memory is forgotten. `may_supersede`: of the stored those that may be a newer version of
    what is true now."""

    stored: int = 0
    reinforced: int = 0
    known: int = 0
    forgotten: int = 0
    may_supersede: int = 0


async def never_imported_keys_and_counts_of_others(
    memories: MemoryAndIdempotencyKeyReader, imports: OtherProgramImportLedger, scope: Scope, keys: Sequence[str]
) -> tuple[list[str], StatementImportCounts]:
    """Those that were never imported, and how many of the others there are."""
    known = await memories.idempotency_key_outcomes(scope, keys)
    forgotten = await imports.forgotten_imported_memory_keys(scope, keys)
    new = [key for key in keys if key not in known and key not in forgotten]
    return new, StatementImportCounts(known=len(known), forgotten=len(keys) - len(known) - len(new))


@dataclass(frozen=True, eq=False)
class StoreImportedStatements:
    """The use case."""

    imports: OtherProgramImportLedger
    store: StoreScenes

    async def __call__(
        self, scope: Scope, import_id: str, statements: Mapping[str, ImportedStatement]
    ) -> StatementImportCounts:
        """Store those whose keys are new, all or none. `statements`: redacted, by their keys.

        Raises `CannotUndo` if the import was ended meanwhile, `StorageFull`, `StorageError`.
        """
        new, others = await never_imported_keys_and_counts_of_others(
            self.store.ledger, self.imports, scope, list(statements)
        )
        scenes = await asyncio.to_thread(lambda: [_new_scene_from_statement(key, statements[key]) for key in new])
        answers = await self.store.store_already_redacted_scenes(scope, scenes, import_id=import_id) if scenes else []
        counts = Counter(answer.status for answer in answers)
        return StatementImportCounts(
            stored=counts["stored"],
            reinforced=counts["reinforced"],
            known=others.known,
            forgotten=others.forgotten,
            may_supersede=sum(answer.may_supersede is not None for answer in answers),
        )


def _new_scene_from_statement(key: str, statement: ImportedStatement) -> NewScene:
    return NewScene(
        scene=Scene(
            action=statement.text,
            actors=statement.actors,
            when=(statement.when,) if statement.when else (),
        ),
        category=statement.category or _category_of_imported_text(statement.text),
        lesson=statement.lesson,
        themes=statement.themes,
        key=key,
        tool=IMPORT_PROVENANCE_TOOL,
    )


def _category_of_imported_text(text: str) -> Category:
    """What was the present when it was written is the past now."""
    category = chunk_category(AnalysedText(text))
    return "episodic" if category == "working" else category
