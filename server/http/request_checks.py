"""The outer layers of the HTTP server: the check of `Host` and `Origin`, a client's own key for the language model, the
access log, and errors as JSON-RPC.

A browser may speak for anybody's page: DNS rebinding shows in `Host`, a foreign page in `Origin` (MCP specification,
transports, security warning). Every path is checked, on every address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import mcp_types as types
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from pydantic import SecretStr
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.http.authentication import token_of
from madeleine.server.mcp.server import RequestContext
from madeleine.server.settings.http import LOOPBACK_HOSTS, HttpSettings, in_url, is_loopback
from madeleine.server.settings.language_model import is_valid_key

logger = logging.getLogger(__name__)

BUSY_ERROR_CODE = -32000
"""The first of JSON-RPC's codes that are free for servers."""
RETRY_HEADERS = {"Retry-After": "1"}
"""Seconds."""
REJECTION_MESSAGES = {
    421: "This server does not answer to that Host. Add it to MADELEINE_ALLOWED_HOSTS if it should.",
    403: "Pages of that Origin may not use this server. Add it to MADELEINE_ALLOWED_ORIGINS if they should.",
}
LANGUAGE_KEY_HEADER = "X-Madeleine-LLM-Key"
LANGUAGE_KEY_SCOPE = "madeleine.llm_key"
"""Key of the header's value in a request's ASGI scope, set by `take_language_key` alone."""


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A JSON-RPC error without an id, as MCP's HTTP transport defines it."""
    code = BUSY_ERROR_CODE if "Retry-After" in (headers or {}) else types.INVALID_REQUEST
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


def take_language_key(app: ASGIApp) -> ASGIApp:
    """Takes it out of the headers before anything can log them; 400 for what cannot be a key."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        serving = app
        if scope["type"] == "http":
            scope = dict(scope)
            headers = MutableHeaders(scope=scope)
            keys = [key.strip() for key in headers.getlist(LANGUAGE_KEY_HEADER)]
            del headers[LANGUAGE_KEY_HEADER]
            scope[LANGUAGE_KEY_SCOPE] = SecretStr("".join(keys))
            if len(keys) > 1 or not all(map(is_valid_key, keys)):
                serving = error_response(400, f"Send {LANGUAGE_KEY_HEADER} once, as one line without spaces.")
        await serving(scope, receive, send)

    return serve


def language_key_of(context: RequestContext) -> str:
    """The key of the HTTP request that carried the message, not of its session; "" without one."""
    key = context.request.scope.get(LANGUAGE_KEY_SCOPE) if isinstance(context.request, Request) else None
    return key.get_secret_value() if isinstance(key, SecretStr) else ""


def security_settings(settings: HttpSettings) -> TransportSecuritySettings:
    """The loopback's names, the public URL, and the configured hosts and origins. Pages of this machine's other servers
    are allowed only where the server listens to this machine alone."""
    url = urlsplit(settings.resource)
    local: Sequence[str] = (*LOOPBACK_HOSTS, in_url(settings.http_host)) if is_loopback(settings.http_host) else ()
    local_origins = [f"http://{host}" for host in local]
    return TransportSecuritySettings(
        allowed_hosts=[*_any_port([*LOOPBACK_HOSTS, *local]), url.netloc, *settings.allowed_hosts],
        allowed_origins=[*_any_port(local_origins), f"{url.scheme}://{url.netloc}", *settings.allowed_origins],
    )


def _any_port(names: Sequence[str]) -> list[str]:
    return [pattern for name in names for pattern in (name, f"{name}:*")]


class TransportSecurity:
    """The outermost layer: checks `Host` (421) and `Origin` (403), logs each request, answers expected errors (503)."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def send_with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            rejection = await self._security.validate_request(Request(scope))
            app = self._app
            if rejection is not None:
                app = error_response(rejection.status_code, REJECTION_MESSAGES[rejection.status_code])
            await app(scope, receive, send_with_status)
        except MadeleineError as error:
            logger.warning("a request could not be served: %s", error)
            if not status:
                await error_response(503, str(error), RETRY_HEADERS)(scope, receive, send_with_status)
        finally:
            # Never the headers, which hold the token, nor the query, which may hold anything.
            token = token_of(scope)
            logger.info(
                "%s %.200s %s, %s, %.0f ms",
                scope["method"],
                scope["path"].encode("unicode_escape").decode(),
                status or "unanswered",
                token.client_id[:100] if token else "no token",
                (time.monotonic() - started) * 1000,
            )
