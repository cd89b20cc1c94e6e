"""Repositories of operational data (spec O10). `isinstance` checks them at run time.

Writes are durable when they return. What is asked for by several arguments must meet all that are given. Every method
raises `StorageError` if the database fails or is closed.
"""

from __future__ import annotations

from typing import Protocol, Unpack, runtime_checkable

from madeleine.memory.operations.values import (
    AgentState,
    AuditFilter,
    AuditRecord,
    CostFilter,
    CostGrouping,
    CostRecord,
    CostTotal,
    Message,
    Project,
    Setting,
    Task,
    TaskFilter,
    TaskRecordKind,
)

DEFAULT_RECORD_LIMIT = 1_000
"""Records that a query returns at most, unless it says how many."""


@runtime_checkable
class CostRecordRepository(Protocol):
    """What calls of language models cost: Madeleine's own, and those that an application records."""

    async def save(self, record: CostRecord, /) -> None:
        """A record is never changed."""

    async def query(self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[CostFilter]) -> tuple[CostRecord, ...]:
        """The last `limit` of them, the latest first."""

    async def aggregate(self, **filter: Unpack[CostFilter]) -> float:
        """US dollars, of the calls whose price is known."""

    async def totals(self, by: CostGrouping, **filter: Unpack[CostFilter]) -> tuple[CostTotal, ...]:
        """Days and runs in the order of their first call; models, purposes and beings by their tokens, the most
        first."""


@runtime_checkable
class TaskRepository(Protocol):
    """An application's tasks; patrols are read beside them."""

    async def save(self, task: Task, /) -> None:
        """In place of the task of this id. Raises `InvalidInput` for a patrol."""

    async def get(self, task_id: str) -> Task | None: ...

    async def list_tasks(
        self, *, kind: TaskRecordKind | None = "task", limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[TaskFilter]
    ) -> tuple[Task, ...]:
        """The oldest first. `kind=None`: tasks and patrols."""

    async def delete(self, task_id: str) -> bool:
        """False if there is no task of this id; a patrol is none."""


@runtime_checkable
class MessageRepository(Protocol):
    """What agents write to each other. No memory is drawn from it: that is what `Memory.observe` is for."""

    async def save(self, message: Message, /) -> None:
        """A message whose id is taken stays as it was."""

    async def get_history(self, channel: str, *, limit: int | None = None) -> tuple[Message, ...]:
        """The last `limit` messages, all without one, the oldest first."""

    async def delete_channel(self, channel: str) -> int:
        """Erase its messages; their number."""


@runtime_checkable
class AuditRepository(Protocol):
    """What an application has decided, and what was done to memories, in one order. Nothing of it can be changed."""

    async def save(self, record: AuditRecord, /) -> None:
        """Raises `InvalidInput` for an id that is taken, and for a record of the memory's."""

    async def query(
        self, *, limit: int = DEFAULT_RECORD_LIMIT, **filter: Unpack[AuditFilter]
    ) -> tuple[AuditRecord, ...]:
        """The last `limit` of them, the latest first."""


@runtime_checkable
class AgentStateRepository(Protocol):
    async def save(self, state: AgentState, /) -> None:
        """In place of the agent's earlier state."""

    async def get(self, agent_id: str) -> AgentState | None: ...

    async def list_states(self, *, status: str | None = None) -> tuple[AgentState, ...]:
        """By agent."""

    async def delete(self, agent_id: str) -> bool:
        """False if the agent has none."""


@runtime_checkable
class SettingsRepository(Protocol):
    async def save(self, setting: Setting, /) -> None:
        """In place of the value that the key had."""

    async def get(self, namespace: str, key: str) -> Setting | None: ...

    async def list_settings(self, *, namespace: str | None = None) -> tuple[Setting, ...]:
        """By namespace and key."""

    async def delete(self, namespace: str, key: str) -> bool:
        """False if the key has no value."""


@runtime_checkable
class ProjectRepository(Protocol):
    """Projects of an application. Memories of a project are the memory's: deleting it here leaves them."""

    async def save(self, project: Project, /) -> None:
        """In place of the project of this id."""

    async def get(self, project_id: str) -> Project | None: ...

    async def list_projects(self, *, status: str | None = None, lead: str | None = None) -> tuple[Project, ...]:
        """By id."""

    async def delete(self, project_id: str) -> bool:
        """False if there is none of this id."""
