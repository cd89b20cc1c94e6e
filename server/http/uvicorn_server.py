"""A listening socket, uvicorn on it as one task of the process, and its graceful end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.http.request_checks import RETRY_AFTER_HEADERS
from madeleine.server.mcp.lines import FINISH_SECONDS, OpenRequestCounter
from madeleine.server.settings.http import in_url

MAX_HTTP_CONNECTIONS = 2_000
"""Open at once, idle ones included; beyond, uvicorn answers 503."""
HTTP_BACKLOG = 256
STREAM_FLUSH_SECONDS = 0.1
"""Time for a given answer to reach its stream; the SDK does not report when it has."""


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
def bind_listener(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the address before uvicorn does, which would end the process if it is in use. Raises `CannotListen`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=HTTP_BACKLOG)
    except OSError as error:
        raise CannotListen(host, port, error.strerror or str(error)) from error
    with listener:
        yield listener


class GracefulShutdown:
    """Counts calls in progress, as middleware of the MCP server, whichever connection they came by."""

    def __init__(self) -> None:
        self._calls = OpenRequestCounter()
        self._draining = False
        self._close_streams = anyio.Event()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._calls.add()
        try:
            return await call_next(ctx)
        finally:
            await self._calls.remove()

    async def drain(self) -> None:
        """Refuses new requests, waits `FINISH_SECONDS` at most for the calls in progress, then closes the streams."""
        self._draining = True
        await self._calls.finished()
        await anyio.sleep(STREAM_FLUSH_SECONDS)
        self._close_streams.set()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """`app`, which takes no new request while draining, and whose event streams end after it."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if self._draining:
                raise HTTPException(503, "The server is shutting down. Try again in a moment", RETRY_AFTER_HEADERS)
            if scope["method"] == "GET":
                await self._serve_stream(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return serve

    async def _serve_stream(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """To the application the end looks like the client's disconnection: then it closes what it opened."""
        unfinished = False

        async def send_and_watch(message: Message) -> None:
            nonlocal unfinished
            await send(message)
            unfinished = message["type"] == "http.response.start" or message.get("more_body", False)

        async def receive_or_end() -> Message:
            message: Message = {"type": "http.disconnect"}

            async def cancel_at_end() -> None:
                await self._close_streams.wait()
                tasks.cancel_scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(cancel_at_end)
                message = await receive()
                tasks.cancel_scope.cancel()
            return message

        await app(scope, receive_or_end, send_and_watch)
        if unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class _UvicornWithoutSignals(uvicorn.Server):
    """Leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def run_uvicorn(
    app: Starlette, listener: socket.socket, shutdown: GracefulShutdown, *, until: anyio.Event
) -> None:
    """Serve until `until` is set; then answer calls in progress and close connections."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        http="h11",  # strict about what is HTTP
        ws="none",
        log_config=None,
        access_log=False,  # it would write the query
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_HTTP_CONNECTIONS,
        timeout_graceful_shutdown=int(FINISH_SECONDS),
    )
    server = _UvicornWithoutSignals(config)

    async def finish() -> None:
        await shutdown.drain()
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
