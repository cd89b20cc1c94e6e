"""Long-term memory for AI agents: the library of the distribution.

    async with madeleine.connect(being="ada") as memory:
        await memory.store("The lamp in the hall is broken")
        recalled = await memory.recall("Which lamp is broken?")

`connect` and `Memory` are documented in `madeleine.client`, their optional arguments in `madeleine.arguments`, the
answers in `madeleine.models`, the errors in `madeleine.memory.errors`. Importing this package takes no time: the
command starts with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from madeleine.memory.errors import (
    AuthenticationFailed,
    CannotUndo,
    ConnectionLost,
    EmbeddingUnavailable,
    IndexUnavailable,
    InvalidInput,
    KeyConflict,
    MadeleineError,
    NotCurrent,
    NotPermitted,
    ServerError,
    ServerUnavailable,
    StorageBusy,
    StorageError,
    StorageFull,
)
from madeleine.server import __version__

if TYPE_CHECKING:
    from madeleine import client, models
    from madeleine.client import Memory, connect

__all__ = [
    "AuthenticationFailed", "CannotUndo", "ConnectionLost", "EmbeddingUnavailable", "IndexUnavailable", "InvalidInput",
    "KeyConflict", "MadeleineError", "Memory", "NotCurrent", "NotPermitted", "ServerError", "ServerUnavailable",
    "StorageBusy", "StorageError", "StorageFull", "__version__", "client", "connect", "models",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import the client when it is first used (PEP 562)."""
    if name not in ("Memory", "client", "connect", "models"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    client = importlib.import_module(f"{__name__}.client")
    return client if name == "client" else getattr(client, name)
