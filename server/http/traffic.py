"""What is under way, and how it ends: calls are answered, then the streams that would stay open for ever are closed."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from madeleine.server.http.refusals import RETRY_SECONDS, refusal

SETTLE_SECONDS = 0.1
"""In which an answer that was given reaches its stream; the SDK tells nobody when it has."""


class Traffic:
    """Counts the messages that are worked on, as middleware of the MCP server, whichever connection they came by."""

    def __init__(self) -> None:
        self._calls = 0
        self._none = anyio.Event()
        self._closing = False
        self._cut = anyio.Event()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        self._calls += 1
        try:
            return await call_next(ctx)
        finally:
            self._calls -= 1
            if not self._calls:
                self._none.set()
                self._none = anyio.Event()

    async def close(self, seconds: float) -> None:
        """From now on nothing new is taken. Returns when all is answered, at the latest after `seconds`."""
        self._closing = True
        with anyio.move_on_after(seconds):
            while self._calls:
                await self._none.wait()
        await anyio.sleep(SETTLE_SECONDS)
        self._cut.set()

    def through(self, app: ASGIApp) -> ASGIApp:
        """`app`, whose event streams end with the traffic."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if self._closing:
                message = "The server is about to end. Try again in a moment."
                await refusal(503, message, retry_after=RETRY_SECONDS)(scope, receive, send)
            elif scope["method"] == "GET":
                await self._stream(app, scope, receive, send)
            else:
                await app(scope, receive, send)

        return serve

    async def _stream(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """To the application the end looks as if the client had gone: then it closes what it opened."""
        unfinished = False

        async def watched(message: Message) -> None:
            nonlocal unfinished
            await send(message)
            unfinished = message["type"] == "http.response.start" or message.get("more_body", False)

        async def receive_or_end() -> Message:
            found: Message = {"type": "http.disconnect"}

            async def end() -> None:
                await self._cut.wait()
                tasks.cancel_scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(end)
                found = await receive()
                tasks.cancel_scope.cancel()
            return found

        await app(scope, receive_or_end, watched)
        if unfinished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
