"""Tokens of an OAuth issuer: JWTs (RFC 9068), checked with the keys that it publishes (RFC 7517, RFC 8414)."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import jwt

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import ROLES
from madeleine.server.http.authentication import CallerToken
from madeleine.server.http.tokens import parse_being_id
from madeleine.server.mcp.caller import Caller
from madeleine.server.settings.http import is_safe_url

logger = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric only: with HS256 whoever knows the public key could sign."""
LEEWAY_SECONDS = 30
"""Tolerated difference of two clocks."""
KEYS_FRESH_SECONDS = 600.0
FETCH_PAUSE_SECONDS = 10.0
"""Between two fetches: tokens that name unknown keys must not cause a fetch each."""
TIMEOUT_SECONDS = 5.0
MAX_ANSWER_BYTES = 1024 * 1024
FETCH_ERRORS = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError)
"""No answer, or an unusable one."""
METADATA_PATHS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class IssuerUnavailable(MadeleineError):
    """The issuer's keys cannot be fetched, so no token of it can be verified."""

    def __init__(self, issuer: str, reason: str) -> None:
        super().__init__(f"The keys of {issuer} cannot be fetched now ({reason}). Try again in a moment.")
        self.issuer = issuer


@dataclass(frozen=True, slots=True)
class ClaimNames:
    """The claims that name the being, its role, and whether to read only."""

    being: str
    role: str
    read_only: str


class IssuerKeys:
    """The issuer's public keys, fetched on demand and cached."""

    def __init__(self, client: httpx.AsyncClient, issuer: str, jwks_url: str) -> None:
        self._client = client
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._keys: list[Mapping[str, Any]] | None = None
        self._fetched_at = self._tried_at = float("-inf")
        self._failure = ""
        self._fetching = asyncio.Lock()

    async def find(self, key_id: str | None) -> Mapping[str, Any] | None:
        """The key as it is published; without an id, the only key. Raises `IssuerUnavailable`."""
        if self._is_fresh() and (key := self._cached(key_id)):
            return key
        async with self._fetching:
            if not (self._is_fresh() and self._cached(key_id)):
                await self._fetch()
        return self._cached(key_id)

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._fetched_at < KEYS_FRESH_SECONDS

    def _cached(self, key_id: str | None) -> Mapping[str, Any] | None:
        keys = self._keys or []
        if key_id is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.get("kid") == key_id), None)

    async def _fetch(self) -> None:
        """Keys that were fetched before stay in use while the issuer cannot be reached."""
        if time.monotonic() - self._tried_at >= FETCH_PAUSE_SECONDS:
            self._tried_at = time.monotonic()
            try:
                url = self._jwks_url or await self._discover()
                self._keys = _signing_keys(await self._get_json(url))
                self._fetched_at = time.monotonic()
            except FETCH_ERRORS as error:
                self._failure = str(error) or type(error).__name__
                logger.warning("the keys of %s could not be fetched: %s", self._issuer, self._failure)
        if self._keys is None:
            raise IssuerUnavailable(self._issuer, self._failure)

    async def _discover(self) -> str:
        failure: Exception = ValueError("no metadata")
        for url in metadata_urls(self._issuer):
            try:
                metadata = await self._get_json(url)
                if metadata.get("issuer") != self._issuer:
                    raise ValueError(f"{url} names another issuer: {str(metadata.get('issuer'))[:200]!r}")
                jwks_url = str(metadata.get("jwks_uri", ""))
                if not is_safe_url(jwks_url):
                    raise ValueError(f"{url} names no https address of keys")
                return jwks_url
            except FETCH_ERRORS as error:
                failure = error
        raise failure

    async def _get_json(self, url: str) -> Mapping[str, Any]:
        async with asyncio.timeout(TIMEOUT_SECONDS), self._client.stream("GET", url) as response:
            response.raise_for_status()
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer of {url} is too long")
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise ValueError(f"the answer of {url} is not an object")  # noqa: TRY004  as any bad answer
        return answer


def metadata_urls(issuer: str) -> list[str]:
    """RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{origin}{well_known}{path}" for well_known in METADATA_PATHS]
    return list(dict.fromkeys([*inserted, f"{origin}{path}{METADATA_PATHS[1]}"]))


def _signing_keys(jwks: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    keys = jwks.get("keys")
    if not isinstance(keys, list):
        raise ValueError("the key set holds no list of keys")  # noqa: TRY004  as any bad answer
    return [
        key
        for key in keys
        if isinstance(key, dict) and key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig"
    ]


class JwtIssuer:
    """The SDK's `TokenVerifier` for the JWTs of one issuer."""

    def __init__(self, issuer: str, keys: IssuerKeys, *, audience: str, resource: str, claims: ClaimNames) -> None:
        self._issuer = issuer
        self._keys = keys
        self._audience = audience
        self._resource = resource
        self._claims = claims

    async def verify_token(self, token: str) -> CallerToken | None:
        """None for a token that the issuer did not sign, or not for this resource, or not for now. Raises
        `IssuerUnavailable`."""
        try:
            return self._caller_token(await self._verified_claims(token))
        except jwt.PyJWTError as error:
            logger.info("a token was refused: %s", str(error)[:200])
            return None

    async def _verified_claims(self, token: str) -> Mapping[str, Any]:
        """Raises `PyJWTError`."""
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError(f"its algorithm is {algorithm!r}")
        key = await self._keys.find(header.get("kid"))
        if key is None or key.get("alg", algorithm) != algorithm:
            raise jwt.InvalidKeyError("no key of the issuer fits it")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(key), algorithm=algorithm),
            algorithms=[algorithm],
            audience=self._audience,
            issuer=self._issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _caller_token(self, claims: Mapping[str, Any]) -> CallerToken:
        being_id = parse_being_id(claims.get(self._claims.being))
        if being_id is None:
            raise jwt.InvalidTokenError(f"its claim {self._claims.being!r} names no being")
        role = claims.get(self._claims.role)
        subject = str(claims.get("sub", being_id))
        caller = Caller(
            being_id, role if role in ROLES else "agent", read_only=claims.get(self._claims.read_only) is True
        )
        return CallerToken(
            token="",
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=[],
            expires_at=int(claims["exp"]) + LEEWAY_SECONDS,
            resource=self._resource,
            subject=subject,
            claims={"iss": self._issuer},
            caller=caller,
        )
