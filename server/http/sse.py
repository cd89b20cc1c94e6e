"""HTTP with server-sent events, the transport of 2024-11-05: deprecated, for clients that know no other."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from starlette.types import Receive, Scope, Send

STREAM_PATH = "/sse"
MESSAGES_PATH = "/messages"


class SseStream:
    """A GET of the stream: one connection, for as long as the client listens."""

    def __init__(self, server: Server[Any], transport: SseServerTransport) -> None:
        self._server = server
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._transport.connect_sse(scope, receive, send) as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())
