"""Checks of an HTTP request. Before authentication: `Host` and `Origin`, a client's own key for the language model, the
access log. Then requests per minute. Errors are JSON-RPC.

A browser may speak for anybody's page: DNS rebinding shows in `Host`, a foreign page in `Origin` (MCP specification,
transports, security warning). Every path is checked, on every address.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import mcp_types as types
from pydantic import SecretStr
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.addresses import is_loopback
from madeleine.server.connections import WarningThrottle
from madeleine.server.http.authentication import access_token_of_request
from madeleine.server.mcp.server import RequestContext
from madeleine.server.settings.http import LOOPBACK_HOSTS, HttpSettings, bracket_ipv6_host
from madeleine.server.settings.language_model import is_well_formed_api_key

logger = logging.getLogger(__name__)

JSON_RPC_BUSY_ERROR_CODE = -32000
"""The first of JSON-RPC's codes that are free for servers."""
RETRY_AFTER_HEADERS = {"Retry-After": "1"}
"""Seconds."""
REJECTION_MESSAGE_BY_HTTP_STATUS = {
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
            if len(keys) > 1 or not all(map(is_well_formed_api_key, keys)):
                serving = json_rpc_error_response(
                    400, f"Send {LANGUAGE_MODEL_KEY_HEADER} once, as one line without spaces."
                )
        await serving(scope, receive, send)

    return serve


def language_model_key_of_request(context: RequestContext) -> str:
    """The key of the HTTP request that carried the message, not of its session; "" without one."""
    key = context.request.scope.get(LANGUAGE_MODEL_KEY_ASGI_SCOPE_KEY) if isinstance(context.request, Request) else None
    return key.get_secret_value() if isinstance(key, SecretStr) else ""


@dataclass(frozen=True, slots=True)
class AllowedHostsAndOrigins:
    """Names that `Host` and `Origin` may have, compared whole and in lower case; `name:*` stands for any port."""

    hosts: frozenset[str]
    origins: frozenset[str]

    def rejection_status(self, headers: Headers) -> int:
        """421 or 403; 0 if the request is accepted. Clients other than browsers send no `Origin`."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not _is_listed_host_or_origin(hosts[0], self.hosts):
            return 421
        return 0 if all(_is_listed_host_or_origin(origin, self.origins) for origin in origins) else 403


def _is_listed_host_or_origin(name: str, listed: frozenset[str]) -> bool:
    name = name.lower()
    with_any_port = re.sub(r":[0-9]{1,5}\Z", ":*", name)
    return name in listed or (with_any_port != name and with_any_port in listed)


def allowed_hosts_and_origins(settings: HttpSettings) -> AllowedHostsAndOrigins:
    """The loopback's names, the public URL, and the configured hosts and origins. Pages of this machine's other servers
    are allowed only where the server listens to this machine alone."""
    url = urlsplit(settings.oauth_resource_url)
    local: Sequence[str] = (
        (*LOOPBACK_HOSTS, bracket_ipv6_host(settings.http_host)) if is_loopback(settings.http_host) else ()
    )
    local_origins = [f"http://{host}" for host in local]
    hosts = [*_names_and_any_port_patterns([*LOOPBACK_HOSTS, *local]), url.netloc, *settings.allowed_hosts]
    origins = [*_names_and_any_port_patterns(local_origins), f"{url.scheme}://{url.netloc}", *settings.allowed_origins]
    return AllowedHostsAndOrigins(frozenset(map(str.lower, hosts)), frozenset(map(str.lower, origins)))


def _names_and_any_port_patterns(names: Sequence[str]) -> list[str]:
    return [pattern for name in names for pattern in (name, f"{name}:*")]


def check_and_log_http_requests(app: ASGIApp, allowed: AllowedHostsAndOrigins) -> ASGIApp:
    """The outermost layer: checks `Host` (421) and `Origin` (403), logs each request, answers expected errors (503)."""
    failures = WarningThrottle()  # a stranger may cause them: a token of an issuer that does not answer

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
            if rejection := allowed.rejection_status(Headers(scope=scope)):
                serving = json_rpc_error_response(rejection, REJECTION_MESSAGE_BY_HTTP_STATUS[rejection])
            await serving(scope, receive, send_with_status)
        except MadeleineError as error:
            failures.log_or_count("a request could not be served", error, now=time.monotonic())
            if not status:
                await json_rpc_error_response(503, str(error), RETRY_AFTER_HEADERS)(scope, receive, send_with_status)
        finally:
            # Never the values of headers, which hold the token, nor the query, which may hold anything.
            headers = Headers(scope=scope)
            token = access_token_of_request(scope)
            missing = "a token that is unknown, expired or revoked" if "authorization" in headers else "no token"
            logger.info(
                "%s %.200s %s, %s, %.0f ms",
                scope["method"],
                scope["path"].encode("unicode_escape").decode(),
                status or "unanswered",
                token.client_id[:100] if token else missing,
                (time.monotonic() - started) * 1000,
            )

    return serve


MAX_RATE_LIMIT_BUCKETS = 10_000
"""Remembered callers; beyond them the one seen longest ago starts anew."""


class RateLimiter:
    """A token bucket for each key that holds a minute's worth and is filled evenly."""

    def __init__(self, per_minute: int) -> None:
        self._capacity = float(per_minute)
        self._per_second = per_minute / 60
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Key → (tokens, when)."""

    def admit_or_wait_seconds(self, key: str, *, now: float) -> float:
        """0 if the request is accepted, else the seconds until one will be. `now`: seconds, of any origin."""
        tokens, since = self._buckets.pop(key, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - since) * self._per_second)
        accepted = tokens >= 1
        self._buckets[key] = (tokens - 1 if accepted else tokens, now)
        if len(self._buckets) > MAX_RATE_LIMIT_BUCKETS:
            self._buckets.popitem(last=False)
        return 0.0 if accepted else (1 - tokens) / self._per_second

    def undo_request(self, key: str) -> None:
        """Undo an accepted request."""
        if key in self._buckets:
            tokens, since = self._buckets[key]
            self._buckets[key] = (min(self._capacity, tokens + 1), since)


def require_rate_within_limit(limit: RateLimiter, key: str) -> None:
    """Raises `HTTPException`."""
    if seconds := math.ceil(limit.admit_or_wait_seconds(key, now=time.monotonic())):
        # What was sent behind it on the same connection is not answered as well.
        headers = {"Retry-After": str(seconds), "Connection": "close"}
        raise HTTPException(429, f"Too many requests. Try again in {seconds} s", headers)


def rate_limited_app(app: ASGIApp, limit: RateLimiter) -> ASGIApp:
    """429 for a caller that asks too often."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        require_rate_within_limit(limit, rate_limit_key_of_request(scope))
        await app(scope, receive, send)

    return serve


def rate_limit_key_of_request(scope: Scope) -> str:
    """The token; without one, the address."""
    if token := access_token_of_request(scope):
        return f"token {token.client_id} {token.subject} {(token.claims or {}).get('iss', '')}"
    return address_rate_limit_key_of_request(scope)


def address_rate_limit_key_of_request(scope: Scope) -> str:
    return rate_limit_key_of_address(str((scope.get("client") or ("",))[0]))


def rate_limit_key_of_address(address: str) -> str:
    """One key for all addresses that one customer of a network has: of IPv6, the first 64 bits."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"address {address}"
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is None:
        return f"address {ipaddress.ip_network((ip, 64), strict=False)}"
    return f"address {address}"
