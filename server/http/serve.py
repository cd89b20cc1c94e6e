"""`madeleine serve --http`: the host of the data directory, with HTTP beside its socket, until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import httpx

from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError
from madeleine.memory.model import BeingId
from madeleine.operating_system import try_to_hold_file_lock
from madeleine.server.addresses import is_loopback
from madeleine.server.attach.connector import (
    HostRefused,
    HostUnavailable,
    exchange_host_handshake_and_disconnect,
    stop_host,
)
from madeleine.server.attach.endpoint import (
    HOST_LOCK_FILE,
    HostAddress,
    UntrustedDirectory,
    open_host_listener,
)
from madeleine.server.background.serving import open_memory_with_background_loops
from madeleine.server.connections import MaxHttpAndHostConnections, raise_open_file_limit
from madeleine.server.host.commands import run_host_command
from madeleine.server.host.host import MemoryHost, make_web_ui_starter
from madeleine.server.http.app import GracefulHttpShutdown, build_http_app, open_http_listener, run_uvicorn
from madeleine.server.http.authentication import BearerTokenVerifier, caller_of_request
from madeleine.server.http.oauth_issuer import ISSUER_KEY_FETCH_TIMEOUT_SECONDS, OAuthJwtVerifier
from madeleine.server.http.request_checks import language_model_key_of_request
from madeleine.server.mcp.server import Caller, McpRequestHandlers, call_on_stop_signals, toolset_from_settings
from madeleine.server.settings.http import HttpSettings, bracket_ipv6_host
from madeleine.server.settings.settings import Settings
from madeleine.server.ui.app import WebUiServices, build_web_ui_services
from madeleine.server.wiring.data_directory import open_bearer_token_ledger
from madeleine.server.wiring.language_models import LanguageModelPool
from madeleine.tools.tool import ToolUseCases

logger = logging.getLogger(__name__)

MAX_ATTEMPTS_TO_BECOME_HOST = 20
"""A client that has lost its host starts another, and may be faster."""


async def serve_http_as_host(settings: Settings, *, sse: bool) -> None:
    """Serve until SIGTERM, SIGINT or `madeleine stop`. Calls in progress are answered, the index is flushed.

    Clients on stdio share the memory: a host that runs is ended, and they go on with this one. Raises `StorageBusy` if
    that one serves HTTP itself, `StorageError`, and as `serve_http` does.
    """
    # Everything that may prevent serving is tried before another host is ended.
    toolset_from_settings(settings)
    async with open_bearer_token_ledger(settings) as tokens:
        require_auth_when_exposed(settings, has_tokens=await tokens.has_tokens())
    with open_http_listener(settings.http_host, settings.http_port):
        pass
    async with _become_host(settings) as (listener, address), open_memory_with_background_loops(settings) as served:
        memory, models = served.memory, served.models
        host = MemoryHost(
            settings,
            memory.open_use_cases_if_needed,
            models,
            address.token,
            memory.patrol_events,
            stays_without_clients=True,
        )
        host.run_command = partial(run_host_command, memory.open_memory_if_needed)
        host.open_web_ui = make_web_ui_starter(memory, models)
        memory.on_files_lost = host.request_stop_after_open_calls

        def announce(url: str) -> None:
            host.http_url = url
            print(f"Madeleine listens on {url}", file=sys.stderr, flush=True)

        with call_on_stop_signals(host.request_stop_after_open_calls):
            serving = asyncio.create_task(host.serve(listener), name="host")
            try:
                await serve_http(
                    settings,
                    memory.open_use_cases_if_needed,
                    models,
                    stop_event=host.stop_event,
                    sse=sse,
                    page=build_web_ui_services(settings, memory.open_memory_if_needed, models, memory.patrol_events),
                    on_listening=announce,
                )
            finally:
                host.request_stop_after_open_calls()
                await serving


@asynccontextmanager
async def _become_host(settings: Settings) -> AsyncIterator[tuple[socket.socket, HostAddress]]:
    """Raises `StorageBusy`, `StorageError`."""
    data_dir = settings.data_dir
    with ExitStack() as stack:
        try:
            for _ in range(MAX_ATTEMPTS_TO_BECOME_HOST):
                await asyncio.to_thread(_end_other_host, data_dir)
                if stack.enter_context(try_to_hold_file_lock(data_dir / HOST_LOCK_FILE)):
                    break
                stack.close()
            else:
                raise StorageBusy(f"Other clients of the memory in {data_dir} keep starting a host. Try again.")
            listener = stack.enter_context(open_host_listener(data_dir, settings.attach))
        except (OSError, UntrustedDirectory) as error:
            raise StorageError(f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR.") from error
        yield listener


def _end_other_host(data_dir: Path) -> None:
    """End a running host after its calls in progress. Blocks the thread. Raises `StorageBusy`."""
    try:
        with suppress(HostUnavailable):
            status = exchange_host_handshake_and_disconnect(data_dir, "status")
            if status.get("http"):
                raise StorageBusy(
                    f"Process {status['pid']} serves the memory in {data_dir} already, at {status['http']}. End it "
                    "first: madeleine stop."
                )
        stop_host(data_dir)
    except HostRefused as error:
        raise StorageBusy(str(error)) from error


async def serve_http(
    settings: Settings,
    use_cases: Callable[[], Awaitable[ToolUseCases]],
    models: LanguageModelPool,
    *,
    stop_event: anyio.Event,
    sse: bool = False,
    page: WebUiServices | None = None,
    on_listening: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until `stop_event` is set, then answer open calls for `OPEN_CALLS_GRACE_SECONDS`. Handles no signals.

    `page` is served at `/ui/` to who has a token. `on_listening` gets the server's URL when clients can connect.
    Raises `InvalidInput` for an exposed address without authentication, `CannotListen`, `StorageError`.
    """
    async with open_bearer_token_ledger(settings) as tokens:
        has_tokens = await tokens.has_tokens()
        require_auth_when_exposed(settings, has_tokens=has_tokens)
        with open_http_listener(settings.http_host, settings.http_port) as listener:
            # For port 0 the system has chosen one.
            settings = settings.model_copy(update={"http_port": listener.getsockname()[1]})
            async with (
                httpx.AsyncClient(timeout=ISSUER_KEY_FETCH_TIMEOUT_SECONDS) as client,
                OAuthJwtVerifier(client, settings) as issuer,
            ):
                anonymous = anonymous_caller_from_settings(settings)
                shutdown = GracefulHttpShutdown()
                handlers = McpRequestHandlers(
                    toolset_from_settings(settings),
                    caller_of_request,
                    use_cases,
                    lambda context: models.lease_model_for_api_key(language_model_key_of_request(context)),
                    levels=settings.memory_level_config,
                )
                verifier = BearerTokenVerifier(tokens, issuer if settings.oauth_issuer else None)
                max_connections = MaxHttpAndHostConnections.from_open_file_limit(raise_open_file_limit()).http
                app = build_http_app(
                    handlers.build_server(),
                    settings,
                    verifier,
                    shutdown,
                    anonymous=anonymous,
                    page=page,
                    max_connections=max_connections,
                    sse=sse,
                )
                _log_access_rules(settings, anonymous, has_tokens=has_tokens)
                on_listening(f"http://{bracket_ipv6_host(settings.http_host)}:{settings.http_port}/mcp")
                await run_uvicorn(
                    app,
                    listener,
                    shutdown,
                    max_connections=max_connections,
                    max_body_bytes=settings.http_max_body_bytes,
                    stop_event=stop_event,
                )


