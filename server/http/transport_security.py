"""The check of `Host` and `Origin`, and the access log.

A browser may speak for anybody's page: DNS rebinding shows in `Host`, a foreign page in `Origin` (MCP specification,
transports, security warning). Every path is checked, on every address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.http.authentication import token_of
from madeleine.server.http.error_responses import RETRY_SECONDS, error_response
from madeleine.server.settings.http import LOOPBACK_HOSTS, HttpSettings, in_url, is_loopback

logger = logging.getLogger(__name__)

REASONS = {
    421: "This server does not answer to that Host. Add it to MADELEINE_ALLOWED_HOSTS if it should.",
    403: "Pages of that Origin may not use this server. Add it to MADELEINE_ALLOWED_ORIGINS if they should.",
}


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
                app = error_response(rejection.status_code, REASONS[rejection.status_code])
            await app(scope, receive, send_with_status)
        except MadeleineError as error:
            logger.warning("a request could not be served: %s", error)
            if not status:
                await error_response(503, str(error), retry_after=RETRY_SECONDS)(scope, receive, send_with_status)
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
