"""Tokens of an OAuth issuer: JWTs (RFC 9068), checked with the keys that it publishes (RFC 7517, RFC 8414)."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import BeingId
from madeleine.memory.scope import ROLES, Role
from madeleine.server.http.tokens import being_of
from madeleine.server.settings.http import is_safe_url

logger = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric ones alone: with HS256 whoever knows the public key could sign."""
LEEWAY_SECONDS = 30
"""By which two clocks may differ."""
KEYS_FRESH_SECONDS = 600.0
FETCH_PAUSE_SECONDS = 10.0
"""Between two fetches: tokens that name unknown keys must not make us press the issuer."""
TIMEOUT_SECONDS = 5.0
LONGEST_ANSWER = 1024 * 1024
"""Bytes."""
FAILURES = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError)
"""Of a fetch: no answer, or none that can be used."""
METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class IssuerUnavailable(MadeleineError):
    """The issuer's keys cannot be had now, so nobody can tell whom a token stands for."""

    def __init__(self, issuer: str, reason: object) -> None:
        super().__init__(f"The keys of {issuer} cannot be had now ({reason}). Try again in a moment.")
        self.issuer = issuer


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """What the issuer says of a token's holder."""

    being_id: BeingId
    role: Role
    read_only: bool
    issuer: str
    subject: str
    client_id: str
    resource: str
    expires_at: int
    """Seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The names of the claims that say who the holder is."""

    being: str = "sub"
    role: str = "role"
    read_only: str = "read_only"


class Keys:
    """The issuer's public keys, fetched when they are needed and kept for a while."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        issuer: str,
        jwks_url: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._clock = clock
        self._keys: list[Mapping[str, Any]] | None = None
        self._fetched = self._tried = float("-inf")
        self._failure: object = ""
        self._turn = asyncio.Lock()

    async def find(self, key_id: str | None) -> Mapping[str, Any] | None:
        """The key as it is published. One without an id is found if it is the only one. Raises `IssuerUnavailable`."""
        if self._fresh() and (key := self._known(key_id)):
            return key
        async with self._turn:
            if not (self._fresh() and self._known(key_id)):
                await self._fetch()
        return self._known(key_id)

    def _fresh(self) -> bool:
        return self._clock() - self._fetched < KEYS_FRESH_SECONDS

    def _known(self, key_id: str | None) -> Mapping[str, Any] | None:
        keys = self._keys or []
        if key_id is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.get("kid") == key_id), None)

    async def _fetch(self) -> None:
        """What was fetched before stays in use when the issuer cannot be reached."""
        if self._clock() - self._tried >= FETCH_PAUSE_SECONDS:
            self._tried = self._clock()
            try:
                url = self._jwks_url or await self._discover()
                self._keys = _signing_keys(await self._json(url))
                self._fetched = self._clock()
            except FAILURES as error:
                self._failure = str(error) or type(error).__name__
                logger.warning("the keys of %s could not be fetched: %s", self._issuer, self._failure)
        if self._keys is None:
            raise IssuerUnavailable(self._issuer, self._failure)

    async def _discover(self) -> str:
        failure: Exception = ValueError("no metadata")
        for url in metadata_urls(self._issuer):
            try:
                found = await self._json(url)
                if found.get("issuer") != self._issuer:
                    raise ValueError(f"{url} speaks for {str(found.get('issuer'))[:200]!r}")
                jwks_url = str(found.get("jwks_uri", ""))
                if not is_safe_url(jwks_url):
                    raise ValueError(f"{url} names no https address of keys")
            except FAILURES as error:
                failure = error
            else:
                return jwks_url
        raise failure

    async def _json(self, url: str) -> Mapping[str, Any]:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._client.stream("GET", url) as response:
            response.raise_for_status()
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > LONGEST_ANSWER:
                    raise ValueError(f"{url} answers at too great length")
        found = json.loads(body)
        if not isinstance(found, dict):
            raise ValueError(f"{url} answers with something else than an object")  # noqa: TRY004  as any bad answer
        return found


def metadata_urls(issuer: str) -> list[str]:
    """RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{origin}{known}{path}" for known in METADATA]
    return list(dict.fromkeys([*inserted, f"{origin}{path}{METADATA[1]}"]))


def _signing_keys(published: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    keys = published.get("keys")
    if not isinstance(keys, list):
        raise ValueError("the key set holds no list of keys")  # noqa: TRY004  as any bad answer
    return [
        key
        for key in keys
        if isinstance(key, dict) and key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig"
    ]


class Issuer:
    def __init__(self, issuer: str, keys: Keys, *, audience: str, resource: str, claims: Claims) -> None:
        self._issuer = issuer
        self._keys = keys
        self._audience = audience
        self._resource = resource
        self._claims = claims

    async def vouches_for(self, token: str) -> Vouched | None:
        """None for what the issuer did not sign, for us, for now. Raises `IssuerUnavailable`."""
        try:
            return self._vouched(await self._checked(token))
        except jwt.PyJWTError as error:
            logger.info("a token was refused: %s", str(error)[:200])
            return None

    async def _checked(self, token: str) -> Mapping[str, Any]:
        """Its claims. Raises `PyJWTError`."""
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError(f"its algorithm is {algorithm!r}")
        published = await self._keys.find(header.get("kid"))
        if published is None or published.get("alg", algorithm) != algorithm:
            raise jwt.InvalidKeyError("no key of the issuer fits it")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(published), algorithm=algorithm),
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _vouched(self, claims: Mapping[str, Any]) -> Vouched:
        being_id = being_of(claims.get(self._claims.being))
        if being_id is None:
            raise jwt.InvalidTokenError(f"its claim {self._claims.being!r} names no being")
        role = claims.get(self._claims.role)
        subject = str(claims.get("sub", being_id))
        return Vouched(
            being_id=being_id,
            role=role if role in ROLES else "agent",
            read_only=claims.get(self._claims.read_only) is True,
            issuer=self._issuer,
            subject=subject,
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            resource=self._resource,
            expires_at=int(claims["exp"]) + LEEWAY_SECONDS,
        )
