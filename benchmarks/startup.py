"""From the start of the command to the list of tools, by the real client: `python -m benchmarks.startup`.

Twice: with a host that runs already, and without one, which is then started. Seconds, medians. Beside them, in the same
minute, the time that the interpreter alone takes to start and end.
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


async def listed(environment: dict[str, str]) -> float:
    """Seconds."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "madeleine"], env=environment, cwd=ROOT)
    started = time.perf_counter()
    async with Client(stdio_client(server)) as client:
        assert (await client.list_tools()).tools
        return time.perf_counter() - started


def stop(environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, "-m", "madeleine", "stop"], env=environment, cwd=ROOT, check=True, capture_output=True
    )


def bare() -> float:
    """Seconds that the interpreter takes to do nothing."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - started


def run(rounds: int) -> dict[str, float]:
    found: dict[str, list[float]] = {"interpreter alone": [], "without a host": [], "with a host": []}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        environment = {"MADELEINE_DATA_DIR": str(Path(folder) / "data")}
        try:
            for _ in range(rounds):
                stop(environment)
                found["interpreter alone"].append(bare())
                found["without a host"].append(asyncio.run(listed(environment)))
                found["with a host"].append(asyncio.run(listed(environment)))
        finally:
            stop(environment)
    return {name: round(median(values), 3) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    found = run(arguments.rounds)
    table = Table("", "seconds", title=f"Start to tools/list, medians of {arguments.rounds}")
    for name, seconds in found.items():
        table.add_row(name, f"{seconds:.3f}")
    Console(width=100).print(table)
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "startup.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
