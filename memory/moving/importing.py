"""The use case: take an export back, for its own beings or for another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import EmbeddingUnavailable, IndexUnavailable, InvalidInput, NotPermitted
from madeleine.memory.ingest.erased_bytes import ErasedBytesScrubber
from madeleine.memory.ingest.index_keeper import IndexKeeper
from madeleine.memory.model import ORGANISATION_BEING_ID, Role, is_connectable_being
from madeleine.memory.moving.export_file import ExportFileReader
from madeleine.memory.moving.ports import ImportLedger, ImportReport, ImportUndoResult
from madeleine.memory.moving.records import AnyExportRecord
from madeleine.memory.moving.values import export_record_with_changed_texts, reassign_export_record_to_being
from madeleine.memory.permissions import KnowledgeWriteAccess
from madeleine.memory.rules.storing.secrets import RedactText

RECORDS_PER_PROGRESS_REPORT = 500
"""Records between two reports."""
ReportImportProgress = Callable[[int, int], None]
"""(records read, records of the file); called in another thread."""


@dataclass(frozen=True, eq=False)
class ImportMadeleineExport:
    """`write_lock` is shared with `StoreScenes`; `on_commit` wakes the background that keeps the index."""

    ledger: ImportLedger
    keeper: IndexKeeper
    scrubber: ErasedBytesScrubber
    embedder: Embedder
    write_lock: asyncio.Lock
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText
    on_commit: Callable[[], None]
    write_access: KnowledgeWriteAccess = field(default_factory=KnowledgeWriteAccess)

    async def __call__(
        self,
        name: str,
        lines: Iterator[bytes],
        *,
        client: str,
        role: Role,
        being: str = "",
        dry_run: bool = False,
        report_progress: ReportImportProgress = lambda done, total: None,
    ) -> ImportReport:
        """Add what the file `name` holds and the ledger lacks; recallable, by words at least, when this returns.

        `being`: whose it becomes; "" for the beings that the file names. Raises `InvalidInput` for a file that is no
        export, torn, or of several beings where one is to have it, `NotPermitted` for one with shared knowledge if the
        role may not write policies; nothing is changed then.
        """
        if not is_connectable_being(being):
            raise InvalidInput("--being: no export can become what all beings share. Nothing was imported.")
        reader = await asyncio.to_thread(ExportFileReader, name, lines)
        header = reader.header
        if being:
            if len(header.beings) > 1:
                raise InvalidInput(
                    f"{name} holds the memories of {len(header.beings)} beings, which cannot become one's. Nothing was "
                    "imported: export one of them with --being."
                )
            header = header.model_copy(update={"beings": (being,)})
        redacted: Counter[str] = Counter()
        may_share = self.write_access.may_write(role, "policy")
        if not may_share and ORGANISATION_BEING_ID in header.beings:
            raise NotPermitted("import", permission="write what all beings share", role=role)
        records = self._redacted_records_for_being(reader, being, redacted, report_progress)
        async with self.write_lock:
            report = await self.ledger.import_records(
                header, records, source=name, client=client, at=self.now(), dry_run=dry_run
            )
        if report.id:
            await self._index_imported_memories(report)
        return replace(report, redacted=redacted)

    def _redacted_records_for_being(
        self, reader: ExportFileReader, being: str, redacted: Counter[str], report_progress: ReportImportProgress
    ) -> Iterator[AnyExportRecord]:
        def without_secrets(text: str) -> str:
            result = self.redact(text)
            redacted.update(result.found)
            return result.text

        total = sum(reader.header.counts.values())
        for number, record in enumerate(reader.records(), start=1):
            own = reassign_export_record_to_being(record, being) if being else record
            yield export_record_with_changed_texts(own, without_secrets)
            if number % RECORDS_PER_PROGRESS_REPORT == 0:
                report_progress(number, total)

    async def _index_imported_memories(self, report: ImportReport) -> None:
        """What fails here is done by the background: the ledger's marks remember it."""
        self.on_commit()
        if report.left_out_counts.get("forgotten"):
            self.scrubber.request()
        with suppress(IndexUnavailable, EmbeddingUnavailable):
            await self.keeper.index_marked_memories()
            await self.keeper.embed_memories_without_vector()
        await self.ledger.recompute_cluster_vectors(report.cluster_ids, model=self.embedder.model_name)

    async def undo(self, import_id: str, *, client: str, role: Role) -> ImportUndoResult:
        """Raises `CannotUndo`, and `NotPermitted` as an import does."""
        may_share = self.write_access.may_write(role, "policy")
        async with self.write_lock:
            if not may_share and await self.ledger.import_holds_shared_knowledge(import_id):
                raise NotPermitted("import --undo", permission="write what all beings share", role=role)
            undone = await self.ledger.undo_import(import_id, client=client, at=self.now())
            with suppress(IndexUnavailable):
                await self.keeper.remove_memories(undone.erased.erased_ids)
        self.scrubber.request()
        self.on_commit()
        return undone
