"""Make the memory of a company from its configuration (spec O6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from madeleine.backends.config import CompanyMemoryConfig, EmbedderConfig
from madeleine.backends.errors import MemoryConfigError
from madeleine.backends.in_memory import InMemoryBackend
from madeleine.backends.local import MadeleineBackend
from madeleine.backends.protocols import BackendLifecycle

BackendT = TypeVar("BackendT", bound=BackendLifecycle)


def create_memory_backend(
    config: CompanyMemoryConfig, *, embedder: EmbedderConfig | None = None
) -> MadeleineBackend | InMemoryBackend:
    """A backend of this company's own, not connected yet: nothing of it is shared with another company's.

    Raises `MemoryConfigError`.
    """
    if config.backend == "in_memory":
        if config.storage.data_dir is not None or embedder is not None:
            raise MemoryConfigError(
                "The backend in_memory keeps nothing and embeds nothing: leave data_dir and embedder out."
            )
        return InMemoryBackend(config)
    if config.storage.data_dir is None:
        raise MemoryConfigError("The backend madeleine needs storage.data_dir, a directory of this company's own.")
    return MadeleineBackend(config, config.storage.data_dir, embedder=embedder)


@asynccontextmanager
async def connected_backend(backend: BackendT) -> AsyncIterator[BackendT]:
    """The backend, connected until the end of the block."""
    await backend.connect()
    try:
        yield backend
    finally:
        await backend.disconnect()
