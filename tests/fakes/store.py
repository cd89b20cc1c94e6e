"""What the parts of an in-memory ledger share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from madeleine.memory.chat import MessageId
from madeleine.memory.model import (
    Memory,
    MemoryId,
    MemoryValuesBeforeChange,
    Scope,
    Vector,
)
from madeleine.memory.rules.dynamics.truth import TruthChangeKind, dated_start_of_superseded_text
from madeleine.memory.rules.storing.retelling import MemoryRetelling
from tests.fakes.patrol_ledger import FakePatrolLedger


@dataclass
class Store:
    """What all parts of one ledger share."""

    patrols: FakePatrolLedger = field(default_factory=FakePatrolLedger)
    reinforcements: list[tuple[Scope, MemoryRetelling]] = field(default_factory=list)
    revisions: list[MemoryValuesBeforeChange] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    disabled_preferences: set[MemoryId] = field(default_factory=set)
    links: set[tuple[MessageId, MemoryId]] = field(default_factory=set)
    acts: list[tuple[TruthChangeKind, dict[MemoryId, Memory], dict[MemoryId, Memory]]] = field(default_factory=list)
    """Kind, the memories before, and after."""

    @property
    def memories(self) -> dict[MemoryId, Memory]:
        return self.patrols.state.memories

    @property
    def vectors(self) -> dict[tuple[str, str], Vector]:
        return self.patrols.cached

    def own(self, scope: Scope) -> list[Memory]:
        own = [one for one in self.memories.values() if one.being_id == scope.being_id]
        superseded = sorted(
            (one for one in own if one.superseded_by), key=lambda one: one.valid_until or one.created_at
        )
        before = {
            one.superseded_by: dated_start_of_superseded_text(one.scene.when, one.happened_at, one.scene.action)
            for one in superseded
        }
        return [replace(one, before=before.get(one.id, "")) for one in own]
