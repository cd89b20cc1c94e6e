"""Checks of an HTTP request. Before authentication: `Host` and `Origin`, a client's own key for the language model, the
access log. After it: requests per minute, requests at once, bytes and seconds of a body. Errors are JSON-RPC.

A browser may speak for anybody's page: DNS rebinding shows in `Host`, a foreign page in `Origin` (MCP specification,
transports, security warning). Every path is checked, on every address.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import mcp_types as types
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from pydantic import SecretStr
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.http.authentication import access_token_of_request
from madeleine.server.mcp.server import RequestContext
from madeleine.server.settings.http import LOOPBACK_HOSTS, HttpSettings, host_in_url, is_loopback
from madeleine.server.settings.language_model import is_valid_api_key

logger = logging.getLogger(__name__)

JSON_RPC_BUSY_ERROR_CODE = -32000
"""The first of JSON-RPC's codes that are free for servers."""
RETRY_AFTER_HEADERS = {"Retry-After": "1"}
"""Seconds."""
REJECTION_MESSAGES = {
    421: "This server does not answer to that Host. Add it to MADELEINE_ALLOWED_HOSTS if it should.",
    403: "Pages of that Origin may not use this server. Add it to MADELEINE_ALLOWED_ORIGINS if they should.",
}
LANGUAGE_MODEL_KEY_HEADER = "X-Madeleine-LLM-Key"
LANGUAGE_MODEL_KEY_ASGI_SCOPE_KEY = "madeleine.llm_key"
"""Key of the header's value in a request's ASGI scope, set by `move_language_model_key_to_scope` alone."""


def json_rpc_error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A JSON-RPC error without an id, as MCP's HTTP transport defines it."""
    code = JSON_RPC_BUSY_ERROR_CODE if "Retry-After" in (headers or {}) else types.INVALID_REQUEST
    body = {"jsonrpc": "2.0", "error": {"code": code, "message": message}}
    return JSONResponse(body, status_code=status, headers=headers)


