"""Operational data over SQLite, over PostgreSQL and in memory keeps one contract; companies are apart (spec O10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from madeleine.backends import MemoryConfigError, MemoryConnectionError, connected_backend
from madeleine.backends.persistence import PersistenceBackend, PersistenceConfig, create_persistence_backend
from madeleine.memory.audit import AuditEventKind
from madeleine.memory.errors import StorageError
from madeleine.memory.model import RunId, Scope
from madeleine.memory.operations.risk import RISK_BY_AUDIT_EVENT
from madeleine.storage.sql.ledger import open_ledger
from tests.backends.persistence_contract import PersistenceContract, action, message, task
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, memory
from tests.postgres import PostgresCluster


class TestSqlitePersistence(PersistenceContract):
    @pytest.fixture
    async def backend(self, new_db: Path) -> AsyncIterator[PersistenceBackend]:
        async with connected_backend(create_persistence_backend(PersistenceConfig(data_dir=new_db.parent))) as backend:
            yield backend


class TestPostgresPersistence(PersistenceContract):
    @pytest.fixture
    async def backend(self, postgres: PostgresCluster) -> AsyncIterator[PersistenceBackend]:
        async with postgres.emptied_database() as url:
            config = PersistenceConfig(backend="postgresql", database_url=url)
            async with connected_backend(create_persistence_backend(config)) as backend:
                yield backend


class TestInMemoryPersistence(PersistenceContract):
    @pytest.fixture
    async def backend(self) -> AsyncIterator[PersistenceBackend]:
        async with connected_backend(create_persistence_backend(PersistenceConfig(backend="in_memory"))) as backend:
            yield backend


async def test_patrols_are_tasks_and_what_was_done_to_memories_is_in_the_audit(new_db: Path) -> None:
    """The ledger is open at the same time, as by a host."""
    desk, one = Scope(ADA.being_id, "desk", "senior"), memory("one")
    config = PersistenceConfig(data_dir=new_db.parent)
    async with open_ledger(new_db) as ledger, connected_backend(create_persistence_backend(config)) as backend:
        await ledger.memories.commit_store_batch(desk, batch(one))
        await ledger.patrols.begin_run(desk, RunId("run"), MOMENT)
        await ledger.patrols.finish_run(desk, RunId("run"), MOMENT + timedelta(seconds=3), {"steps": [1]})
        await ledger.erasure.forget(desk, [one.id], at=MOMENT + timedelta(seconds=4))
        own = task("t1", 10**6)
        await backend.tasks.save(own)
        [patrol] = await backend.tasks.list_tasks(kind="patrol", assigned_to=ADA.being_id)
        assert (patrol.id, patrol.title, patrol.status, patrol.details) == ("run", "patrol", "finished", {"steps": [1]})
        assert (patrol.created_at, patrol.updated_at) == (MOMENT, MOMENT + timedelta(seconds=3))
        assert await backend.tasks.list_tasks() == (own,)
        assert await backend.tasks.list_tasks(kind=None) == (patrol, own)
        assert (await backend.tasks.get("run"), await backend.tasks.delete("run")) == (patrol, False)
        await backend.audit_entries.save(action("1", 10**6))
        [mine, forgotten, finished, stored] = await backend.audit_entries.query(agent_id=ADA.being_id)
        assert (mine.source, forgotten.source) == ("application", "memory")
        assert [(entry.action, entry.risk) for entry in (forgotten, finished, stored)] == [
            ("forget", "high"),
            ("patrol", "medium"),
            ("store", "low"),
        ]
        assert stored.ids == (one.id,)
        assert await backend.audit_entries.query(risk="high", verdict="allow") == (forgotten,)
        assert await backend.audit_entries.query(agent_id=BOB.being_id) == ()
        # What is deleted leaves the files too: it is marked for the host.
        before = len(await ledger.erasure.pending_scrub_marks_with_memory_ids())
        await backend.messages.save(message("m"))
        await backend.messages.delete_channel("#ops")
        await backend.tasks.delete("t1")
        assert len(await ledger.erasure.pending_scrub_marks_with_memory_ids()) == before + 2


def test_each_event_of_the_memory_s_audit_has_a_risk() -> None:
    assert set(RISK_BY_AUDIT_EVENT) == set(get_args(AuditEventKind))


async def test_one_company_has_nothing_of_another_s(tmp_path: Path) -> None:
    configs = [PersistenceConfig(data_dir=tmp_path / name) for name in ("first", "second")]
    async with (
        connected_backend(create_persistence_backend(configs[0])) as first,
        connected_backend(create_persistence_backend(configs[1])) as second,
    ):
        await first.tasks.save(task("t1"))
        held = first.tasks
        assert await second.tasks.get("t1") is None
        await first.disconnect()
        with pytest.raises(StorageError, match="closed"):
            await held.get("t1")
        assert await second.health_check()


async def test_a_configuration_that_cannot_be_used_is_refused_with_the_reason(tmp_path: Path) -> None:
    url = "postgresql://ada:secret@db.example/company"
    for config, reason in (
        (PersistenceConfig(), "sqlite needs data_dir and nothing else"),
        (PersistenceConfig(data_dir=tmp_path, database_url=url), "sqlite needs data_dir and nothing else"),
        (PersistenceConfig(backend="postgresql", data_dir=tmp_path), "postgresql needs database_url and nothing else"),
        (PersistenceConfig(backend="in_memory", data_dir=tmp_path), "in_memory needs neither"),
    ):
        with pytest.raises(MemoryConfigError, match=reason):
            create_persistence_backend(config)
    assert "secret" not in repr(PersistenceConfig(backend="postgresql", database_url=url))
    with pytest.raises(ValidationError, match="timezone"):
        task("t1", created_at="2026-03-01T12:00:00")
    (tmp_path / "file").touch()
    for broken in (
        PersistenceConfig(data_dir=tmp_path / "file"),
        PersistenceConfig(backend="postgresql", database_url="postgresql://madeleine@/x?host=/nowhere"),
    ):
        backend = create_persistence_backend(broken)
        with pytest.raises(MemoryConnectionError):
            await backend.connect()
        assert (backend.is_connected, await backend.health_check()) == (False, False)
