"""Change what is true by an explicit act (ruling 14): a fact has changed, was wrong, or the last such act was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime

from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.ports import RetractionAndUndoLedger
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import Memory, MemoryChanges, MemoryId, Scene, Scope
from madeleine.memory.rules.dynamics.revision import memory_after_changes
from madeleine.memory.rules.dynamics.truth import (
    FIELD_VALUES_MARKING_VERSION_AS_UNDONE,
    TruthChangeOutcome,
    is_in_future,
)

UPDATE_MEMORY_TOOL_NAME = "update_memory"


@dataclass(frozen=True, eq=False)
class ChangeMemoryTruth:
    """The use case. Every act is journalled, and taken back by one call of `undo`."""

    ledger: RetractionAndUndoLedger
    store: StoreScenes

    async def revise(
        self, scope: Scope, memory_id: MemoryId, changes: MemoryChanges, *, when: str
    ) -> StoredSceneResult:
        """Store the changed text as a version of its own, true since `when` (an ISO date); what the memory said stays,
        true until then. The version has the memory's actors, setting, category, importance, themes and lesson.

        Raises `InvalidInput` without a text or if there is no such memory, `NotCurrent`, `StorageError`.
        """
        if changes.text is None:
            raise InvalidInput("when: says since when the new text is true. Nothing was changed: give text, too.")
        known = await self.store.ledger.memories_with_ids(scope, [memory_id])
        if not known:
            raise _unknown_memory_error(memory_id)
        old = memory_after_changes(known[0], replace(changes, text=None))
        version = NewScene(
            scene=Scene(action=changes.text, actors=old.scene.actors, when=(when,), setting=old.scene.setting),
            category=old.category,
            importance=old.importance,
            themes=old.themes,
            lesson=old.lesson,
            pinned=old.pinned,
            session_id=old.provenance.session_id,
            tool=UPDATE_MEMORY_TOOL_NAME,
            supersedes=memory_id,
            is_update=True,
        )
        [stored] = await self.store(scope, [version])
        return stored

    async def retract(self, scope: Scope, memory_id: MemoryId, reason: str) -> TruthChangeOutcome:
        """It was wrong: never recalled again, but kept. What it had superseded is current again, or, if it was
        superseded itself, true until its successor. Raises `InvalidInput`, `NotCurrent`, `StorageError`."""
        reason = self.store.redact(reason).text
        now = self.store.now()
        return await self._commit_truth_act_and_index(
            memory_id, lambda: self.ledger.retract(scope, memory_id, reason, at=now)
        )

    async def undo(self, scope: Scope, memory_id: MemoryId) -> TruthChangeOutcome:
        """Take back the last act that concerned the memory. A version that an update has made is retracted then, also
        one that is to be true from a day to come on; one that was stored stays beside what it had superseded. Raises
        `InvalidInput`, `CannotUndo`, `StorageError`."""
        now = self.store.now()
        if plan := await self._future_version_from_last_update(scope, memory_id, now):
            reason = FIELD_VALUES_MARKING_VERSION_AS_UNDONE["retraction_reason"]
            return await self._commit_truth_act_and_index(
                plan.id, lambda: self.ledger.retract(scope, plan.id, reason, at=now)
            )
        return await self._commit_truth_act_and_index(
            memory_id, lambda: self.ledger.undo_last_truth_change(scope, memory_id, at=now)
        )

    async def _future_version_from_last_update(self, scope: Scope, memory_id: MemoryId, now: datetime) -> Memory | None:
        """What the last update of the memory has made, if that is true only from a day to come on."""
        plans = [
            memory
            for memory in await self.ledger.planned_successors_of_memory(scope, memory_id)
            if memory.provenance.tool == UPDATE_MEMORY_TOOL_NAME
            if memory.valid_from is not None and is_in_future(memory.valid_from, now)
        ]
        known = await self.store.ledger.memories_with_ids(scope, [memory_id]) if plans else []
        if not known or known[0].truth != "current" or known[0].valid_from is not None:  # an act is undone first
            return None
        changes = await self.ledger.revision_history(scope, [memory_id])
        return None if changes and changes[-1].at > plans[-1].created_at else plans[-1]

    async def _commit_truth_act_and_index(
        self, memory_id: MemoryId, act: Callable[[], Awaitable[TruthChangeOutcome | None]]
    ) -> TruthChangeOutcome:
        async def commit_and_index() -> TruthChangeOutcome:
            async with self.store.write_lock:
                outcome = await act()
                if outcome is None:
                    raise _unknown_memory_error(memory_id)
                self.store.on_commit()
                await self.store.index_changed_memories(outcome.changed)
                return outcome

        return await asyncio.shield(commit_and_index())


def _unknown_memory_error(memory_id: MemoryId) -> InvalidInput:
    return InvalidInput(
        f"There is no memory {memory_id!r}. Nothing was changed: take an id that recall or search_memory returned."
    )
