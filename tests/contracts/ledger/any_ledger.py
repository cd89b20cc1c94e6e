"""A ledger as the contract suites see it: the repositories, each by the ports that it serves."""

from __future__ import annotations

from typing import Any, Protocol

from madeleine.memory.context.ports import ContextLedger, ProfileLedger
from madeleine.memory.ingest.ports import (
    BeingCentroidSourceLedger,
    ErasedBytesLedger,
    ForgetLedger,
    IndexingLedger,
    IngestLedger,
    NoteRecorder,
    RetractionAndUndoLedger,
    StoreScenesLedger,
    UpdateMemoryLedger,
)
from madeleine.memory.recall.ports import (
    BrowseLedger,
    KeywordSearchLedger,
    MessageTagSearchLedger,
    ReactivationRecorder,
    RecallLedger,
)
from madeleine.memory.short_ids import ShortIdLedger
from madeleine.memory.watch.ports import MemoryExtractionLedger, ObservationLedger, TokenSpendingLedger
from madeleine.patrol.ports import PatrolLedger
from madeleine.server.background.loops import ActivitySinceLastPatrolReader
from madeleine.storage.sql.administration import AuditEntryRepository


class MemoryPorts(StoreScenesLedger, UpdateMemoryLedger, RetractionAndUndoLedger, Protocol): ...


class AllMemoryPorts(MemoryPorts, IngestLedger, Protocol): ...


class ErasurePorts(ForgetLedger, ErasedBytesLedger, Protocol): ...


class RecallPorts(RecallLedger, BrowseLedger, Protocol): ...


class AllRecallPorts(RecallPorts, BeingCentroidSourceLedger, Protocol): ...


class ContextPorts(ContextLedger, ProfileLedger, Protocol): ...


class SearchPorts(KeywordSearchLedger, MessageTagSearchLedger, Protocol): ...


class PatrolPorts(PatrolLedger, ActivitySinceLastPatrolReader, TokenSpendingLedger, Protocol): ...


class ConversationPorts(ObservationLedger, MemoryExtractionLedger, Protocol): ...


class IndexPorts(IndexingLedger, Protocol):
    async def setting(self, name: str) -> Any: ...

    async def set_setting(self, name: str, value: Any) -> None: ...


class StoringLedger(Protocol):
    """What use cases need that store, change, recall, browse and index."""

    @property
    def activations(self) -> ReactivationRecorder: ...
    @property
    def memories(self) -> MemoryPorts: ...
    @property
    def recall(self) -> RecallPorts: ...
    @property
    def index_source(self) -> IndexPorts: ...
    @property
    def short_ids(self) -> ShortIdLedger: ...
    @property
    def search(self) -> KeywordSearchLedger: ...
    @property
    def context(self) -> NoteRecorder: ...
    @property
    def patrols(self) -> PatrolLedger: ...


class AnyLedger(StoringLedger, Protocol):
    @property
    def search(self) -> SearchPorts: ...
    @property
    def memories(self) -> AllMemoryPorts: ...
    @property
    def recall(self) -> AllRecallPorts: ...
    @property
    def erasure(self) -> ErasurePorts: ...
    @property
    def conversations(self) -> ConversationPorts: ...
    @property
    def context(self) -> ContextPorts: ...
    @property
    def patrols(self) -> PatrolPorts: ...
    @property
    def audit(self) -> AuditEntryRepository: ...
