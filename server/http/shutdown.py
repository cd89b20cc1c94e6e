"""The graceful end of the HTTP server: calls are answered, then event streams are closed."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.http.error_responses import RETRY_SECONDS, error_response

FLUSH_SECONDS = 0.1
"""In which an answer that was given reaches its stream; the SDK does not report when it has."""


class GracefulShutdown:
    """Counts calls in progress, as middleware of the MCP server, whichever connection they came by."""

    def __init__(self) -> None:
        self._calls = 0
        self._no_calls = anyio.Event()
        self._draining = False
        self._close_streams = anyio.Event()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._calls += 1
        try:
            return await call_next(ctx)
        finally:
            self._calls -= 1
            if not self._calls:
                self._no_calls.set()
                self._no_calls = anyio.Event()

    async def drain(self, seconds: float) -> None:
        """Refuses new requests, waits `seconds` at most for the calls in progress, then closes the streams."""
        self._draining = True
        with anyio.move_on_after(seconds):
            while self._calls:
                await self._no_calls.wait()
        await anyio.sleep(FLUSH_SECONDS)
        self._close_streams.set()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """`app`, which takes no new request while draining, and whose event streams end after it."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if self._draining:
                message = "The server is shutting down. Try again in a moment."
                await error_response(503, message, retry_after=RETRY_SECONDS)(scope, receive, send)
            elif scope["method"] == "GET":
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
