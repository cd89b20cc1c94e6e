"""`madeleine serve --http`: the host of the data directory, with HTTP beside its socket."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from madeleine.memory.errors import InvalidInput, StorageBusy, StorageError
from madeleine.server import __version__
from madeleine.server.attach.address import LOCK, Address, UntrustedDirectory
from madeleine.server.attach.connector import query_host, stop_host
from madeleine.server.attach.handshake import HostRefused, HostRequest, NoHost
from madeleine.server.attach.lock import hold
from madeleine.server.background.memory_thread import memory_thread
from madeleine.server.background.patrol_schedule import scheduled_patrols
from madeleine.server.host.host import Host
from madeleine.server.host.listening import listening
from madeleine.server.http.listen import bound
from madeleine.server.http.serve import refuse_open_house, serve_http
from madeleine.server.mcp.server import toolset_of
from madeleine.server.mcp.stdio import stop_signals
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.language_models import LanguageModels
from madeleine.server.wiring.lazy_memory import LazyMemory
from madeleine.server.wiring.ledgers import open_token_ledger

TRIES = 20
"""A client that has lost its host starts another, and may be faster."""


async def serve_over_http(settings: Settings, *, host: str | None, port: int | None, sse: bool) -> None:
    """Until SIGTERM, SIGINT or `madeleine stop`. What was begun is answered, the index is flushed.

    Clients on stdio share the memory: a host that there was makes room, and they go on with this one. Raises
    `StorageBusy` if that one serves HTTP itself, `StorageError`, and as `serve_http` does.
    """
    settings = with_address(settings, host, port)
    await check(settings)
    async with (
        hosting(settings) as (listener, address),
        LanguageModels(settings) as models,
        LazyMemory(settings) as memory,
        scheduled_patrols(settings, memory, language=models.for_background),
        memory_thread(settings, memory, models),
    ):
        both = Host(
            settings, memory.use_cases, models, token=address.token, patrol_events=memory.patrol_events, stays=True
        )

        def tell(url: str) -> None:
            both.http = url
            print(f"Madeleine listens on {url}", file=sys.stderr, flush=True)

        with stop_signals(both.end):
            on_socket = asyncio.create_task(both.serve(listener), name="host")
            try:
                await serve_http(settings, memory.use_cases, models, end=both.ending, sse=sse, listening=tell)
            finally:
                both.end()
                await on_socket


def make_room(data_dir: Path) -> None:
    """End the host that there is, when it has finished what it has begun. Blocking."""
    found: dict[str, Any] = {}
    try:
        with suppress(NoHost):
            found = query_host(data_dir, HostRequest(want="status", version=__version__))
        if found.get("http"):
            raise StorageBusy(
                f"Process {found['pid']} serves the memory in {data_dir} already, at {found['http']}. End it first: "
                "madeleine stop."
            )
        stop_host(data_dir, __version__)
    except HostRefused as no:
        raise StorageBusy(str(no)) from no


async def check(settings: Settings) -> None:
    """All that may keep this from serving, before anybody makes room for it. Raises as `serve_http` does."""
    toolset_of(settings)
    async with open_token_ledger(settings) as tokens:
        refuse_open_house(settings, authenticated=bool(settings.oauth_issuer) or await tokens.any())
    with bound(settings.http_host, settings.http_port):
        pass


@asynccontextmanager
async def hosting(settings: Settings) -> AsyncIterator[tuple[socket.socket, Address]]:
    """Be the host. Raises `StorageBusy`, `StorageError`."""
    with ExitStack() as stack:
        try:
            for _ in range(TRIES):
                await asyncio.to_thread(make_room, settings.data_dir)
                if stack.enter_context(hold(settings.data_dir / LOCK)):
                    break
                stack.close()
            else:
                raise StorageBusy(f"Other clients of the memory in {settings.data_dir} are always faster. Try again.")
            found = stack.enter_context(listening(settings.data_dir, settings.attach))
        except (OSError, UntrustedDirectory) as error:
            raise StorageError(f"{settings.data_dir} cannot be used: {error}. Set MADELEINE_DATA_DIR.") from error
        yield found


def with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    """Raises `InvalidInput` for a port that is none."""
    wanted = {"http_host": host, "http_port": port}
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        return Settings.model_validate(settings.model_dump() | given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"--{str(first['loc'][0]).removeprefix('http_')}: {first['msg']}.") from error
