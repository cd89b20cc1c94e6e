"""The HTTP server of a data directory: who may come in there, put together and served until it is told to end."""

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
from madeleine.server.http.identity import Verifier, caller_of
from madeleine.server.http.issuer import TIMEOUT_SECONDS, Claims, Issuer, Keys
from madeleine.server.http.language_key import language_key_of
from madeleine.server.http.listen import bound, run
from madeleine.server.http.ports import TokenLedger
from madeleine.server.mcp.server import Caller, build_server, toolset_of
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
    """Until `end` is set; then what was begun is answered, for `FINISH_SECONDS` at most. Signals are the caller's.

    `listening` is told the URL of the server when it answers. Raises `InvalidInput` for an address that others can
    reach while anybody would be let in, `CannotListen`, `StorageError`.
    """
    async with open_token_ledger(settings) as tokens:
        refuse_open_house(settings, authenticated=bool(settings.oauth_issuer) or await tokens.any())
        with bound(settings.http_host, settings.http_port) as listener:
            # Port 0 was a wish for any: what is bound is the address.
            settings = settings.model_copy(update={"http_port": listener.getsockname()[1]})
            async with issuer(settings) as external:
                toolset = toolset_of(settings)
                anonymous = anonymous_caller(settings)
                app = build_app(
                    build_server(
                        toolset,
                        caller_of,
                        use_cases,
                        lend=lambda context: models.for_key(language_key_of(context)),
                    ),
                    settings,
                    Verifier(tokens, external, now=utc_now),
                    tokens,
                    anonymous=anonymous,
                    sse=sse,
                )
                await _tell(settings, anonymous, tokens)
                url = f"http://{in_url(settings.http_host)}:{settings.http_port}/mcp"
                await run(app.asgi, listener, until=end, before_end=app.traffic.close, listening=lambda: listening(url))


def refuse_open_house(settings: HttpSettings, *, authenticated: bool) -> None:
    """Raises `InvalidInput` for an address of the network without names it answers to, or without authentication."""
    if is_loopback(settings.http_host):
        return
    if not settings.allowed_hosts:
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network. Set MADELEINE_ALLOWED_HOSTS to the names that "
            "clients use for it (memory.example.org, or 10.0.0.5:*), or listen on 127.0.0.1."
        )
    if not authenticated:
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network, and anybody would be let in. Make a token with "
            "`madeleine token create`, or set MADELEINE_OAUTH_ISSUER, or listen on 127.0.0.1."
        )


def anonymous_caller(settings: Settings) -> Caller | None:
    """Only where nothing hints at other machines: behind a proxy the world would come from this one."""
    named = [urlsplit(f"//{host.removesuffix(':*')}").hostname for host in settings.allowed_hosts]
    hosts = [settings.http_host, urlsplit(settings.resource).hostname, *named]
    if settings.oauth_issuer or not all(is_loopback(host or "") for host in hosts):
        return None
    return Caller(BeingId(settings.being))


async def _tell(settings: Settings, anonymous: Caller | None, tokens: TokenLedger) -> None:
    if await tokens.any() or settings.oauth_issuer:
        logger.info("tokens are required; they must be made for %s", settings.resource)
    elif anonymous:
        logger.warning(
            "no token was ever made: every program of this machine is served as %r. `madeleine token create` ends that",
            anonymous.being_id,
        )
    else:
        logger.warning("nobody can come in until `madeleine token create` has made a token for %s", settings.resource)


@asynccontextmanager
async def issuer(settings: HttpSettings) -> AsyncIterator[Issuer | None]:
    if not settings.oauth_issuer:
        yield None
        return
    async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
        yield Issuer(
            settings.oauth_issuer,
            Keys(client, settings.oauth_issuer, settings.oauth_jwks_url),
            audience=settings.oauth_audience or settings.resource,
            resource=settings.resource,
            claims=Claims(settings.oauth_being_claim, settings.oauth_role_claim, settings.oauth_read_only_claim),
        )
