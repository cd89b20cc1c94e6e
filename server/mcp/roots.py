"""The project that a client works in, by the roots that it tells (spec O2)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError

from madeleine.server.settings.environment import project_of_directory

logger = logging.getLogger(__name__)

CLIENT_ROOTS_TIMEOUT_SECONDS = 2.0


async def project_of_client(session: ServerSession) -> str:
    """The project of the client's first root (spec O2); "" for a client that has none, or does not say in time."""
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return ""
    try:
        async with asyncio.timeout(CLIENT_ROOTS_TIMEOUT_SECONDS):
            roots = (await session.list_roots()).roots
    except (MCPError, TimeoutError, ValueError) as error:
        logger.warning("The client did not tell its roots; memories are kept without a project: %s", error)
        return ""
    paths = (Path(url2pathname(urlsplit(str(root.uri)).path)) for root in roots)
    return await asyncio.to_thread(project_of_directory, next(paths)) if roots else ""
