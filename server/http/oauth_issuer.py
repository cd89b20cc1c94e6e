"""The JWTs of an OAuth issuer (RFC 9068), checked with the keys that it publishes (RFC 7517, RFC 8414)."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any

import httpx
import jwt
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import CALLER_ROLES
from madeleine.memory.text.structure import terminal_safe_line
from madeleine.server.addresses import is_https_or_loopback_http_url
from madeleine.server.http.authentication import AccessTokenWithCaller
from madeleine.server.http.tokens import valid_being_id_or_none
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import HttpSettings

logger = logging.getLogger(__name__)

ALLOWED_JWT_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric only: with HS256 whoever knows the public key could sign."""
JWT_CLOCK_LEEWAY_SECONDS = 30
"""Tolerated difference of two clocks."""
ISSUER_KEYS_REFRESH_AGE_SECONDS = 600.0
MIN_ISSUER_KEY_FETCH_INTERVAL_SECONDS = 10.0
"""Between two fetches: tokens that name unknown keys must not cause a fetch each."""
MAX_TRUSTED_ISSUER_KEYS_AGE_SECONDS = 24 * 3600.0
"""Keys that the issuer has not confirmed for so long are not trusted any more."""
ISSUER_KEY_FETCH_TIMEOUT_SECONDS = 5.0
"""For the metadata and the keys together."""
MAX_KEPT_JWT_ID_CHARS = 100
"""Kept of the id of a JWT, for the audit."""
MAX_REQUESTS_WAITING_FOR_ISSUER_KEYS = 16
"""Requests that wait for a fetch; others are refused."""
MAX_ISSUER_ANSWER_BYTES = 1024 * 1024
ISSUER_KEY_FETCH_ERRORS = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError)
"""No answer, or an unusable one."""


class OAuthIssuerUnavailable(MadeleineError):
    """The issuer's keys cannot be fetched, so no token of it can be verified."""


