"""The ASGI application: an MCP server behind its guard, its gate and its limits."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import EventStore
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
from starlette.types import ASGIApp

from madeleine.server.http.guard import Guard, allowed
from madeleine.server.http.identity import Gate, Verifier
from madeleine.server.http.language_key import LanguageKey
from madeleine.server.http.limits import Bounded, RateLimit, RateLimited, WholeBody
from madeleine.server.http.ports import TokenLedger
from madeleine.server.http.refusals import refusal
from madeleine.server.http.sse import MESSAGES_PATH, STREAM_PATH, SseStream
from madeleine.server.http.traffic import Traffic
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import HttpSettings

MCP_PATH = "/mcp"
HEALTH_PATH = "/health"
RETRY_MILLISECONDS = 100
MAX_CONCURRENT_CALLS = 64
MAX_SESSIONS = 1_000
"""Open sessions, and open event streams."""
BODY_SECONDS = 30.0
"""In which the body of a request has to arrive."""


@dataclass(frozen=True, slots=True)
class HttpApp:
    asgi: Starlette
    traffic: Traffic


def build_app(
    server: Server[Any],
    settings: HttpSettings,
    verifier: Verifier,
    tokens: TokenLedger,
    *,
    anonymous: Caller | None,
    sse: bool = False,
    events: EventStore | None = None,
) -> HttpApp:
    """`server` is one for all connections, and its lifespan is the application's.

    `anonymous`: who comes in without a token while none was ever made; None if nobody may. `events` keeps what was
    sent, so that a stream which broke can be taken up again; Madeleine's calls are short and do without.
    """
    traffic = Traffic()
    server.middleware.append(traffic)
    resource = AnyHttpUrl(settings.resource)
    rate = RateLimit(settings.http_rate_per_minute)

    def protected(app: ASGIApp, most: int) -> ASGIApp:
        whole = WholeBody(app, most_bytes=settings.http_max_body_bytes, most_seconds=BODY_SECONDS)
        served = Bounded(traffic.through(whole), most)
        metadata_url = build_resource_metadata_url(resource)
        gate = Gate(served, tokens, anonymous=anonymous, metadata_url=metadata_url)
        return RateLimited(gate, rate, clock=time.monotonic)

    sessions = StreamableHTTPSessionManager(
        server,
        event_store=events,
        retry_interval=RETRY_MILLISECONDS if events else None,
        max_request_body_size=settings.http_max_body_bytes,
        max_sessions=MAX_SESSIONS,
    )
    streamable = StreamableHTTPASGIApp(sessions)
    routes = [
        Route(HEALTH_PATH, health, methods=["GET"]),
        *metadata_routes(settings, resource),
        # A stream is open for hours and a call for milliseconds: each kind has a bound of its own.
        Route(MCP_PATH, protected(streamable, MAX_SESSIONS), methods=["GET"]),
        Route(MCP_PATH, protected(streamable, MAX_CONCURRENT_CALLS)),
    ]
    if sse:
        transport = SseServerTransport(MESSAGES_PATH, max_request_body_size=settings.http_max_body_bytes)
        routes += [
            Route(STREAM_PATH, protected(SseStream(server, transport), MAX_SESSIONS), methods=["GET"]),
            Route(MESSAGES_PATH, protected(transport.handle_post_message, MAX_CONCURRENT_CALLS), methods=["POST"]),
        ]
    middleware = [
        Middleware(LanguageKey),
        Middleware(Guard, settings=allowed(settings)),
        *cors(settings),
        Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(verifier, resource_server_url=resource)),
    ]
    asgi = Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: in_our_words, Exception: unforeseen},
        lifespan=lambda _: sessions.run(),
    )
    asgi.router.redirect_slashes = False
    return HttpApp(asgi, traffic)


def cors(settings: HttpSettings) -> list[Middleware]:
    """For pages of the origins that are configured; others cannot read an answer, even if they could ask."""
    if not settings.allowed_origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate", "Retry-After"],
        )
    ]


def metadata_routes(settings: HttpSettings, resource: AnyHttpUrl) -> list[Route]:
    """RFC 9728. Without an issuer there is no authorization server to name, which the RFC allows and the SDK does
    not: then the page is ours."""
    if settings.oauth_issuer:
        # Through the SDK's settings, which keep the issuer as it is written: clients compare it sign by sign.
        written = {"issuer_url": settings.oauth_issuer, "resource_server_url": settings.resource}
        auth = AuthSettings.model_validate(written | {"validate_token_resource": True})
        return create_protected_resource_routes(resource, [auth.issuer_url])
    about = {"resource": settings.resource, "bearer_methods_supported": ["header"]}

    async def metadata(request: Request) -> Response:
        return JSONResponse(about)

    return [Route(build_resource_metadata_url(resource).path or "/", metadata, methods=["GET"])]


async def health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def in_our_words(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refusal(error.status_code, f"{error.detail}.")
    answer.headers.update(error.headers or {})
    return answer


async def unforeseen(request: Request, error: Exception) -> Response:
    """The traceback is for the log alone, and Starlette passes the error on to it."""
    return refusal(500, "The request failed inside Madeleine; the server's log tells more.")
