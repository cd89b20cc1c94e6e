"""The files of an embedded index: a manifest of them, checked before the engine maps them, and copies.

The engine maps files without looking: a truncated one ends the process with SIGBUS, a missing one can give an index
that answers wrongly. So the names and sizes of all files are written down whenever the engine has flushed.

What was observed of Qdrant Edge 0.9.0: between two flushes files only appear and grow. A flush may drop
`tracker_journal.dat` and rewrites the small JSON files; the marker `flushing` stands while one runs, so that a process
killed in it is not taken for damage.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from madeleine import operating_system
from madeleine.memory.errors import IndexDiskFull, IndexNeedsRebuild, IndexUnavailable
from madeleine.storage.resources import INDEX_DISK_RESERVE_BYTES, has_disk_space, require_disk_space

_MANIFEST_FILE = "index.json"
INDEX_OPENING_MARKER_FILE = "opening"
INDEX_FLUSHING_MARKER_FILE = "flushing"
_FILE_THAT_FLUSHING_DROPS = "tracker_journal.dat"
_MAX_CHECKSUMMED_BYTES = 64 * 1024
_RAM_DISK_FOLDER = Path("/dev/shm")


class IndexManifest(BaseModel, frozen=True):
    """`files`: path relative to the generation → (bytes, CRC-32 of a small metadata file or None)."""

    fingerprint: dict[str, Any]
    generation: str
    files: dict[str, tuple[int, int | None]]

    @classmethod
    def read(cls, directory: Path) -> IndexManifest:
        """Raises `IndexNeedsRebuild`."""
        try:
            return cls.model_validate_json((directory / _MANIFEST_FILE).read_bytes())
        except (OSError, ValueError) as error:
            raise IndexNeedsRebuild(f"The index's list of files cannot be read: {error!r}") from error

    @classmethod
    def of_files(cls, directory: Path, fingerprint: dict[str, Any], generation: str) -> IndexManifest:
        root = directory / generation
        files = {path: (size, _metadata_checksum(root / path, size)) for path, size in _file_sizes(root).items()}
        return cls(fingerprint=fingerprint, generation=generation, files=files)

    def write(self, directory: Path) -> None:
        """Atomic and durable."""
        temporary = directory / f"{_MANIFEST_FILE}.new"
        with temporary.open("w") as file:
            file.write(self.model_dump_json())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(directory / _MANIFEST_FILE)
        operating_system.fsync_folder(directory)

    def find_damage(self, directory: Path, *, died_flushing: bool) -> str | None:
        """What is wrong with the files on disk, if anything; `died_flushing` if the process died in a flush."""
        root = directory / self.generation
        present = _file_sizes(root)
        for path, (size, checksum) in self.files.items():
            if died_flushing and path.endswith(_FILE_THAT_FLUSHING_DROPS):
                continue
            if path not in present:
                return f"{path} is missing"
            if present[path] < size:
                return f"{path} is truncated"
            if died_flushing:
                if path.endswith(".json") and not _file_contains_valid_json(root / path):
                    return f"{path} is damaged"
            elif checksum is not None and _metadata_checksum(root / path, present[path]) != checksum:
                return f"{path} is damaged"
        return None


def hold_index_lock(directory: Path) -> ExitStack:
    """A lock beside the directory: until it is closed nobody else opens the index. Raises `IndexUnavailable` if
    somebody has it open, `OSError` if the lock cannot be made."""
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = directory.resolve()  # one lock, by whatever link the folder is reached
    with ExitStack() as lock:
        if not lock.enter_context(operating_system.try_to_hold_file_lock(folder.with_name(f"{folder.name}.lock"))):
            raise IndexUnavailable(f"The index in {directory} is in use by another process.")
        return lock.pop_all()


def require_index_disk_reserve(directory: Path) -> None:
    """Raises `IndexDiskFull`: without room the engine would not fail but end the process."""
    require_disk_space(directory, INDEX_DISK_RESERVE_BYTES, IndexDiskFull)


def remove_index_files(path: Path) -> None:
    """A builder whose parent was killed may still write there; what it leaves is removed at the next start."""
    shutil.rmtree(path, ignore_errors=True)


def find_damage_of_index_files(directory: Path) -> str | None:
    """What keeps the index in this directory, which no process has open, from being opened, if anything. Nothing is
    opened for it, and nothing written."""
    if (directory / INDEX_OPENING_MARKER_FILE).exists():
        return "a process died while it opened the index"
    try:
        manifest = IndexManifest.read(directory)
        return manifest.find_damage(directory, died_flushing=(directory / INDEX_FLUSHING_MARKER_FILE).exists())
    except IndexNeedsRebuild as error:
        return str(error)
    except OSError as error:
        return f"its files cannot be read: {error}"


def _file_sizes(root: Path) -> dict[str, int]:
    return {path.relative_to(root).as_posix(): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def _metadata_checksum(path: Path, size: int) -> int | None:
    if size > _MAX_CHECKSUMMED_BYTES or not path.name.endswith((".json", ".info", "first-index")):
        return None
    return zlib.crc32(path.read_bytes())


def _file_contains_valid_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return True


def copy_sparse_tree(source: Path, target: Path) -> None:
    """Copy a directory of sparse files as sparse as it is: an index of 10,000 points spans 380 MB and fills 70."""
    shutil.copytree(source, target, copy_function=_copy_sparse_file if hasattr(os, "SEEK_DATA") else shutil.copyfile)


def _copy_sparse_file(source: str, target: str) -> None:
    with Path(source).open("rb", buffering=0) as reader, Path(target).open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        start = 0
        while start < size:
            try:
                start = os.lseek(reader.fileno(), start, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # nothing but a hole from here to the end
                    break
                raise
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            reader.seek(start)
            writer.seek(start)
            while start < end:
                part = reader.read(min(end - start, 1 << 20))
                if not part:
                    break
                writer.write(part)
                start += len(part)
        writer.truncate(size)


def copy_index_to_temporary_folder(directory: Path, generation: str, *, reserve_bytes: int) -> Path | None:
    """Copy a generation to where there is room for it and `reserve_bytes` more; None if that is nowhere."""
    source = directory / generation
    needed = sum(_bytes_on_disk(path) for path in source.rglob("*") if path.is_file()) + reserve_bytes
    for folder in _possible_temporary_folders(directory):
        try:
            if has_disk_space(folder.parent, needed):
                folder.mkdir(mode=0o700)
                copy_sparse_tree(source, folder / generation)
                return folder / generation
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
    return None


def remove_temporary_index_copies(directory: Path) -> None:
    for folder in _possible_temporary_folders(directory):
        shutil.rmtree(folder, ignore_errors=True)


def _possible_temporary_folders(directory: Path) -> Iterator[Path]:
    """The same at every call, so that the next process removes what a killed one has left."""
    name = f"madeleine-index-{hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]}"
    for folder in (Path(tempfile.gettempdir()), _RAM_DISK_FOLDER):
        if folder.is_dir():
            yield folder / name


def _bytes_on_disk(path: Path) -> int:
    status = path.stat()
    return getattr(status, "st_blocks", -(-status.st_size // 512)) * 512
