"""`madeleine token`: make, list and revoke bearer tokens. Safe beside a running server, which notices at once."""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta

from pydantic import AnyHttpUrl, ValidationError

from madeleine.memory.bearer_tokens import BearerToken, BearerTokenId
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import parse_moment
from madeleine.server.http.tokens import create_token, parse_being_id
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.ledgers import open_token_ledger

NAME_LENGTH = 100


async def token_command(settings: Settings, arguments: argparse.Namespace) -> None:
    verb = {"create": create, "list": show, "revoke": revoke}[arguments.verb]
    await verb(settings, arguments)


async def create(settings: Settings, arguments: argparse.Namespace) -> None:
    now = utc_now()
    being_id = parse_being_id(settings.being if arguments.being is None else arguments.being)
    if being_id is None:
        raise InvalidInput("--being: give 1 to 200 characters without control characters.")
    if len(arguments.name) > NAME_LENGTH or not arguments.name.isprintable():
        raise InvalidInput(f"--name: give at most {NAME_LENGTH} printable characters.")
    new = create_token(
        being_id,
        role=arguments.role,
        read_only=arguments.read_only,
        resource=checked_url(arguments.resource or settings.resource),
        name=arguments.name,
        expires_at=expiry(arguments.expires, now=now),
        now=now,
    )
    async with open_token_ledger(settings) as tokens:
        await tokens.add(new.token)
    print(f"Token {new.token.id} for {new.token.resource}; it is shown this once:", file=sys.stderr)
    print(new.bearer)


async def show(settings: Settings, arguments: argparse.Namespace) -> None:
    async with open_token_ledger(settings) as ledger:
        tokens = await ledger.all()
    now = utc_now()
    print("\n".join(line(token, now=now) for token in tokens) or "There are no tokens.")


async def revoke(settings: Settings, arguments: argparse.Namespace) -> None:
    async with open_token_ledger(settings) as tokens:
        if not await tokens.revoke(BearerTokenId(arguments.id), at=utc_now()):
            raise InvalidInput(f"There is no token {arguments.id!r}. `madeleine token list` shows all.")
    print(f"The token {arguments.id} is refused from now on.")


def expiry(written: str | None, *, now: datetime) -> datetime | None:
    """A date without a time: its end, in UTC. Raises `InvalidInput`."""
    if written is None:
        return None
    try:
        if days := re.fullmatch(r"([0-9]{1,5})d", written):
            expires = now + timedelta(days=int(days[1]))
        elif re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", written):
            expires = datetime.fromisoformat(written).replace(tzinfo=UTC) + timedelta(days=1)
        else:
            expires = parse_moment(written) or now
    except (ValueError, OverflowError):
        expires = now
    if expires <= now:
        raise InvalidInput(f"--expires: {written!r} is not in the future; write 90d, 2027-01-31 or 2027-01-31T18:00.")
    return expires


def checked_url(url: str) -> str:
    try:
        AnyHttpUrl(url)
    except ValidationError as error:
        raise InvalidInput(f"--resource: {url!r} is not a URL; write https://memory.example.org/mcp.") from error
    return url


def line(token: BearerToken, *, now: datetime) -> str:
    if token.revoked_at:
        state = f"revoked {token.revoked_at:%Y-%m-%d}"
    elif not token.valid(now):
        state = f"expired {token.expires_at:%Y-%m-%d}"
    else:
        state = f"valid to {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "valid"
    rights = f"{token.role}, {'read-only' if token.read_only else 'read and write'}"
    parts = [token.id, token.name, f"being {token.being_id!r}", rights, token.resource, state]
    return "  ".join(part for part in parts if part)
