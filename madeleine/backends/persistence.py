"""The operational data of a company behind protocols (spec O10): an application depends on these, and no SQL.

    async with connected_backend(create_persistence_backend(PersistenceConfig(data_dir=…))) as backend:
        await backend.tasks.save(Task(id="t1", …))

It stands in the ledger beside the company's memory, or in a database of its own. Its repositories raise
`MadeleineError`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, runtime_checkable

from pydantic import Field

from madeleine.backends.errors import MemoryConfigError, MemoryConnectionError, raised_as, require_connected
from madeleine.backends.persistence_in_memory import InMemoryRepositories
from madeleine.backends.protocols import BackendLifecycle
from madeleine.backends.values import BackendBaseModel
from madeleine.memory.errors import MadeleineError
from madeleine.memory.operations.ports import (
    AgentStateRepository,
    AuditRepository,
    CostRecordRepository,
    MessageRepository,
    ProjectRepository,
    SettingsRepository,
    TaskRepository,
)
from madeleine.memory.operations.values import (
    AgentState,
    AuditRecord,
    CostRecord,
    CostTotal,
    Message,
    NotBlankStr,
    Project,
    Setting,
    Task,
)

if TYPE_CHECKING:  # opening a database is the part that takes time to import
    from madeleine.storage.sql.operations.repositories import OperationalRepositories

__all__ = [
    "AgentState",
    "AgentStateRepository",
    "AuditRecord",
    "AuditRepository",
    "CostRecord",
    "CostRecordRepository",
    "CostTotal",
    "Message",
    "MessageRepository",
    "PersistenceBackend",
    "PersistenceConfig",
    "Project",
    "ProjectRepository",
    "Setting",
    "SettingsRepository",
    "Task",
    "TaskRepository",
    "create_persistence_backend",
]


class PersistenceConfig(BackendBaseModel):
    """One company's database: `data_dir`, whose ledger is a file of SQLite, or `database_url` of one on PostgreSQL, as
    `postgresql://user@host:5432/company`. A backend in memory has neither."""

    backend: Literal["sqlite", "postgresql", "in_memory"] = "sqlite"
    data_dir: Path | None = None
    database_url: NotBlankStr | None = Field(default=None, repr=False)


@runtime_checkable
class PersistenceBackend(BackendLifecycle, Protocol):
    """The repositories of one company. Using one raises `MemoryConnectionError` before `connect` and after
    `disconnect`."""

    async def migrate(self) -> None:
        """Bring the tables to the newest schema. `connect` does so too; safe to repeat. Raises
        `MemoryConnectionError`."""

    @property
    def tasks(self) -> TaskRepository: ...
    @property
    def cost_records(self) -> CostRecordRepository: ...
    @property
    def messages(self) -> MessageRepository: ...
    @property
    def audit_entries(self) -> AuditRepository: ...
    @property
    def agent_states(self) -> AgentStateRepository: ...
    @property
    def settings(self) -> SettingsRepository: ...
    @property
    def projects(self) -> ProjectRepository: ...


class _NotConnected:
    """In the place of a repository. A property that raises would make `isinstance` raise, before Python 3.12."""

    def __getattr__(self, name: str) -> NoReturn:
        require_connected(False)
        raise AssertionError


_REPOSITORIES = ("tasks", "cost_records", "messages", "audit_entries", "agent_states", "settings", "projects")
_NOT_CONNECTED: Any = SimpleNamespace(**dict.fromkeys(_REPOSITORIES, _NotConnected()))


class _Backend:
    """What backends have in common: their repositories, while they are connected."""

    _repositories: OperationalRepositories | InMemoryRepositories | None = None

    @property
    def is_connected(self) -> bool:
        return self._repositories is not None

    async def health_check(self) -> bool:
        try:
            await self.settings.list_settings(namespace="health")
        except MadeleineError:
            return False
        return True

    @property
    def _connected(self) -> OperationalRepositories | InMemoryRepositories:
        return self._repositories or _NOT_CONNECTED

    @property
    def tasks(self) -> TaskRepository:
        return self._connected.tasks

    @property
    def cost_records(self) -> CostRecordRepository:
        return self._connected.cost_records

    @property
    def messages(self) -> MessageRepository:
        return self._connected.messages

    @property
    def audit_entries(self) -> AuditRepository:
        return self._connected.audit_entries

    @property
    def agent_states(self) -> AgentStateRepository:
        return self._connected.agent_states

    @property
    def settings(self) -> SettingsRepository:
        return self._connected.settings

    @property
    def projects(self) -> ProjectRepository:
        return self._connected.projects


class LedgerPersistenceBackend(_Backend):
    """`PersistenceBackend` over a ledger, beside the process that serves its memory, if there is one."""

    def __init__(self, config: PersistenceConfig) -> None:
        self._config = config
        self._stack: AsyncExitStack | None = None

    @property
    def backend_name(self) -> str:
        return self._config.backend

    async def connect(self) -> None:
        if self._stack is not None:
            return
        self._stack = AsyncExitStack()
        try:
            with raised_as(MemoryConnectionError):
                self._repositories = await self._stack.enter_async_context(self._opened())
        except BaseException:
            await self.disconnect()
            raise

    async def disconnect(self) -> None:
        stack, self._stack, self._repositories = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def migrate(self) -> None:
        require_connected(self.is_connected)
        with raised_as(MemoryConnectionError):
            async with self._opened():
                pass

    def _opened(self) -> AbstractAsyncContextManager[OperationalRepositories]:
        from madeleine.server.wiring import operations

        if self._config.database_url is not None:
            return operations.open_operational_data_of_url(self._config.database_url)
        assert self._config.data_dir is not None
        return operations.open_operational_data_of_directory(self._config.data_dir)


class InMemoryPersistenceBackend(_Backend):
    """`PersistenceBackend` that keeps everything in the program, for tests."""

    def __init__(self) -> None:
        self._kept = InMemoryRepositories()

    @property
    def backend_name(self) -> str:
        return "in_memory"

    async def connect(self) -> None:
        self._repositories = self._kept

    async def disconnect(self) -> None:
        self._repositories = None

    async def migrate(self) -> None:
        require_connected(self.is_connected)


def create_persistence_backend(config: PersistenceConfig) -> LedgerPersistenceBackend | InMemoryPersistenceBackend:
    """A backend of this company's own, not connected yet: nothing of it is shared with another company's.

    Raises `MemoryConfigError`.
    """
    needed = {"sqlite": {"data_dir"}, "postgresql": {"database_url"}, "in_memory": set[str]()}[config.backend]
    given = {name for name in ("data_dir", "database_url") if getattr(config, name) is not None}
    if given != needed:
        needs = f"needs {needed.pop()} and nothing else" if needed else "needs neither data_dir nor database_url"
        raise MemoryConfigError(f"The backend {config.backend} {needs}.")
    return LedgerPersistenceBackend(config) if needed else InMemoryPersistenceBackend()
