"""A ledger file read as it is, for `madeleine doctor`: beside a running host, without one, and when it is damaged.

Opened so that nothing is written to it; of a ledger whose process was killed SQLite may make the `-shm` file again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madeleine.memory.rules.review import MemoryForReview
from madeleine.storage.sql.database.schema import translating_driver_errors

MAX_DAMAGE_LINES = 3
_REVIEWED_MEMORY_COLUMNS = (
    "id, being_id, number, action, feeling, lesson, setting, dialogue, status, truth, pinned, reactivation_count, "
    "created_at, may_supersede, valid_from"
)


@dataclass(frozen=True, slots=True)
class LedgerFileInspector:
    """An open ledger. Its methods raise `StorageError` where what they read is damaged."""

    connection: sqlite3.Connection

    def find_damage(self, *, thorough: bool) -> list[str]:
        """What SQLite finds wrong, at most a few lines."""
        check = "integrity_check" if thorough else "quick_check"
        lines = [str(row[0]) for row in self._rows(f"PRAGMA {check}({MAX_DAMAGE_LINES})")]
        return [] if lines == ["ok"] else lines[:MAX_DAMAGE_LINES]

    def schema_revision(self) -> str:
        """ "" for a file that is no ledger."""
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"):
            return ""
        return str(next(iter(self._rows("SELECT version_num FROM alembic_version")), ("",))[0])

    def setting(self, name: str) -> Any:
        """None for one that was never set."""
        rows = self._rows("SELECT value FROM settings WHERE name = ?", name)
        return json.loads(rows[0][0]) if rows else None

    def count_memories(self) -> dict[str, int]:
        """By being."""
        return dict(self._rows("SELECT being_id, count(*) FROM memories GROUP BY being_id ORDER BY being_id"))

    def count_pending_index_marks(self) -> int:
        """Changes that the index has still to take in."""
        return int(self._rows("SELECT count(*) FROM index_pending")[0][0])

    def path_and_time_of_last_backup(self) -> tuple[str, int] | None:
        """Its path and time, in microseconds."""
        rows = self._rows("SELECT path, made_at FROM copies WHERE kind = 'backup' ORDER BY made_at DESC LIMIT 1")
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def count_unreadable_notes(self) -> int:
        return int(self._rows("SELECT count(*) FROM notes WHERE state = 'parse_failed'")[0][0])

    def tokens_spent_by_purpose_since(self, micros: int) -> dict[str, int]:
        """Purpose → tokens of language models."""
        return dict(
            self._rows(
                "SELECT purpose, sum(input_tokens + output_tokens) FROM cost_records WHERE at >= ? GROUP BY purpose",
                micros,
            )
        )

    def newest_living_memories_of_all_beings(self, *, limit: int) -> Iterator[MemoryForReview]:
        """The newest that are current, of all beings."""
        query = (
            f"SELECT {_REVIEWED_MEMORY_COLUMNS} FROM memories WHERE truth = 'current' AND status != 'dead' "
            "AND absorbed_into IS NULL ORDER BY created_at DESC LIMIT ?"
        )
        with translating_driver_errors():
            for row in self.connection.execute(query, (limit,)):
                yield MemoryForReview(
                    id=row["id"],
                    being=row["being_id"],
                    number=row["number"],
                    text=row["action"],
                    other_texts=tuple(filter(None, (row["feeling"], row["lesson"], row["setting"], row["dialogue"]))),
                    pinned=bool(row["pinned"]),
                    times_recalled=row["reactivation_count"],
                    created_micros=row["created_at"],
                    undecided_about=row["may_supersede"] if row["valid_from"] is None else None,
                )

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with translating_driver_errors():
            return self.connection.execute(query, values).fetchall()


@contextmanager
def open_ledger_file_inspector(path: Path) -> Iterator[LedgerFileInspector]:
    """Raises `StorageError` where it cannot be opened."""
    name = path.absolute().as_posix().replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    # Without a log nobody writes to it, and SQLite would make one to read it.
    how = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    with translating_driver_errors():
        connection = sqlite3.connect(f"file:{name}?{how}", uri=True, timeout=5)
    with closing(connection):
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        yield LedgerFileInspector(connection)
