"""A change to a client's configuration: planned, shown, written whole or not at all, and undone."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from madeleine.server.clients.catalogue import ClientConfigurationFile
from madeleine.server.clients.jsonc import UnreadableConfiguration

CONFIGURATION_BACKUP_SUFFIX = ".before-madeleine"
MAX_CONFIGURATION_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileChange:
    """`before` and `after` are None where the file is not there. `backup`: of `before`, to be written first."""

    path: Path
    before: str | None
    after: str | None
    backup: Path | None = None
    spent: Path | None = None
    """A backup that is not needed afterwards."""

    def diff(self) -> str:
        name = str(self.path)
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, name if self.before is not None else "(no file)", name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def plan_adding_configuration_entry(file: ClientConfigurationFile) -> FileChange | None:
    """None if the entry stands there already. Raises `UnreadableConfiguration`."""
    before = read_client_configuration_text(file.path)
    after = _text_with_own_entry(file, before)
    if after == before:
        return None
    keep = _backup_path_of(file.path)
    first = before is not None and not (keep.exists() and file.is_ours_in(file.read(before)))
    return FileChange(file.path, before, after, backup=keep if first else None)


def plan_removing_configuration_entry(file: ClientConfigurationFile) -> FileChange | None:
    """What was there before, if nothing else has changed since; else what is there now, without our entry. None if
    there is nothing of ours. Raises `UnreadableConfiguration`."""
    now = read_client_configuration_text(file.path)
    if now is None or not file.is_ours_in(file.read(now or file.empty)):
        return None
    backup = _backup_path_of(file.path)
    earlier = read_client_configuration_text(backup)
    if now == _text_with_own_entry(file, earlier):
        return FileChange(file.path, now, earlier, spent=backup)
    return FileChange(file.path, now, file.take(now), spent=backup)


def _text_with_own_entry(file: ClientConfigurationFile, text: str | None) -> str:
    return file.put(text if text and text.strip() else file.empty)


def _backup_path_of(path: Path) -> Path:
    return path.with_name(path.name + CONFIGURATION_BACKUP_SUFFIX)


def read_client_configuration_text(path: Path) -> str | None:
    """The text, with its ends of lines; None if there is no file. Raises `UnreadableConfiguration`."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_CONFIGURATION_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableConfiguration(str(error)) from error
    if len(content) > MAX_CONFIGURATION_BYTES:
        raise UnreadableConfiguration("it is too large")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise UnreadableConfiguration("it is not UTF-8") from error


def write_file_change(change: FileChange) -> None:
    """Raises `UnreadableConfiguration` if the file has changed since it was read, or cannot be written."""
    path = Path(os.path.realpath(change.path))  # a link stays one
    try:
        if change.backup and change.before is not None:
            _replace_file(change.backup, change.before, like=path)
        if read_client_configuration_text(path) != change.before:
            raise UnreadableConfiguration("it has changed meanwhile; run the command again")
        if change.after is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace_file(path, change.after, like=path)
        if change.spent:
            change.spent.unlink(missing_ok=True)
    except OSError as error:
        raise UnreadableConfiguration(f"it cannot be written: {error}") from error


def _replace_file(path: Path, text: str, *, like: Path) -> None:
    """At one moment, on the disk, with the rights of `like`, or for its owner alone."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        if like.exists():
            Path(draft).chmod(like.stat().st_mode & 0o777)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def plan_client_configuration_changes(files: list[ClientConfigurationFile], *, undo: bool) -> Iterator[FileChange]:
    for file in files:
        change = plan_removing_configuration_entry(file) if undo else plan_adding_configuration_entry(file)
        if change:
            yield change
