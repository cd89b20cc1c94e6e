"""The page of `madeleine ui`: on a free port of the loopback, as long as the command runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware

from madeleine.memory.model import BeingId
from madeleine.server.background.loops import PatrolEventBroadcast
from madeleine.server.http.app import GracefulHttpShutdown, bind_http_listener, run_uvicorn
from madeleine.server.http.request_checks import AllowedSources, check_and_log_http_requests
from madeleine.server.mcp.server import Caller
from madeleine.server.settings.http import LOOPBACK_HOSTS
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.app import Page, login_by_link, page_routes
from madeleine.server.ui.guard import PAGE_PATH, require_session
from madeleine.server.ui.sessions import PageSessions
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.server.wiring.open_memory import OpenedMemory
from madeleine.tools.toolset import Toolset, choose_tools, make_all_tools

PAGE_HOST = "127.0.0.1"
MAX_PAGE_CONNECTIONS = 64


def page_toolset(settings: Settings) -> Toolset:
    """All tools but those that the settings exclude: the page needs them, listed or not."""
    tools = choose_tools(
        make_all_tools(random.SystemRandom()), exclude=settings.exclude_tools, read_only=settings.read_only
    )
    return Toolset(tools, max_text_chars=settings.max_text_chars)


@asynccontextmanager
async def serve_page(
    settings: Settings,
    opened: Callable[[], Awaitable[OpenedMemory]],
    models: LanguageModelPool,
    patrol_events: PatrolEventBroadcast,
    *,
    port: int = 0,
) -> AsyncIterator[str]:
    """Serve the memory of `settings.being` while inside; the link that opens it, once. `port` 0: any free one.

    Whoever runs the command owns the files of the memory, so they may do what a person may. Raises `CannotListen`.
    """
    stop, sessions = anyio.Event(), PageSessions()
    with bind_http_listener(PAGE_HOST, port) as listener:
        port = listener.getsockname()[1]
        page = Page(
            sessions,
            opened,
            page_toolset(settings),
            patrol_events,
            is_closing=stop.is_set,
            language_model=lambda: models.model_for_client(settings),
        )
        guard = partial(require_session, sessions=sessions)
        names = [f"{host}:{port}" for host in LOOPBACK_HOSTS]
        allowed = AllowedSources(frozenset(names), frozenset(f"http://{name}" for name in names))
        app = Starlette(
            routes=page_routes(page, guard, guard, login_by_link(sessions)),
            middleware=[Middleware(check_and_log_http_requests, allowed=allowed)],
        )
        app.router.redirect_slashes = False
        shutdown = GracefulHttpShutdown()
        serving = asyncio.create_task(
            run_uvicorn(app, listener, shutdown, stop_event=stop, max_connections=MAX_PAGE_CONNECTIONS), name="page"
        )
        try:
            token = sessions.new_link_token(Caller(BeingId(settings.being), "human", settings.read_only))
            yield f"http://{PAGE_HOST}:{port}{PAGE_PATH}#{token}"
        finally:
            stop.set()
            await serving
