"""A client's own key for the language model, in a header of each request."""

from __future__ import annotations

from pydantic import SecretStr
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.server.http.refusals import refusal
from madeleine.server.mcp.server import Context
from madeleine.server.settings.language_model import is_valid_key

HEADER = b"x-madeleine-llm-key"
KEY = "madeleine.llm_key"
"""Where it stands in a request's ASGI scope, put there by `LanguageKey` and by nothing else."""


class LanguageKey:
    """Takes it out of the headers before anything can log them; 400 for what cannot be a key."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        found = [value.decode("latin-1").strip() for name, value in scope["headers"] if name.lower() == HEADER]
        if len(found) > 1 or not all(map(is_valid_key, found)):
            await refusal(400, "Send X-Madeleine-LLM-Key once, as one line without spaces.")(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != HEADER]
        await self._app(dict(scope, headers=headers) | {KEY: SecretStr("".join(found))}, receive, send)


def language_key_of(context: Context) -> str:
    """Of the HTTP request that carried the message, not of its session. "" if it has none."""
    if not isinstance(context.request, Request):
        return ""
    key = context.request.scope.get(KEY)
    return key.get_secret_value() if isinstance(key, SecretStr) else ""
