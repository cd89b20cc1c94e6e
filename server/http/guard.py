"""Before anything else: is the request meant for this server, and from a page that may speak to it?

Behind a browser stands anybody's page: DNS rebinding shows in `Host`, a foreign page in `Origin` (MCP specification,
transports, security warning). Every path is guarded, on every address.
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
from madeleine.server.http.identity import identified
from madeleine.server.http.refusals import RETRY_SECONDS, refusal
from madeleine.server.settings.http import LOOPBACK_HOSTS, HttpSettings, in_url, is_loopback

logger = logging.getLogger(__name__)

REFUSED = {
    421: "This server does not answer to that Host. Add it to MADELEINE_ALLOWED_HOSTS if it should.",
    403: "Pages of that Origin may not use this server. Add it to MADELEINE_ALLOWED_ORIGINS if they should.",
}


def allowed(settings: HttpSettings) -> TransportSecuritySettings:
    """The loopback's names, the public URL, and what is configured. Pages of this machine's other servers may come in
    only where the server listens to this machine alone."""
    url = urlsplit(settings.resource)
    local: Sequence[str] = (*LOOPBACK_HOSTS, in_url(settings.http_host)) if is_loopback(settings.http_host) else ()
    hosts = [*any_port(LOOPBACK_HOSTS), *any_port(local), url.netloc, *settings.allowed_hosts]
    origins = [
        *any_port([f"http://{host}" for host in local]), f"{url.scheme}://{url.netloc}", *settings.allowed_origins,
    ]  # fmt: skip
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


def any_port(names: Sequence[str]) -> list[str]:
    return [form for name in names for form in (name, f"{name}:*")]


class Guard:
    """The outermost layer: 421, 403, one line in the log for each request, and words for an error that was foreseen."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app = app
        self._security = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            refused = await self._security.validate_request(Request(scope))
            if refused is not None:
                await refusal(refused.status_code, REFUSED[refused.status_code])(scope, receive, watched)
            else:
                await self._app(scope, receive, watched)
        except MadeleineError as error:
            logger.warning("a request could not be served: %s", error)
            if not status:
                await refusal(503, str(error), retry_after=RETRY_SECONDS)(scope, receive, watched)
        finally:
            # Never the headers, which hold the token, nor the query, which may hold anything.
            token = identified(scope)
            logger.info(
                "%s %.200s %s, %s, %.0f ms",
                scope["method"],
                scope["path"].encode("unicode_escape").decode(),
                status or "unanswered",
                token.client_id[:100] if token else "no token",
                (time.monotonic() - began) * 1000,
            )
