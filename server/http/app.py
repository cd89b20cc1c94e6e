"""The ASGI application, an MCP server behind authentication and limits; uvicorn serving it, and its graceful end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.http.authentication import BearerTokenVerifier, require_caller
from madeleine.server.http.request_checks import (
    RETRY_AFTER_HEADERS,
    RateLimit,
    RateLimitMiddleware,
    buffer_json_body,
    check_and_log_http_requests,
    json_rpc_error_response,
    limit_concurrency,
    move_language_model_key_to_scope,
    transport_security_settings,
)
from madeleine.server.mcp.lines import GRACE_SECONDS, OpenRequestCounter
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import HttpSettings, host_in_url

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
SSE_PATH = "/sse"
SSE_MESSAGES_PATH = "/messages"
MAX_CONCURRENT_HTTP_CALLS = 64
MAX_OPEN_HTTP_STREAMS = 1_000
"""Open sessions, and open event streams."""
MAX_BODY_ARRIVAL_SECONDS = 30.0
"""Time limit for the arrival of a request's body."""


def build_http_app(
    server: Server[Any],
    settings: HttpSettings,
    verifier: BearerTokenVerifier,
    shutdown: GracefulHttpShutdown,
    *,
    anonymous: Caller | None,
    sse: bool = False,
) -> Starlette:
    """`server` is one for all connections, and its lifespan is the application's.

    `anonymous`: the caller of a request without a token while no token was ever made; None: such a request is refused.
    """
    server.middleware.append(shutdown)
    resource = AnyHttpUrl(settings.resource)
    metadata_url = build_resource_metadata_url(resource)
    rate = RateLimit(settings.http_rate_per_minute)

    def protected(app: ASGIApp, max_requests: int) -> ASGIApp:
        """The outermost check is the last one here."""
        app = buffer_json_body(app, max_bytes=settings.http_max_body_bytes, max_seconds=MAX_BODY_ARRIVAL_SECONDS)
        app = limit_concurrency(shutdown.wrap(app), max_requests)
        app = require_caller(app, verifier.tokens, anonymous=anonymous, metadata_url=metadata_url)
        return RateLimitMiddleware(app, rate)

    sessions = StreamableHTTPSessionManager(
        server, max_request_body_size=settings.http_max_body_bytes, max_sessions=MAX_OPEN_HTTP_STREAMS
    )
    streamable = StreamableHTTPASGIApp(sessions)
    routes = [
        Route(HEALTH_PATH, JSONResponse({"status": "ok"}), methods=["GET"]),
        *oauth_resource_metadata_routes(settings, resource),
        # A stream is open for hours and a call for milliseconds: each kind has a limit of its own.
        Route(MCP_PATH, protected(streamable, MAX_OPEN_HTTP_STREAMS), methods=["GET"]),
        Route(MCP_PATH, protected(streamable, MAX_CONCURRENT_HTTP_CALLS)),
    ]
    if sse:
        # The transport of 2024-11-05: deprecated, for clients that know no other.
        transport = SseServerTransport(SSE_MESSAGES_PATH, max_request_body_size=settings.http_max_body_bytes)

        async def serve_stream(scope: Scope, receive: Receive, send: Send) -> None:
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

        post_message = protected(transport.handle_post_message, MAX_CONCURRENT_HTTP_CALLS)
        routes += [
            Route(SSE_PATH, protected(serve_stream, MAX_OPEN_HTTP_STREAMS), methods=["GET"]),
            Route(SSE_MESSAGES_PATH, post_message, methods=["POST"]),
        ]
    # Pages of other origins cannot read an answer.
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.allowed_origins,
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["Mcp-Session-Id", "WWW-Authenticate", "Retry-After"],
    )
    middleware = [
        Middleware(move_language_model_key_to_scope),
        Middleware(check_and_log_http_requests, settings=transport_security_settings(settings)),
        *([cors] if settings.allowed_origins else []),
        Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier, resource_server_url=resource)),
    ]
    asgi = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: answer_http_error, Exception: answer_internal_error},
        lifespan=lambda _: sessions.run(),
    )
    asgi.router.redirect_slashes = False
    return asgi


def oauth_resource_metadata_routes(settings: HttpSettings, resource: AnyHttpUrl) -> list[Route]:
    """RFC 9728. Without an issuer there is no authorization server to name, which the RFC allows and the SDK does
    not: then this page stands in for it."""
    if settings.oauth_issuer:
        # Through the SDK's settings, which keep the issuer as it is written: clients compare it sign by sign.
        written = {"issuer_url": settings.oauth_issuer, "resource_server_url": settings.resource}
        auth = AuthSettings.model_validate(written | {"validate_token_resource": True})
        return create_protected_resource_routes(resource, [auth.issuer_url])
    document = {"resource": settings.resource, "bearer_methods_supported": ["header"]}
    path = build_resource_metadata_url(resource).path or "/"
    return [Route(path, JSONResponse(document), methods=["GET"])]


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_rpc_error_response(error.status_code, f"{error.detail}.", error.headers)


async def answer_internal_error(request: Request, error: Exception) -> Response:
    """Starlette raises the error again, for the log."""
    return json_rpc_error_response(500, "The request failed inside Madeleine. The server's log says why.")


MAX_HTTP_CONNECTIONS = 2_000
"""Open at once, idle ones included; beyond, uvicorn answers 503."""
HTTP_BACKLOG = 256
SHUTDOWN_STREAM_FLUSH_SECONDS = 0.1
"""Time for a given answer to reach its stream; the SDK does not report when it has."""


class CannotListen(MadeleineError):
    """The address is in use, or is not this machine's."""


@contextmanager
def bind_http_listener(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the address before uvicorn does, which would end the process if it is in use. Raises `CannotListen`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=HTTP_BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"Madeleine cannot listen on {host_in_url(host)}:{port} ({error.strerror or error}). "
            "Choose another with --host and --port, or end the program that uses it."
        ) from error
    with listener:
        yield listener


class GracefulHttpShutdown:
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
        """Refuses new requests, waits `GRACE_SECONDS` at most for the calls in progress, then closes the streams."""
        self._draining = True
        await self._calls.all_finished()
        await anyio.sleep(SHUTDOWN_STREAM_FLUSH_SECONDS)
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
    app: Starlette, listener: socket.socket, shutdown: GracefulHttpShutdown, *, stop_event: anyio.Event
) -> None:
    """Serve until `stop_event` is set, as a cancellation sets it; then answer open calls and close connections."""
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
        timeout_graceful_shutdown=int(GRACE_SECONDS),
    )
    server = _UvicornWithoutSignals(config)

    async def finish() -> None:
        await stop_event.wait()
        await shutdown.drain()
        server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finish)
        try:
            await server.serve(sockets=[listener])
        except asyncio.CancelledError:
            stop_event.set()
            with anyio.CancelScope(shield=True):
                await finish()
                await server.shutdown([listener])
            raise
        tasks.cancel_scope.cancel()
    if not server.started:
        raise RuntimeError("the HTTP server did not start; the log says why")
