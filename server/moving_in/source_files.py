"""Files to import from: plain ones, those in folders and archives, and SQLite databases, which are only read."""

from __future__ import annotations

import codecs
import os
import sqlite3
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from madeleine.memory.moving.sources.values import MAX_FILE_HEAD_BYTES, MAX_IMPORTED_LINE_BYTES, ImportFileUnreadable

IMPORT_FILE_READ_CHUNK_BYTES = 256 * 1024
MAX_FILES_PER_ZIP_ARCHIVE = 100_000
FOLDERS_SKIPPED_BY_IMPORT = frozenset({"node_modules", "__pycache__"})
"""Beside hidden ones: they hold what programs have installed."""
_SELECT_NON_VIRTUAL_TABLE_NAMES_SQL = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL %'"
)
"""Virtual tables need modules of the program that made them."""


@dataclass(slots=True)
class DiskOrArchiveFile:
    """`FileToImport`. `path`: of the file on the disk, or of its archive. `position`: bytes that were read of it."""

    display_path: str
    path: Path
    size: int
    modified_at: datetime | None
    open_binary: Callable[[], IO[bytes]]
    is_in_archive: bool = False
    position: int = 0
    _tables: dict[str, frozenset[str]] | None = field(default=None, repr=False)

    def head(self) -> bytes:
        with raise_as_unreadable_import_file(self.display_path), self.open_binary() as binary:
            return binary.read(MAX_FILE_HEAD_BYTES)

    def numbered_lines(self) -> Iterator[tuple[int, bytes | None]]:
        self.position = 0
        number = 0
        with raise_as_unreadable_import_file(self.display_path), self.open_binary() as binary:
            while line := binary.readline(MAX_IMPORTED_LINE_BYTES + 1):
                number += 1
                self.position += len(line)
                is_too_long = len(line) > MAX_IMPORTED_LINE_BYTES and not line.endswith(b"\n")
                while is_too_long and (rest := binary.readline(MAX_IMPORTED_LINE_BYTES)):
                    self.position += len(rest)
                    if rest.endswith(b"\n"):
                        break
                yield number, None if is_too_long else line

    def text_chunks(self) -> Iterator[str]:
        self.position = 0
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with raise_as_unreadable_import_file(self.display_path), self.open_binary() as binary:
            while block := binary.read(IMPORT_FILE_READ_CHUNK_BYTES):
                self.position += len(block)
                yield decoder.decode(block)
            yield decoder.decode(b"", final=True)

    def sqlite_columns_by_table(self) -> Mapping[str, frozenset[str]]:
        if self._tables is None:
            with (
                raise_as_unreadable_import_file(self.display_path),
                closing(self._connect_read_only_to_sqlite()) as connection,
            ):
                names = [str(row[0]) for row in connection.execute(_SELECT_NON_VIRTUAL_TABLE_NAMES_SQL)]
                columns = "SELECT name FROM pragma_table_info(?)"
                self._tables = {
                    name: frozenset(str(row[0]) for row in connection.execute(columns, (name,))) for name in names
                }
        return self._tables

    def run_sqlite_query(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        with (
            raise_as_unreadable_import_file(self.display_path),
            closing(self._connect_read_only_to_sqlite()) as connection,
        ):
            yield from connection.execute(sql, values)

    def _connect_read_only_to_sqlite(self) -> sqlite3.Connection:
        """Read-only; a program may be writing to it. Without the right to make the files that a reader shares with
        writers, the database is read as it lies there."""
        if self.is_in_archive:
            raise ImportFileUnreadable(
                f"{self.display_path} is a database in an archive. Unpack the archive, and give its folder."
            )
        uri = self.path.absolute().as_uri()
        with suppress(sqlite3.OperationalError):
            connection = _open_sqlite_read_only(f"{uri}?mode=ro")
            try:
                connection.execute(_SELECT_NON_VIRTUAL_TABLE_NAMES_SQL).fetchone()
            except sqlite3.OperationalError:
                connection.close()
                raise
            return connection
        return _open_sqlite_read_only(f"{uri}?mode=ro&immutable=1")


def _open_sqlite_read_only(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=5)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.text_factory = _decode_sqlite_text
    return connection


def _decode_sqlite_text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


@contextmanager
def raise_as_unreadable_import_file(name: str) -> Iterator[None]:
    """Raise errors of files, archives and databases as `ImportFileUnreadable`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ImportFileUnreadable(
            f"{name} is not text in UTF-8 ({error.reason}). Give it as it was written."
        ) from error
    except sqlite3.Error as error:
        raise ImportFileUnreadable(f"{name} is a database that cannot be read: {error}.") from error
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        # RuntimeError: it asks for a password.
        raise ImportFileUnreadable(f"{name} cannot be read: {error}.") from error


def _raise(error: Exception) -> None:
    raise error


def find_import_files(
    path: Path, on_error: Callable[[ImportFileUnreadable], None] = _raise
) -> Iterator[DiskOrArchiveFile]:
    """The file; the files in it, if it is an archive; those in it and below, if it is a folder. In order of their
    names. `on_error` is given what cannot be read; if it does not raise, the next file follows."""
    for file in _visible_files_below_folder(path, on_error) if path.is_dir() else (path,):
        try:
            yield from _file_or_zip_members(file, str(file))
        except ImportFileUnreadable as error:
            on_error(error)


def _visible_files_below_folder(root: Path, on_error: Callable[[ImportFileUnreadable], None]) -> Iterator[Path]:
    def report(error: OSError) -> None:
        on_error(ImportFileUnreadable(f"{error.filename} cannot be read: {error.strerror}."))

    for folder, folders, names in os.walk(root, onerror=report):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in FOLDERS_SKIPPED_BY_IMPORT
        )
        for name in sorted(names):
            file = Path(folder, name)
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                yield file


def _file_or_zip_members(path: Path, name: str) -> Iterator[DiskOrArchiveFile]:
    with raise_as_unreadable_import_file(name):
        if zipfile.is_zipfile(path):
            yield from _zip_members(path, name)
            return
        stat = path.stat()
    yield DiskOrArchiveFile(
        display_path=name.replace(os.sep, "/"),
        path=path,
        size=stat.st_size,
        modified_at=datetime.fromtimestamp(stat.st_mtime, UTC),
        open_binary=lambda: path.open("rb"),
    )


def _zip_members(path: Path, name: str) -> Iterator[DiskOrArchiveFile]:
    """Archives that another program compresses in its own way are refused: a dictionary of LZMA may take gigabytes."""
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if not members:
            raise ImportFileUnreadable(f"{name} holds no files.")
        if len(members) > MAX_FILES_PER_ZIP_ARCHIVE:
            raise ImportFileUnreadable(
                f"{name} has {len(members):,} files; at most {MAX_FILES_PER_ZIP_ARCHIVE:,} are read."
            )
        if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
            raise ImportFileUnreadable(
                f"{name} is compressed in a way that no export is. Unpack it and give its folder."
            )
        for member in sorted(members, key=lambda each: each.filename):
            if member.filename.lower().endswith(".zip"):
                raise ImportFileUnreadable(
                    f"{name} has an archive in it ({member.filename[:80]!r}). Unpack it and give its folder."
                )
            yield DiskOrArchiveFile(
                display_path=f"{name}/{member.filename}".replace(os.sep, "/"),
                path=path,
                size=member.file_size,
                modified_at=_modified_time_of_zip_member(member),
                open_binary=partial(archive.open, member),
                is_in_archive=True,
            )


def _modified_time_of_zip_member(member: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return None
