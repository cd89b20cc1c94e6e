"""The ledger alone: it may be opened beside a running server, the index may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from madeleine.memory.audit import AuditReader
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.ports import NoteLedger
from madeleine.memory.watch.observe import Observe
from madeleine.patrol.ports import PatrolLedger
from madeleine.server.http.ports import TokenLedger
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.use_cases import redaction
from madeleine.storage.sql.ledger import Ledger, open_ledger
from madeleine.storage.sql.operations.tokens import open_tokens

LEDGER = "memory.db"


@asynccontextmanager
async def notes_inbox(settings: Settings) -> AsyncIterator[NoteLedger]:
    """The ledger alone: it may be opened beside a running server, the index may not."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield ledger.profile


@asynccontextmanager
async def chat_history(settings: Settings) -> AsyncIterator[Observe]:
    """The ledger alone, as for the inbox: messages need no index."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield Observe(ledger.conversations, now=utc_now, redact=redaction(settings))


@asynccontextmanager
async def audit_trail(settings: Settings) -> AsyncIterator[AuditReader]:
    """The ledger alone, as for the inbox. Raises `InvalidInput` where there is none."""
    async with _ledger_for_reading(settings) as ledger:
        yield ledger.audit


@asynccontextmanager
async def _ledger_for_reading(settings: Settings) -> AsyncIterator[Ledger]:
    """Reading makes none."""
    if not (settings.data_dir / LEDGER).exists():
        raise InvalidInput(f"There is no memory in {settings.data_dir} yet. Set MADELEINE_DATA_DIR to where it is.")
    async with open_ledger(settings.data_dir / LEDGER) as ledger:
        yield ledger


@asynccontextmanager
async def patrol_runs(settings: Settings) -> AsyncIterator[PatrolLedger]:
    """The ledger alone, as for the audit. Raises `InvalidInput` where there is none."""
    async with _ledger_for_reading(settings) as ledger:
        yield ledger.patrols


@asynccontextmanager
async def open_token_ledger(settings: Settings) -> AsyncIterator[TokenLedger]:
    """On connections of its own, beside a running server and before the memory is open."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    async with open_tokens(settings.data_dir / LEDGER) as tokens:
        yield tokens
