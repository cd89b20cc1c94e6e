"""Authentication of requests by bearer token: our own tokens, and the JWTs of an OAuth issuer (RFC 9068), checked with
the keys that it publishes (RFC 7517, RFC 8414)."""

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
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.memory.model import CALLER_ROLES
from madeleine.server.http.tokens import BEARER_TOKEN_PREFIX, TokenLedger, find_valid_bearer_token, parse_being_id
from madeleine.server.mcp.server import Caller, RequestContext
from madeleine.server.settings.http import HttpSettings, is_secure_url
from madeleine.server.wiring.clocks import utc_now

CALLER_ASGI_SCOPE_KEY = "madeleine.caller"
"""Key of a request's caller in its ASGI scope, set by `require_caller` alone."""


class AccessTokenWithCaller(AccessToken):
    """The SDK's access token with the caller it stands for (ruling 12). `token` is never the secret."""

    caller: Caller


def access_token_of_request(scope: Scope) -> AccessTokenWithCaller | None:
    user = scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token if isinstance(token, AccessTokenWithCaller) else None


def request_caller(context: RequestContext) -> Caller:
    """The caller of the HTTP request that carried the message, also when its session has seen others."""
    if not isinstance(context.request, Request):
        raise PermissionError("a message came without its HTTP request")
    caller = context.request.scope[CALLER_ASGI_SCOPE_KEY]
    assert isinstance(caller, Caller)
    return caller


class BearerTokenVerifier:
    """The SDK's `TokenVerifier`: our own tokens, and those of the issuer if there is one."""

    def __init__(self, tokens: TokenLedger, issuer: TokenVerifier | None = None) -> None:
        self.tokens = tokens
        self._issuer = issuer

    async def verify_token(self, token: str) -> AccessToken | None:
        """Raises `StorageError` or `OAuthIssuerUnavailable` if the token cannot be checked now."""
        if not token.startswith(BEARER_TOKEN_PREFIX):
            return await self._issuer.verify_token(token) if self._issuer else None
        own = await find_valid_bearer_token(token, self.tokens, now=utc_now())
        if own is None:
            return None
        return AccessTokenWithCaller(
            token=own.id,
            client_id=own.id,
            scopes=[],
            expires_at=int(own.expires_at.timestamp()) if own.expires_at else None,
            resource=own.resource,
            subject=own.being_id,
            caller=Caller(own.being_id, own.role, own.read_only),
        )


def require_caller(app: ASGIApp, tokens: TokenLedger, *, anonymous: Caller | None, metadata_url: AnyHttpUrl) -> ASGIApp:
    """Passes a request on with its caller, or answers 401.

    A request without a token has the caller `anonymous`, if that is given and no token was ever made.
    """
    unauthorized = RequireAuthMiddleware(app, [], metadata_url)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        caller = None
        if token := access_token_of_request(scope):
            caller = token.caller
        elif anonymous and "authorization" not in Headers(scope=scope) and not await tokens.has_tokens():
            caller = anonymous
        if caller is None:
            await unauthorized(dict(scope, user=None), receive, send)
        else:
            scope[CALLER_ASGI_SCOPE_KEY] = caller
            await app(scope, receive, send)

    return serve


logger = logging.getLogger(__name__)

ALLOWED_JWT_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Asymmetric only: with HS256 whoever knows the public key could sign."""
JWT_CLOCK_LEEWAY_SECONDS = 30
"""Tolerated difference of two clocks."""
MAX_ISSUER_KEYS_AGE_SECONDS = 600.0
MIN_KEY_FETCH_INTERVAL_SECONDS = 10.0
"""Between two fetches: tokens that name unknown keys must not cause a fetch each."""
ISSUER_TIMEOUT_SECONDS = 5.0
MAX_ISSUER_ANSWER_BYTES = 1024 * 1024
KEY_FETCH_ERRORS = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError)
"""No answer, or an unusable one."""


class OAuthIssuerUnavailable(MadeleineError):
    """The issuer's keys cannot be fetched, so no token of it can be verified."""


