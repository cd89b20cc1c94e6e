"""What a source is to its reader, and what a reader makes of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import Category, parse_iso_moment_or_none
from madeleine.memory.text.normalization import storable_text
from madeleine.memory.watch.observe import ObservedConversationPart

IMPORTED_STATEMENT_KEY_PREFIX = "import:"
"""Of the idempotency key of each memory that was imported."""
MAX_IMPORTED_LABEL_CHARS = 200
"""Of an id, a title or a theme."""
JsonObject = dict[str, Any]
ExpectedJsonValueT = TypeVar("ExpectedJsonValueT")


class ImportFileUnreadable(MadeleineError):
    """A file cannot be read to its end; the message says where and why. What came before may be imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedStatement:
    """A text that becomes a memory. `id` names it in its source, where that has ids: the same text under another id is
    another statement. `when`: ISO date or time, "" if the source has none. `actors`: whom or what it is about, where
    the source says so. `category`: None to decide it by the text."""

    text: str
    id: str = ""
    when: str = ""
    lesson: str = ""
    themes: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    category: Category | None = None


@dataclass(frozen=True, slots=True)
class SkippedContent:
    """What a source holds and an import leaves out. `reason` is a noun in the plural, as in "12 tool calls"."""

    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class UnreadableImportEntryReport:
    """An entry that should have been taken and cannot be read. `place`: as "line 12"."""

    place: str
    reason: str


ImportItem = ImportedStatement | ObservedConversationPart | SkippedContent | UnreadableImportEntryReport
"""An `ObservedConversationPart` may be a part of its session: its messages follow those of the one before."""


class FileToImport(Protocol):
    """A file on the disk or in an archive. It is read from the beginning each time, and never as a whole."""

    @property
    def display_path(self) -> str:
        """Its path as it is shown, with "/"."""

    @property
    def modified_at(self) -> datetime | None: ...

    def head(self) -> bytes:
        """Its first bytes, at most `MAX_FILE_HEAD_BYTES`."""

    def numbered_lines(self) -> Iterator[tuple[int, bytes | None]]:
        """(number from 1, line); None for a line of more than `MAX_IMPORTED_LINE_BYTES`. Raises
        `ImportFileUnreadable`."""

    def text_chunks(self) -> Iterator[str]:
        """Its text, from UTF-8. Raises `ImportFileUnreadable`."""

    def sqlite_columns_by_table(self) -> Mapping[str, frozenset[str]]:
        """Columns of the tables of a SQLite database; {} for any other file. Raises `ImportFileUnreadable`."""

    def run_sqlite_query(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Raises `ImportFileUnreadable`."""


MAX_FILE_HEAD_BYTES = 256 * 1024
MAX_IMPORTED_LINE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ImportFileFormat:
    """`read` gives the items of a file that `recognises` its shape, with the most characters that a message may have.
    `is_part`: it belongs to another format, or says only what to do; a list of the formats leaves it out."""

    name: str
    recognises: Callable[[FileShape], bool]
    read: Callable[[FileToImport, int], Iterator[ImportItem]]
    is_part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShape:
    """What tells one format from another. `keys`: of the JSON object that the file is or that its array begins with;
    `lines`: its first lines that are JSON objects; `tables`: of a SQLite database."""

    name: str
    head: bytes
    keys: frozenset[str] = frozenset()
    lines: tuple[JsonObject, ...] = ()
    tables: Mapping[str, frozenset[str]]

    @property
    def suffix(self) -> str:
        base = self.name.rpartition("/")[2].lower()
        return f".{base.rpartition('.')[2]}" if "." in base else ""

    def has_table(self, name: str, *columns: str) -> bool:
        return set(columns) <= self.tables.get(name, frozenset()) if name in self.tables else False


def imported_statement_key(format_name: str, statement: ImportedStatement) -> str:
    """The same for a statement whenever it is read, from whichever file. Computed from the redacted statement: a hash
    of the whole text could confirm a guessed secret."""
    content = json.dumps([format_name, statement.id, statement.text], ensure_ascii=False)
    return f"{IMPORTED_STATEMENT_KEY_PREFIX}{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()[:40]}"


# --- values of JSON and of rows -----------------------------------------------------------------------------------


def value_of_type_or_empty(kind: type[ExpectedJsonValueT], value: Any) -> ExpectedJsonValueT:
    """The value, or an empty one if it is of another type."""
    return value if isinstance(value, kind) else kind()


def json_objects_in_list(value: Any) -> list[JsonObject]:
    return [entry for entry in value_of_type_or_empty(list, value) if isinstance(entry, dict)]


def storable_text_if_json_string(value: Any) -> str:
    """A text without what cannot be stored; "" for any other value."""
    return storable_text(value_of_type_or_empty(str, value)).strip()


def label_from_json(value: Any) -> str:
    """A text on one line, cut to a label's length."""
    return " ".join(storable_text_if_json_string(value).split())[:MAX_IMPORTED_LABEL_CHARS]


def labels_from_json(value: Any) -> tuple[str, ...]:
    """Labels of a list, or of a text with commas."""
    parts = value.split(",") if isinstance(value, str) else value_of_type_or_empty(list, value)
    return tuple(dict.fromkeys(label for part in parts if (label := label_from_json(part).lstrip("#"))))


def moment_from_json(value: Any) -> datetime | None:
    """Read an ISO time, or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return parse_iso_moment_or_none(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        seconds = value / 1000 if abs(value) >= MIN_NUMBER_READ_AS_EPOCH_MILLISECONDS else value
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):  # beyond the years 1 to 9999
            return None
    return None


MIN_NUMBER_READ_AS_EPOCH_MILLISECONDS = 100_000_000_000
"""As seconds this is the year 5138, as milliseconds 1973."""


def first_iso_time_from_json(*values: Any) -> str:
    """The first of the values that is a time, as ISO text to the second; "" if none is."""
    moment = next((moment for value in values if (moment := moment_from_json(value))), None)
    return moment.replace(microsecond=0).isoformat() if moment else ""
