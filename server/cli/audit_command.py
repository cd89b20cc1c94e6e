"""`madeleine audit`: who did what to which memories, and when (spec O4, O10)."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import get_args

from madeleine.memory.audit import AuditEntry, AuditEvent, AuditQuery, AuditReader
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, parse_moment
from madeleine.server.cli.output import printable
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.ledgers import ledger_alone

EVENTS: tuple[AuditEvent, ...] = get_args(AuditEvent)
SHOWN_IDS = 3


async def audit_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Oldest first. Safe beside a running host, whose recalls appear a second later."""
    query = AuditQuery(
        being_id=BeingId(arguments.being) if arguments.being is not None else None,
        event=arguments.event,
        since=_moment("--since", arguments.since),
        until=_moment("--until", arguments.until, end_of_day=True),
        limit=arguments.limit,
    )
    if query.limit < 1:
        raise InvalidInput("--limit must be at least 1.")
    if query.event not in (None, *EVENTS):
        raise InvalidInput(f"--event: there is no {query.event!r}. Known are {', '.join(EVENTS)}.")
    async with ledger_alone(settings, create=False) as ledger:
        reader: AuditReader = ledger.audit
        entries, missing = await reader.audit(query), await reader.audit_missing()
    for entry in entries:
        print(as_json(entry) if arguments.json else as_line(entry))
    if missing:
        print(f"{missing} entries were removed from the audit by another program.", file=sys.stderr)


def as_json(entry: AuditEntry) -> str:
    return json.dumps(asdict(entry) | {"at": entry.at.isoformat(), "count": len(entry.ids)}, ensure_ascii=False)


def as_line(entry: AuditEntry) -> str:
    caller = "/".join(part for part in (entry.being_id, entry.client, entry.role) if part)
    ids = " ".join(entry.ids[:SHOWN_IDS]) + (" …" if len(entry.ids) > SHOWN_IDS else "")
    at = entry.at.isoformat(timespec="seconds")
    line = f"{entry.seq} {at} {entry.event} {caller} {entry.tool} ({len(entry.ids)}) {ids}"
    return printable(line)


def _moment(option: str, text: str | None, *, end_of_day: bool = False) -> datetime | None:
    if text is None:
        return None
    moment = parse_moment(text)
    if moment is None:
        raise InvalidInput(f"{option}: {text!r} is not a date; write it like 2026-03-01 or 2026-03-01T18:30.")
    whole_day = end_of_day and len(text) == len("2026-03-01")
    return moment + timedelta(days=1, microseconds=-1) if whole_day else moment
