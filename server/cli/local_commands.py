"""Commands that this process carries out itself: `reindex`, `note`, `audit` and `token`.

The last three open the ledger alone: they are safe beside a running host, which notices new tokens at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, get_args

from pydantic import AnyHttpUrl, ValidationError
from rich.table import Table

from madeleine.memory.audit import AuditEntry, AuditEventKind, AuditQuery
from madeleine.memory.bearer_tokens import BearerTokenId, BearerTokenRecord
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.notes import add_note
from madeleine.memory.model import SHORT_ID_CHARS, BeingId, Scope
from madeleine.memory.rules.storing.secrets import redact_secrets, refuse_value_that_is_secret
from madeleine.memory.text.dates import parse_iso_period
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.attach.connector import HostRefused, HostUnavailable, exchange_host_handshake_and_disconnect
from madeleine.server.background.index_origin import move_ledger_and_index_aside
from madeleine.server.cli.output import (
    empty_table_with_headings,
    make_console,
    print_json,
    read_text_file_or_stdin,
    redacted_secrets_sentence,
)
from madeleine.server.counted import count_phrase
from madeleine.server.http.tokens import generate_bearer_token, valid_being_id_or_none
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import (
    lock_data_directory,
    open_bearer_token_ledger,
    open_ledger_without_index,
)
from madeleine.server.wiring.open_memory import redaction_from_settings

MAX_BEARER_TOKEN_NAME_CHARS = 100
MAX_IDS_PER_AUDIT_LINE = 3
"""Ids of memories in a line of the audit; JSON has all."""


async def reindex_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Build the index anew from the ledger. The only one of these commands that needs the memory for itself."""
    from rich.progress import Progress

    from madeleine.server.wiring.open_memory import open_memory_store

    kept = None
    if arguments.start_anew:
        with lock_data_directory(settings.data_dir):
            kept = move_ledger_and_index_aside(settings.data_dir, f"{utc_now():%Y-%m-%d}")
        if not arguments.json:
            print(f"What was there is kept in {kept}.")
    with Progress(console=make_console(sys.stderr)) as bar:
        task = bar.add_task("reindex", total=None)

        async def show(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        async with open_memory_store(settings, rebuild=True, progress=show, background=False) as memory:
            memory.use_cases.audit(Scope(BeingId(""), "madeleine reindex"), "reindex")
            await memory.index.optimize_if_worthwhile()
            count = await memory.index.count()
    if arguments.json:
        print_json({"memories": count} | ({"kept": str(kept)} if kept else {}))
    else:
        print(f"The index was rebuilt: {count_phrase(count, 'memory', 'memories')}.")


async def note_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Put scene notes into the inbox."""
    text = await asyncio.to_thread(read_text_file_or_stdin, arguments.file)
    # Not splitlines: JSON may hold U+2028, U+0085 and other ends of lines as they are.
    lines = [line for line in text.split("\n") if line.strip()]
    redacted: Counter[str] = Counter()
    scope = Scope(BeingId(settings.being), "madeleine note")
    async with open_ledger_without_index(settings) as ledger:
        for line in lines:
            note = await add_note(ledger.context, scope, line, now=utc_now(), redact=redaction_from_settings(settings))
            redacted.update(note.redacted)
    if arguments.json:
        print_json({"being": settings.being, "notes": len(lines), "redacted": dict(redacted)})
        return
    print(f"{len(lines)} notes wait for the next patrol of {settings.being!r}.")
    if redacted:
        print(redacted_secrets_sentence(redacted))


# --- audit --------------------------------------------------------------------------------------------------------


async def audit_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Print who did what to which memories, and when, oldest first (spec O4, O10). A host's recalls appear a second
    later."""
    known_events = get_args(AuditEventKind)
    if arguments.event not in (None, *known_events):
        raise InvalidInput(f"--event: there is no {arguments.event!r}. Known are {', '.join(known_events)}.")
    query = AuditQuery(
        being_id=BeingId(arguments.being) if arguments.being is not None else None,
        event=arguments.event,
        since=parse_moment_option("--since", arguments.since),
        until=parse_moment_option("--until", arguments.until, to_end=True),
        limit=arguments.limit,
    )
    async with open_ledger_without_index(settings, create=False) as ledger:
        entries, missing = await ledger.audit.audit_entries(query), await ledger.audit.count_missing_entries()
    out = make_console()
    if out.is_terminal and not arguments.json:
        out.print(_table_of_audit(entries))
    else:
        for entry in entries:
            print(_audit_json(entry) if arguments.json else _audit_line(entry))
    if missing:
        print(f"{missing} entries were removed from the audit by another program.", file=sys.stderr)


def _audit_json(entry: AuditEntry) -> str:
    return json.dumps(asdict(entry) | {"at": entry.at.isoformat(), "count": len(entry.ids)}, ensure_ascii=False)


def _audit_line(entry: AuditEntry) -> str:
    ids = " ".join(entry.ids[:MAX_IDS_PER_AUDIT_LINE]) + (" …" if len(entry.ids) > MAX_IDS_PER_AUDIT_LINE else "")
    at = entry.at.isoformat(timespec="seconds")
    return terminal_safe_line(
        f"{entry.seq} {at} {entry.event} {_caller_text(entry)} {entry.tool} ({len(entry.ids)}) {ids}"
    )


def _table_of_audit(entries: Sequence[AuditEntry]) -> Table:
    """Of each id the first signs, which every call takes."""
    table = empty_table_with_headings(
        "number", "time", "event", "caller", "tool", "ids", no_wrap=("number", "time", "event")
    )
    for entry in entries:
        at = entry.at.isoformat(timespec="seconds")
        cells = (str(entry.seq), at, entry.event, _caller_text(entry), entry.tool, _short_ids_text(entry))
        table.add_row(*map(terminal_safe_line, cells))
    return table


def _short_ids_text(entry: AuditEntry) -> str:
    ids = [id_[:SHORT_ID_CHARS] for id_ in entry.ids[:MAX_IDS_PER_AUDIT_LINE]]
    more = len(entry.ids) - len(ids)
    return " ".join(ids) + (f" and {more} more" if more else "")


def _caller_text(entry: AuditEntry) -> str:
    token = f"token {entry.token}" if entry.token else ""
    return "/".join(part for part in (entry.being_id, entry.author, entry.client, entry.role, token) if part)


def parse_moment_option(option: str, text: str | None, *, to_end: bool = False) -> datetime | None:
    """The start of the period that is named, or its end. Raises `InvalidInput`."""
    if text is None:
        return None
    period = parse_iso_period(text)
    if period is None:
        raise InvalidInput(f"{option}: {text!r} is not a date; write it like 2026-03-01 or 2026-03-01T18:30.")
    return period.end if to_end else period.start


# --- tokens -------------------------------------------------------------------------------------------------------


async def token_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Create, list or revoke bearer tokens."""
    now = utc_now()
    if arguments.verb == "create":
        await _create_token(settings, arguments, now)
        return
    async with open_bearer_token_ledger(settings) as ledger:
        if arguments.verb == "list":
            tokens = await ledger.all_tokens()
            if arguments.json:
                print_json([_token_as_json(token, now=now) for token in tokens])
            elif tokens:
                make_console().print(_table_of_tokens(tokens, now=now))
            else:
                print("There are no tokens.")
        elif await ledger.revoke(BearerTokenId(arguments.id), at=now):
            if arguments.json:
                print_json({"id": arguments.id, "revoked_at": now.isoformat()})
            else:
                print(f"The token {arguments.id} is refused from now on.")
        else:
            raise InvalidInput(f"There is no token {arguments.id!r}. `madeleine token list` shows all.")


async def _create_token(settings: Settings, arguments: argparse.Namespace, now: datetime) -> None:
    being_id = valid_being_id_or_none(settings.being if arguments.being is None else arguments.being)
    if being_id is None:
        raise InvalidInput("--being: give 1 to 200 characters without control characters.")
    if len(arguments.name) > MAX_BEARER_TOKEN_NAME_CHARS or not arguments.name.isprintable():
        raise InvalidInput(f"--name: give at most {MAX_BEARER_TOKEN_NAME_CHARS} printable characters.")
    refuse_value_that_is_secret("--name", arguments.name, redact_secrets)
    resource = (
        arguments.resource
        or settings.public_url
        or _token_resource_of_running_server(settings)
        or settings.oauth_resource_url
    )
    try:
        AnyHttpUrl(resource)
    except ValidationError as error:
        raise InvalidInput(f"--resource: {resource!r} is not a URL; write https://memory.example.org/mcp.") from error
    id_, bearer, secret_hash = generate_bearer_token()
    token = BearerTokenRecord(
        id=id_,
        secret_hash=secret_hash,
        being_id=being_id,
        role=arguments.role,
        read_only=arguments.read_only,
        resource=resource,
        name=arguments.name,
        created_at=now,
        expires_at=parse_token_expiry(arguments.expires, now=now),
    )
    async with open_bearer_token_ledger(settings) as ledger:
        await ledger.add(token)
    if arguments.json:
        print_json(_token_as_json(token, now=now) | {"token": bearer})
        return
    print(f"Token {token.id} for {token.resource}; it is shown this once:", file=sys.stderr)
    print(bearer)


def _token_resource_of_running_server(settings: Settings) -> str:
    """The URL that tokens of the running server are bound to, whose port may come from its command line; "" if none
    runs."""
    try:
        return str(exchange_host_handshake_and_disconnect(settings.data_dir, "status").get("resource", ""))
    except (HostUnavailable, HostRefused):
        return ""


def parse_token_expiry(text: str | None, *, now: datetime) -> datetime | None:
    """The end of a day, month or year in UTC for a date without a time. Raises `InvalidInput`."""
    if text is None:
        return None
    try:
        if days := re.fullmatch(r"([0-9]{1,5})d", text):
            expires = now + timedelta(days=int(days[1]))
        elif period := parse_iso_period(text):
            expires = period.end + timedelta(microseconds=period.precision != "time")
        else:
            expires = now
    except (ValueError, OverflowError):
        expires = now
    if expires <= now:
        raise InvalidInput(f"--expires: {text!r} is not in the future; write 90d, 2027-01-31 or 2027-01-31T18:00.")
    return expires


def _token_state(token: BearerTokenRecord, *, now: datetime) -> str:
    if token.revoked_at:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if not token.is_valid_at(now):
        return f"expired {token.expires_at:%Y-%m-%d}"
    return f"valid to {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "valid"


def _token_as_json(token: BearerTokenRecord, *, now: datetime) -> dict[str, Any]:
    """All but the hash of its secret."""
    shown = {name: value for name, value in asdict(token).items() if name != "secret_hash"}
    moments = {name: value.isoformat() for name, value in shown.items() if isinstance(value, datetime)}
    return shown | moments | {"valid": token.is_valid_at(now)}


def _table_of_tokens(tokens: Sequence[BearerTokenRecord], *, now: datetime) -> Table:
    table = empty_table_with_headings("id", "name", "being", "role", "access", "for", "state", no_wrap=("id",))
    for token in tokens:
        access = "read-only" if token.read_only else "read and write"
        cells = (token.id, token.name, token.being_id, token.role, access, token.resource)
        table.add_row(*map(terminal_safe_line, cells), _token_state(token, now=now))
    return table
