"""Commands that ask the host."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from madeleine.server.attach.address import HOST_FILE, SOCKET
from madeleine.server.attach.client import PatrolsNotWatchable, patrol_events
from madeleine.server.attach.handshake import encode_reply


async def test_a_host_that_sends_no_events_is_named_with_the_next_step(tmp_path: Path) -> None:
    """The first hosts hung up on a wish that they did not know."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if json.loads(await reader.readline())["madeleine"]["want"] == "status":
            writer.write(encode_reply(ok=True, version="0.0.9", pid=os.getpid()))
            await writer.drain()
        writer.close()

    about = {"pid": os.getpid(), "version": "0.0.9", "socket": str(tmp_path / SOCKET)}
    (tmp_path / HOST_FILE).write_text(json.dumps(about), encoding="utf-8")
    async with await asyncio.start_unix_server(serve, tmp_path / SOCKET):
        with pytest.raises(PatrolsNotWatchable, match=r"Madeleine 0\.0\.9, whose .*`madeleine stop`"):
            async with patrol_events(tmp_path, {}):
                pass
