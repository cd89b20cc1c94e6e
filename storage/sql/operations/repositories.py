"""All repositories of operational data over one database (spec O10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from madeleine.storage.sql.database.engine import Database
from madeleine.storage.sql.database.opening import LedgerLocation, open_database
from madeleine.storage.sql.operations.audit import SqlAuditRepository
from madeleine.storage.sql.operations.costs import SqlCostRecordRepository
from madeleine.storage.sql.operations.records import (
    SqlAgentStateRepository,
    SqlProjectRepository,
    SqlSettingsRepository,
)
from madeleine.storage.sql.operations.tasks import SqlChannelMessageRepository, SqlTaskRepository


class OperationalRepositories:
    def __init__(self, database: Database) -> None:
        self.tasks = SqlTaskRepository(database)
        self.cost_records = SqlCostRecordRepository(database)
        self.messages = SqlChannelMessageRepository(database)
        self.audit_entries = SqlAuditRepository(database)
        self.agent_states = SqlAgentStateRepository(database)
        self.settings = SqlSettingsRepository(database)
        self.projects = SqlProjectRepository(database)


@asynccontextmanager
async def open_application_record_repositories(location: LedgerLocation) -> AsyncIterator[OperationalRepositories]:
    """Those of a ledger, safe to open beside a running server. It is made if there is none, and brought to the newest
    schema. Raises `StorageError`, `InvalidInput`."""
    async with open_database(location) as database:
        yield OperationalRepositories(database)
