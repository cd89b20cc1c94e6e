"""Operational records: frozen models (spec O10). An agent is a being; moments have a time zone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypedDict

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

NotBlankStr = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Count = Annotated[int, Field(ge=0)]


class OperationalRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CostRecord(OperationalRecord):
    """What one call of a language model cost. `task_id`: of the task or the patrol's run that it was made for;
    Madeleine's calls outside patrols have a name in its place, as `recall`. `usd`: US dollars, None if the price is
    unknown."""

    agent_id: NotBlankStr
    task_id: NotBlankStr
    purpose: NotBlankStr
    model: NotBlankStr
    at: AwareDatetime
    input_tokens: Count
    output_tokens: Count
    usd: Annotated[float, Field(ge=0)] | None = None


CostGrouping = Literal["day", "run", "model", "purpose", "being"]
"""`day`: in UTC; `run`: by `task_id`; `being`: by `agent_id`."""


class CostTotal(OperationalRecord):
    """The calls of a day, a run, a model, a purpose or a being. `usd`: of the calls with a known price, None if there
    are none; `unpriced_calls`: the number of the others. `first` and `last`: when the first and the last call was."""

    group: str
    calls: Count
    input_tokens: Count
    output_tokens: Count
    usd: float | None
    unpriced_calls: Count
    first: AwareDatetime
    last: AwareDatetime


class CostFilter(TypedDict, total=False):
    """All that is given must hold; `since` and `until` are inclusive."""

    agent_id: str | None
    task_id: str | None
    model: str | None
    purpose: str | None
    since: datetime | None
    until: datetime | None
