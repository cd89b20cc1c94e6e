"""What every persistence backend must do (spec O10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from madeleine.backends import MemoryConnectionError
from madeleine.backends.persistence import (
    AgentState,
    AgentStateRepository,
    AuditRecord,
    AuditRepository,
    CostRecordRepository,
    Message,
    MessageRepository,
    PersistenceBackend,
    Project,
    ProjectRepository,
    Setting,
    SettingsRepository,
    Task,
    TaskRepository,
)
from madeleine.memory.errors import InvalidInput
from madeleine.memory.operations.values import AuditFilter
from tests.contracts.ledger.cost_contract import CostContract

NOON = datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)
REPOSITORIES = {
    "tasks": TaskRepository,
    "cost_records": CostRecordRepository,
    "messages": MessageRepository,
    "audit_entries": AuditRepository,
    "agent_states": AgentStateRepository,
    "settings": SettingsRepository,
    "projects": ProjectRepository,
}


def later(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


def task(id_: str, minutes: int = 0, **fields: object) -> Task:
    moments = {"created_at": later(minutes), "updated_at": later(minutes)}
    return Task.model_validate({"id": id_, "title": f"Task {id_}", "status": "open"} | moments | fields)


def message(id_: str, minutes: int = 0, channel: str = "#ops") -> Message:
    return Message(id=id_, channel=channel, sender="ada", text=f"Zoë wrote {id_}", at=later(minutes))


def action(id_: str, minutes: int = 0, **fields: object) -> AuditRecord:
    usual = {"agent_id": "ada", "action": "deploy", "verdict": "allow", "risk": "low", "at": later(minutes)}
    return AuditRecord.model_validate({"id": id_} | usual | fields)


class PersistenceContract(CostContract):
    """Subclasses have a fixture `backend`: connected, without records."""

    @pytest.fixture
    def costs(self, backend: PersistenceBackend) -> CostRecordRepository:
        return backend.cost_records

    async def test_it_has_a_life_cycle_and_keeps_what_was_stored(self, backend: PersistenceBackend) -> None:
        assert isinstance(backend, PersistenceBackend)
        for name, protocol in REPOSITORIES.items():
            assert isinstance(getattr(backend, name), protocol), name
        kept = task("t1")
        await backend.tasks.save(kept)
        await backend.connect()
        await backend.migrate()
        assert (backend.is_connected, await backend.health_check()) == (True, True)
        await backend.disconnect()
        await backend.disconnect()
        assert (backend.is_connected, await backend.health_check()) == (False, False)
        assert isinstance(backend, PersistenceBackend)
        for name in REPOSITORIES:
            with pytest.raises(MemoryConnectionError, match=r"await connect\(\) first"):
                await getattr(backend, name).save(kept)
        with pytest.raises(MemoryConnectionError):
            await backend.migrate()
        await backend.connect()
        assert await backend.tasks.get("t1") == kept

    async def test_tasks_are_listed_by_status_assignee_and_project(self, backend: PersistenceBackend) -> None:
        tasks = backend.tasks
        first = task("b", 0, assigned_to="ada", project="site", details={"steps": [1, {"done": True}], "note": "Zoë"})
        second, third = task("a", 1, assigned_to="ada", status="done"), task("c", 2, project="site")
        for one in (third, first, second):
            await tasks.save(one)
        assert await tasks.list_tasks() == (first, second, third)
        assert await tasks.list_tasks(assigned_to="ada", project="site", status="open") == (first,)
        assert await tasks.list_tasks(project="site", limit=1) == (first,)
        assert await tasks.list_tasks(status="gone") == await tasks.list_tasks(kind="patrol") == ()
        done = first.model_copy(update={"status": "done", "updated_at": later(9), "details": {}})
        await tasks.save(done)
        assert (await tasks.get("b"), await tasks.list_tasks(status="done")) == (done, (done, second))
        assert [await tasks.delete("b"), await tasks.delete("b"), await tasks.get("b")] == [True, False, None]
        with pytest.raises(InvalidInput, match="written by the patrol"):
            await tasks.save(task("p", kind="patrol"))

    async def test_a_channel_has_its_messages_in_order_until_it_is_deleted(self, backend: PersistenceBackend) -> None:
        messages = backend.messages
        sent = [message("z"), message("y"), message("x", 1), message("w", -1, "#other")]
        for one in (sent[2], sent[0], sent[1], sent[3]):
            await messages.save(one)
        await messages.save(message("z", 5, "#other"))
        assert await messages.get_history("#ops") == tuple(sent[:3])
        assert await messages.get_history("#ops", limit=2) == tuple(sent[1:3])
        assert await messages.get_history("#other") == (sent[3],)
        assert [await messages.delete_channel("#ops"), await messages.delete_channel("#ops")] == [3, 0]
        assert await messages.get_history("#ops") == ()
        assert await messages.get_history("#other") == (sent[3],)

    async def test_the_audit_is_asked_by_agent_action_verdict_risk_and_time(self, backend: PersistenceBackend) -> None:
        audit = backend.audit_entries
        records = [
            action("1", ids=("t1", "t2"), tool="shell"),
            action("2", 1, verdict="deny", risk="critical"),
            action("3", 2, agent_id="bob", action="merge", verdict="escalate", risk="high"),
            action("4", 2, agent_id="bob"),
        ]
        for record in records:
            await audit.save(record)
        assert await audit.query() == tuple(records[::-1])
        assert await audit.query(limit=2) == (records[3], records[2])
        filters: list[tuple[AuditFilter, list[int]]] = [
            ({"agent_id": "ada"}, [1, 0]),
            ({"action": "deploy", "verdict": "allow"}, [3, 0]),
            ({"verdict": "deny"}, [1]),
            ({"risk": "high"}, [2]),
            ({"since": later(1)}, [3, 2, 1]),
            ({"since": later(1), "until": later(1)}, [1]),
            ({"agent_id": "bob", "risk": "critical"}, []),
        ]
        for filter_, places in filters:
            assert await audit.query(**filter_) == tuple(records[place] for place in places), filter_
        with pytest.raises(InvalidInput, match="only added to"):
            await audit.save(action("1", 9, verdict="deny"))
        with pytest.raises(InvalidInput, match="recorded by the memory"):
            await audit.save(action("5", source="memory"))
        assert await audit.query() == tuple(records[::-1])

    async def test_states_settings_and_projects_are_kept_by_their_keys(self, backend: PersistenceBackend) -> None:
        states = backend.agent_states
        idle = AgentState(agent_id="bob", status="idle", updated_at=NOON)
        busy = AgentState(agent_id="ada", status="busy", task_id="t1", updated_at=NOON, details={"turn": 3})
        for state in (idle, busy.model_copy(update={"status": "idle"}), busy):
            await states.save(state)
        assert (await states.list_states(), await states.list_states(status="idle")) == ((busy, idle), (idle,))
        assert (await states.get("ada"), await states.get("eve")) == (busy, None)
        assert [await states.delete("ada"), await states.delete("ada")] == [True, False]
        assert await states.list_states() == (idle,)

        settings = backend.settings
        values = [
            Setting.model_validate({"namespace": namespace, "key": key, "value": value, "updated_at": NOON})
            for namespace, key, value in (
                *(("budget", "daily", 12.5), ("budget", "names", ["Zoë", None]), ("ui", "daily", "dark")),
                *(("ui", "nothing", None), ("ui", "on", True), ("ui", "sizes", {"a": {"b": 1}})),
            )
        ]
        for setting in values[::-1]:
            await settings.save(setting)
        assert await settings.list_settings() == tuple(values)
        assert await settings.list_settings(namespace="budget") == tuple(values[:2])
        changed = values[2].model_copy(update={"value": ["light"], "updated_at": later(1)})
        await settings.save(changed)
        assert (await settings.get("ui", "daily"), await settings.get("ui", "none")) == (changed, None)
        assert [await settings.delete("ui", "daily"), await settings.delete("ui", "daily")] == [True, False]
        assert await settings.get("budget", "daily") == values[0]

        projects = backend.projects
        site = Project(id="site", name="The site", status="active", lead="lena", created_at=NOON, details={"x": 1})
        app = Project(id="app", name="The app", status="planned", created_at=NOON)
        for project in (site, app):
            await projects.save(project)
        assert (await projects.list_projects(), await projects.get("site")) == ((app, site), site)
        assert await projects.list_projects(status="active", lead="lena") == (site,)
        assert await projects.list_projects(status="active", lead="bob") == ()
        assert [await projects.delete("app"), await projects.delete("app")] == [True, False]
        assert await projects.list_projects() == (site,)
