"""`madeleine ui`: the page, served by the host as long as the command runs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import webbrowser
from contextlib import suppress

from madeleine.server.attach.client import ask_host_to_serve_web_ui
from madeleine.server.settings.environment import read_environment_variables, setting_values_from_variables
from madeleine.server.settings.settings import Settings


async def ui_command(settings: Settings, arguments: argparse.Namespace) -> None:
    """Until SIGINT or SIGTERM, or the host ends. Raises `HostRefused`, `CannotListen`."""
    from madeleine.server.mcp.server import call_on_stop_signals

    serving = asyncio.current_task()
    assert serving is not None

    def end() -> None:
        serving.cancel()

    variables = read_environment_variables()
    client_settings = {
        name: value for name, value in setting_values_from_variables(variables).items() if name != "data_dir"
    }
    with call_on_stop_signals(end), suppress(asyncio.CancelledError):
        async with ask_host_to_serve_web_ui(settings.data_dir, variables, client_settings, port=arguments.port) as (
            url,
            host_ends,
        ):
            print(url, flush=True)
            print(f"The link opens the memory of {settings.being!r} once. Ctrl-C ends the page.", file=sys.stderr)
            if not arguments.no_browser:
                await asyncio.to_thread(webbrowser.open, url)
            await host_ends()
