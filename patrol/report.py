"""What a patrol did, by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memory.model import RunId

StepName = Literal["assign", "age", "flag", "consolidate", "revive", "split", "merge"]
STEPS: tuple[StepName, ...] = ("assign", "age", "flag", "consolidate", "revive", "split", "merge")
SYMBOLS: Mapping[StepName, str] = dict(zip(STEPS, "❶❷❸❹❺❻❼", strict=True))


@dataclass(frozen=True, slots=True)
class StepReport:
    """`counts`: what the step did, by name. `skipped`: why it did not run, or ""."""

    name: StepName
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: str = ""

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"step": SYMBOLS[self.name], "name": self.name}
        return found | ({"skipped": self.skipped} if self.skipped else dict(self.counts))


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that only a mind can decide: which memories of a cluster to merge (❹), or how to split it (❻)."""

    step: StepName
    cluster_id: str
    cluster: str
    memories: int

    def as_json(self) -> dict[str, Any]:
        return {"step": self.step, "cluster_id": self.cluster_id, "cluster": self.cluster, "memories": self.memories}


@dataclass(frozen=True, slots=True)
class PatrolReport:
    run_id: RunId
    dry_run: bool
    steps: tuple[StepReport, ...]
    pending: tuple[Pending, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "dry_run": self.dry_run,
            "steps": [step.as_json() for step in self.steps],
            "pending": [pending.as_json() for pending in self.pending],
        }
