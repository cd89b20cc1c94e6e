"""`madeleine note`: put scene notes into the inbox. Writes to the ledger only: safe beside a running host."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter

from madeleine.memory.ingest.notes import add_note
from madeleine.memory.model import BeingId, Scope
from madeleine.server.cli.output import read_text, redaction_note
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.ledgers import ledger_alone
from madeleine.server.wiring.use_cases import redaction


async def note_command(settings: Settings, arguments: argparse.Namespace) -> None:
    text = await asyncio.to_thread(read_text, arguments.file)
    # Not splitlines: JSON may hold U+2028, U+0085 and other ends of lines as they are.
    lines = [line for line in text.split("\n") if line.strip()]
    redacted: Counter[str] = Counter()
    scope = Scope(BeingId(settings.being), "madeleine note")
    async with ledger_alone(settings) as ledger:
        for line in lines:
            note = await add_note(ledger.context, scope, line, now=utc_now(), redact=redaction(settings))
            redacted.update(note.redacted)
    print(f"{len(lines)} notes wait for the next patrol of {settings.being!r}.")
    if redacted:
        print(redaction_note(redacted))
