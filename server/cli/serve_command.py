"""`madeleine serve`, in this process: over HTTP, or on standard input and output."""

from __future__ import annotations

import argparse

from madeleine.server.settings.settings import Settings


async def serve_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until standard input ends, or the process is told to end."""
    if arguments.http:
        from madeleine.server.http.serve import serve_over_http

        await serve_over_http(settings, sse=arguments.sse)
    else:
        from madeleine.server.mcp.stdio import serve_stdio

        await serve_stdio(settings)
