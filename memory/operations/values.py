"""Operational records: frozen models (spec O10). An agent is a being; moments have a time zone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypedDict

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, StringConstraints

NotBlankStr = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Count = Annotated[int, Field(ge=0)]
JsonDetails = dict[str, JsonValue]
"""What the application keeps with a record. Nothing searches it."""


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


TaskRecordKind = Literal["task", "patrol"]
"""`patrol`: a patrol's run, which patrols alone write."""


class TaskFilter(TypedDict, total=False):
    """All that is given must hold."""

    status: str | None
    assigned_to: str | None
    project: str | None


class Task(OperationalRecord):
    """`status`: the application's word, and for a patrol that of its run: running, finished, undone, rolled_back,
    pruned, unjournalled. `details` of a patrol are its report. `assigned_to`: an agent, "" for nobody."""

    id: NotBlankStr
    title: NotBlankStr
    status: NotBlankStr
    assigned_to: str = ""
    project: str = ""
    created_at: AwareDatetime
    updated_at: AwareDatetime
    details: JsonDetails = {}
    kind: TaskRecordKind = "task"


class Message(OperationalRecord):
    """What an agent wrote to others in a channel. It is never changed."""

    id: NotBlankStr
    channel: NotBlankStr
    sender: NotBlankStr
    text: str
    at: AwareDatetime
    details: JsonDetails = {}


ActionPermissionVerdict = Literal["allow", "deny", "escalate"]
RiskLevel = Literal["low", "medium", "high", "critical"]


class AuditRecord(OperationalRecord):
    """An action, and whether it was allowed. Ids only, never a text.

    `source`: `application` for what an application has recorded; `memory` for what was done to memories, where the
    action is the event, the verdict `allow`, since the memory's audit holds what was done, and the risk that of
    `RISK_BY_AUDIT_EVENT`. `agent_id`: who acted, "" for what concerns all agents.
    """

    id: NotBlankStr
    agent_id: str
    action: NotBlankStr
    verdict: ActionPermissionVerdict
    risk: RiskLevel
    at: AwareDatetime
    tool: str = ""
    ids: tuple[NotBlankStr, ...] = ()
    source: Literal["application", "memory"] = "application"


class AuditFilter(TypedDict, total=False):
    """All that is given must hold; `since` and `until` are inclusive."""

    agent_id: str | None
    action: str | None
    verdict: ActionPermissionVerdict | None
    risk: RiskLevel | None
    since: datetime | None
    until: datetime | None


class AgentState(OperationalRecord):
    """What an agent is doing. `status`: the application's word, as `idle`."""

    agent_id: NotBlankStr
    status: NotBlankStr
    task_id: str = ""
    updated_at: AwareDatetime
    details: JsonDetails = {}


class Setting(OperationalRecord):
    """A setting of the application; Madeleine's own are in its environment and `madeleine.toml`."""

    namespace: NotBlankStr
    key: NotBlankStr
    value: JsonValue
    updated_at: AwareDatetime


class Project(OperationalRecord):
    """`id`: what memories of the project have as their `project`. `lead`: an agent, "" for nobody."""

    id: NotBlankStr
    name: NotBlankStr
    status: NotBlankStr
    lead: str = ""
    created_at: AwareDatetime
    details: JsonDetails = {}
