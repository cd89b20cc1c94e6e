"""The page of `madeleine ui`: on a free port of the loopback, as long as the command runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from madeleine.memory.model import BeingId
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.connections import ConnectionSlots
from madeleine.server.http.app import (
    MAX_BODY_ARRIVAL_SECONDS,
    GracefulHttpShutdown,
    answer_http_error,
    answer_internal_error,
    open_http_listener,
    run_uvicorn,
)
from madeleine.server.http.bodies import wrap_app_to_buffer_json_body
from madeleine.server.http.request_checks import AllowedHostsAndOrigins, check_and_log_http_requests
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import LOOPBACK_HOSTS
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.app import build_web_ui_services, make_link_login_app, web_ui_routes
from madeleine.server.ui.guard import WEB_UI_PATH, session_required_app
from madeleine.server.ui.sessions import WebUiSessions
from madeleine.server.wiring.language_models import LanguageModelPool

if TYPE_CHECKING:
    from madeleine.server.wiring.open_memory import OpenedMemoryStore

WEB_UI_LISTEN_ADDRESS = "127.0.0.1"
MAX_WEB_UI_CONNECTIONS = 64


@asynccontextmanager
async def serve_web_ui(
    settings: Settings,
    opened: Callable[[], Awaitable[OpenedMemoryStore]],
    models: LanguageModelPool,
    patrol_events: PatrolEventBroadcast,
    *,
    port: int = 0,
) -> AsyncIterator[str]:
    """Serve the memory of `settings.being` while inside; the link that opens it, once. `port` 0: any free one.

    Whoever runs the command owns the files of the memory, so they may do what a person may. Raises `CannotListen`.
    """
    stop, sessions = anyio.Event(), WebUiSessions()
    with open_http_listener(WEB_UI_LISTEN_ADDRESS, port) as listener:
        port = listener.getsockname()[1]
        page = build_web_ui_services(settings, opened, models, patrol_events, sessions=sessions, is_closing=stop.is_set)
        buffered = partial(
            wrap_app_to_buffer_json_body,
            places=ConnectionSlots(MAX_WEB_UI_CONNECTIONS, MAX_WEB_UI_CONNECTIONS),
            max_bytes=settings.http_max_body_bytes,
            max_seconds=MAX_BODY_ARRIVAL_SECONDS,
        )

        def guard(app: ASGIApp) -> ASGIApp:
            return session_required_app(buffered(app), sessions)

        names = [f"{host}:{port}" for host in LOOPBACK_HOSTS]
        allowed = AllowedHostsAndOrigins(frozenset(names), frozenset(f"http://{name}" for name in names))
        app = Starlette(
            routes=web_ui_routes(page, guard, guard, buffered(make_link_login_app(sessions))),
            exception_handlers={HTTPException: answer_http_error, Exception: answer_internal_error},
            middleware=[Middleware(check_and_log_http_requests, allowed=allowed)],
        )
        app.router.redirect_slashes = False
        shutdown = GracefulHttpShutdown()
        serving = asyncio.create_task(
            run_uvicorn(app, listener, shutdown, stop_event=stop, max_connections=MAX_WEB_UI_CONNECTIONS), name="page"
        )
        try:
            token = sessions.new_link_token(Caller(BeingId(settings.being), "human", settings.read_only))
            yield f"http://{WEB_UI_LISTEN_ADDRESS}:{port}{WEB_UI_PATH}#{token}"
        finally:
            stop.set()
            await serving
