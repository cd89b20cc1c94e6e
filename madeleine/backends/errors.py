"""The errors of a memory backend (spec O3). `except MemoryError` catches them all; each has ours as its cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from madeleine.memory.errors import MadeleineError, ServerUnavailable


class MemoryError(MadeleineError):
    """Root of what a memory backend raises."""


class MemoryConnectionError(MemoryError):
    """The backend cannot be connected to, is not connected, or was lost."""


class MemoryStoreError(MemoryError):
    """Storing, sharing, retracting or deleting failed, or is not permitted."""


class MemoryRetrievalError(MemoryError):
    """Retrieving, searching or counting failed."""


class MemoryNotFoundError(MemoryError):
    """Nothing has this id."""


class MemoryConfigError(MemoryError):
    """The configuration cannot be used."""


class MemoryCapabilityError(MemoryError):
    """The backend does not support this operation."""


@contextmanager
def raised_as(kind: type[MemoryError]) -> Iterator[None]:
    """Raise our errors as those of a backend: of `kind`, unless the connection is at fault."""
    try:
        yield
    except MemoryError:
        raise
    except ServerUnavailable as error:
        raise MemoryConnectionError(str(error)) from error
    except MadeleineError as error:
        raise kind(str(error)) from error


def require_connected(is_connected: bool) -> None:
    if not is_connected:
        raise MemoryConnectionError("The backend is not connected: await connect() first.")
