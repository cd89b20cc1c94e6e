"""Authentication of requests by bearer token: our own tokens, and those of an OAuth issuer."""

from __future__ import annotations

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from pydantic import AnyHttpUrl
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.server.http.tokens import MADELEINE_TOKEN_PREFIX, BearerTokenLedger, find_valid_bearer_token
from madeleine.server.mcp.server import Caller, RequestContext
from madeleine.server.wiring.clocks import utc_now

CALLER_ASGI_SCOPE_KEY = "madeleine.caller"
"""Key of a request's caller in its ASGI scope, set by `app_requiring_caller` alone."""


class AccessTokenWithCaller(AccessToken):
    """The SDK's access token with the caller it stands for (ruling 12). `token` is never the secret."""

    caller: Caller


def access_token_of_request(scope: Scope) -> AccessTokenWithCaller | None:
    user = scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token if isinstance(token, AccessTokenWithCaller) else None


def caller_of_request(context: RequestContext) -> Caller:
    """The caller of the HTTP request that carried the message, also when its session has seen others."""
    if not isinstance(context.request, Request):
        raise PermissionError("a message came without its HTTP request")
    caller = context.request.scope[CALLER_ASGI_SCOPE_KEY]
    assert isinstance(caller, Caller)
    return caller


class BearerTokenVerifier:
    """The SDK's `TokenVerifier`: our own tokens, and those of the issuer if there is one."""

    def __init__(self, tokens: BearerTokenLedger, issuer: TokenVerifier | None = None) -> None:
        self.tokens = tokens
        self._issuer = issuer

    async def verify_token(self, token: str) -> AccessToken | None:
        """Raises `StorageError` or `OAuthIssuerUnavailable` if the token cannot be checked now."""
        if not token.startswith(MADELEINE_TOKEN_PREFIX):
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
            caller=Caller(own.being_id, own.role, own.read_only, own.id),
        )


def app_requiring_caller(
    app: ASGIApp, tokens: BearerTokenLedger, anonymous: Caller | None, metadata_url: AnyHttpUrl
) -> ASGIApp:
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
