"""`madeleine serve --in-process` and `madeleine serve --http`."""

from __future__ import annotations

import argparse

from madeleine.server.mcp.server import serve_mcp_on_stdio
from madeleine.server.settings.settings import Settings


async def serve_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Serve MCP from this process until standard input ends, or the process is told to end."""
    if arguments.http:
        from madeleine.server.http.serve import serve_http_as_host

        await serve_http_as_host(settings, sse=arguments.sse)
    else:
        await serve_mcp_on_stdio(settings)