class JwtIssuer:
    """The SDK's `TokenVerifier` for the JWTs of one issuer, whose public keys are fetched on demand and cached."""

    def __init__(self, client: httpx.AsyncClient, settings: HttpSettings) -> None:
        self._client = client
        self._settings = settings
        self._issuer = settings.oauth_issuer
        self._keys: list[Mapping[str, Any]] | None = None
        self._fetched_at = self._tried_at = float("-inf")
        self._failure = ""
        self._fetching = asyncio.Lock()

    async def verify_token(self, token: str) -> AccessTokenWithCaller | None:
        """Return None for a token that is not signed by the issuer, not meant for this resource, or not valid now.

        Raises `OAuthIssuerUnavailable`."""
        try:
            return self._caller_token(await self._verified_claims(token))
        except jwt.PyJWTError as error:
            logger.info("a token was refused: %s", str(error)[:200])
            return None

    async def _verified_claims(self, token: str) -> Mapping[str, Any]:
        """Raises `PyJWTError`."""
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in ALLOWED_JWT_ALGORITHMS:
            raise jwt.InvalidAlgorithmError(f"its algorithm is {algorithm!r}")
        key = await self._find_key(header.get("kid"))
        if key is None or key.get("alg", algorithm) != algorithm:
            raise jwt.InvalidKeyError("no key of the issuer fits it")
        claims: Mapping[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(key), algorithm=algorithm),
            algorithms=[algorithm],
            audience=self._settings.oauth_audience or self._settings.resource,
            issuer=self._issuer,
            leeway=JWT_CLOCK_LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
        return claims

    def _caller_token(self, claims: Mapping[str, Any]) -> AccessTokenWithCaller:
        settings = self._settings
        being_id = parse_being_id(claims.get(settings.oauth_being_claim))
        if being_id is None:
            raise jwt.InvalidTokenError(f"its claim {settings.oauth_being_claim!r} names no being")
        role = claims.get(settings.oauth_role_claim)
        subject = str(claims.get("sub", being_id))
        read_only = claims.get(settings.oauth_read_only_claim) is True
        return AccessTokenWithCaller(
            token="",
            client_id=str(claims.get("client_id") or claims.get("azp") or subject),
            scopes=[],
            expires_at=int(claims["exp"]) + JWT_CLOCK_LEEWAY_SECONDS,
            resource=settings.resource,
            subject=subject,
            claims={"iss": claims["iss"]},
            caller=Caller(being_id, role if role in CALLER_ROLES else "agent", read_only),
        )

    # --- keys --------------------------------------------------------------------------------------------------

    async def _find_key(self, key_id: str | None) -> Mapping[str, Any] | None:
        """The key as it is published; without an id, the only key. Raises `OAuthIssuerUnavailable`."""
        if self._is_fresh() and (key := self._cached_key(key_id)):
            return key
        async with self._fetching:
            if not (self._is_fresh() and self._cached_key(key_id)):
                await self._fetch_keys()
        return self._cached_key(key_id)

    def _is_fresh(self) -> bool:
        return time.monotonic() - self._fetched_at < MAX_ISSUER_KEYS_AGE_SECONDS

    def _cached_key(self, key_id: str | None) -> Mapping[str, Any] | None:
        keys = self._keys or []
        if key_id is None:
            return keys[0] if len(keys) == 1 else None
        return next((key for key in keys if key.get("kid") == key_id), None)

    async def _fetch_keys(self) -> None:
        """Keys that were fetched before stay in use while the issuer cannot be reached."""
        if time.monotonic() - self._tried_at >= MIN_KEY_FETCH_INTERVAL_SECONDS:
            self._tried_at = time.monotonic()
            try:
                url = self._settings.oauth_jwks_url or await self._discover_jwks_url()
                self._keys = _signing_keys(await self._get_json(url))
                self._fetched_at = time.monotonic()
            except KEY_FETCH_ERRORS as error:
                self._failure = str(error) or type(error).__name__
                logger.warning("the keys of %s could not be fetched: %s", self._issuer, self._failure)
        if self._keys is None:
            message = f"The keys of {self._issuer} cannot be fetched now ({self._failure}). Try again in a moment."
            raise OAuthIssuerUnavailable(message)

    async def _discover_jwks_url(self) -> str:
        failure: Exception = ValueError("no metadata")
        # RFC 8414 puts the well-known part before the issuer's path, OpenID Connect behind it.
        for url in build_oauth_authorization_server_metadata_discovery_urls(self._issuer, ""):
            try:
                metadata = await self._get_json(url)
                if metadata.get("issuer") != self._issuer:
                    raise ValueError(f"{url} names another issuer: {str(metadata.get('issuer'))[:200]!r}")
                jwks_url = str(metadata.get("jwks_uri", ""))
                if not is_secure_url(jwks_url):
                    raise ValueError(f"{url} names no https address of keys")
                return jwks_url
            except KEY_FETCH_ERRORS as error:
                failure = error
        raise failure

    async def _get_json(self, url: str) -> Mapping[str, Any]:
        async with asyncio.timeout(ISSUER_TIMEOUT_SECONDS), self._client.stream("GET", url) as response:
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
