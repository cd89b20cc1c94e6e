"""Backups by the clock, of which the last ones are kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import BeingId, Scope
from madeleine.memory.moving.ports import LedgerCopyFileRecord, LedgerCopyRegister
from madeleine.server.background.loops import PollingLoop
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import ledger_path
from madeleine.storage.sql.database.backup import back_up_ledger
from madeleine.storage.sql.ledger import LedgerRepositories

logger = logging.getLogger(__name__)

AUTOMATIC_BACKUP_CLIENT_NAME = "madeleine schedule"
BACKUPS_FOLDER = "backups"
BACKUP_DUE_CHECK_INTERVAL_SECONDS = 60.0
"""Between two looks whether a backup is due; the first comes as long after the start."""
_BACKUP_FILE_NAME_PATTERN = "memory-*.db"


def backup_folder(settings: Settings) -> Path:
    return settings.backup_dir or settings.data_dir / BACKUPS_FOLDER


def path_of_backup(settings: Settings, at: datetime) -> Path:
    return backup_folder(settings) / f"memory-{at:%Y%m%dT%H%M%SZ}.db"


async def make_audited_backup_and_count_rows(
    source: Path, target: Path, ledger: LedgerRepositories, *, client: str, at: datetime
) -> dict[str, int]:
    """Make a backup of `source`, the file of the ledger; remember and audit it; its counts. Raises `StorageError`."""

    def make() -> dict[str, int]:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return back_up_ledger(source, target)

    # Before, so that a killed process leaves no backup that nobody knows of.
    await ledger.copies.record_ledger_copy(
        LedgerCopyFileRecord(path=str(target), kind="backup", being_id=BeingId(""), made_at=at)
    )
    await ledger.audit.record_audit_event(Scope(BeingId(""), client), "backup", at=at)
    return await asyncio.to_thread(make)


async def remove_old_backups(folder: Path, keep: int, copies: LedgerCopyRegister) -> None:
    """Of those with the names that `path_of_backup` gives."""

    def remove() -> list[Path]:
        old = sorted(folder.glob(_BACKUP_FILE_NAME_PATTERN))[:-keep]
        for path in old:
            path.unlink(missing_ok=True)
        return old

    old = await asyncio.to_thread(remove)
    await copies.delete_ledger_copy_records([str(path) for path in old])


class BackupLoop(PollingLoop):
    cancelled_message = "a backup was being made; the next one comes at the next start"

    def __init__(
        self, settings: Settings, ledger: Callable[[], LedgerRepositories | None], *, now: Callable[[], datetime]
    ) -> None:
        """`ledger` returns None while the memory is not open."""
        super().__init__(lambda: asyncio.sleep(BACKUP_DUE_CHECK_INTERVAL_SECONDS))
        self._settings = settings
        self._ledger = ledger
        self._now = now

    async def poll(self) -> None:
        """Make a backup if the last one is older than the setting says."""
        ledger, folder = self._ledger(), backup_folder(self._settings)
        if ledger is None:
            return
        async with self._working:
            try:
                last = max((path.stat().st_mtime for path in folder.glob(_BACKUP_FILE_NAME_PATTERN)), default=0.0)
                if self._now().timestamp() - last < timedelta(hours=self._settings.backup_hours).total_seconds():
                    return
                target = path_of_backup(self._settings, self._now())
                source = ledger_path(self._settings)
                await make_audited_backup_and_count_rows(
                    source, target, ledger, client=AUTOMATIC_BACKUP_CLIENT_NAME, at=self._now()
                )
                await remove_old_backups(folder, self._settings.backup_keep, ledger.copies)
                logger.info("a backup was made: %s", target)
            except (MadeleineError, OSError) as error:
                logger.warning("making a backup failed; retrying at the next look: %s", error)
