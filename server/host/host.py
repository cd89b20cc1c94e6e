"""Clients over one listening socket, each with its own being and tools, all with one memory."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

import anyio

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId
from madeleine.patrol.run import PatrolEvent
from madeleine.server import __version__
from madeleine.server.attach.connector import (
    HANDSHAKE_SECONDS,
    HOST_PROTOCOL,
    MAX_REQUEST_BYTES,
    HostRequest,
    encode_reply,
    parse_request,
)
from madeleine.server.background.patrol_events import EventBroadcast, as_json
from madeleine.server.mcp.caller import Caller, fixed_caller
from madeleine.server.mcp.lines import FINISH_SECONDS, SocketWriter, line_transport
from madeleine.server.mcp.server import build_server, toolset_of
from madeleine.server.settings.http import HttpSettings
from madeleine.server.settings.language_model import LlmSettings
from madeleine.server.settings.settings import Settings, settings_from_variables
from madeleine.server.wiring.language_models import LanguageModels
from madeleine.tools.tool import UseCases

logger = logging.getLogger(__name__)

CLIENT_SETTINGS = frozenset(
    {"being", "toolsets", "tools", "exclude_tools", "read_only"}
    | set(HttpSettings.model_fields)
    | set(LlmSettings.model_fields)
)
"""Settings that are each client's own, or have no effect on it; all others are the host's, from whoever started it."""


class Host:
    """`serve` returns when `end` was called, or no client was connected for `settings.idle_seconds`."""

    http = ""
    """The URL, if the same process serves HTTP; part of the status."""

    def __init__(
        self,
        settings: Settings,
        use_cases: Callable[[], Awaitable[UseCases]],
        models: LanguageModels,
        *,
        token: str = "",
        stays: bool = False,
        patrol_events: EventBroadcast | None = None,
        wait_until_idle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`token`: required of a client, if the socket does not itself keep others out. `stays`: also without clients.
        `wait_until_idle` returns when no background work is under way; it is awaited before an idle host ends."""
        self._patrol_events = patrol_events or EventBroadcast()
        self._wait_until_idle = wait_until_idle
        self._stays = stays
        self._settings = settings
        self._use_cases = use_cases
        self._models = models
        self._token = token
        self.ending = anyio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        self._clients: dict[asyncio.Task[None], dict[str, Any]] = {}
        self._started = time.time()
        self._idle_end: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Accept no more; finish the calls under way."""
        self.ending.set()

    async def serve(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        unix = listener.family == getattr(socket, "AF_UNIX", None)
        listen = asyncio.start_unix_server if unix else asyncio.start_server
        server = await listen(self._connected, sock=listener, limit=MAX_REQUEST_BYTES)
        self._end_when_idle()
        await self.ending.wait()
        # Closed at once: a client that connects from now on finds no host, and starts the next when this one has gone.
        server.close()
        for task in self._connections - set(self._clients):
            task.cancel()
        if self._clients:
            await asyncio.wait(self._clients, timeout=FINISH_SECONDS + 1)
        for task in self._connections:
            task.cancel()
        self._cancel_idle_end()

    def _end_when_idle(self) -> None:
        if not self._stays:
            self._idle_end = asyncio.create_task(self._end_after_idle(), name="idle end")

    def _cancel_idle_end(self) -> None:
        if self._idle_end is not None:
            self._idle_end.cancel()
            self._idle_end = None

    async def _end_after_idle(self) -> None:
        await asyncio.sleep(self._settings.idle_seconds)
        if self._wait_until_idle is not None:
            await self._wait_until_idle()
        self.end()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._cancel_idle_end()
        try:
            await self._answer(reader, writer)
        except ConnectionError as error:
            logger.info("a client went away: %s", error)
        except Exception:
            logger.exception("a client could not be served")
        finally:
            self._connections.discard(task)
            if not self._connections:
                self._end_when_idle()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await self._read_request(reader)
        if request is None:
            return
        sink = SocketWriter(writer)
        if request.want == "stop":
            await sink.write(self._reply(ok=True))
            self.end()
        elif request.want == "status":
            await sink.write(self._reply(ok=True, **self._status()))
        elif request.protocol != HOST_PROTOCOL:
            await sink.write(self._reply(error=_protocol_mismatch(request)))
        elif request.want == "serve":
            await self._serve_tools(request, reader, sink)
        elif request.want == "watch":
            await self._show_patrols(request, reader, sink)
        else:
            await sink.write(self._reply(error=_unknown_request(request)))

    async def _read_request(self, reader: asyncio.StreamReader) -> HostRequest | None:
        """None for a malformed request, or one without the token: it gets no answer."""
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                request = parse_request(await reader.readuntil(b"\n"))
            authorized = hmac.compare_digest(request.token.encode(), self._token.encode())
        except (ValueError, KeyError, TypeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return None
        return request if authorized else None

    async def _serve_tools(self, request: HostRequest, reader: asyncio.StreamReader, sink: SocketWriter) -> None:
        try:
            settings = settings_from_variables(dict(request.settings) | {"data_dir": str(self._settings.data_dir)})
            toolset = toolset_of(settings.model_copy(update={"max_text_chars": self._settings.max_text_chars}))
        except InvalidInput as error:
            await sink.write(self._reply(error=str(error), usage=True))
            return
        self._log_differences(settings)
        await sink.write(self._reply(ok=True))
        client = {"being": settings.being, "version": request.version, "since": round(time.time(), 3)}
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._clients[task] = client
        try:
            async with line_transport(reader, sink, end=self.ending) as (read, write):
                server = build_server(
                    toolset,
                    fixed_caller(Caller(BeingId(settings.being))),
                    self._use_cases,
                    language_model_of=lambda _: self._models.for_client(settings),
                    session=request.session,
                )
                await server.run(read, write, server.create_initialization_options())
        finally:
            del self._clients[task]

    async def _show_patrols(self, request: HostRequest, reader: asyncio.StreamReader, sink: SocketWriter) -> None:
        """Write each patrol event as one line of JSON, until the client disconnects."""
        try:
            settings = settings_from_variables(dict(request.settings) | {"data_dir": str(self._settings.data_dir)})
        except InvalidInput as error:
            await sink.write(self._reply(error=str(error), usage=True))
            return
        with self._patrol_events.subscribe(BeingId(settings.being)) as events:
            await sink.write(self._reply(ok=True, being=settings.being))
            async with asyncio.TaskGroup() as tasks:
                showing = tasks.create_task(_send_events(events, sink))
                with suppress(ConnectionError):
                    await reader.read(1)
                showing.cancel()

    def _log_differences(self, client: Settings) -> None:
        own, others = self._settings.model_dump(), client.model_dump()
        if differing := sorted(name for name in own if name not in CLIENT_SETTINGS and own[name] != others[name]):
            logger.warning(
                "a client has other settings (%s); this process keeps those that it was started with. "
                "`madeleine stop` ends it, and the next client starts one with its own.",
                ", ".join(differing),
            )

    def _reply(self, **content: Any) -> bytes:
        return encode_reply(version=__version__, pid=os.getpid(), **content)

    def _status(self) -> dict[str, Any]:
        return {
            "data_dir": str(self._settings.data_dir),
            "embedding_model": self._settings.embedding_model,
            "started": round(self._started, 3),
            "http": self.http,
            "clients": list(self._clients.values()),
        }


def _protocol_mismatch(request: HostRequest) -> str:
    return (
        f"This memory's process is Madeleine {__version__}, and Madeleine {request.version or '?'} asks for it: they "
        f"speak different protocols ({HOST_PROTOCOL} and {request.protocol}). Update the older installation."
    )


def _unknown_request(request: HostRequest) -> str:
    return (
        f"This memory's process is Madeleine {__version__}, which does not know what is asked of it "
        f"({request.want[:20]!r}). Update it, or end it with `madeleine stop` if that is done."
    )


async def _send_events(events: AsyncIterator[PatrolEvent], sink: SocketWriter) -> None:
    with suppress(ConnectionError):
        async for event in events:
            await sink.write(json.dumps(as_json(event), ensure_ascii=False).encode() + b"\n")
