"""The driver's errors, said in ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError, StorageFull

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


@contextmanager
def driver_errors_translated() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise translate_driver_error(error.orig) from error.orig
    except sqlite3.Error as error:
        raise translate_driver_error(error) from error
    except UnicodeEncodeError as error:
        message = "The text holds half of a surrogate pair, which is no character. Nothing was stored: leave it out."
        raise InvalidInput(message) from error


def translate_driver_error(error: BaseException | None) -> StorageError:
    # The low byte is the primary code; the rest says which operation it was.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StorageFull("The disk is full. Nothing was stored: free some space and try again.")
    if code in _BUSY:
        return StorageBusy(
            "Another process is writing to the memory database. Nothing was stored: try again, "
            "or stop the other process if it should not be running."
        )
    if code in _DAMAGED:
        return StorageError(f"The memory database cannot be read ({error}). Restore the file from a backup.")
    if code == sqlite3.SQLITE_READONLY:
        return StorageError("The memory database is read-only. Nothing was stored: check the file's permissions.")
    return StorageError(f"The memory database failed ({error}). Try again; if it goes on, check the disk and the log.")
