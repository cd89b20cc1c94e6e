"""Long-term memory for AI agents: the library of the distribution.

    async with madeleine.connect(being="ada") as memory:
        await memory.store("The lamp in the hall is broken")
        recalled = await memory.recall("Which lamp is broken?")

`connect` and `Memory` are documented in `madeleine.client`, the answers in `madeleine.models`, the errors in
`madeleine.memory.errors`. Importing this package imports nothing else: the command starts with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from madeleine import models as models
    from madeleine.client import Memory, connect
    from madeleine.memory.errors import (
        AuthenticationFailed,
        CannotUndo,
        ConnectionLost,
        EmbeddingUnavailable,
        IndexUnavailable,
        InvalidInput,
        KeyConflict,
        MadeleineError,
        NotPermitted,
        ServerError,
        ServerUnavailable,
        StorageBusy,
        StorageError,
        StorageFull,
    )
    from madeleine.server import __version__

__all__ = [
    "AuthenticationFailed",
    "CannotUndo",
    "ConnectionLost",
    "EmbeddingUnavailable",
    "IndexUnavailable",
    "InvalidInput",
    "KeyConflict",
    "MadeleineError",
    "Memory",
    "NotPermitted",
    "ServerError",
    "ServerUnavailable",
    "StorageBusy",
    "StorageError",
    "StorageFull",
    "__version__",
    "connect",
    "models",
]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used (PEP 562)."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "models":
        return import_module("madeleine.models")
    home = {"connect": "madeleine.client", "Memory": "madeleine.client", "__version__": "madeleine.server"}
    value = getattr(import_module(home.get(name, "madeleine.memory.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
