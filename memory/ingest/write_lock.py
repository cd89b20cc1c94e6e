"""Changes of memories, one after the other."""

from __future__ import annotations

import asyncio
from typing import Literal


class WriteLock(asyncio.Lock):
    """Held by whatever changes memories in this process. Its turns tell whether what was read without it still holds:
    `turn = lock.start_optimistic_read()` before reading, `lock.is_optimistic_read_valid(turn)` when it is held."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = 0

    async def acquire(self) -> Literal[True]:
        await super().acquire()
        self._turn += 1
        return True

    def start_optimistic_read(self) -> int | None:
        """The turn of a holder who finds everything as it is now; None while memories are being changed."""
        return None if self.locked() else self._turn + 1

    def is_optimistic_read_valid(self, turn: int | None) -> bool:
        return self._turn == turn
