"""`madeleine serve --http`: the host of the data directory, with HTTP beside its socket."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

from madeleine.memory.errors import StorageBusy, StorageError
from madeleine.server.attach.connector import HostRefused, HostRequest, NoHost, query_host, stop_host
from madeleine.server.attach.endpoint import HOST_LOCK_FILE, Address, UntrustedDirectory, hold_lock, listening_socket
from madeleine.server.background.serving import served_memory
from madeleine.server.host.host import Host
from madeleine.server.http.listen import bound
from madeleine.server.http.serve import require_auth_when_exposed, serve_http
from madeleine.server.mcp.server import toolset_of
from madeleine.server.mcp.stdio import stop_signals
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.ledgers import open_token_ledger

MAX_ATTEMPTS = 20
"""A client that has lost its host starts another, and may be faster."""


async def serve_over_http(settings: Settings, *, sse: bool) -> None:
    """Until SIGTERM, SIGINT or `madeleine stop`. Calls in progress are answered, the index is flushed.

    Clients on stdio share the memory: a host that runs is ended, and they go on with this one. Raises `StorageBusy` if
    that one serves HTTP itself, `StorageError`, and as `serve_http` does.
    """
    await _check(settings)
    async with _become_host(settings) as (listener, address), served_memory(settings) as served:
        use_cases = served.memory.use_cases
        host = Host(
            settings,
            use_cases,
            served.models,
            token=address.token,
            patrol_events=served.memory.patrol_events,
            stays=True,
        )

        def announce(url: str) -> None:
            host.http = url
            print(f"Madeleine listens on {url}", file=sys.stderr, flush=True)

        with stop_signals(host.end):
            serving = asyncio.create_task(host.serve(listener), name="host")
            try:
                await serve_http(settings, use_cases, served.models, end=host.ending, sse=sse, listening=announce)
            finally:
                host.end()
                await serving


async def _check(settings: Settings) -> None:
    """Everything that may prevent serving, before another host is ended. Raises as `serve_http` does."""
    toolset_of(settings)
    async with open_token_ledger(settings) as tokens:
        require_auth_when_exposed(settings, authenticated=bool(settings.oauth_issuer) or await tokens.any())
    with bound(settings.http_host, settings.http_port):
        pass


@asynccontextmanager
async def _become_host(settings: Settings) -> AsyncIterator[tuple[socket.socket, Address]]:
    """Raises `StorageBusy`, `StorageError`."""
    data_dir = settings.data_dir
    with ExitStack() as stack:
        try:
            for _ in range(MAX_ATTEMPTS):
                await asyncio.to_thread(_end_host, data_dir)
                if stack.enter_context(hold_lock(data_dir / HOST_LOCK_FILE)):
                    break
                stack.close()
            else:
                raise StorageBusy(f"Other clients of the memory in {data_dir} keep starting a host. Try again.")
            listener = stack.enter_context(listening_socket(data_dir, settings.attach))
        except (OSError, UntrustedDirectory) as error:
            raise StorageError(f"{data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR.") from error
        yield listener


def _end_host(data_dir: Path) -> None:
    """If there is one, after its calls in progress. Blocking. Raises `StorageBusy`."""
    try:
        with suppress(NoHost):
            status = query_host(data_dir, HostRequest(want="status"))
            if status.get("http"):
                raise StorageBusy(
                    f"Process {status['pid']} serves the memory in {data_dir} already, at {status['http']}. End it "
                    "first: madeleine stop."
                )
        stop_host(data_dir)
    except HostRefused as error:
        raise StorageBusy(str(error)) from error
