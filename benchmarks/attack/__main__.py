"""What an attack on the HTTP server costs others: `python -m benchmarks.attack`.

A real server, under `ulimit -n 1024`. One being recalls at rest, then under each attack, then under all at once;
another being's token, or none, attacks. Beside it `/health` and a recall as of a stdio client.
Milliseconds; "failed" counts calls without an answer within ten seconds, or with a refusal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from benchmarks.attack.attackers import ATTACKS, VERSION, tool_call
from benchmarks.made_up_scenes import questions, texts
from madeleine.memory.errors import MadeleineError
from madeleine.server.attach.client import open_host_client

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
OPEN_FILES = 1_024
MEMORIES = 50
CALL_SECONDS = 10.0
BUILD_UP_SECONDS = 4.0
"""Between the start of an attack and the first call that is measured."""
WARM_UP_CALLS = 10
MAX_RATIO = 5.0
VICTIM, ATTACKER = "bo", "eve"


@dataclass
class Timing:
    milliseconds: list[float] = field(default_factory=list)
    failed: int = 0

    async def of(self, call: Callable[[], Awaitable[bool]]) -> None:
        started = time.perf_counter()
        answered = False
        with suppress(httpx.HTTPError, OSError, TimeoutError, MadeleineError):
            async with asyncio.timeout(CALL_SECONDS):
                answered = await call()
        self.milliseconds.append((time.perf_counter() - started) * 1_000)
        self.failed += not answered

    @property
    def p95(self) -> float:
        return quantiles(self.milliseconds, n=20)[18]


@contextmanager
def hanging_issuer() -> Iterator[str]:
    """An issuer that accepts connections and never answers. Yields its URL."""
    end = Event()
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        listener.settimeout(0.2)

        def serve() -> None:
            held = []
            while not end.is_set():
                with suppress(TimeoutError):
                    held.append(listener.accept()[0])
            for connection in held:
                connection.close()

        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            end.set()
            thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@dataclass(frozen=True)
class Server:
    data_dir: Path
    port: int
    issuer: str

    @property
    def variables(self) -> dict[str, str]:
        chosen = {"DATA_DIR": self.data_dir, "OAUTH_ISSUER": self.issuer, "HTTP_PORT": self.port, "BEING": VICTIM}
        return dict(os.environ) | {f"MADELEINE_{name}": str(value) for name, value in chosen.items()}

    def new_token(self, being: str, *options: str) -> str:
        command = [sys.executable, "-m", "madeleine", "token", "create", "--being", being, *options]
        return subprocess.run(
            command, env=self.variables, cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    @contextmanager
    def running(self) -> Iterator[None]:
        log = (self.data_dir.parent / "server.log").open("w+", encoding="utf-8")
        limited = f'ulimit -n {OPEN_FILES} && exec "$@"'
        command = ["sh", "-c", limited, "sh", sys.executable, "-m", "madeleine", "serve", "--http"]
        with log, subprocess.Popen(command, env=self.variables, cwd=ROOT, stderr=log) as process:
            try:
                while process.poll() is None and not re.search("listens on", Path(log.name).read_text("utf-8")):
                    time.sleep(0.05)
                yield
            finally:
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=30)
                process.kill()

    @contextmanager
    def attacked(self, attacks: list[str], token: str) -> Iterator[None]:
        words = [*attacks, "--port", str(self.port), "--token", token, "--issuer", self.issuer]
        command = [sys.executable, "-m", "benchmarks.attack.attackers", *words]
        with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
            try:
                yield
                if process.poll() is not None:
                    raise RuntimeError(f"the attack ended by itself: {attacks}")
            finally:
                process.kill()


@dataclass(frozen=True)
class Victim:
    server: Server
    token: str

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Each call on a connection of its own: whoever is connected already has passed the first hurdle."""
        limits = httpx.Limits(max_keepalive_connections=0)
        url = f"http://127.0.0.1:{self.server.port}"
        async with httpx.AsyncClient(base_url=url, timeout=CALL_SECONDS, limits=limits) as client:
            yield client

    async def call(self, client: httpx.AsyncClient, tool: str, arguments: dict[str, Any]) -> bool:
        headers = {
            "authorization": f"Bearer {self.token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": tool,
        }
        answer = await client.post("/mcp", content=tool_call(tool, json.dumps(arguments)), headers=headers)
        return answer.status_code == 200 and not answer.json()["result"].get("isError")

    async def store(self, count: int) -> None:
        async with self.client() as client:
            for text in texts(count, seed=1):
                assert await self.call(client, "store", {"text": text})

    async def recall_as_stdio_client(self, query: str) -> bool:
        data_dir, variables = self.server.data_dir, self.server.variables
        async with open_host_client(data_dir, variables, {"being": VICTIM}, "benchmark") as client:
            await client("recall", {"query": query})
        return True

    async def measure(self, calls: int) -> dict[str, Timing]:
        async with self.client() as client:
            calls_of_kind: dict[str, Callable[[str], Awaitable[bool]]] = {
                "recall": lambda query: self.call(client, "recall", {"query": query}),
                "/health": lambda _: _is_healthy(client),
                "stdio recall": self.recall_as_stdio_client,
            }
            timings = {kind: Timing() for kind in calls_of_kind}
            for query in questions(calls, seed=time.monotonic_ns() % 1_000_000):
                for kind, call in calls_of_kind.items():
                    await timings[kind].of(partial(call, query))
        return timings


