"""Backups of a ledger file: made while others write to it, verified, and put in the place of a ledger."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from madeleine import operating_system
from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError
from madeleine.storage.resources import LEDGER_DISK_RESERVE_BYTES, require_disk_space
from madeleine.storage.sql.database.schema import schema_revision_of_file, translating_driver_errors

COUNTED_TABLE_NAME_BY_RECORD_TYPE = {
    "memory": "memories", "message": "messages", "note": "notes", "diary": "diary", "profile": "profile"
}  # fmt: skip
"""By the type of record, as an export counts them."""
_SQLITE_SIDE_FILE_SUFFIXES = ("-wal", "-shm", "-journal")


def back_up_ledger(source: Path, target: Path) -> dict[str, int]:
    """Copy the ledger's last commit into one file, for its owner alone, in place of what is there; its counts.

    The copy is verified and holds no deleted bytes. Blocking. Raises `StorageError`.
    """
    require_disk_space(target.parent, source.stat().st_size + LEDGER_DISK_RESERVE_BYTES)
    draft = target.with_name(f"{target.name}.part")
    remove_ledger_file(draft)
    try:
        draft.touch(mode=0o600)
        with (
            translating_driver_errors(),
            closing(sqlite3.connect(source, timeout=5)) as reading,
            closing(sqlite3.connect(draft, timeout=5, isolation_level=None)) as writing,
        ):
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode = DELETE")
            # Pages that were free in the ledger may hold what was forgotten a moment ago.
            writing.execute("VACUUM")
        counts = verify_ledger_file(draft)
        fsync_file(draft)
        for suffix in _SQLITE_SIDE_FILE_SUFFIXES:  # of what was there
            Path(f"{target}{suffix}").unlink(missing_ok=True)
        draft.replace(target)
        fsync_folder(target.parent)
        return counts
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error}. Nothing was changed there.") from error
    finally:
        remove_ledger_file(draft)


def verify_ledger_file(path: Path) -> dict[str, int]:
    """Rows by type of record. Blocking. Raises `InvalidInput` for a file that is no whole ledger."""
    try:
        with (
            translating_driver_errors(),
            closing(sqlite3.connect(f"file:{_path_quoted_for_sqlite_uri(path)}?mode=ro", uri=True)) as file,
        ):
            found = [str(row[0]) for row in file.execute("PRAGMA integrity_check(3)")]
            if found != ["ok"]:
                raise InvalidInput(f"{path} is damaged ({found[0]}). Take another backup.")
            if schema_revision_of_file(path) is None:
                raise InvalidInput(f"{path} is no memory of Madeleine. Give a file that `madeleine backup` wrote.")
            known = {str(row[0]) for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            return {
                type_: int(file.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
                for type_, table in COUNTED_TABLE_NAME_BY_RECORD_TYPE.items()
                if table in known
            }
    except StorageError as error:
        raise InvalidInput(f"{path} cannot be read as a backup: {error}") from error


def is_undamaged_ledger_file(path: Path) -> bool:
    """Whether all of it can be read. Blocking. Raises `StorageBusy`."""
    try:
        verify_ledger_file(path)
    except InvalidInput as error:
        if isinstance(error.__cause__, StorageBusy):
            raise error.__cause__ from error
        return False
    return True


def replace_ledger_file(ledger: Path, draft: Path, kept: Path | None, *, is_whole: bool = True) -> None:
    """Put `draft` in the place of the ledger, which is copied into the new folder `kept`, as it is. Whatever is killed,
    one of the two is there. No other process may have the ledger open. Blocking.

    Raises `StorageBusy`, `StorageError`.
    """
    try:
        if kept:
            if is_whole:
                _empty_write_ahead_log(ledger)
            kept.mkdir(mode=0o700)
            for suffix in ("", *_SQLITE_SIDE_FILE_SUFFIXES):
                if (file := Path(f"{ledger}{suffix}")).exists():
                    copy = kept / file.name
                    copy.touch(mode=0o600)
                    shutil.copyfile(file, copy)
                    fsync_file(copy)
            fsync_folder(kept)
        for suffix in _SQLITE_SIDE_FILE_SUFFIXES:
            Path(f"{draft}{suffix}").unlink(missing_ok=True)
            Path(f"{ledger}{suffix}").unlink(missing_ok=True)
        fsync_file(draft)
        draft.replace(ledger)
        fsync_folder(ledger.parent)
    except OSError as error:
        raise StorageError(f"{ledger} cannot be replaced: {error}. The memory is as it was.") from error


def _empty_write_ahead_log(ledger: Path) -> None:
    """Else what is in the log would be read into the file that comes in the ledger's place."""
    with translating_driver_errors(), closing(sqlite3.connect(ledger, timeout=5)) as connection:
        busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    log = Path(f"{ledger}-wal")
    if busy or (log.exists() and log.stat().st_size):
        raise StorageBusy(f"Another process has {ledger} open. Nothing was changed: end it and try again.")


def is_nonempty_file(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def remove_ledger_file(path: Path) -> None:
    for suffix in ("", *_SQLITE_SIDE_FILE_SUFFIXES):
        with suppress(OSError):
            Path(f"{path}{suffix}").unlink(missing_ok=True)


def fsync_file(path: Path) -> None:
    """Return when it is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def fsync_folder(path: Path) -> None:
    """So that a new name is there after a power cut; a system that cannot is not asked."""
    with suppress(OSError):
        operating_system.fsync_folder(path)


def _path_quoted_for_sqlite_uri(path: Path) -> str:
    return path.absolute().as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
