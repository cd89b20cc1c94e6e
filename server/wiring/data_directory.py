"""The data directory: one process owns it, and its files are private to the user (files 0600, directories 0700).

The ledger in it may be opened beside a running host, the index may not.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from madeleine import operating_system
from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError
from madeleine.operating_system import try_to_hold_file_lock
from madeleine.server import __version__
from madeleine.server.background.index_origin import INDEX_FOLDERS, require_ledger_file_if_index_exists
from madeleine.server.settings.settings import Settings
from madeleine.storage.sql.administration import BearerTokenRepository, open_bearer_token_repository
from madeleine.storage.sql.database.location import PostgresLocation
from madeleine.storage.sql.database.opening import LedgerLocation
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger

logger = logging.getLogger(__name__)

DATA_DIRECTORY_LOCK_FILE = "owner.lock"
DATA_DIRECTORY_OWNER_FILE = "owner.json"
"""The owner's process id and version, for information only."""
OWNER_ONLY_DATA_FILE_PATTERNS = ("memory.db*", "owner.*", "host.*", "madeleine.*", "server-id")
OWNER_ONLY_DATA_FOLDER_PATTERNS = (*INDEX_FOLDERS, "models", "backups", "until-*")
GROUP_AND_OTHERS_PERMISSION_BITS = stat.S_IRWXG | stat.S_IRWXO


@contextmanager
def lock_data_directory(data_dir: Path) -> Iterator[None]:
    """Hold the directory's lock; the operating system frees it when the process ends, however it ends.

    Raises `StorageBusy` if another process holds it, `StorageError` if the directory cannot be used.
    """
    with ExitStack() as stack:
        try:
            data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            acquired = stack.enter_context(try_to_hold_file_lock(data_dir / DATA_DIRECTORY_LOCK_FILE))
        except OSError as error:
            raise StorageError(
                f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR to a writable directory."
            ) from error
        if not acquired:
            raise StorageBusy(
                f"The memory in {data_dir} is in use by another Madeleine{_owner_process_text(data_dir)}. "
                "End that one (madeleine stop), or give this one a directory of its own with MADELEINE_DATA_DIR."
            )
        try:
            with suppress(OSError):  # a full disk must not keep the memory shut
                owner = {"pid": os.getpid(), "version": __version__}
                (data_dir / DATA_DIRECTORY_OWNER_FILE).write_text(json.dumps(owner), encoding="utf-8")
            make_data_directory_private(data_dir)
            yield
        finally:
            with suppress(OSError):
                (data_dir / DATA_DIRECTORY_OWNER_FILE).unlink(missing_ok=True)


def _owner_process_text(data_dir: Path) -> str:
    try:
        owner = json.loads((data_dir / DATA_DIRECTORY_OWNER_FILE).read_text(encoding="utf-8"))
        return f" (process {int(owner['pid'])})"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return ""


def make_data_directory_private(data_dir: Path) -> None:
    """Remove the access of other users that an earlier version, a copy or a lax umask gave, and log it. Blocking.

    Only Madeleine's files, by their names. The directory itself only if it holds nothing else, which others may have to
    read.
    """
    if not operating_system.system_has_permission_bits():
        return
    ours = {
        path
        for pattern in (*OWNER_ONLY_DATA_FILE_PATTERNS, *OWNER_ONLY_DATA_FOLDER_PATTERNS)
        for path in data_dir.glob(pattern)
    }
    for directory in (path for name in OWNER_ONLY_DATA_FOLDER_PATTERNS for path in data_dir.glob(name)):
        if not directory.is_symlink():
            ours.update(directory.rglob("*"))
    foreign = sorted(path.name for path in data_dir.iterdir() if path not in ours)
    changed = sum(map(_remove_access_of_other_users, ours if foreign else ours | {data_dir}))
    if foreign and data_dir.lstat().st_mode & GROUP_AND_OTHERS_PERMISSION_BITS:
        logger.warning("others may list %s; it stays so, for it holds other files: %s", data_dir, foreign[0])
    if changed:
        logger.warning("others could read the memory in %s: %d files and directories closed", data_dir, changed)


def _remove_access_of_other_users(path: Path) -> bool:
    """Whether others had access. Links are not followed."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & GROUP_AND_OTHERS_PERMISSION_BITS:
            return False
        path.chmod(stat.S_IMODE(mode) & ~GROUP_AND_OTHERS_PERMISSION_BITS)
        return True
    except FileNotFoundError:  # a temporary file that was just removed
        return False
    except OSError as error:
        logger.warning("%s is open to others and cannot be closed: %s", path, error)
        return False


def path_exists(path: str) -> bool:
    return Path(path).exists()


LEDGER_FILE = "memory.db"


SERVER_ID_FILE = "server-id"
"""Tells the servers over one PostgreSQL apart: what each one's index has taken in."""
SERVER_ID_OF_COMMON_QDRANT_INDEX = "shared"
"""Instead of a server's id where an index on a Qdrant server is all servers'."""


def ledger_location(settings: Settings) -> LedgerLocation:
    """Raises `LedgerLost` if its file is gone while its index is there, `InvalidInput` if there is a file, too."""
    if not settings.database_url:
        return ledger_path(settings)
    if (settings.data_dir / LEDGER_FILE).exists():
        raise InvalidInput(
            f"MADELEINE_DATABASE_URL names PostgreSQL, and {settings.data_dir} holds a memory of its own "
            f"({LEDGER_FILE}). Set MADELEINE_DATA_DIR to another directory; `madeleine export` without the URL and "
            "`madeleine import` with it take the memories over."
        )
    server = SERVER_ID_OF_COMMON_QDRANT_INDEX if settings.qdrant_url else read_or_create_server_id(settings.data_dir)
    return PostgresLocation(settings.database_url, server)


def read_or_create_server_id(data_dir: Path) -> str:
    """Made at the first call. Raises `StorageError`."""
    path = data_dir / SERVER_ID_FILE
    try:
        if not path.exists():
            draft = path.with_name(f"{path.name}.{os.getpid()}.new")
            draft.touch(mode=0o600)
            draft.write_text(uuid.uuid4().hex, encoding="utf-8")
            with suppress(FileExistsError):
                path.hardlink_to(draft)  # the first of several processes gives it
            draft.unlink()
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error}. Check the directory and its owner.") from error


def ledger_path(settings: Settings) -> Path:
    """The file of the ledger. Raises `LedgerLost` if it is gone while its index is there, `InvalidInput` if the ledger
    is no file."""
    if settings.database_url:
        raise InvalidInput(
            "The memory is in PostgreSQL (MADELEINE_DATABASE_URL), and this command works on a file of SQLite. Use "
            "pg_dump and pg_restore; docs/postgresql.md has the commands."
        )
    path = settings.data_dir / LEDGER_FILE
    require_ledger_file_if_index_exists(path)
    return path


@asynccontextmanager
async def open_ledger_without_index(settings: Settings, *, create: bool = True) -> AsyncIterator[LedgerRepositories]:
    """Opened beside a running host. Without `create` raises `InvalidInput` where there is no ledger."""
    if create or settings.database_url:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not ledger_path(settings).exists():
        raise InvalidInput(f"There is no memory in {settings.data_dir} yet. Set MADELEINE_DATA_DIR to where it is.")
    async with open_ledger(ledger_location(settings)) as ledger:
        yield ledger


@asynccontextmanager
async def open_bearer_token_ledger(settings: Settings) -> AsyncIterator[BearerTokenRepository]:
    """On connections of its own, beside a running host and before the memory is open."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_bearer_token_repository(ledger_location(settings)) as tokens:
        yield tokens
