"""From a request's bearer token to its caller (ruling 12), by the SDK's own verifier interface."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.memory.bearer_tokens import BearerToken
from madeleine.server.http.issuer import Issuer, Vouched
from madeleine.server.http.ports import TokenLedger
from madeleine.server.http.tokens import PREFIX, recognised
from madeleine.server.mcp.server import Caller, Context

CALLER = "madeleine.caller"
"""Where a request's caller stands in its ASGI scope, put there by `Gate` and by nothing else."""


class Identified(AccessToken):
    """What the SDK knows of a token, and whom it stands for. `token` is never the secret."""

    caller: Caller


class Verifier:
    """The SDK's `TokenVerifier`: our own tokens, and those of the issuer if there is one."""

    def __init__(self, ledger: TokenLedger, issuer: Issuer | None, *, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._issuer = issuer
        self._now = now

    async def verify_token(self, token: str) -> Identified | None:
        """Raises `StorageError` or `IssuerUnavailable` if nobody can tell now."""
        if token.startswith(PREFIX):
            found = await recognised(token, self._ledger, now=self._now())
            return _of_ours(found) if found else None
        if self._issuer is None:
            return None
        vouched = await self._issuer.vouches_for(token)
        return _of_issuer(vouched) if vouched else None


def _of_ours(token: BearerToken) -> Identified:
    return Identified(
        token=token.id,
        client_id=token.id,
        scopes=[],
        expires_at=int(token.expires_at.timestamp()) if token.expires_at else None,
        resource=token.resource,
        subject=token.being_id,
        caller=Caller(token.being_id, token.role, token.read_only),
    )


def _of_issuer(vouched: Vouched) -> Identified:
    return Identified(
        token="",
        client_id=vouched.client_id,
        scopes=[],
        expires_at=vouched.expires_at,
        resource=vouched.resource,
        subject=vouched.subject,
        claims={"iss": vouched.issuer},
        caller=Caller(vouched.being_id, vouched.role, vouched.read_only),
    )


class Gate:
    """Lets a request in with its caller, or answers 401.

    Without a token it comes in as `anonymous`, if there is one and no token was ever made.
    """

    def __init__(
        self, app: ASGIApp, ledger: TokenLedger, *, anonymous: Caller | None, metadata_url: AnyHttpUrl
    ) -> None:
        self._app = app
        self._ledger = ledger
        self._anonymous = anonymous
        self._refuse = RequireAuthMiddleware(_nobody, [], metadata_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = await self._caller(scope)
        if caller is None:
            await self._refuse(scope, receive, send)
        else:
            scope[CALLER] = caller
            await self._app(scope, receive, send)

    async def _caller(self, scope: Scope) -> Caller | None:
        if token := identified(scope):
            return token.caller
        if self._anonymous is None or "authorization" in Headers(scope=scope):
            return None
        return None if await self._ledger.any() else self._anonymous


async def _nobody(scope: Scope, receive: Receive, send: Send) -> None:
    raise PermissionError("a request without a caller was let in")


def identified(scope: Scope) -> Identified | None:
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser) and isinstance(user.access_token, Identified):
        return user.access_token
    return None


def caller_of(context: Context) -> Caller:
    """Of the HTTP request that carried the message, also when its session has seen others."""
    if not isinstance(context.request, Request):
        raise PermissionError("a message came without its HTTP request")
    caller = context.request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller
