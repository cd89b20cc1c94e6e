"""The ASGI application, an MCP server behind authentication and limits; uvicorn serving it, and its graceful end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Generator, Iterator
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
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from madeleine.memory.errors import MadeleineError
from madeleine.server.connections import LISTEN_BACKLOG, MAX_HTTP_CONNECTIONS, ConnectionSlots, accept_connections
from madeleine.server.http.admission import (
    McpHttpSessionLimiter,
    app_with_concurrency_limit,
    with_request_authentication,
)
from madeleine.server.http.authentication import BearerTokenVerifier, app_requiring_caller
from madeleine.server.http.bodies import wrap_app_to_buffer_json_body
from madeleine.server.http.connection import LimitedHttpServerConnection
from madeleine.server.http.endpoint import AsgiApplication
from madeleine.server.http.request_checks import (
    RETRY_AFTER_HEADERS,
    RateLimiter,
    allowed_hosts_and_origins,
    check_and_log_http_requests,
    json_rpc_error_response,
    move_language_model_key_to_scope,
    rate_limit_key_of_address,
    rate_limited_app,
)
from madeleine.server.http.streams import end_event_streams_on_lost_access_or_stop
from madeleine.server.mcp.lines import OPEN_CALLS_GRACE_SECONDS, OpenRequestCounter
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import HttpSettings, bracket_ipv6_host
from madeleine.server.ui.app import WebUiServices, make_token_login_app, web_ui_routes
from madeleine.server.ui.guard import app_with_bearer_token_from_session

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
SSE_PATH = "/sse"
SSE_MESSAGES_PATH = "/messages"
MAX_CONCURRENT_CALLS = 128
MAX_CONCURRENT_CALLS_PER_CALLER = 32
"""Of one token; without tokens, of one address. As many bodies are awaited."""
MAX_EVENT_STREAMS_PER_CALLER = 32
MAX_HTTP_SESSIONS = 1_000
MAX_HTTP_SESSIONS_PER_CALLER = 64
MAX_BODY_ARRIVAL_SECONDS = 30.0
"""Time limit for the arrival of a request's body."""


def build_http_app(
    server: Server[Any],
    settings: HttpSettings,
    verifier: BearerTokenVerifier,
    shutdown: GracefulHttpShutdown,
    *,
    anonymous: Caller | None,
    page: WebUiServices | None = None,
    max_connections: int = MAX_HTTP_CONNECTIONS,
    sse: bool = False,
) -> Starlette:
    """`server` is one for all connections, and its lifespan is the application's.

    `anonymous`: the caller of a request without a token while no token was ever made; None: such a request is refused.
    """
    server.middleware.append(shutdown)
    resource = AnyHttpUrl(settings.oauth_resource_url)
    metadata_url = build_resource_metadata_url(resource)
    backend = BearerAuthBackend(verifier, resource_server_url=resource)
    rate, verification_rate = (RateLimiter(settings.http_rate_per_minute) for _ in range(2))
    calls, bodies = (ConnectionSlots(MAX_CONCURRENT_CALLS, MAX_CONCURRENT_CALLS_PER_CALLER) for _ in range(2))
    streams = ConnectionSlots(max_connections // 2, MAX_EVENT_STREAMS_PER_CALLER)

    def protected(app: ASGIApp) -> AsgiApplication:
        """The outermost check is the last one here."""
        app = app_requiring_caller(shutdown.refuse_while_draining(app), verifier.tokens, anonymous, metadata_url)
        return AsgiApplication(with_request_authentication(rate_limited_app(app, rate), backend, verification_rate))

    def calling(app: ASGIApp) -> AsgiApplication:
        app = app_with_concurrency_limit(app, calls)
        max_bytes = settings.http_max_body_bytes
        return protected(
            wrap_app_to_buffer_json_body(app, bodies, max_bytes=max_bytes, max_seconds=MAX_BODY_ARRIVAL_SECONDS)
        )

    def streaming(app: ASGIApp) -> AsgiApplication:
        return protected(
            end_event_streams_on_lost_access_or_stop(app, streams, verifier.tokens, shutdown.wait_until_drained)
        )

    sessions = StreamableHTTPSessionManager(
        server, max_request_body_size=settings.http_max_body_bytes, max_sessions=2 * MAX_HTTP_SESSIONS
    )
    streamable = McpHttpSessionLimiter(
        StreamableHTTPASGIApp(sessions), ConnectionSlots(MAX_HTTP_SESSIONS, MAX_HTTP_SESSIONS_PER_CALLER)
    )
    routes: list[BaseRoute] = [
        Route(HEALTH_PATH, JSONResponse({"status": "ok"}), methods=["GET"]),
        *oauth_resource_metadata_routes(settings, resource),
        # A stream is open for hours and a call for milliseconds: each kind has a limit of its own.
        Route(MCP_PATH, streaming(streamable), methods=["GET"]),
        Route(MCP_PATH, calling(streamable)),
    ]
    if sse:
        # The transport of 2024-11-05: deprecated, for clients that know no other.
        transport = SseServerTransport(SSE_MESSAGES_PATH, max_request_body_size=settings.http_max_body_bytes)

        async def serve_stream(scope: Scope, receive: Receive, send: Send) -> None:
            async with transport.connect_sse(scope, receive, send) as (read, write):
                await server.run(read, write, server.create_initialization_options())

        routes += [
            Route(SSE_PATH, streaming(serve_stream), methods=["GET"]),
            Route(SSE_MESSAGES_PATH, calling(transport.handle_post_message), methods=["POST"]),
        ]
    if page:
        # Never without a token, also where programs need none: any page that a browser shows could ask.
        routes += web_ui_routes(
            page,
            lambda app: app_with_bearer_token_from_session(calling(app), page.sessions),
            lambda app: app_with_bearer_token_from_session(streaming(app), page.sessions),
            calling(make_token_login_app(page.sessions)),
        )
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
        Middleware(check_and_log_http_requests, allowed=allowed_hosts_and_origins(settings)),
        *([cors] if settings.allowed_origins else []),
    ]
    asgi = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: answer_http_error, Exception: answer_internal_error},
        lifespan=lambda _: sessions.run(),
    )
    asgi.router.redirect_slashes = False
    asgi.router.default = rate_limited_app(asgi.router.not_found, rate)
    return asgi


