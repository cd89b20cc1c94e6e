"""Clients over one listening socket, each with its own being and tools, all with one memory."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, cast

import anyio

from madeleine.memory.errors import InvalidInput, MadeleineError, error_as_json
from madeleine.memory.model import BeingId
from madeleine.patrol.run import PatrolEvent
from madeleine.server import EXIT_USAGE, __version__
from madeleine.server.attach.connector import (
    HOST_HANDSHAKE_TIMEOUT_SECONDS,
    HOST_LOG_FILE,
    HOST_PROTOCOL_VERSION,
    MAX_HOST_HANDSHAKE_BYTES,
    HostHandshakeRequest,
    encode_host_handshake_reply,
    parse_host_handshake_request,
)
from madeleine.server.attach.endpoint import HostAddress
from madeleine.server.background.loops import PatrolEventBroadcast, patrol_event_as_json
from madeleine.server.background.serving import LazilyOpenedMemory, open_memory_with_background_loops
from madeleine.server.connections import (
    ConnectionSlots,
    MaxHttpAndHostConnections,
    accept_connections,
    raise_open_file_limit,
)
from madeleine.server.host.commands import HostCommandHandler, run_host_command, run_host_command_and_report
from madeleine.server.logs import start_logging
from madeleine.server.mcp.lines import OPEN_CALLS_GRACE_SECONDS, WriteBytes, open_mcp_line_transport, write_and_drain
from madeleine.server.mcp.server import Caller, McpRequestHandlers, call_on_stop_signals, toolset_from_settings
from madeleine.server.settings.http import HttpSettings
from madeleine.server.settings.language_model import LlmSettings
from madeleine.server.settings.settings import Settings, read_settings, settings_from_variables_and_file
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.tools.tool import ToolUseCases

logger = logging.getLogger(__name__)

PER_CLIENT_SETTINGS = frozenset({"being", "role", "toolsets", "tools", "exclude_tools", "read_only"}).union(
    HttpSettings.model_fields, LlmSettings.model_fields
)
"""Settings that are each client's own, or have no effect on it; all others are the host's, from whoever started it."""
OpenWebUi = Callable[[Settings, int], AbstractAsyncContextManager[str]]
"""Serves the page of a client's being on a port, any free one for 0; the link that opens it."""
MAX_LOG_FILE_BYTES = 1_000_000
MAX_ROTATED_LOG_FILES = 3
"""Kept beside the current one."""


@dataclass(eq=False)
class _HostConnection:
    """An `ConnectionSlotHolder`: a connection, idle until its first line has come."""

    socket: socket.socket
    task: asyncio.Task[None] | None = None
    is_idle: bool = False

    def close(self) -> None:
        assert self.task is not None
        self.task.cancel()


