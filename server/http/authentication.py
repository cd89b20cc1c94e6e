"""Authentication of requests by bearer token, through the SDK's verifier interface."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.server.http.ports import TokenLedger
from madeleine.server.http.tokens import PREFIX, find_valid_token
from madeleine.server.mcp.caller import Caller, Context

CALLER = "madeleine.caller"
"""Key of a request's caller in its ASGI scope, set by `RequireCaller` alone."""


class CallerToken(AccessToken):
    """The SDK's access token with the caller it stands for (ruling 12). `token` is never the secret."""

    caller: Caller


def token_of(scope: Scope) -> CallerToken | None:
    user = scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token if isinstance(token, CallerToken) else None


def caller_of(context: Context) -> Caller:
    """The caller of the HTTP request that carried the message, also when its session has seen others."""
    if not isinstance(context.request, Request):
        raise PermissionError("a message came without its HTTP request")
    caller = context.request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


class BearerTokenVerifier:
    """The SDK's `TokenVerifier`: our own tokens, and those of the issuer if there is one."""

    def __init__(self, ledger: TokenLedger, issuer: TokenVerifier | None, *, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._issuer = issuer
        self._now = now

    async def verify_token(self, token: str) -> AccessToken | None:
        """Raises `StorageError` or `IssuerUnavailable` if the token cannot be checked now."""
        if not token.startswith(PREFIX):
            return await self._issuer.verify_token(token) if self._issuer else None
        own = await find_valid_token(token, self._ledger, now=self._now())
        if own is None:
            return None
        return CallerToken(
            token=own.id,
            client_id=own.id,
            scopes=[],
            expires_at=int(own.expires_at.timestamp()) if own.expires_at else None,
            resource=own.resource,
            subject=own.being_id,
            caller=Caller(own.being_id, own.role, own.read_only),
        )


class RequireCaller:
    """Passes a request on with its caller, or answers 401.

    A request without a token has the caller `anonymous`, if that is given and no token was ever made.
    """

    def __init__(
        self, app: ASGIApp, ledger: TokenLedger, *, anonymous: Caller | None, metadata_url: AnyHttpUrl
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._anonymous = anonymous
        self._unauthorized = RequireAuthMiddleware(app, [], metadata_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await self._caller(scope)
        if caller is None:
            await self._unauthorized(dict(scope, user=None), receive, send)
        else:
            scope[CALLER] = caller
            await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        if token := token_of(scope):
            return token.caller
        if self._anonymous is None or "authorization" in Headers(scope=scope):
            return None
        return None if await self._ledger.any() else self._anonymous