def move_language_model_key_to_scope(app: ASGIApp) -> ASGIApp:
    """Takes it out of the headers before anything can log them; 400 for what cannot be a key."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        serving = app
        if scope["type"] == "http":
            scope = dict(scope)
            headers = MutableHeaders(scope=scope)
            keys = [key.strip() for key in headers.getlist(LANGUAGE_MODEL_KEY_HEADER)]
            del headers[LANGUAGE_MODEL_KEY_HEADER]
            scope[LANGUAGE_MODEL_KEY_ASGI_SCOPE_KEY] = SecretStr("".join(keys))
            if len(keys) > 1 or not all(map(is_valid_api_key, keys)):
                serving = json_rpc_error_response(
                    400, f"Send {LANGUAGE_MODEL_KEY_HEADER} once, as one line without spaces."
                )
        await serving(scope, receive, send)

    return serve


def language_model_key_of_request(context: RequestContext) -> str:
    """The key of the HTTP request that carried the message, not of its session; "" without one."""
    key = context.request.scope.get(LANGUAGE_MODEL_KEY_ASGI_SCOPE_KEY) if isinstance(context.request, Request) else None
    return key.get_secret_value() if isinstance(key, SecretStr) else ""


def transport_security_settings(settings: HttpSettings) -> TransportSecuritySettings:
    """The loopback's names, the public URL, and the configured hosts and origins. Pages of this machine's other servers
    are allowed only where the server listens to this machine alone."""
    url = urlsplit(settings.resource)
    local: Sequence[str] = (*LOOPBACK_HOSTS, host_in_url(settings.http_host)) if is_loopback(settings.http_host) else ()
    local_origins = [f"http://{host}" for host in local]
    return TransportSecuritySettings(
        allowed_hosts=[*_with_any_port([*LOOPBACK_HOSTS, *local]), url.netloc, *settings.allowed_hosts],
        allowed_origins=[*_with_any_port(local_origins), f"{url.scheme}://{url.netloc}", *settings.allowed_origins],
    )


def _with_any_port(names: Sequence[str]) -> list[str]:
    return [pattern for name in names for pattern in (name, f"{name}:*")]


def check_and_log_http_requests(app: ASGIApp, settings: TransportSecuritySettings) -> ASGIApp:
    """The outermost layer: checks `Host` (421) and `Origin` (403), logs each request, answers expected errors (503)."""
    security = TransportSecurityMiddleware(settings)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def send_with_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            serving = app
            if rejection := await security.validate_request(Request(scope)):
                serving = json_rpc_error_response(rejection.status_code, REJECTION_MESSAGES[rejection.status_code])
            await serving(scope, receive, send_with_status)
        except MadeleineError as error:
            logger.warning("a request could not be served: %s", error)
            if not status:
                await json_rpc_error_response(503, str(error), RETRY_AFTER_HEADERS)(scope, receive, send_with_status)
        finally:
            # Never the headers, which hold the token, nor the query, which may hold anything.
            token = access_token_of_request(scope)
            logger.info(
                "%s %.200s %s, %s, %.0f ms",
                scope["method"],
                scope["path"].encode("unicode_escape").decode(),
                status or "unanswered",
                token.client_id[:100] if token else "no token",
                (time.monotonic() - started) * 1000,
            )

    return serve


MAX_RATE_BUCKETS = 10_000
"""Remembered callers; beyond them the one seen longest ago starts anew."""


class RateLimit:
    """A token bucket for each key that holds a minute's worth and is filled evenly."""

    def __init__(self, per_minute: int) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Key → (tokens, when)."""

    def wait_seconds(self, key: str, *, now: float) -> float:
        """0 if the request is accepted, else the seconds until one will be. `now`: seconds, of any origin."""
        tokens, since = self._buckets.pop(key, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - since) * self._per_second)
        accepted = tokens >= 1
        self._buckets[key] = (tokens - 1 if accepted else tokens, now)
        if len(self._buckets) > MAX_RATE_BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if accepted else (1 - tokens) / self._per_second


class RateLimitMiddleware:
    """429 for a token that asks too often; without a token, for an address. So tokens cannot be tried out either.

    A class, for Starlette takes a function in a route for an endpoint instead of an application."""

    def __init__(self, app: ASGIApp, limit: RateLimit) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if seconds := math.ceil(self._limit.wait_seconds(rate_limit_key_of_request(scope), now=time.monotonic())):
            message = f"Too many requests. Try again in {seconds} s"
            raise HTTPException(429, message, {"Retry-After": str(seconds)})
        await self._app(scope, receive, send)


def rate_limit_key_of_request(scope: Scope) -> str:
    if token := access_token_of_request(scope):
        return f"token {token.client_id} {token.subject} {(token.claims or {}).get('iss', '')}"
    return f"address {(scope.get('client') or ('',))[0]}"


def limit_concurrency(app: ASGIApp, max_requests: int) -> ASGIApp:
    """503 for a request beyond that many at once."""
    semaphore = asyncio.Semaphore(max_requests)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if semaphore.locked():
            message = f"{max_requests} requests are served already. Try again in a moment"
            raise HTTPException(503, message, RETRY_AFTER_HEADERS)
        async with semaphore:
            await app(scope, receive, send)

    return serve


def buffer_json_body(app: ASGIApp, *, max_bytes: int, max_seconds: float) -> ASGIApp:
    """Passes a POST on when its whole body has arrived: 413 if it is too long, 408 if it takes too long, 415 if its
    type is not JSON."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(max_seconds):
                body = await _read_json_body(Request(scope, receive), max_bytes)
        except ClientDisconnect:
            return
        except TimeoutError as error:
            raise HTTPException(408, f"The request took longer than {max_seconds:g} s to arrive") from error
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await app(scope, replay, send)

    return serve


async def _read_json_body(request: Request, max_bytes: int) -> bytes:
    """Raises `HTTPException`, `ClientDisconnect`."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Send JSON, with Content-Type: application/json")
    too_long = HTTPException(413, f"The request is longer than {max_bytes:,} bytes. Split it")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise too_long
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise too_long
    return bytes(body)