def oauth_resource_metadata_routes(settings: HttpSettings, resource: AnyHttpUrl) -> list[Route]:
    """RFC 9728. Without an issuer there is no authorization server to name, which the RFC allows and the SDK does
    not: then this page stands in for it."""
    if settings.oauth_issuer:
        # Through the SDK's settings, which keep the issuer as it is written: clients compare it sign by sign.
        written = {"issuer_url": settings.oauth_issuer, "resource_server_url": settings.oauth_resource_url}
        auth = AuthSettings.model_validate(written | {"validate_token_resource": True})
        return create_protected_resource_routes(resource, [auth.issuer_url])
    document = {"resource": settings.oauth_resource_url, "bearer_methods_supported": ["header"]}
    path = build_resource_metadata_url(resource).path or "/"
    return [Route(path, JSONResponse(document), methods=["GET"])]


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_rpc_error_response(error.status_code, f"{error.detail}.", error.headers)


async def answer_internal_error(request: Request, error: Exception) -> Response:
    """Starlette raises the error again, for the log."""
    return json_rpc_error_response(500, "The request failed inside Madeleine. The server's log says why.")


SHUTDOWN_STREAM_FLUSH_SECONDS = 0.1
"""Time for a given answer to reach its stream; the SDK does not report when it has."""


class CannotListen(MadeleineError):
    """The address is in use, or is not this machine's."""


@contextmanager
def open_http_listener(host: str, port: int) -> Iterator[socket.socket]:
    """Bind the address before uvicorn does, which would end the process if it is in use. Raises `CannotListen`."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=LISTEN_BACKLOG)
    except OSError as error:
        raise CannotListen(
            f"Madeleine cannot listen on {bracket_ipv6_host(host)}:{port} ({error.strerror or error}). "
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
        """Refuse new requests, wait `OPEN_CALLS_GRACE_SECONDS` at most for open calls, then close the streams."""
        self._draining = True
        await self._calls.wait_until_all_finished()
        await anyio.sleep(SHUTDOWN_STREAM_FLUSH_SECONDS)
        self._close_streams.set()

    async def wait_until_drained(self) -> None:
        await self._close_streams.wait()

    def refuse_while_draining(self, app: ASGIApp) -> ASGIApp:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if self._draining:
                raise HTTPException(503, "The server is shutting down. Try again in a moment", RETRY_AFTER_HEADERS)
            await app(scope, receive, send)

        return serve


class _UvicornWithConnectionSlots(uvicorn.Server):
    """Leaves signals to the process, and accepts connections itself, within `places`."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, max_connections: int, max_body: int) -> None:
        super().__init__(config)
        self._listener = listener
        self._max_body = max_body
        self._places = ConnectionSlots(max_connections, max(max_connections // 2, 1))
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        self._start_task(accept_connections(self._listener, self._handle_accepted_connection))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for task in self._tasks:
            task.cancel()
        await super().shutdown([self._listener])

    def _handle_accepted_connection(self, accepted: socket.socket, peer: tuple[Any, ...]) -> None:
        address = rate_limit_key_of_address(str(peer[0]))
        connection = LimitedHttpServerConnection(
            places=self._places,
            address=address,
            max_body_bytes=self._max_body,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        if self._places.claim(address, connection):
            self._start_task(self._serve_connection(connection, accepted, address))
        else:
            accepted.close()

    async def _serve_connection(
        self, connection: LimitedHttpServerConnection, accepted: socket.socket, address: str
    ) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, accepted)
        except OSError:
            self._places.release(address, connection)
            accepted.close()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def run_uvicorn(
    app: Starlette,
    listener: socket.socket,
    shutdown: GracefulHttpShutdown,
    *,
    stop_event: anyio.Event,
    max_connections: int = MAX_HTTP_CONNECTIONS,
    max_body_bytes: int = 1024 * 1024,
) -> None:
    """Serve until `stop_event` is set, as a cancellation sets it; then answer open calls and close connections."""
    config = uvicorn.Config(
        app,
        lifespan="on",
        http=LimitedHttpServerConnection,  # of h11, which is strict about what is HTTP
        ws="none",
        log_config=None,
        access_log=False,  # it would write the query
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=int(OPEN_CALLS_GRACE_SECONDS),
    )
    server = _UvicornWithConnectionSlots(config, listener, max_connections, max_body_bytes)

    async def finish() -> None:
        await stop_event.wait()
        await shutdown.drain()
        server.should_exit = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finish)
        try:
            await server.serve()
        except asyncio.CancelledError:
            stop_event.set()
            with anyio.CancelScope(shield=True):
                await finish()
                await server.shutdown()
            raise
        tasks.cancel_scope.cancel()
    if not server.started:
        raise RuntimeError("the HTTP server did not start; the log says why")