def require_auth_when_exposed(settings: HttpSettings, *, has_tokens: bool) -> None:
    """Raises `InvalidInput` for an address that the network reaches, without allowed hosts or authentication."""
    if is_loopback(settings.http_host):
        return
    if not settings.allowed_hosts:
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network. Set MADELEINE_ALLOWED_HOSTS to the names that "
            "clients use for it (memory.example.org, or 10.0.0.5:*), or listen on 127.0.0.1."
        )
    if not (settings.oauth_issuer or has_tokens):
        raise InvalidInput(
            f"{settings.http_host} can be reached from the network, without authentication. Make a token with "
            "`madeleine token create`, or set MADELEINE_OAUTH_ISSUER, or listen on 127.0.0.1."
        )


def anonymous_caller_from_settings(settings: Settings) -> Caller | None:
    """The caller of requests without a token. None if a setting names another machine: behind a proxy all requests
    seem to come from this one."""
    allowed = [urlsplit(f"//{host.removesuffix(':*')}").hostname for host in settings.allowed_hosts]
    hosts = [settings.http_host, urlsplit(settings.oauth_resource_url).hostname, *allowed]
    if settings.oauth_issuer or not all(is_loopback(host or "") for host in hosts):
        return None
    return Caller(BeingId(settings.being), settings.role)


def _log_access_rules(settings: Settings, anonymous: Caller | None, *, has_tokens: bool) -> None:
    if has_tokens or settings.oauth_issuer:
        logger.info("tokens are required; they must be made for %s", settings.oauth_resource_url)
    elif anonymous:
        logger.warning(
            "no token was ever made: every program of this machine has access as %r; `madeleine token create` ends it",
            anonymous.being_id,
        )
    else:
        logger.warning(
            "nobody has access until `madeleine token create` has made a token for %s", settings.oauth_resource_url
        )
