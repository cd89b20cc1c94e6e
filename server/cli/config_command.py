"""`madeleine config`: the configuration that an MCP client needs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from madeleine.server.cli.output import print_json
from madeleine.server.settings.settings import Settings


async def config_command(settings: Settings, arguments: argparse.Namespace) -> None:
    script = Path(sys.executable).with_name("madeleine")
    module = {"command": sys.executable, "args": ["-P", "-m", "madeleine"]}
    server = {"command": str(script)} if script.exists() else module
    print_json({"mcpServers": {"madeleine": server | {"env": {"MADELEINE_BEING": settings.being}}}})
