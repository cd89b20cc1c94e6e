"""The ledger without the index: it may be opened beside a running host, the index may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from madeleine.memory.errors import InvalidInput
from madeleine.server.settings.settings import Settings
from madeleine.storage.sql.administration import TokenRepository, open_tokens
from madeleine.storage.sql.ledger import Ledger, open_ledger

LEDGER_FILE = "memory.db"


@asynccontextmanager
async def ledger_alone(settings: Settings, *, create: bool = True) -> AsyncIterator[Ledger]:
    """Opened beside a running host. Without `create` raises `InvalidInput` where there is no ledger."""
    if create:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    elif not (settings.data_dir / LEDGER_FILE).exists():
        raise InvalidInput(f"There is no memory in {settings.data_dir} yet. Set MADELEINE_DATA_DIR to where it is.")
    async with open_ledger(settings.data_dir / LEDGER_FILE) as ledger:
        yield ledger


@asynccontextmanager
async def open_token_ledger(settings: Settings) -> AsyncIterator[TokenRepository]:
    """On connections of its own, beside a running host and before the memory is open."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_tokens(settings.data_dir / LEDGER_FILE) as tokens:
        yield tokens
