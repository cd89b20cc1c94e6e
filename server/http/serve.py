"""The HTTP server of a data directory: its parts, its access rules, and its life until it is told to end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import httpx

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId
from madeleine.server.http.app import build_app
from madeleine.server.http.authentication import BearerTokenVerifier, caller_of
from madeleine.server.http.jwt_issuer import TIMEOUT_SECONDS, ClaimNames, IssuerKeys, JwtIssuer
from madeleine.server.http.language_key import language_key_of
from madeleine.server.http.listen import bound, run
from madeleine.server.http.ports import TokenLedger
from madeleine.server.mcp.caller import Caller
from madeleine.server.mcp.server import build_server, toolset_of
from madeleine.server.settings.http import HttpSettings, in_url, is_loopback
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.language_models import LanguageModels
from madeleine.server.wiring.ledgers import open_token_ledger
from madeleine.tools.tool import UseCases

logger = logging.getLogger(__name__)


async def serve_http(
    settings: Settings,
    use_cases: Callable[[], Awaitable[UseCases]],
    models: LanguageModels,
    *,
    end: anyio.Event,
    sse: bool = False,
    listening: Callable[[str], None] = lambda url: None,
) -> None:
    """Until `end` is set; then calls in progress are answered, for `FINISH_SECONDS` at most. Handles no signals.

    `listening` is called with the server's URL when it answers. Raises `InvalidInput` for an exposed address without
    authentication, `CannotListen`, `StorageError`.
    """
    async with open_token_ledger(settings) as tokens:
        require_auth_when_exposed(settings, authenticated=bool(settings.oauth_issuer) or await tokens.any())
        with bound(settings.http_host, settings.http_port) as listener:
            # For port 0 the system has chosen one.
            settings = settings.model_copy(update={"http_port": listener.getsockname()[1]})
            async with open_issuer(settings) as issuer:
                anonymous = anonymous_caller(settings)
                server = build_server(
                    toolset_of(settings),
                    caller_of,
                    use_cases,
                    language_model_of=lambda context: models.for_key(language_key_of(context)),
                )
                verifier = BearerTokenVerifier(tokens, issuer, now=utc_now)
                app = build_app(server, settings, verifier, tokens, anonymous=anonymous, sse=sse)
                await _log_access_rules(settings, anonymous, tokens)
                url = f"http://{in_url(settings.http_host)}:{settings.http_port}/mcp"
                await run(
                    app.asgi, listener, until=end, before_end=app.shutdown.drain, listening=lambda: listening(url)
                )


def require_auth_when_exposed(settings: HttpSettings, *, authenticated: bool) -> None:
    """Raises `InvalidInput` for an address that the network reaches, without allowed hosts or authentication."""
    if is_loopback(settings.http_host):
        return
    if not settings.allowed_hosts:
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network. Set MADELEINE_ALLOWED_HOSTS to the names that "
            "clients use for it (memory.example.org, or 10.0.0.5:*), or listen on 127.0.0.1."
        )
    if not authenticated:
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network, without authentication. Make a token with "
            "`madeleine token create`, or set MADELEINE_OAUTH_ISSUER, or listen on 127.0.0.1."
        )


def anonymous_caller(settings: Settings) -> Caller | None:
    """None where a setting names another machine: behind a proxy, all requests seem to come from this one."""
    allowed = [urlsplit(f"//{host.removesuffix(':*')}").hostname for host in settings.allowed_hosts]
    hosts = [settings.http_host, urlsplit(settings.resource).hostname, *allowed]
    if settings.oauth_issuer or not all(is_loopback(host or "") for host in hosts):
        return None
    return Caller(BeingId(settings.being))


async def _log_access_rules(settings: Settings, anonymous: Caller | None, tokens: TokenLedger) -> None:
    if await tokens.any() or settings.oauth_issuer:
        logger.info("tokens are required; they must be made for %s", settings.resource)
    elif anonymous:
        logger.warning(
            "no token was ever made: every program of this machine has access as %r; `madeleine token create` ends it",
            anonymous.being_id,
        )
    else:
        logger.warning("nobody has access until `madeleine token create` has made a token for %s", settings.resource)


@asynccontextmanager
async def open_issuer(settings: HttpSettings) -> AsyncIterator[JwtIssuer | None]:
    if not settings.oauth_issuer:
        yield None
        return
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
        yield JwtIssuer(
            settings.oauth_issuer,
            IssuerKeys(client, settings.oauth_issuer, settings.oauth_jwks_url),
            audience=settings.oauth_audience or settings.resource,
            resource=settings.resource,
            claims=ClaimNames(settings.oauth_being_claim, settings.oauth_role_claim, settings.oauth_read_only_claim),
        )
