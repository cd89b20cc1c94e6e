"""Which ledger an index belongs to, remembered beside the index: it may be the last trace of a ledger that is gone."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from madeleine.memory.errors import LedgerLost
from madeleine.storage.sql.ledger import LedgerRepositories

logger = logging.getLogger(__name__)

INDEX_FOLDERS = ("index", "index-2")
"""One of them holds the index; in the other one the next is built while the model is switched."""
_SOURCE_LEDGER_STATE_FILE_NAME = "ledger.json"


class SourceLedgerStateOfIndex(BaseModel, frozen=True):
    """`mark`: the last index mark that the ledger had given when the index was written; 0 before its first memory."""

    ledger: str
    mark: int

    @classmethod
    def read(cls, index: Path) -> SourceLedgerStateOfIndex | None:
        try:
            return cls.model_validate_json((index / _SOURCE_LEDGER_STATE_FILE_NAME).read_bytes())
        except (OSError, ValueError):  # of an earlier version, or damaged, as an index may be
            return None

    @classmethod
    async def of_ledger(cls, ledger: LedgerRepositories) -> SourceLedgerStateOfIndex:
        id_, mark = await ledger.index_source.ledger_id_and_last_issued_index_mark()
        return cls(ledger=id_, mark=mark)

    def write(self, index: Path) -> None:
        """Blocking; does nothing if it is written already, or the disk is full."""
        if self != self.read(index):
            with suppress(OSError):
                index.mkdir(mode=0o700, exist_ok=True)
                draft = index / f"{_SOURCE_LEDGER_STATE_FILE_NAME}.new"
                draft.write_text(self.model_dump_json(), encoding="utf-8")
                draft.replace(index / _SOURCE_LEDGER_STATE_FILE_NAME)

    def matches_index(self, index: Path) -> bool:
        """Whether the index may hold what this ledger holds. Logged if not: it is to be rebuilt then. Raises
        `LedgerLost` if the ledger never had a memory and the index had some."""
        indexed = self.read(index)
        if indexed is None or (indexed.ledger == self.ledger and indexed.mark <= self.mark):
            return True
        if indexed.mark and not self.mark:
            raise LedgerLost(ledger_lost_message(index.parent, "holds no memory and never has"))
        if indexed.ledger != self.ledger:
            logger.warning("the memory database in %s is not the one that was there before", index.parent)
        else:
            logger.warning(
                "the memory database in %s is older than its index: restored from a backup, or without its -wal file",
                index.parent,
            )
        return False


def require_ledger_file_if_index_exists(ledger: Path) -> None:
    """Raises `LedgerLost` if there is no ledger in the file, but an index beside it."""
    indexes = (ledger.parent / folder for folder in INDEX_FOLDERS)
    if not any(index.is_dir() and any(index.iterdir()) for index in indexes):
        return
    if not ledger.exists():
        raise LedgerLost(ledger_lost_message(ledger.parent, "is missing"))
    if not ledger.stat().st_size:
        raise LedgerLost(ledger_lost_message(ledger.parent, "is empty"))


def ledger_lost_message(data_dir: Path, state: str) -> str:
    return (
        f"The memory database in {data_dir} {state}, and the index beside it tells of memories. Nothing was changed. "
        "Restore memory.db from a backup; or, to begin with an empty memory, run `madeleine reindex --start-anew`, "
        "which keeps what is left of the old one in a folder beside."
    )


def unused_folder_for_replaced_memory(data_dir: Path, day: str) -> Path:
    """Where a memory is kept that another one takes the place of; it is not made yet."""
    names = (f"until-{day}{suffix}" for suffix in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(path for name in names if not (path := data_dir / name).exists())


def move_ledger_and_index_aside(data_dir: Path, day: str) -> Path:
    """Move ledger and index, or what is left of them, into a new folder beside; its path."""
    kept = unused_folder_for_replaced_memory(data_dir, day)
    kept.mkdir(mode=0o700)
    for path in (*data_dir.glob("memory.db*"), *(data_dir / folder for folder in INDEX_FOLDERS)):
        with suppress(FileNotFoundError):
            path.rename(kept / path.name)
    return kept
