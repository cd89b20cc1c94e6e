"""What core blocks need of the ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from madeleine.memory.core_blocks.values import CoreBlock
from madeleine.memory.model import Scope


class CoreBlockReader(Protocol):
    async def core_blocks(self, scope: Scope) -> list[CoreBlock]:
        """The current version of each block of the being, by name."""


class CoreBlockLedger(CoreBlockReader, Protocol):
    async def core_block_versions(self, scope: Scope, name: str) -> list[CoreBlock]:
        """All versions of the block, the oldest first."""

    async def write_core_block_if_next_version(self, scope: Scope, block: CoreBlock) -> bool:
        """Durably, as the next version. False, and nothing is written, if the current version is not the one before
        `block.version`: of two that edit one version at the same time, the first one wins."""

    async def erase_core_block(self, scope: Scope, name: str, *, at: datetime) -> int:
        """Erase all versions and have their bytes scrubbed from the files; the number of versions."""


RequestErasedBytesScrub = Callable[[], None]
"""Have the bytes of what was erased removed from the files, soon."""
