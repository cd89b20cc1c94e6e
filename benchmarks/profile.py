"""Where a recall and a store spend their time: `python -m benchmarks.profile`.

A store is filled with N made-up memories, or `--data` names a filled one, which is copied. A real MCP server in this
process answers a client in a thread of its own. Methods along the way are measured: milliseconds a call of the loop's
processor time and by the clock, both with what a method calls itself. The clock also counts waiting, and whatever else
the machine does; on a busy one only processor time compares.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import inspect
import json
import shutil
import socket
import tempfile
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from rich.console import Console
from rich.table import Table

from benchmarks.latency import BEING, fill
from benchmarks.made_up_scenes import questions, texts
from madeleine.inference.default_model.engines import BothEncoders
from madeleine.memory.ingest import index_keeper, proposals, store
from madeleine.memory.model import BeingId
from madeleine.memory.recall import gate, match_ranking, recall, selection
from madeleine.server.background.serving import open_memory_with_background_loops
from madeleine.server.mcp.lines import open_mcp_line_transport, write_and_drain
from madeleine.server.mcp.server import Caller, McpRequestHandlers, toolset_from_settings
from madeleine.server.settings.settings import Settings
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.sql.database.sqlite import SqliteDatabase
from madeleine.storage.sql.memories.storing import MemoryRepository

WARM_UP = 30
STAGES: dict[str, tuple[tuple[str, type | types.ModuleType, str], ...]] = {
    "recall": (
        ("tool call", McpRequestHandlers, "call_tool"),
        ("  recall", recall.RecallMemories, "__call__"),
        ("    candidates", EmbeddedQdrantIndex, "candidates"),
        ("      index queries", EmbeddedQdrantIndex, "_run_queries"),
        ("    gate", gate.CandidateMatcher, "__call__"),
        ("    subject of the query", match_ranking, "pool_with_subject_cosines"),
        ("    scores", match_ranking, "score_matches"),
        ("    newer first", match_ranking.MatchRanker, "_put_newer_versions_first"),
        ("    selection", selection.RecallSelector, "select"),
        ("    ledger reads", SqliteDatabase, "rows"),
        ("embedding, in its thread", BothEncoders, "embed"),
    ),
    "store": (
        ("tool call", McpRequestHandlers, "call_tool"),
        ("plan", store.StoreScenes, "_plan_store"),
        ("  told before", store.StoreScenes, "_memory_to_reinforce_or_outdated_one"),
        ("  links", store.StoreScenes, "_new_memory_linked_to_earlier_ones"),
        ("  may supersede", proposals.SupersessionCandidateSearch, "__call__"),
        ("commit", MemoryRepository, "commit_store_batch"),
        ("indexing", EmbeddedQdrantIndex, "upsert"),
        ("ledger reads", SqliteDatabase, "rows"),
        ("work on index marks", index_keeper.IndexKeeper, "index_marked_memories"),
        ("embedding, in its thread", BothEncoders, "embed"),
    ),
}


@dataclass(slots=True)
class StageTime:
    """Seconds."""

    processor: float = 0.0
    clock: float = 0.0


@contextmanager
def timed_methods(stages: Sequence[tuple[str, type | types.ModuleType, str]]) -> Iterator[dict[str, StageTime]]:
    """Measure these methods meanwhile."""
    times = {name: StageTime() for name, _, _ in stages}
    originals = [getattr(owner, method) for _, owner, method in stages]
    try:
        for (name, owner, method), original in zip(stages, originals, strict=True):
            setattr(owner, method, _timed(times[name], original))
        yield times
    finally:
        for (_, owner, method), original in zip(stages, originals, strict=True):
            setattr(owner, method, original)


def _timed(stage: StageTime, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call(*arguments: Any, **named: Any) -> Any:
            return await _timed_steps(stage, function(*arguments, **named))
    else:

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            clock, processor = time.perf_counter(), time.thread_time()
            try:
                return function(*arguments, **named)
            finally:
                stage.processor += time.thread_time() - processor
                stage.clock += time.perf_counter() - clock

    return call


@types.coroutine
def _timed_steps(stage: StageTime, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Between its steps the loop does other work, which is not counted."""
    clock = time.perf_counter()
    step = partial(work.send, None)
    try:
        while True:
            processor = time.thread_time()
            try:
                awaited = step()
            except StopIteration as end:
                return end.value
            finally:
                stage.processor += time.thread_time() - processor
            try:
                step = partial(work.send, (yield awaited))
            except BaseException as error:  # for the coroutine, which may be cancelled
                step = partial(work.throw, error)
    finally:
        stage.clock += time.perf_counter() - clock


