"""Bearer tokens: made, kept as a hash, recognised, revoked."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from madeleine.memory.bearer_tokens import BearerTokenId, BearerTokenRecord
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId
from madeleine.server.cli.local_commands import parse_token_expiry
from madeleine.server.http.serve import anonymous_caller_from_settings, require_auth_when_exposed
from madeleine.server.http.tokens import find_valid_bearer_token, generate_bearer_token, valid_being_id_or_none
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.settings import Settings
from madeleine.storage.sql.administration import open_bearer_token_repository
from tests.rows import for_each_row

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def new_token(*, expires_at: datetime | None = None) -> tuple[BearerTokenRecord, str]:
    id_, bearer, secret_hash = generate_bearer_token()
    token = BearerTokenRecord(
        id=id_,
        secret_hash=secret_hash,
        being_id=BeingId("ada"),
        role="human",
        read_only=True,
        resource="https://memory.example.org/mcp",
        name="desk",
        created_at=NOW,
        expires_at=expires_at,
    )
    return token, bearer


async def test_a_token_is_found_as_it_was_made_and_its_secret_is_nowhere(tmp_path: Path) -> None:
    token, bearer = new_token(expires_at=NOW + timedelta(days=1))
    path = tmp_path / "memory.db"
    async with open_bearer_token_repository(path) as tokens:
        assert not await tokens.has_tokens()
        await tokens.add(token)
        assert await tokens.has_tokens()
        assert await find_valid_bearer_token(bearer, tokens, now=NOW) == token
        assert await tokens.all_tokens() == [token]
    secret = bearer.split("_", 2)[2]
    assert secret.encode() not in on_disk(tmp_path)
    assert secret not in repr(token)


def on_disk(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.iterdir())


async def test_a_revoked_or_expired_token_is_not_recognised_and_stays_known(tmp_path: Path) -> None:
    token, bearer = new_token(expires_at=NOW + timedelta(days=1))
    async with open_bearer_token_repository(tmp_path / "memory.db") as tokens:
        await tokens.add(token)
        assert await find_valid_bearer_token(bearer, tokens, now=NOW + timedelta(days=1)) is None
        assert await tokens.revoke(token.id, at=NOW)
        assert await tokens.revoke(token.id, at=NOW + timedelta(hours=1))
        assert await find_valid_bearer_token(bearer, tokens, now=NOW) is None
        found = await tokens.find_by_id(token.id)
        assert found is not None
        assert found.revoked_at == NOW
        assert not await tokens.revoke(BearerTokenId("none"), at=NOW)


async def test_a_token_revoked_by_another_process_is_refused_at_once(tmp_path: Path) -> None:
    path, (token, bearer) = tmp_path / "memory.db", new_token()
    async with open_bearer_token_repository(path) as here, open_bearer_token_repository(path) as there:
        await there.add(token)
        assert await find_valid_bearer_token(bearer, here, now=NOW) is not None
        await there.revoke(token.id, at=NOW)
        assert await find_valid_bearer_token(bearer, here, now=NOW) is None


async def test_a_new_file_opened_many_times_at_once_is_made_once(tmp_path: Path) -> None:
    """A server opens it for its memory and for its tokens; one of the two was told that it is busy."""
    path = tmp_path / "memory.db"

    async def opened() -> None:
        async with open_bearer_token_repository(path) as tokens:
            await tokens.has_tokens()

    await asyncio.gather(*(opened() for _ in range(8)))
    with closing(sqlite3.connect(path)) as ledger:
        assert ledger.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@for_each_row(
    ("written", "expected"),
    [
        (None, None),
        ("90d", NOW + timedelta(days=90)),
        ("2026-03-01", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-03-01T18:00Z", datetime(2026, 3, 1, 18, tzinfo=UTC)),
    ],
)
def test_an_end_is_a_number_of_days_a_date_or_a_moment(written: str | None, expected: datetime | None) -> None:
    assert parse_token_expiry(written, now=NOW) == expected


@for_each_row("written", ["", "0d", "2026-02-28", "soon", "2026-13-01", "2026-03-01T11:00Z"])
def test_an_end_that_is_none_or_over_is_refused(written: str) -> None:
    with pytest.raises(InvalidInput, match="--expires"):
        parse_token_expiry(written, now=NOW)


@for_each_row("name", ["", "a\nb", "x" * 201, "\ud800", None, 3, ["ada"]])
def test_an_invalid_being_id_is_rejected(name: object) -> None:
    assert valid_being_id_or_none(name) is None


@for_each_row(
    "settings",
    [
        {"http_host": "0.0.0.0"},
        {"public_url": "https://memory.example.org/mcp"},
        {"allowed_hosts": "memory.example.org"},
        {"allowed_hosts": "10.0.0.5:*"},
        {"oauth_issuer": "https://issuer.example.org"},
    ],
)
def test_access_needs_a_token_where_others_might_reach_the_server(settings: dict[str, str]) -> None:
    assert anonymous_caller_from_settings(Settings.model_validate(settings)) is None


def test_on_this_machine_alone_the_configured_being_is_served() -> None:
    here = Settings(being="ada", http_host="::1", allowed_hosts=("localhost:*", "[::1]", "127.0.0.1:99"))
    assert anonymous_caller_from_settings(here) == Caller(BeingId("ada"), "senior")
    require_auth_when_exposed(here, has_tokens=False)


@pytest.mark.parametrize("hosts", [(), ("memory.example.org",)])
def test_a_network_address_requires_allowed_hosts_and_authentication(hosts: tuple[str, ...]) -> None:
    settings = Settings(http_host="0.0.0.0", allowed_hosts=hosts)
    with pytest.raises(InvalidInput):
        require_auth_when_exposed(settings, has_tokens=not hosts)
    require_auth_when_exposed(Settings(http_host="0.0.0.0", allowed_hosts=("memory.example.org",)), has_tokens=True)
