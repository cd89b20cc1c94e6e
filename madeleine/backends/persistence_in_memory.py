"""Operational data that is kept in the program, for tests (spec O10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, Unpack

from madeleine.memory.operations.ports import DEFAULT_RECORD_LIMIT
from madeleine.memory.operations.refusals import (
    ActionAlreadyRecorded,
    require_audit_record_written_by_application,
    require_task_is_not_patrol_run,
)
from madeleine.memory.operations.values import (
    AgentState,
    AuditFilter,
    AuditRecord,
    CostFilter,
    CostGrouping,
    CostRecord,
    CostTotal,
    Message,
    OperationalRecord,
    Project,
    Setting,
    Task,
    TaskFilter,
    TaskRecordKind,
)

RecordT = TypeVar("RecordT", bound=OperationalRecord)


def _selected(records: Iterable[RecordT], filter: Mapping[str, Any]) -> list[RecordT]:
    """Those that have each value that is given; `since` and `until` are inclusive."""
    fields = {name: value for name, value in filter.items() if value is not None}
    since, until = fields.pop("since", None), fields.pop("until", None)
    return [
        record
        for record in records
        if all(getattr(record, name) == value for name, value in fields.items())
        and (since is None or since <= record.at)  # type: ignore[attr-defined]
        and (until is None or record.at <= until)  # type: ignore[attr-defined]
    ]


class _Records(Generic[RecordT]):
    """Records by the values of `keys`."""

    keys: tuple[str, ...]

    def __init__(self) -> None:
        self._records: dict[tuple[str, ...], RecordT] = {}

    async def save(self, record: RecordT, /) -> None:
        self._records[tuple(getattr(record, key) for key in self.keys)] = record

    def _list(self, **filter: str | None) -> tuple[RecordT, ...]:
        in_order = (self._records[key] for key in sorted(self._records))
        return tuple(_selected(in_order, filter))


class InMemoryTasks(_Records[Task]):
    """`TaskRepository`; no patrol runs here."""

    keys = ("id",)

    async def save(self, task: Task, /) -> None:
        require_task_is_not_patrol_run(task)
        await super().save(task)

    async def get(self, task_id: str) -> Task | None:
        return self._records.get((task_id,))

    async def list_tasks(
        self, *, kind: TaskRecordKind | None = "task", limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[TaskFilter]
    ) -> tuple[Task, ...]:
        tasks = _selected(self._records.values(), {"kind": kind, **filter})
        return tuple(sorted(tasks, key=lambda task: (task.created_at, task.id)))[:limit]

    async def delete(self, task_id: str) -> bool:
        return self._records.pop((task_id,), None) is not None


class InMemoryCosts:
    """`CostRecordRepository`."""

    def __init__(self) -> None:
        self._records: list[CostRecord] = []

    async def save(self, record: CostRecord) -> None:
        self._records.append(record)

    async def query(self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[CostFilter]) -> tuple[CostRecord, ...]:
        return tuple(_latest_first(_selected(self._records, filter))[:limit])

    async def aggregate(self, **filter: Unpack[CostFilter]) -> float:
        return sum((record.usd or 0.0 for record in _selected(self._records, filter)), 0.0)

    async def totals(self, by: CostGrouping, **filter: Unpack[CostFilter]) -> tuple[CostTotal, ...]:
        groups: defaultdict[str, list[CostRecord]] = defaultdict(list)
        for record in _selected(self._records, filter):
            groups[_group(record, by)].append(record)
        totals = [_total(group, records) for group, records in sorted(groups.items())]
        if by in ("day", "run"):
            return tuple(sorted(totals, key=lambda total: total.first))
        return tuple(sorted(totals, key=lambda total: -total.input_tokens - total.output_tokens))


def _group(record: CostRecord, by: CostGrouping) -> str:
    if by == "day":
        return record.at.astimezone(UTC).date().isoformat()
    return str(getattr(record, {"run": "task_id", "being": "agent_id"}.get(by, by)))


def _total(group: str, records: list[CostRecord]) -> CostTotal:
    prices = [record.usd for record in records if record.usd is not None]
    moments: list[datetime] = [record.at for record in records]
    return CostTotal(
        group=group,
        calls=len(records),
        input_tokens=sum(record.input_tokens for record in records),
        output_tokens=sum(record.output_tokens for record in records),
        usd=sum(prices) if prices else None,
        unpriced_calls=len(records) - len(prices),
        first=min(moments),
        last=max(moments),
    )


class InMemoryMessages:
    """`MessageRepository`."""

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}

    async def save(self, message: Message) -> None:
        self._messages.setdefault(message.id, message)

    async def get_history(self, channel: str, *, limit: int | None = None) -> tuple[Message, ...]:
        latest = _latest_first(_selected(self._messages.values(), {"channel": channel}))
        return tuple(latest[:limit][::-1])

    async def delete_channel(self, channel: str) -> int:
        messages = _selected(self._messages.values(), {"channel": channel})
        for message in messages:
            del self._messages[message.id]
        return len(messages)


class InMemoryAudit:
    """`AuditRepository`, of the application alone."""

    def __init__(self) -> None:
        self._records: dict[str, AuditRecord] = {}

    async def save(self, record: AuditRecord) -> None:
        require_audit_record_written_by_application(record)
        if record.id in self._records:
            raise ActionAlreadyRecorded(record.id)
        self._records[record.id] = record

    async def query(
        self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[AuditFilter]
    ) -> tuple[AuditRecord, ...]:
        return tuple(_latest_first(_selected(self._records.values(), filter))[:limit])


class InMemoryAgentStates(_Records[AgentState]):
    """`AgentStateRepository`."""

    keys = ("agent_id",)

    async def get(self, agent_id: str) -> AgentState | None:
        return self._records.get((agent_id,))

    async def list_states(self, *, status: str | None = None) -> tuple[AgentState, ...]:
        return self._list(status=status)

    async def delete(self, agent_id: str) -> bool:
        return self._records.pop((agent_id,), None) is not None


class InMemorySettings(_Records[Setting]):
    """`SettingsRepository`."""

    keys = ("namespace", "key")

    async def get(self, namespace: str, key: str) -> Setting | None:
        return self._records.get((namespace, key))

    async def list_settings(self, *, namespace: str | None = None) -> tuple[Setting, ...]:
        return self._list(namespace=namespace)

    async def delete(self, namespace: str, key: str) -> bool:
        return self._records.pop((namespace, key), None) is not None


class InMemoryProjects(_Records[Project]):
    """`ProjectRepository`."""

    keys = ("id",)

    async def get(self, project_id: str) -> Project | None:
        return self._records.get((project_id,))

    async def list_projects(self, *, status: str | None = None, lead: str | None = None) -> tuple[Project, ...]:
        return self._list(status=status, lead=lead)

    async def delete(self, project_id: str) -> bool:
        return self._records.pop((project_id,), None) is not None


class InMemoryRepositories:
    def __init__(self) -> None:
        self.tasks = InMemoryTasks()
        self.cost_records = InMemoryCosts()
        self.messages = InMemoryMessages()
        self.audit_entries = InMemoryAudit()
        self.agent_states = InMemoryAgentStates()
        self.settings = InMemorySettings()
        self.projects = InMemoryProjects()


def _latest_first(records: list[Any]) -> list[Any]:
    """By time; of the same moment the last one that was saved."""
    return sorted(records, key=lambda record: record.at)[::-1]
