"""A client's own key for the language model, in a header of each request."""

from __future__ import annotations

from pydantic import SecretStr
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.server.http.error_responses import error_response
from madeleine.server.mcp.caller import Context
from madeleine.server.settings.language_model import is_valid_key

HEADER = b"x-madeleine-llm-key"
KEY = "madeleine.llm_key"
"""Key of the header's value in a request's ASGI scope, set by `take_language_key` alone."""


def take_language_key(app: ASGIApp) -> ASGIApp:
    """Takes it out of the headers before anything can log them; 400 for what cannot be a key."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        keys = [value.decode("latin-1").strip() for name, value in scope["headers"] if name.lower() == HEADER]
        if len(keys) > 1 or not all(map(is_valid_key, keys)):
            response = error_response(400, "Send X-Madeleine-LLM-Key once, as one line without spaces.")
            await response(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != HEADER]
        scope = dict(scope, headers=headers) | {KEY: SecretStr("".join(keys))}
        await app(scope, receive, send)

    return serve


def language_key_of(context: Context) -> str:
    """The key of the HTTP request that carried the message, not of its session; "" without one."""
    if not isinstance(context.request, Request):
        return ""
    key = context.request.scope.get(KEY)
    return key.get_secret_value() if isinstance(key, SecretStr) else ""