async def _is_healthy(client: httpx.AsyncClient) -> bool:
    return (await client.get("/health")).status_code == 200


def run(plans: dict[str, list[str]], calls: int) -> dict[str, dict[str, Timing]]:
    """The timings of each kind of call, by what goes on meanwhile; `plans`: the attacks of each name, none at rest."""
    found: dict[str, dict[str, Timing]] = {}
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder, hanging_issuer() as issuer:
        server = Server(Path(folder) / "data", free_port(), issuer)
        attacker = server.new_token(ATTACKER, "--read-only")
        victim = Victim(server, server.new_token(VICTIM))
        with server.running():
            asyncio.run(victim.store(MEMORIES))
        for name, attacks in plans.items():
            with server.running():
                asyncio.run(victim.measure(WARM_UP_CALLS))
                with server.attacked(attacks, attacker) if attacks else nullcontext():
                    time.sleep(BUILD_UP_SECONDS if attacks else 0)
                    found[name] = asyncio.run(victim.measure(calls))
            logged = (Path(folder) / "server.log").stat().st_size
            recall = found[name]["recall"]
            print(f"{name}: {recall.p95:.0f} ms, {recall.failed} failed, {logged:,} bytes of log", file=sys.stderr)
    return found


def show(found: dict[str, dict[str, Timing]]) -> None:
    """Print p95 and failures, beside the p95 at rest."""
    table = Table("meanwhile", title="p95 in ms (times that at rest), failed calls")
    for kind in found["at rest"]:
        table.add_column(kind, justify="right")
    for name, timings in found.items():
        cells = []
        for kind, timing in timings.items():
            ratio = timing.p95 / found["at rest"][kind].p95
            failed = f", {timing.failed} failed" if timing.failed else ""
            cells.append(f"{timing.p95:.0f} ({ratio:.1f}×){failed}")
        table.add_row(name, *cells)
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", nargs="+", choices=ATTACKS, default=list(ATTACKS))
    parser.add_argument("--calls", type=int, default=60, help="of each kind, under each attack")
    parser.add_argument("--together", action="store_true", help="all at once only, without each alone")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    alone = {} if arguments.together else {name: [name] for name in arguments.attacks}
    found = run({"at rest": [], **alone, "all at once": arguments.attacks}, arguments.calls)
    show(found)
    if arguments.record:
        figures = {
            name: {kind: {"p95 ms": round(timing.p95, 1), "failed": timing.failed} for kind, timing in timings.items()}
            for name, timings in found.items()
        }
        (RESULTS / "attack.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    recall = found["all at once"]["recall"]
    if recall.failed or recall.p95 > MAX_RATIO * found["at rest"]["recall"].p95:
        sys.exit(f"A recall by another being takes more than {MAX_RATIO:g} times as long as at rest, or fails.")


if __name__ == "__main__":
    main()
