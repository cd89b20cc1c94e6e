"""A host from its first client to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from madeleine.memory.errors import InvalidInput
from madeleine.server import EXIT_USAGE
from madeleine.server.attach.connector import LOG_FILE
from madeleine.server.attach.endpoint import Address
from madeleine.server.background.serving import served_memory
from madeleine.server.host.host import Host
from madeleine.server.logs import start_logging
from madeleine.server.mcp.stdio import stop_signals
from madeleine.server.settings.settings import Settings, read_settings

logger = logging.getLogger(__name__)

LOG_BYTES = 1_000_000
LOG_FILES = 3
"""Rotated files that are kept beside the current one."""


def run(data_dir: Path, listener: socket.socket, address: Address) -> int:
    try:
        settings = read_settings()
        log_to_file(data_dir / LOG_FILE, settings)
    except InvalidInput as error:
        print(f"madeleine: {error}", file=sys.stderr)
        return EXIT_USAGE
    asyncio.run(serve(settings, listener, address))
    return 0


async def serve(settings: Settings, listener: socket.socket, address: Address) -> None:
    """Serve until `madeleine stop`, SIGTERM or SIGINT, or `settings.idle_seconds` without a client."""
    async with served_memory(settings) as served:
        host = Host(
            settings,
            served.memory.use_cases,
            served.models,
            token=address.token,
            patrol_events=served.memory.patrol_events,
            wait_until_idle=served.wait_until_idle,
        )
        with stop_signals(host.end):
            logger.info("process %d is the host of %s", os.getpid(), settings.data_dir)
            detach_output()
            await host.serve(listener)
            logger.info("process %d ends", os.getpid())


def log_to_file(path: Path, settings: Settings) -> None:
    """Log to rotating files. A full disk, where none can be opened, does not keep the host from serving."""
    handler: logging.Handler
    try:
        handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8")
    except OSError:
        handler = logging.NullHandler()
    logging.raiseExceptions = False
    start_logging(settings.log_level, handler)


def detach_output() -> None:
    """Write nothing more to the process that started this one: it may not read any longer."""
    sys.stdout.flush()
    sys.stderr.flush()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)
