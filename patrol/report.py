"""What a patrol did, by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from madeleine.memory.model import MemoryId, RunId, short_id_of_non_memory
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.patrol.deciding.rendering import (
    AGENT_GUIDANCE_BY_DECISION_NAME,
    DECISION_GUIDANCE_INTRODUCTION,
    decision_guidance_names,
    decision_request_as_json_for_agent,
)
from madeleine.patrol.deciding.requests import DecisionRequest

PatrolStepName = Literal[
    "assign",
    "age",
    "flag",
    "consolidate",
    "revive",
    "split",
    "merge",
    "supersede",
    "repair",
    "compress",
    "diary",
    "retention",
]
PATROL_STEPS: tuple[PatrolStepName, ...] = get_args(PatrolStepName)
"""❶ to ❼ of spec P6, then what ruling 14, spec P6 ❶ 2, L3, P8 and O8 add."""
PATROL_STEP_SYMBOLS: Mapping[PatrolStepName, str] = dict(zip(PATROL_STEPS, "❶❷❸❹❺❻❼+++++", strict=True))


STEP_SKIP_REASON_WITHOUT_MODEL_KEY = "[graph] BYOK key not set: skipping ❹❻ diary/think_md (mechanical processing only)"
"""The words of spec P7."""
DECIDE_PENDING_ADVICE = "No language model is set up: decide what stands in `pending` yourself."
MORE_PENDING_GUIDANCE = "More wait: the answer to these brings the next, and so does each later patrol."


@dataclass(frozen=True, slots=True)
class PatrolProgress:
    """`done` of `total` steps are finished, `step` is the last of them; or, if `parts` is not 0, `part` of `parts` of
    the step `step`, which is running."""

    step: PatrolStepName
    done: int
    total: int
    part: int = 0
    parts: int = 0

    @property
    def steps_done(self) -> float:
        return self.done + (self.part / self.parts if self.parts else 0)

    @property
    def message(self) -> str:
        part = f": {self.part} of {self.parts}" if self.parts else ""
        return f"{PATROL_STEP_SYMBOLS[self.step]} {self.step}{part}"


@dataclass(frozen=True, slots=True)
class PatrolStepReport:
    """`counts`: what the step did, by name. `skipped`: why it did not run, or "". `failed`: what went wrong, or "";
    what is counted was done before. `notes`: what else there is to say, a sentence each."""

    name: PatrolStepName
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: str = ""
    failed: str = ""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        step = {"step": PATROL_STEP_SYMBOLS[self.name], "name": self.name, **self.counts}
        return step | _without_falsy_fields(skipped=self.skipped, failed=self.failed, notes=list(self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDecisionResult:
    """Result of a decision of the calling agent. `refused`: why nothing of it was done, or "". `left_out`: what of it
    was not done, a sentence each, as its memories have changed since they were offered, or what a superseded memory
    said besides."""

    offer: str
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: str = ""
    left_out: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        result = {"offer": short_id_of_non_memory(self.offer), **_without_falsy_fields(**self.counts)}
        if not (self.refused or self.left_out) and len(result) == 1:
            result["done"] = "nothing was changed, as you decided"
        return result | _without_falsy_fields(refused=self.refused, left_out=list(self.left_out))


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolModelCosts:
    """Of all calls of language models in a patrol. `usd` is None if the price of a call is not known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def as_json(self) -> dict[str, Any]:
        costs = asdict(self) | {"usd": None if self.usd is None else round(self.usd, 6)}
        return {name: value for name, value in costs.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolReport:
    """`pending`: what is to be decided, as much as fits into an answer; after decisions only what was not offered
    before, `still_open` names the rest (ruling 23). `waiting_count`: number of the day's other decisions. `explained`:
    `decision_guidance_names` of decisions that an answer before this one has told how to make."""

    run_id: RunId
    dry_run: bool = False
    steps: tuple[PatrolStepReport, ...] = ()
    decided: tuple[AgentDecisionResult, ...] = ()
    costs: PatrolModelCosts = PatrolModelCosts()
    pending: tuple[DecisionRequest, ...] = ()
    still_open: tuple[DecisionRequestId, ...] = ()
    waiting_count: int = 0
    explained: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """For the caller: with all that is to be decided now, and how to decide it."""
        guidance = {}
        names = [name for name in decision_guidance_names(self.pending) if name not in self.explained]
        if names:
            guidance = {"how": DECISION_GUIDANCE_INTRODUCTION} | {
                name: AGENT_GUIDANCE_BY_DECISION_NAME[name] for name in names
            }
        if self.waiting_count and not self.dry_run and not self.explained:
            guidance["waiting"] = MORE_PENDING_GUIDANCE
        report = self.as_json_for_ledger() | {"run_id": short_id_of_non_memory(self.run_id)}
        report |= {"pending": self._pending_as_json()}
        return report | _without_falsy_fields(
            guidance=guidance,
            still_open=[short_id_of_non_memory(id_) for id_ in self.still_open],
            waiting=self.waiting_count,
        )

    def as_json_without_empty_steps(self) -> dict[str, Any]:
        """`as_json` without what is 0 or false, and without idle steps; why steps were skipped once (ruling 23)."""
        skipped: dict[str, list[str]] = {}
        for step in self.steps:
            if step.skipped and step.skipped != STEP_SKIP_REASON_WITHOUT_MODEL_KEY:
                skipped.setdefault(step.skipped, []).append(step.name)
        without_key = any(step.skipped == STEP_SKIP_REASON_WITHOUT_MODEL_KEY for step in self.steps)
        notice = {"notice": f"{STEP_SKIP_REASON_WITHOUT_MODEL_KEY}. {DECIDE_PENDING_ADVICE}"} if without_key else {}
        steps = [replace(step, counts=_without_falsy_fields(**step.counts)) for step in self.steps if not step.skipped]
        shown = [step.as_json() for step in steps if step.counts or step.failed or step.notes]
        report = notice | self.as_json() | {"steps": shown} | _without_falsy_fields(skipped=skipped)
        return {name: value for name, value in report.items() if name != "dry_run" or value}

    def _pending_as_json(self) -> list[dict[str, Any]]:
        """Each memory's text once."""
        shown: set[MemoryId] = set()
        pending = []
        for request in self.pending:
            pending.append(decision_request_as_json_for_agent(request, shown))
            shown |= request.ids_shown_with_text
        return pending

    def as_json_for_ledger(self) -> dict[str, Any]:
        """As the ledger keeps it: no words of a memory."""
        record = {"run_id": self.run_id, "dry_run": self.dry_run, "steps": [step.as_json() for step in self.steps]}
        decided = [result.as_json() for result in self.decided]
        return record | _without_falsy_fields(decided=decided, spent=self.costs.as_json() if self.costs.calls else {})


def _without_falsy_fields(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