class OAuthJwtVerifier:
    """The SDK's `TokenVerifier` for the JWTs of one issuer. Its public keys are fetched on demand, by one task at a
    time; those that are known serve meanwhile. The context ends the task."""

    def __init__(self, client: httpx.AsyncClient, settings: HttpSettings) -> None:
        self._client = client
        self._settings = settings
        self._issuer = settings.oauth_issuer
        self._keys: list[Mapping[str, Any]] = []
        self._fetched_at = self._tried_at = float("-inf")
        self._failure = ""
        self._fetch: asyncio.Task[None] | None = None
        self._waiting = 0

    async def __aenter__(self) -> OAuthJwtVerifier:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._fetch:
            self._fetch.cancel()
            await asyncio.wait([self._fetch])

    async def verify_token(self, token: str) -> AccessTokenWithCaller | None:
        """Return None for a token that is not signed by the issuer, not meant for this resource, or not valid now.

        Raises `OAuthIssuerUnavailable`."""
        try:
            return self._access_token_with_caller(await self._verified_claims(token))
        except jwt.PyJWTError as error:
            logger.info("a token was refused: %s", str(error)[:200])
            return None

    async def _verified_claims(self, token: str) -> Mapping[str, Any]:
        """Raises `PyJWTError`."""
        header = jwt.get_unverified_header(token)
        # RFC 9068, section 4: an identity token of the same issuer is not a token of access.
        type_ = str(header.get("typ", "")).lower().removeprefix("application/")
        if type_ not in (name.lower() for name in self._settings.oauth_token_types):
            raise jwt.InvalidTokenError(f"its type is {type_[:50]!r}")
        algorithm = header.get("alg")
        if algorithm not in ALLOWED_JWT_ALGORITHMS:
            raise jwt.InvalidAlgorithmError(f"its algorithm is {algorithm!r}")
        key = await self._find_signing_key(header.get("kid"))
        if key is None or key.get("alg", algorithm) != algorithm:
            raise jwt.InvalidKeyError("no key of the issuer fits it")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(key), algorithm=algorithm),
            algorithms=[algorithm],
            audience=self._settings.oauth_audience or self._settings.oauth_resource_url,
            issuer=self._issuer,
            leeway=JWT_CLOCK_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _access_token_with_caller(self, claims: Mapping[str, Any]) -> AccessTokenWithCaller:
        settings = self._settings
        being_id = valid_being_id_or_none(claims.get(settings.oauth_being_claim))
        if being_id is None:
            raise jwt.InvalidTokenError(f"its claim {settings.oauth_being_claim!r} names no being")
        role = claims.get(settings.oauth_role_claim)
        subject = str(claims.get("sub", being_id))
        read_only = claims.get(settings.oauth_read_only_claim, False) is not False
        return AccessTokenWithCaller(
            token="",
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=[],
            expires_at=int(claims["exp"]) + JWT_CLOCK_LEEWAY_SECONDS,
            resource=settings.oauth_resource_url,
            subject=subject,
            claims={"iss": claims["iss"]},
            caller=Caller(being_id, role if role in CALLER_ROLES else "agent", read_only, _jwt_id_for_audit(claims)),
        )

    # --- keys --------------------------------------------------------------------------------------------------

    async def _find_signing_key(self, key_id: str | None) -> Mapping[str, Any] | None:
        """The key as it is published; without an id, the only key. A known key is returned at once, and refreshed
        behind. Raises `OAuthIssuerUnavailable`."""
        age = time.monotonic() - self._fetched_at
        if age < MAX_TRUSTED_ISSUER_KEYS_AGE_SECONDS and (key := self._cached_signing_key(key_id)):
            if age >= ISSUER_KEYS_REFRESH_AGE_SECONDS:
                self._current_or_new_key_fetch()
            return key
        if fetch := self._current_or_new_key_fetch():
            await self._wait_for_key_fetch(fetch)
        if time.monotonic() - self._fetched_at >= MAX_TRUSTED_ISSUER_KEYS_AGE_SECONDS:
            message = f"The keys of {self._issuer} cannot be fetched now ({self._failure}). Try again in a moment."
            raise OAuthIssuerUnavailable(message)
        return self._cached_signing_key(key_id)

    async def _wait_for_key_fetch(self, fetch: asyncio.Task[None]) -> None:
        if self._waiting >= MAX_REQUESTS_WAITING_FOR_ISSUER_KEYS:
            raise OAuthIssuerUnavailable(f"The keys of {self._issuer} are being fetched. Try again in a moment.")
        self._waiting += 1
        try:
            await asyncio.wait([fetch])
        finally:
            self._waiting -= 1

    def _cached_signing_key(self, key_id: str | None) -> Mapping[str, Any] | None:
        if key_id is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.get("kid") == key_id), None)

    def _current_or_new_key_fetch(self) -> asyncio.Task[None] | None:
        """The fetch under way; None if the last one was too recent for another."""
        if self._fetch is None or self._fetch.done():
            if time.monotonic() - self._tried_at < MIN_ISSUER_KEY_FETCH_INTERVAL_SECONDS:
                return None
            self._tried_at = time.monotonic()
            self._fetch = asyncio.create_task(self._fetch_keys(), name="keys of the issuer")
        return self._fetch

    async def _fetch_keys(self) -> None:
        try:
            async with asyncio.timeout(ISSUER_KEY_FETCH_TIMEOUT_SECONDS):
                url = self._settings.oauth_jwks_url or await self._discover_jwks_url()
                self._keys = _signing_keys(await self._get_json(url))
            self._fetched_at = time.monotonic()
        except ISSUER_KEY_FETCH_ERRORS as error:
            self._failure = str(error) or type(error).__name__
            logger.warning("the keys of %s could not be fetched: %s", self._issuer, self._failure)

    async def _discover_jwks_url(self) -> str:
        failure: Exception = ValueError("no metadata")
        # RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it.
        for url in build_oauth_authorization_server_metadata_discovery_urls(self._issuer, ""):
            try:
                metadata = await self._get_json(url)
                if metadata.get("issuer") != self._issuer:
                    raise ValueError(f"{url} names another issuer: {str(metadata.get('issuer'))[:200]!r}")
                jwks_url = str(metadata.get("jwks_uri", ""))
                if not is_https_or_loopback_http_url(jwks_url):
                    raise ValueError(f"{url} names no https address of keys")
                return jwks_url
            except ISSUER_KEY_FETCH_ERRORS as error:
                failure = error
        raise failure

    async def _get_json(self, url: str) -> Mapping[str, Any]:
        async with self._client.stream("GET", url) as response:
            response.raise_for_status()
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_ISSUER_ANSWER_BYTES:
                    raise ValueError(f"the answer of {url} is too long")
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise ValueError(f"the answer of {url} is not an object")  # noqa: TRY004  as any bad answer
        return answer


def _signing_keys(jwks: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    keys = jwks.get("keys")
    if not isinstance(keys, list):
        raise ValueError("the key set holds no list of keys")  # noqa: TRY004  as any bad answer
    return [
        key
        for key in keys
        if isinstance(key, dict) and key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig"
    ]


def _jwt_id_for_audit(claims: Mapping[str, Any]) -> str:
    """Returns "" where it has none."""
    return terminal_safe_line(str(claims.get("jti", "")))[:MAX_KEPT_JWT_ID_CHARS]
