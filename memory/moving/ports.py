"""What import needs of the ledger, and its outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from madeleine.memory.ingest.ports import ErasureResult
from madeleine.memory.model import BeingId, ClusterId, EmbeddingModelName, MemoryId, Scope
from madeleine.memory.moving.record_base import ExportHeader
from madeleine.memory.moving.records import AnyExportRecord

RecordNotImportedReason = Literal["different", "taken", "forgotten"]
MAX_RECORDS_LISTED_IN_IMPORT_REPORT = 1_000
"""Records that a report names; all are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLeftOutOfImport:
    """A record that was not taken. `different`: another content stands here under the same id, and stays as it is.
    `taken`: the id is another being's. `forgotten`: it was forgotten here since."""

    reason: RecordNotImportedReason
    type: str
    being: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """`added` and `known`: records by type; `renumbered`: memories whose short id is another one here."""

    id: str
    added: Mapping[str, int]
    known: Mapping[str, int]
    left_out_counts: Mapping[str, int] = field(default_factory=dict)
    left_out: Sequence[RecordLeftOutOfImport] = ()
    renumbered: int = 0
    memory_ids: Sequence[MemoryId] = ()
    cluster_ids: Sequence[ClusterId] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportUndoResult:
    """`removed` and `kept`: records by type; kept is what was changed or built upon since."""

    removed: Mapping[str, int]
    kept: Mapping[str, int]
    erased: ErasureResult


@dataclass(frozen=True, slots=True, kw_only=True)
class PastImport:
    id: str
    source: str
    at: datetime
    state: Literal["imported", "undone", "unfinished"]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCopyFileRecord:
    """A file that holds what the ledger held when it was made; `replaced`: the folder of the memory that a restore has
    put aside. `being_id`: whose; "" for all beings'."""

    path: str
    kind: Literal["export", "backup", "replaced"]
    being_id: BeingId
    made_at: datetime


class LedgerCopyRegister(Protocol):
    async def record_ledger_copy(self, copy: LedgerCopyFileRecord) -> None:
        """In place of an earlier one of that path."""

    async def recorded_ledger_copies(self) -> list[LedgerCopyFileRecord]:
        """The oldest first."""

    async def delete_ledger_copy_records(self, paths: Sequence[str]) -> None: ...


class OtherProgramImportLedger(Protocol):
    """Imports from other programs. What they add is remembered by whoever adds it, as `import_id` of it."""

    async def begin_or_resume_import(self, scope: Scope, source: str, *, at: datetime) -> str:
        """The id of a new import, or of the one from that source that has not ended."""

    async def end_import_and_count_added_by_type(self, scope: Scope, import_id: str, *, at: datetime) -> dict[str, int]:
        """The number of records that the import has added, by type. One that has added nothing is not kept."""

    async def forgotten_imported_memory_keys(self, scope: Scope, keys: Sequence[str]) -> set[str]:
        """Of the keys of statements those whose memories were forgotten: they do not come back."""


class ImportLedger(Protocol):
    async def import_records(
        self,
        header: ExportHeader,
        records: Iterator[AnyExportRecord],
        *,
        source: str,
        client: str,
        at: datetime,
        dry_run: bool,
    ) -> ImportReport:
        """Add what is not here yet, in one durable transaction; nothing if `records` raises, or for a dry run.

        Nothing that is here is overwritten. What was forgotten here is erased from it as `forget` does, and so is what
        tells of it. `records` is read in a thread, in the order of `EXPORT_RECORD_CLASSES`.
        """

    async def undo_import(self, import_id: str, *, client: str, at: datetime) -> ImportUndoResult:
        """Take back what the import added, unless it was changed or built upon since. Raises `CannotUndo`."""

    async def import_holds_shared_knowledge(self, import_id: str) -> bool:
        """Whether the import added anything to what all beings share."""

    async def past_imports(self) -> list[PastImport]:
        """The latest first."""

    async def recompute_cluster_vectors(self, ids: Sequence[ClusterId], *, model: EmbeddingModelName) -> None:
        """Compute the means of these clusters from the vectors of their memories (spec P3)."""
