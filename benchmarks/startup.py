"""From the start of the command to the list of tools: `python -m benchmarks.startup`.

Measured by the real client, with a running host and without one, when the command starts it. Seconds, medians. Beside
them, in the same minute, the time of the interpreter alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent


async def seconds_to_tools(environment: dict[str, str]) -> float:
    server = StdioServerParameters(command=sys.executable, args=["-m", "madeleine"], env=environment, cwd=ROOT)
    started = time.perf_counter()
    async with Client(stdio_client(server)) as client:
        assert (await client.list_tools()).tools
        return time.perf_counter() - started


def stop(environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "madeleine", "stop"], env=environment, cwd=ROOT, check=True, capture_output=True
    )


def interpreter_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def run(rounds: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {"interpreter alone": [], "without a host": [], "with a host": []}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        environment = {"MADELEINE_DATA_DIR": str(Path(folder) / "data")}
        try:
            for _ in range(rounds):
                stop(environment)
                seconds["interpreter alone"].append(interpreter_seconds())
                seconds["without a host"].append(asyncio.run(seconds_to_tools(environment)))
                seconds["with a host"].append(asyncio.run(seconds_to_tools(environment)))
        finally:
            stop(environment)
    return {name: round(median(values), 3) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    medians = run(arguments.rounds)
    table = Table("", "seconds", title=f"Start to tools/list, medians of {arguments.rounds}")
    for name, seconds in medians.items():
        table.add_row(name, f"{seconds:.3f}")
    Console(width=100).print(table)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "startup.json").write_text(json.dumps(medians, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
