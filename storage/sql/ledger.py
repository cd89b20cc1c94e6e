"""The ledger: the repositories of one memory database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from madeleine.storage.sql.administration import AuditEntryRepository
from madeleine.storage.sql.archive.repository import ArchiveRepository
from madeleine.storage.sql.conversations.chat import ConversationRepository
from madeleine.storage.sql.conversations.context import ContextRepository
from madeleine.storage.sql.conversations.core_blocks import CoreBlockRepository
from madeleine.storage.sql.database.engine import Database
from madeleine.storage.sql.database.opening import LedgerLocation, open_database
from madeleine.storage.sql.erasing.memories import ErasureRepository
from madeleine.storage.sql.memories.activations import ReactivationAndAuditWriter
from madeleine.storage.sql.memories.graph import GraphRepository
from madeleine.storage.sql.memories.graph_extraction import GraphExtractionRepository
from madeleine.storage.sql.memories.index_source import IndexingRepository
from madeleine.storage.sql.memories.knowledge import OrganisationKnowledgeRepository
from madeleine.storage.sql.memories.lessons import LessonRepository
from madeleine.storage.sql.memories.reading import RecallRepository
from madeleine.storage.sql.memories.short_ids import ShortIdRepository
from madeleine.storage.sql.memories.storing import MemoryRepository
from madeleine.storage.sql.moving.repository import ImportRepository, LedgerCopyRecordRepository
from madeleine.storage.sql.operations.costs import SqlCostRecordRepository
from madeleine.storage.sql.overview import WebUiOverviewRepository
from madeleine.storage.sql.patrols.repository import PatrolRepository
from madeleine.storage.sql.search.repository import KeywordAndTagSearchRepository


class LedgerRepositories:
    """Each repository implements the ports of the use cases that are given it; all share one database."""

    def __init__(self, database: Database, activations: ReactivationAndAuditWriter) -> None:
        self.database = database
        self.activations = activations
        self.memories = MemoryRepository(database)
        self.recall = RecallRepository(database)
        self.knowledge = OrganisationKnowledgeRepository(database)
        self.lessons = LessonRepository(database)
        self.graph_extraction = GraphExtractionRepository(database)
        self.graph = GraphRepository(database)
        self.core_blocks = CoreBlockRepository(database)
        self.short_ids = ShortIdRepository(database)
        self.index_source = IndexingRepository(database)
        self.erasure = ErasureRepository(database)
        self.search = KeywordAndTagSearchRepository(database)
        self.conversations = ConversationRepository(database)
        self.context = ContextRepository(database)
        self.patrols = PatrolRepository(database)
        self.costs = SqlCostRecordRepository(database)
        self.audit = AuditEntryRepository(database)
        self.archive = ArchiveRepository(database)
        self.imports = ImportRepository(database)
        self.copies = LedgerCopyRecordRepository(database)
        self.overview = WebUiOverviewRepository(database)


@asynccontextmanager
async def open_ledger(location: LedgerLocation) -> AsyncIterator[LedgerRepositories]:
    """Raises `StorageError` if it cannot be used, or was written by a newer version."""
    async with open_database(location) as database, ReactivationAndAuditWriter(database) as activations:
        ledger = LedgerRepositories(database, activations)
        if database.dialect == "postgresql":
            from madeleine.storage.sql.other_servers import install_multi_server_repositories

            install_multi_server_repositories(ledger)
        yield ledger
