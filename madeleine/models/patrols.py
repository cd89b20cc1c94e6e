"""What a patrol did, and what it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field, model_validator

from madeleine.models.base import ClientAnswerBaseModel


class PatrolStepReport(ClientAnswerBaseModel):
    """`counts`: what the step did, by name. `skipped`, `failed`: why, or ""."""

    name: str
    counts: Mapping[str, int] = Field(default_factory=dict)
    skipped: str = ""
    failed: str = ""
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _collect_counts(cls, answer: Any) -> Any:
        if not isinstance(answer, Mapping) or "counts" in answer:
            return answer
        counts = {name: value for name, value in answer.items() if type(value) is int}
        return {**answer, "counts": counts}


class PatrolSpending(ClientAnswerBaseModel):
    """On language models. `usd` is None if a price is not known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


class PatrolReport(ClientAnswerBaseModel):
    """`pending`: decisions that a language model or the caller has to make, as `guidance` (kind → instructions) says;
    `still_open`: offers of an earlier answer; `waiting`: how many more there are today."""

    run_id: str
    dry_run: bool = False
    steps: tuple[PatrolStepReport, ...] = ()
    decided: Sequence[Mapping[str, Any]] = ()
    pending: Sequence[Mapping[str, Any]] = ()
    guidance: Mapping[str, str] = Field(default_factory=dict)
    still_open: tuple[str, ...] = ()
    waiting: int = 0
    spent: PatrolSpending = PatrolSpending()
    undone: Mapping[str, int] = Field(default_factory=dict)
    """What `undo` put back, by name."""
