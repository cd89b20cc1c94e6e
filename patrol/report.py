"""What a patrol did, by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from madeleine.memory.model import RunId
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.deciding.prompts import GUIDANCE, GUIDANCE_FIRST, for_agent

StepName = Literal["assign", "age", "flag", "consolidate", "revive", "split", "merge", "compress", "diary"]
STEPS: tuple[StepName, ...] = (
    "assign", "age", "flag", "consolidate", "revive", "split", "merge", "compress", "diary",
)  # fmt: skip
"""❶ to ❼ of spec P6, then what spec L3 and P8 add."""
SYMBOLS: Mapping[StepName, str] = dict(zip(STEPS, "❶❷❸❹❺❻❼++", strict=True))
STEP_OF: Mapping[Kind, StepName] = {
    "consolidate": "consolidate", "split": "split", "compress": "compress", "diary": "diary",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StepReport:
    """`counts`: what the step did, by name. `skipped`: why it did not run, or "". `failed`: what went wrong, or "";
    what is counted was done before. `notes`: what else there is to say, a sentence each."""

    name: StepName
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: str = ""
    failed: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"step": SYMBOLS[self.name], "name": self.name, **self.counts}
        found |= {"skipped": self.skipped} if self.skipped else {}
        found |= {"failed": self.failed} if self.failed else {}
        return found | ({"notes": list(self.notes)} if self.notes else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What became of a decision of the calling agent. `refused`: why nothing of it was done, or "". `left_out`: what
    of it was not, a sentence each, as its memories have changed since they were offered."""

    offer: str
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"offer": self.offer, **self.counts}
        found |= {"refused": self.refused} if self.refused else {}
        return found | ({"left_out": list(self.left_out)} if self.left_out else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """On language models. `usd` is None if the price of a call is not known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "calls": self.calls, "input_tokens": self.input_tokens, "output_tokens": self.output_tokens
        }  # fmt: skip
        return found | ({} if self.usd is None else {"usd": round(self.usd, 6)})


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolReport:
    """`pending`: what waits for a decision, as much as fits into an answer; `waiting`: how much more does."""

    run_id: RunId
    dry_run: bool = False
    steps: tuple[StepReport, ...] = ()
    decided: tuple[Decided, ...] = ()
    spending: Spending = Spending()
    pending: tuple[Offer, ...] = ()
    waiting: int = 0

    def as_json(self) -> dict[str, Any]:
        """For whoever asked: with all that waits, and how to decide it."""
        found = self.as_record() | {"pending": [for_agent(offer) for offer in self.pending]}
        if self.pending:
            kinds = dict.fromkeys(offer.kind for offer in self.pending)
            found["guidance"] = {"how": GUIDANCE_FIRST} | {kind: GUIDANCE[kind] for kind in kinds}
        return found | ({"waiting": self.waiting} if self.waiting else {})

    def as_record(self) -> dict[str, Any]:
        """As the ledger keeps it: no words of a memory."""
        found: dict[str, Any] = {
            "run_id": self.run_id,
            "dry_run": self.dry_run,
            "steps": [step.as_json() for step in self.steps],
        }
        found |= {"decided": [one.as_json() for one in self.decided]} if self.decided else {}
        return found | ({"spent": self.spending.as_json()} if self.spending.calls else {})
