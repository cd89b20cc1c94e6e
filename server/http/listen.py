"""A listening socket, and uvicorn on it as one task of the process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager

import anyio
import uvicorn
from starlette.applications import Starlette

from madeleine.memory.errors import MadeleineError
from madeleine.server.mcp.lines import FINISH_SECONDS
from madeleine.server.settings.http import in_url

CONNECTIONS = 2_000
"""Open at once, idle ones included; beyond, uvicorn answers 503."""
BACKLOG = 256


class CannotListen(MadeleineError):
    """The address is in use, or is not this machine's."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"Madeleine cannot listen on {in_url(host)}:{port} ({reason}). "
            "Choose another with --host and --port, or end the program that uses it."
        )
        self.host = host
        self.port = port


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Raises `CannotListen`. Bound here, for uvicorn ends the process if the address is in use."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(host, port, error.strerror or str(error)) from error
    with listener:
        yield listener


class _Uvicorn(uvicorn.Server):
    """Leaves signals to the process."""

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
    """Until `until` is set. `before_end` gets the seconds it may take; connections are closed after it."""
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