def call_server(
    connection: socket.socket, tool: str, arguments: Sequence[dict[str, Any]], ready: Callable[[], object]
) -> None:
    """Call the tool for each of the arguments, one after the other; `ready` is called after those that warm up."""
    with connection, connection.makefile("rwb") as stream:

        def send(**message: Any) -> None:
            stream.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
            stream.flush()

        client = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "p", "version": "1"},
        }
        send(id=0, method="initialize", params=client)
        stream.readline()
        send(method="notifications/initialized")
        for number, given in enumerate(arguments, start=1):
            if number == WARM_UP + 1:
                ready()
            send(id=number, method="tools/call", params={"name": tool, "arguments": given})
            answer = json.loads(stream.readline())
            if "error" in answer or answer["result"].get("isError"):
                raise RuntimeError(f"the server refused: {answer}")


async def profile(data_dir: Path, tool: str, arguments: Sequence[dict[str, Any]]) -> dict[str, StageTime]:
    """The time of each stage, and of all, by call."""
    settings = Settings(data_dir=data_dir, being=BEING, patrol_auto=False, log_level="warning")
    ours, clients = socket.socketpair()
    loop, count = asyncio.get_running_loop(), len(arguments) - WARM_UP
    with timed_methods(STAGES[tool]) as times:
        async with open_memory_with_background_loops(settings) as served:
            use_cases, toolset = served.memory.open_use_cases_if_needed, toolset_from_settings(settings)
            handlers = McpRequestHandlers(toolset, lambda _: Caller(BeingId(BEING)), use_cases)
            reader, writer = await asyncio.open_connection(sock=ours)
            begun: list[tuple[float, float, float]] = []

            def begin() -> None:
                for stage in times.values():
                    stage.processor = stage.clock = 0.0
                begun.append((time.thread_time(), time.process_time(), time.perf_counter()))

            async with open_mcp_line_transport(reader.read, partial(write_and_drain, writer), anyio.Event()) as streams:
                serving = asyncio.create_task(handlers.serve(*streams))
                await asyncio.to_thread(call_server, clients, tool, arguments, lambda: loop.call_soon_threadsafe(begin))
                [(thread, process, clock)] = begun
                seconds = time.perf_counter() - clock
                whole = {
                    "the loop": StageTime(time.thread_time() - thread, seconds),
                    "the process": StageTime(time.process_time() - process, seconds),
                }
                measured = whole | {name: replace(stage) for name, stage in times.items()}
                await asyncio.wait([serving])
            writer.close()
    return {name: StageTime(stage.processor / count, stage.clock / count) for name, stage in measured.items()}


def show(tool: str, stages: dict[str, StageTime], calls: int) -> None:
    table = Table("stage", "processor, ms", "clock, ms", title=f"A {tool}, mean of {calls}")
    for name, stage in stages.items():
        table.add_row(name, f"{1000 * stage.processor:.2f}", f"{1000 * stage.clock:.2f}")
    Console(width=100).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000, help="made-up memories in the store")
    parser.add_argument("--data", type=Path, help="a filled data directory of `benchmarks.latency`, which is copied")
    parser.add_argument("--calls", type=int, default=300, help="measured calls of each tool")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="madeleine-") as folder:
        data_dir = Path(folder) / "data"
        if given.data:
            shutil.copytree(given.data, data_dir)
        else:
            asyncio.run(fill(data_dir, given.memories))
        count = given.calls + WARM_UP
        calls: dict[str, list[dict[str, Any]]] = {
            "recall": [{"query": text} for text in questions(count, seed=2)],
            "store": [{"text": text} for text in texts(count, seed=4)],
        }
        for tool, arguments in calls.items():
            show(tool, asyncio.run(profile(data_dir, tool, arguments)), given.calls)


if __name__ == "__main__":
    main()
