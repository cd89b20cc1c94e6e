"""The verified token of a request, and its caller (ruling 12)."""

from __future__ import annotations

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request
from starlette.types import Scope

from madeleine.server.mcp.caller import Caller, Context

CALLER = "madeleine.caller"
"""Key of a request's caller in its ASGI scope, set by `RequireCaller` alone."""


class CallerToken(AccessToken):
    """The SDK's access token with the caller it stands for. `token` is never the secret."""

    caller: Caller


def token_of(scope: Scope) -> CallerToken | None:
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser) and isinstance(user.access_token, CallerToken):
        return user.access_token
    return None


def caller_of(context: Context) -> Caller:
    """The caller of the HTTP request that carried the message, also when its session has seen others."""
    if not isinstance(context.request, Request):
        raise PermissionError("a message came without its HTTP request")
    caller = context.request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller
