"""The ledger: the repositories of one memory database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from madeleine.storage.sql.conversations.chat import ConversationRepository
from madeleine.storage.sql.conversations.context import ContextRepository
from madeleine.storage.sql.conversations.ingested import IngestionRepository
from madeleine.storage.sql.database.engine import Database, open_database
from madeleine.storage.sql.erasing.memories import ErasureRepository
from madeleine.storage.sql.memories.activations import Activations
from madeleine.storage.sql.memories.browsing import BrowsingRepository
from madeleine.storage.sql.memories.centroid import CentroidRepository
from madeleine.storage.sql.memories.index_source import IndexSourceRepository
from madeleine.storage.sql.memories.memories import MemoryRepository
from madeleine.storage.sql.memories.recall import RecallRepository
from madeleine.storage.sql.memories.revisions import RevisionRepository
from madeleine.storage.sql.operations.audit import AuditRepository
from madeleine.storage.sql.operations.profile import ProfileRepository
from madeleine.storage.sql.patrols.activity import ActivityRepository
from madeleine.storage.sql.patrols.repository import PatrolRepository
from madeleine.storage.sql.search.repository import SearchRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Each repository implements the ports of the use cases that are given it; all share one database."""

    database: Database
    activations: Activations
    memories: MemoryRepository
    revisions: RevisionRepository
    recall: RecallRepository
    browsing: BrowsingRepository
    centroids: CentroidRepository
    index_source: IndexSourceRepository
    erasure: ErasureRepository
    search: SearchRepository
    conversations: ConversationRepository
    ingestion: IngestionRepository
    profile: ProfileRepository
    context: ContextRepository
    patrols: PatrolRepository
    activity: ActivityRepository
    audit: AuditRepository


@asynccontextmanager
async def open_ledger(path: Path) -> AsyncIterator[Ledger]:
    """Raises `StorageError` if the file cannot be used, or was written by a newer version."""
    async with open_database(path) as database, Activations(database) as activations:
        yield Ledger(
            database=database,
            activations=activations,
            memories=MemoryRepository(database),
            revisions=RevisionRepository(database),
            recall=RecallRepository(database),
            browsing=BrowsingRepository(database),
            centroids=CentroidRepository(database),
            index_source=IndexSourceRepository(database),
            erasure=ErasureRepository(database),
            search=SearchRepository(database),
            conversations=ConversationRepository(database),
            ingestion=IngestionRepository(database),
            profile=ProfileRepository(database),
            context=ContextRepository(database),
            patrols=PatrolRepository(database),
            activity=ActivityRepository(database),
            audit=AuditRepository(database),
        )