@dataclass(eq=False)
class MemoryHost:
    """`serve` returns when `end` was called, or no client was connected for `settings.idle_seconds`."""

    settings: Settings
    use_cases: Callable[[], Awaitable[ToolUseCases]]
    models: LanguageModelPool
    token: str = ""
    """Required of a client, if the socket does not itself keep others out."""
    patrol_events: PatrolEventBroadcast = field(default_factory=PatrolEventBroadcast)
    run_command: HostCommandHandler | None = None
    """Carries out what a command of this machine's user asks of the memory."""
    open_web_ui: OpenWebUi | None = None
    stays_without_clients: bool = False
    """Does not end without clients."""
    wait_until_idle: Callable[[], Awaitable[None]] | None = None
    """Returns when no background work is under way; awaited before an idle host ends."""
    http_url: str = ""
    """If the same process serves HTTP; part of the status."""
    stop_event: anyio.Event = field(default_factory=anyio.Event, init=False)

    def __post_init__(self) -> None:
        self._connections: set[asyncio.Task[None]] = set()
        self._clients: dict[asyncio.Task[None], dict[str, Any]] = {}
        self._started = time.time()
        self._idle_end: asyncio.Task[None] | None = None

    def request_stop_after_open_calls(self) -> None:
        """Accept no more; finish the calls under way."""
        self.stop_event.set()

    async def serve(self, listener: socket.socket) -> None:
        limits = MaxHttpAndHostConnections.from_open_file_limit(raise_open_file_limit())
        places = ConnectionSlots(limits.host, limits.host)
        accepting = asyncio.create_task(
            accept_connections(listener, lambda accepted, _: self._handle_accepted(accepted, places)), name="accept"
        )
        self._restart_or_cancel_idle_timer()
        await self.stop_event.wait()
        # Closed at once: a client that connects from now on finds no host, and starts the next when this one has gone.
        accepting.cancel()
        listener.close()
        for task in self._connections - set(self._clients):
            task.cancel()
        if self._clients:
            await asyncio.wait(self._clients, timeout=OPEN_CALLS_GRACE_SECONDS + 1)
        for task in self._connections:
            task.cancel()
        self._restart_or_cancel_idle_timer()

    def _restart_or_cancel_idle_timer(self) -> None:
        """Begin to wait for the idle end, or stop waiting."""
        if self._idle_end is not None:
            self._idle_end.cancel()
            self._idle_end = None
        if not (self.stays_without_clients or self._connections or self.stop_event.is_set()):
            self._idle_end = asyncio.create_task(self._end_after_idle(), name="idle end")

    async def _end_after_idle(self) -> None:
        await asyncio.sleep(self.settings.idle_seconds)
        if self.wait_until_idle is not None:
            await self.wait_until_idle()
        self.request_stop_after_open_calls()

    def _handle_accepted(self, accepted: socket.socket, places: ConnectionSlots) -> None:
        connection = _HostConnection(accepted)
        if not places.claim("", connection):
            accepted.close()
            return
        task = connection.task = asyncio.create_task(self._serve_connection(connection))
        self._connections.add(task)
        task.add_done_callback(lambda _: places.release("", connection))
        self._restart_or_cancel_idle_timer()

    async def _serve_connection(self, connection: _HostConnection) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            reader, writer = await asyncio.open_connection(sock=connection.socket, limit=MAX_HOST_HANDSHAKE_BYTES)
            try:
                await self._answer_handshake_and_serve(reader, writer, connection)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
        except ConnectionError as error:
            logger.info("a client went away: %s", error)
        except Exception:
            logger.exception("a client could not be served")
        finally:
            connection.socket.close()
            self._connections.discard(task)
            self._restart_or_cancel_idle_timer()

    async def _answer_handshake_and_serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _HostConnection
    ) -> None:
        connection.is_idle = True
        request = await self._read_authorized_request(reader)
        connection.is_idle = False
        if request is None:
            return
        write = partial(write_and_drain, writer)
        if request.requested_service == "stop":
            await write(encode_host_handshake_reply(ok=True))
            self.request_stop_after_open_calls()
        elif request.requested_service == "status":
            await write(encode_host_handshake_reply(ok=True, **self._status()))
        elif request.protocol != HOST_PROTOCOL_VERSION:
            await write(encode_host_handshake_reply(error=_protocol_mismatch_message(request)))
        elif (
            serve := {
                "serve": self._serve_tools,
                "watch": self._stream_patrol_events_to_client,
                "run": self._run_command,
                "page": self._serve_ui,
            }.get(request.requested_service)
        ) is None:
            await write(encode_host_handshake_reply(error=_unknown_request_message(request)))
        else:
            try:
                await serve(request, reader, write)
            except InvalidInput as error:
                await write(encode_host_handshake_reply(error=str(error), usage=True))

    async def _read_authorized_request(self, reader: asyncio.StreamReader) -> HostHandshakeRequest | None:
        """None for a malformed request, or one without the token: it gets no answer."""
        try:
            async with asyncio.timeout(HOST_HANDSHAKE_TIMEOUT_SECONDS):
                request = parse_host_handshake_request(await reader.readuntil(b"\n"))
            authorized = hmac.compare_digest(request.token.encode(), self.token.encode())
        except (ValueError, KeyError, TypeError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            return None
        return request if authorized else None

    def _client_settings(self, request: HostHandshakeRequest) -> Settings:
        """Raises `InvalidInput`."""
        return settings_from_variables_and_file(dict(request.settings) | {"data_dir": str(self.settings.data_dir)})

    async def _serve_tools(
        self, request: HostHandshakeRequest, reader: asyncio.StreamReader, write: WriteBytes
    ) -> None:
        settings = self._client_settings(request)
        toolset = toolset_from_settings(settings.model_copy(update={"max_text_chars": self.settings.max_text_chars}))
        self._log_settings_differences(settings)
        await write(encode_host_handshake_reply(ok=True))
        caller = Caller(BeingId(settings.being), settings.role)
        handlers = McpRequestHandlers(
            toolset,
            lambda _: caller,
            self.use_cases,
            lambda _: self.models.lease_model_for_client(settings),
            request.session,
            settings.memory_level_config,
            settings.is_project_automatic,
        )
        with self._hold_client_registration(request, settings):
            async with open_mcp_line_transport(reader.read, write, self.stop_event) as (incoming, outgoing):
                await handlers.serve(incoming, outgoing)

    async def _stream_patrol_events_to_client(
        self, request: HostHandshakeRequest, reader: asyncio.StreamReader, write: WriteBytes
    ) -> None:
        """Write each patrol event as one line of JSON, until the client disconnects."""
        being = self._client_settings(request).being
        with self.patrol_events.subscribe(BeingId(being)) as events:
            await write(encode_host_handshake_reply(ok=True, being=being))
            async with asyncio.TaskGroup() as tasks:
                showing = tasks.create_task(_send_patrol_events(events, write))
                with suppress(ConnectionError):
                    await reader.read(1)
                showing.cancel()

    async def _run_command(
        self, request: HostHandshakeRequest, reader: asyncio.StreamReader, write: WriteBytes
    ) -> None:
        """Write progress, then the result or the error, each as one line of JSON. Cancelled if the client goes away."""
        assert self.run_command is not None
        settings = self._client_settings(request)
        await write(encode_host_handshake_reply(ok=True))
        with self._hold_client_registration(request, settings):
            running = run_host_command_and_report(self.run_command, settings, request.arguments, write)
            await _run_all_until_first_ends(running, reader.read(1))

    async def _serve_ui(self, request: HostHandshakeRequest, reader: asyncio.StreamReader, write: WriteBytes) -> None:
        """Write the link of the page, or the error, as one line of JSON; serve it until the client disconnects."""
        assert self.open_web_ui is not None
        settings = self._client_settings(request)
        port = int(request.arguments.get("port", "0"))
        await write(encode_host_handshake_reply(ok=True))
        with self._hold_client_registration(request, settings):
            try:
                async with self.open_web_ui(settings, port) as url:
                    await write(json.dumps({"url": url}).encode() + b"\n")
                    await _run_all_until_first_ends(reader.read(1), self.stop_event.wait())
            except MadeleineError as error:
                await write(json.dumps({"error": error_as_json(error), "message": str(error)}).encode() + b"\n")

    @contextmanager
    def _hold_client_registration(self, request: HostHandshakeRequest, settings: Settings) -> Iterator[None]:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._clients[task] = {"being": settings.being, "version": request.version, "since": round(time.time(), 3)}
        try:
            yield
        finally:
            del self._clients[task]

    def _log_settings_differences(self, client: Settings) -> None:
        own, others = self.settings.model_dump(), client.model_dump()
        if differing := sorted(name for name in own if name not in PER_CLIENT_SETTINGS and own[name] != others[name]):
            logger.warning(
                "a client has other settings (%s); this process keeps those that it was started with. "
                "`madeleine stop` ends it, and the next client starts one with its own.",
                ", ".join(differing),
            )

    def _status(self) -> dict[str, Any]:
        return {
            "data_dir": str(self.settings.data_dir),
            "embedding_model": self.settings.embedding_model,
            "started": round(self._started, 3),
            "http": self.http_url,
            "resource": self.http_url and (self.settings.public_url or self.http_url),
            "memory_thread": self.settings.memory_extraction_enablement._asdict(),
            "clients": list(self._clients.values()),
        }


async def _run_all_until_first_ends(*work: Coroutine[Any, Any, object]) -> None:
    """Cancels the others then."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _protocol_mismatch_message(request: HostHandshakeRequest) -> str:
    return (
        f"This memory's process is Madeleine {__version__}, and Madeleine {request.version or '?'} asks for it: they "
        f"speak different protocols ({HOST_PROTOCOL_VERSION} and {request.protocol}). Update the older installation."
    )


def _unknown_request_message(request: HostHandshakeRequest) -> str:
    return (
        f"This memory's process is Madeleine {__version__}, which does not know what is asked of it "
        f"({request.requested_service[:20]!r}). Update it, or end it with `madeleine stop` if that is done."
    )


async def _send_patrol_events(events: AsyncIterator[PatrolEvent], write: WriteBytes) -> None:
    with suppress(ConnectionError):
        async for event in events:
            await write(json.dumps(patrol_event_as_json(event), ensure_ascii=False).encode() + b"\n")


# --- process ---------------------------------------------------------------------------------------------------------


def run_host(data_dir: Path, listener: socket.socket, address: HostAddress) -> int:
    try:
        settings = read_settings()
        start_rotating_file_logging(data_dir / HOST_LOG_FILE, settings)
    except InvalidInput as error:
        print(f"madeleine: {error}", file=sys.stderr)
        return EXIT_USAGE
    asyncio.run(serve_as_host(settings, listener, address))
    return 0


async def serve_as_host(settings: Settings, listener: socket.socket, address: HostAddress) -> None:
    """Serve until `madeleine stop`, SIGTERM or SIGINT, or `settings.idle_seconds` without a client."""
    async with open_memory_with_background_loops(settings) as served:
        memory = served.memory
        host = MemoryHost(settings, memory.open_use_cases_if_needed, served.models, address.token, memory.patrol_events)
        host.run_command = partial(run_host_command, memory.open_memory_if_needed)
        host.open_web_ui = make_web_ui_starter(memory, served.models)
        host.wait_until_idle = served.wait_until_idle
        memory.on_files_lost = host.request_stop_after_open_calls
        with call_on_stop_signals(host.request_stop_after_open_calls):
            logger.info("process %d is the host of %s", os.getpid(), settings.data_dir)
            redirect_output_to_devnull()
            await host.serve(listener)
            logger.info("process %d ends", os.getpid())


def make_web_ui_starter(memory: LazilyOpenedMemory, models: LanguageModelPool) -> OpenWebUi:
    """Imports the web server when the page is first opened: most hosts never need it."""

    def open_page(settings: Settings, port: int) -> AbstractAsyncContextManager[str]:
        from madeleine.server.ui.serve import serve_web_ui

        return serve_web_ui(settings, memory.open_memory_if_needed, models, memory.patrol_events, port=port)

    return open_page


def start_rotating_file_logging(path: Path, settings: Settings) -> None:
    """Log to rotating files. A full disk, where none can be opened, does not keep the host from serving."""
    handler: logging.Handler
    try:
        handler = RotatingFileHandler(
            path, maxBytes=MAX_LOG_FILE_BYTES, backupCount=MAX_ROTATED_LOG_FILES, encoding="utf-8"
        )
    except OSError:
        handler = logging.NullHandler()
    logging.raiseExceptions = False
    start_logging(settings.log_level, handler)


def redirect_output_to_devnull() -> None:
    """Write nothing more to the process that started this one: it may not read any longer."""
    sys.stdout.flush()
    sys.stderr.flush()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
