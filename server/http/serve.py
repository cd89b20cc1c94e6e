"""Listening, from the first byte to the last answer."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import anyio
import httpx
import uvicorn
from starlette.applications import Starlette

from memory.errors import InvalidInput, MadeleineError
from memory.model import BeingId
from memory.tokens import TokenLedger
from server.app import Caller, build_server, toolset_of
from server.http.app import build_app
from server.http.identity import Verifier, caller_of
from server.http.issuer import TIMEOUT_SECONDS, Claims, Issuer, Keys
from server.http_settings import HttpSettings, in_url, is_loopback
from server.lines import FINISH_SECONDS
from server.settings import Settings
from server.wiring import open_token_ledger, utc_now
from tools.tool import UseCases

logger = logging.getLogger(__name__)

CONNECTIONS = 2_000
"""Open at once, idle ones too; beyond, uvicorn answers 503."""
BACKLOG = 256


class CannotListen(MadeleineError):
    """The address is taken, or is not this machine's."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"Madeleine cannot listen on {in_url(host)}:{port} ({reason}). "
            "Choose another with --host and --port, or end the program that holds it."
        )
        self.host = host
        self.port = port


async def serve_http(
    settings: Settings,
    use_cases: Callable[[], Awaitable[UseCases]],
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
                    build_server(toolset, caller_of, use_cases),
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


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket of our own: uvicorn's way with an address that is taken is to end the process."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(host, port, error.strerror or str(error)) from error
    with listener:
        yield listener


class _Uvicorn(uvicorn.Server):
    """Without signals, which are the process's and not ours."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._listening = listening

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._listening()


async def run(
    app: Starlette,
    listener: socket.socket,
    *,
    until: anyio.Event,
    before_end: Callable[[float], Awaitable[None]],
    listening: Callable[[], None],
) -> None:
    """`before_end` is given the seconds it may take, and is done before the first connection is closed."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        http="h11",  # strict about what is HTTP
        ws="none",
        log_config=None,
        access_log=False,  # it would write the query
        proxy_headers=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=int(FINISH_SECONDS),
    )
    server = _Uvicorn(config, listening)

    async def finish() -> None:
        await before_end(FINISH_SECONDS)
        server.should_exit = True

    async def finish_in_time() -> None:
        await until.wait()
        await finish()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finish_in_time)
        try:
            await server.serve(sockets=[listener])
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await finish()
                await server.shutdown([listener])
            raise
        tasks.cancel_scope.cancel()
    if not server.started:
        raise RuntimeError("the HTTP server did not start; the log says why")
