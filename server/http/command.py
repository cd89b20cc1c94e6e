"""`madeleine serve --http`: one process, one memory, any number of clients."""

from __future__ import annotations

import sys

import anyio
from pydantic import ValidationError

from memory.errors import InvalidInput
from server.http.serve import serve_http
from server.lazy import LazyMemory
from server.settings import Settings
from server.stdio import stop_signals


async def serve_over_http(settings: Settings, *, host: str | None, port: int | None, sse: bool) -> None:
    """Until SIGTERM or SIGINT. What was begun is answered, the index is flushed."""
    settings = with_address(settings, host, port)
    end = anyio.Event()
    with stop_signals(end.set):
        async with LazyMemory(settings) as memory:
            await serve_http(
                settings,
                memory.use_cases,
                end=end,
                sse=sse,
                listening=lambda url: print(f"Madeleine listens on {url}", file=sys.stderr, flush=True),
            )


def with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    """Raises `InvalidInput` for a port that is none."""
    wanted = {"http_host": host, "http_port": port}
    given = {name: value for name, value in wanted.items() if value is not None}
    try:
        return Settings.model_validate(settings.model_dump() | given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"--{str(first['loc'][0]).removeprefix('http_')}: {first['msg']}.") from error
