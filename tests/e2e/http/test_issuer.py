"""Tokens of an OAuth issuer, which here is the test's own, on the loopback."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from madeleine.memory.audit import AuditQuery
from madeleine.memory.errors import InvalidInput
from madeleine.server.http import oauth_issuer
from madeleine.server.settings.settings import read_settings
from madeleine.server.wiring.data_directory import open_ledger_without_index
from tests.e2e.http.http_serving import Served, asked, bearer, posted, serving

EC = generate_private_key(SECP256R1())
OTHER_EC = generate_private_key(SECP256R1())
RSA = generate_rsa(public_exponent=65537, key_size=2048)


def published(key: Any, algorithm: Any, kid: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    return content | {"kid": kid, "use": "sig"}


@dataclass
class LoopbackIssuer:
    url: str = ""
    keys: list[dict[str, Any]] = field(
        default_factory=lambda: [published(EC, ECAlgorithm, "ec"), published(RSA, RSAAlgorithm, "rsa")]
    )
    asked: list[str] = field(default_factory=list)
    away: bool = False
    go_on: Event = field(default_factory=Event)
    """Nothing is answered until it is set."""

    def __post_init__(self) -> None:
        self.go_on.set()

    def claims(self, audience: str, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        return {"iss": self.url, "sub": "ada", "aud": audience, "exp": now + 300, "nbf": now, "role": "senior"} | more

    def answer(self, path: str) -> dict[str, Any] | None:
        self.asked.append(path)
        self.go_on.wait()
        if self.away:
            return None
        pages: dict[str, dict[str, Any]] = {
            "/.well-known/openid-configuration": {"issuer": self.url, "jwks_uri": f"{self.url}/keys"},
            "/keys": {"keys": self.keys},
        }
        return pages.get(path)


@contextmanager
def loopback_issuer() -> Iterator[LoopbackIssuer]:
    found = LoopbackIssuer()

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = found.answer(self.path)
            body = json.dumps(page or {}).encode()
            self.send_response(200 if page else 404)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as http:
        found.url = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            found.go_on.set()
            http.shutdown()
            thread.join()


@pytest.fixture
def vouching() -> Iterator[LoopbackIssuer]:
    with loopback_issuer() as found:
        yield found


@pytest.fixture
async def server(tmp_path: Path, vouching: LoopbackIssuer) -> AsyncIterator[Served]:
    async with serving(tmp_path, oauth_issuer=vouching.url) as found:
        yield found


def signed(
    claims: dict[str, Any], key: Any = EC, algorithm: str = "ES256", kid: str | None = "ec", type_: str = "at+jwt"
) -> str:
    headers = {"typ": type_} | ({"kid": kid} if kid else {})
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers)


async def status(server: Served, token: str) -> int:
    async with server.browser() as client:
        return (await posted(client, "tools/list", headers=bearer(token))).status_code


async def test_the_being_is_the_one_that_the_issuer_names(server: Served, vouching: LoopbackIssuer) -> None:
    audience = server.settings.oauth_resource_url
    ada, bo = (bearer(signed(vouching.claims(audience, sub=being))) for being in ("ada", "bo"))
    async with server.browser() as client:
        await asked(client, "store", {"text": "Grandmother cooked lasagne on Sunday"}, headers=ada)
        named = bearer(signed(vouching.claims(audience, jti="jwt-7")))
        await asked(client, "store", {"text": "The kettle is red"}, headers=named)
        own = await server.token("cyd")
        await asked(client, "store", {"text": "The boat is blue"}, headers=bearer(own))
        async with open_ledger_without_index(server.settings) as ledger:
            stores = await ledger.audit.audit_entries(AuditQuery(event="store"))
        assert [entry.token for entry in stores] == ["", "jwt-7", own.split("_")[1]], "spec O10"
        hits = [
            (await asked(client, "search_memory", {"query": "lasagne"}, headers=who))["structuredContent"]["hits"]
            for who in (ada, bo)
        ]
        assert [len(found) for found in hits] == [1, 0]
        claims: tuple[object, ...] = (True, "true", 1, 0, "false", None, [])
        for claim in claims:
            reader = bearer(signed(vouching.claims(audience, read_only=claim), RSA, "RS256", "rsa"))
            refused = await asked(client, "store", {"text": "x y z"}, headers=reader)
            assert "read-only" in refused["content"][0]["text"], claim
        writer = bearer(signed(vouching.claims(audience, read_only=False), RSA, "RS256", "rsa"))
        assert not (await asked(client, "store", {"text": "x y z"}, headers=writer)).get("isError")
        metadata = (await client.get("/.well-known/oauth-protected-resource/mcp")).json()
    assert metadata["authorization_servers"] == [vouching.url]
    assert vouching.asked.count("/keys") == 1


async def test_what_the_issuer_did_not_sign_for_here_and_now_is_refused(
    server: Served, vouching: LoopbackIssuer
) -> None:
    now = int(time.time())
    good = vouching.claims(server.settings.oauth_resource_url)
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with_public_key_as_secret = ".".join(signed_by_hand(good, public))
    tokens = {
        "unsigned": jwt.encode(good, "", algorithm="none", headers={"kid": "ec"}),
        "signed with the public key as a secret": with_public_key_as_secret,
        "by another key": signed(good, OTHER_EC),
        "by a key of another kind": signed(good, RSA, "RS256", "ec"),
        "by an unknown key": signed(good, kid="new"),
        "without a key's name, where there are several": signed(good, kid=None),
        "expired": signed(good | {"exp": now - 60}),
        "not yet valid": signed(good | {"nbf": now + 120}),
        "of another issuer": signed(good | {"iss": "https://other.example"}),
        "for another audience": signed(good | {"aud": "https://other.example/mcp"}),
        "without an end": signed({name: value for name, value in good.items() if name != "exp"}),
        "without an audience": signed({name: value for name, value in good.items() if name != "aud"}),
        "without a being": signed({name: value for name, value in good.items() if name != "sub"}),
        "of a being that is no name": signed(good | {"sub": "a\x00b"}),
        "changed": signed(good)[:-4] + "AAAA",
        "no JWT": "a.b.c",
        "an identity token": signed(good, type_="JWT"),
        "of no type": signed(good, type_=""),
    }
    assert await status(server, signed(good)) == 200
    assert await status(server, signed(good, type_="application/AT+JWT")) == 200
    for kind, token in tokens.items():
        assert await status(server, token) == 401, kind
    async with server.browser() as client:
        assert (await posted(client, "tools/list")).status_code == 401
    # Unknown keys do not make us press the issuer.
    assert vouching.asked.count("/keys") == 1


def signed_by_hand(claims: dict[str, Any], secret: bytes) -> list[str]:
    """PyJWT itself refuses to do this."""
    import base64
    import hashlib
    import hmac

    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).decode().rstrip("=")

    parts = [part(json.dumps(one).encode()) for one in ({"alg": "HS256", "typ": "JWT", "kid": "rsa"}, claims)]
    return [*parts, part(hmac.new(secret, ".".join(parts).encode(), hashlib.sha256).digest())]


async def test_keys_that_change_are_fetched_again(
    server: Served, vouching: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = vouching.claims(server.settings.oauth_resource_url)
    assert await status(server, signed(good)) == 200
    monkeypatch.setattr("madeleine.server.http.oauth_issuer.MIN_ISSUER_KEY_FETCH_INTERVAL_SECONDS", 0.0)
    vouching.keys = [published(OTHER_EC, ECAlgorithm, "new")]
    assert await status(server, signed(good, OTHER_EC, kid="new")) == 200
    assert await status(server, signed(good)) == 401


async def test_an_issuer_that_is_away_is_no_fault_of_the_token(server: Served, vouching: LoopbackIssuer) -> None:
    vouching.away = True
    async with server.browser() as client:
        token = bearer(signed(vouching.claims(server.settings.oauth_resource_url)))
        answer = await posted(client, "tools/list", headers=token)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        assert vouching.url in answer.json()["error"]["message"]
        own = bearer(await server.token())
        assert (await posted(client, "tools/list", headers=own)).status_code == 200


async def test_an_issuer_that_hangs_delays_only_tokens_whose_keys_are_unknown(
    server: Served, vouching: LoopbackIssuer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good = vouching.claims(server.settings.oauth_resource_url)
    assert await status(server, signed(good)) == 200
    vouching.go_on.clear()
    for name, value in (
        ("ISSUER_KEYS_REFRESH_AGE_SECONDS", 0.0),
        ("MIN_ISSUER_KEY_FETCH_INTERVAL_SECONDS", 0.0),
        ("MAX_REQUESTS_WAITING_FOR_ISSUER_KEYS", 2),
        ("ISSUER_KEY_FETCH_TIMEOUT_SECONDS", 1.0),
    ):
        monkeypatch.setattr(oauth_issuer, name, value)
    unknown = [asyncio.create_task(status(server, signed(good, OTHER_EC, kid=f"new {n}"))) for n in range(6)]
    # Those that wait are few, and none waits longer than one time limit for metadata and keys together.
    assert sorted(await asyncio.gather(*unknown)) == [401, 401, 503, 503, 503, 503]
    assert caplog.text.count("could not be served") == 1, "whoever makes up tokens does not fill the log"
    asked = len(vouching.asked)
    assert await status(server, signed(good)) == 200
    vouching.go_on.set()
    assert await status(server, signed(good, OTHER_EC, kid="newer")) == 401
    assert await status(server, signed(good)) == 200
    assert len(vouching.asked) > asked, "known keys are refreshed behind"
    monkeypatch.setattr(oauth_issuer, "MAX_TRUSTED_ISSUER_KEYS_AGE_SECONDS", 0.0)
    assert await status(server, signed(good)) == 503


async def test_an_issuer_of_another_type_of_token_can_be_configured(tmp_path: Path, vouching: LoopbackIssuer) -> None:
    async with serving(tmp_path, oauth_issuer=vouching.url, oauth_token_types="JWT") as server:
        good = vouching.claims(server.settings.oauth_resource_url)
        assert [await status(server, signed(good, type_=type_)) for type_ in ("JWT", "at+jwt")] == [200, 401]


@pytest.mark.parametrize("name", ["MADELEINE_OAUTH_ISSUER", "MADELEINE_OAUTH_JWKS_URL"])
def test_keys_come_by_https_or_from_this_machine(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="https"):
        read_settings({"MADELEINE_DATA_DIR": str(tmp_path), name: "http://issuer.example.org"})
