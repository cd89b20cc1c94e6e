"""The import of a large file: `python -m benchmarks.ingest`.

A made-up text (`made_up_pages.py`) is written to a file, and the real command imports it through a real host. The
command and the host are each killed once on the way (SIGKILL), and the command is run again each time. Before and
after, the bare model embeds half of the same chunks each, in this process, in the same batches, without a cache.

Printed are the share of the bare throughput, the resident memory of both processes over time, and whether every part
was stored exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.made_up_pages import pages
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.rules.storing.chunking import split_into_chunks
from madeleine.memory.text.normalization import normalize_unicode_and_whitespace
from madeleine.server.attach.connector import HostUnavailable, exchange_host_handshake_and_disconnect
from madeleine.server.cli.ingest_command import MAX_DOCUMENT_PART_CHARS, DocumentPartReader

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
SAMPLE_SECONDS = 0.5
KILLS = ((0.3, "the command"), (0.6, "the host"))
FIELDS = ("VmRSS", "RssAnon")
WARM_UP_SHARE = 0.1
"""Share of the parts of a run after which a process has loaded everything."""


def write(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        written = 0
        for page in pages(seed=11):
            written += file.write(page)
            if written >= size:
                return


async def chunks_of(path: Path, embedder: DenseEmbedder) -> list[list[str]]:
    """The chunks of each part, as they are embedded."""
    with path.open("rb") as file:
        texts = [
            part.text
            for part in DocumentPartReader(file, str(path), about="", most_chars=MAX_DOCUMENT_PART_CHARS).parts()
        ]
    return [
        [
            chunk.strip()
            for chunk in await split_into_chunks(normalize_unicode_and_whitespace(text), embedder.count_tokens)
        ]
        for text in texts
    ]


async def bare(embedder: DenseEmbedder, parts: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Embed all chunks. Returns elapsed seconds and processor seconds."""
    began, used = time.perf_counter(), time.process_time()
    for part in parts:
        await embedder.embed(part)
    return time.perf_counter() - began, time.process_time() - used


@dataclass
class ProcessSamples:
    """Resident memory of a process, MB: its own, and mapped pages of files, which the system reclaims when needed."""

    name: str
    samples: list[tuple[int, float, float]] = field(default_factory=list)
    """(parts done, MB in total, MB of its own)"""
    survives: bool = False
    """Whether the process continues in the next run."""
    cpu_seconds: float = 0.0
    """Processor time since its start."""

    def sample(self, pid: int, done: int) -> None:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
        except OSError:
            return
        kilobytes = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(FIELDS)}
        if len(kilobytes) < len(FIELDS):
            return
        total, own = (int(kilobytes[name]) / 1024 for name in FIELDS)
        self.samples.append((done, total, own))
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        self.cpu_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def figures(self) -> dict[str, Any]:
        first, last = self.samples[0][0], self.samples[-1][0]
        warm = next(sample for sample in self.samples if sample[0] >= first + WARM_UP_SHARE * (last - first))
        return {
            "process": self.name,
            "parts": last - first,
            "own after warm-up": round(warm[2], 1),
            "own at the end": round(self.samples[-1][2], 1),
            "own maximum": round(max(own for done, _, own in self.samples if done >= warm[0]), 1),
            "mapped after warm-up": round(warm[1] - warm[2], 1),
            "mapped at the end": round(self.samples[-1][1] - self.samples[-1][2], 1),
            "CPU s": round(self.cpu_seconds, 1),
        }


class ImportRun:
    def __init__(self, folder: Path, file: Path, total: int) -> None:
        self.data = folder / "data"
        self.file = file
        self.total = total
        self.processes: list[ProcessSamples] = []
        self.seconds = 0.0
        self.environment = {
            **os.environ, "MADELEINE_DATA_DIR": str(self.data), "MADELEINE_PATROL_AUTO": "false",
            "MADELEINE_LOG_LEVEL": "warning",
        }  # fmt: skip

    def done(self) -> int:
        if not (self.data / "memory.db").exists():
            return 0
        with closing(sqlite3.connect(self.data / "memory.db", timeout=10)) as connection:
            try:
                return int(connection.execute("SELECT count(*) FROM ingested").fetchone()[0])
            except sqlite3.OperationalError:  # before the tables exist
                return 0

    def host_pid(self) -> int:
        """The process id of the host, 0 if there is none."""
        try:
            return int(exchange_host_handshake_and_disconnect(self.data, "status")["pid"])
        except HostUnavailable:
            return 0

    def run_import(self, until: float, kill: str) -> Mapping[str, Any] | None:
        """Import up to the share `until`, then kill a process; above 1, to the end. Returns the command's output."""
        began = time.perf_counter()
        command = subprocess.Popen(
            [sys.executable, "-m", "madeleine", "ingest", str(self.file), "--json"],
            cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
        processes = ProcessSamples("the command"), ProcessSamples("the host")
        host = 0
        while command.poll() is None:
            time.sleep(SAMPLE_SECONDS)
            done = self.done()
            if not host and done:
                host = self.host_pid()
            if host:
                processes[0].sample(command.pid, done)
                processes[1].sample(host, done)
            if done >= until * self.total:
                os.kill(command.pid if kill == "the command" else host, signal.SIGKILL)
                break
        output, _ = command.communicate()
        self.seconds += time.perf_counter() - began
        processes[1].survives = command.returncode != 0 and kill == "the command"
        self.processes += [process for process in processes if len(process.samples) > 1]
        return json.loads(output)[0] if command.returncode == 0 else None

    def stop(self) -> None:
        subprocess.run([sys.executable, "-m", "madeleine", "stop"], cwd=ROOT, env=self.environment, check=True)


def stored_counts(database: Path) -> dict[str, int]:
    """What the ledger holds, beside what the command reported."""
    with closing(sqlite3.connect(database)) as connection:
        keys = Counter(key for (key,) in connection.execute("SELECT key FROM memories"))
        [(reinforced,)] = connection.execute("SELECT count(*) FROM reinforcements")
        [(parts,)] = connection.execute("SELECT count(*) FROM ingested")
        outcomes = [json.loads(outcome) for (outcome,) in connection.execute("SELECT outcome FROM ingested")]
    reported = Counter(chunk["status"] for outcome in outcomes for chunk in outcome["chunks"])
    return {
        "parts done": parts,
        "memories": len(keys),
        "duplicate keys": sum(count - 1 for count in keys.values()),
        "reported stored": reported["stored"],
        "reinforced": reinforced,
        "reported reinforced": reported["reinforced"],
        "dropped": reported["dropped"],
    }


async def measure(megabytes: float, *, kills: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="madeleine-") as name:
        folder = Path(name)
        file = folder / "pages.md"
        write(file, int(megabytes * 1_000_000))
        embedder = DenseEmbedder("sentence-transformers/all-MiniLM-L6-v2", folder / "models")
        await embedder.warm_up()
        parts = await chunks_of(file, embedder)
        chunks = sum(map(len, parts))
        print(f"{file.stat().st_size / 1e6:.1f} MB, {len(parts)} parts, {chunks:,} chunks", flush=True)
        before = await bare(embedder, parts[::2])
        run = ImportRun(folder, file, len(parts))
        for share, kill in KILLS if kills else ():
            assert run.run_import(share, kill) is None
            print(f"{kill} was killed with {run.done()} of {len(parts)} parts done", flush=True)
        report = run.run_import(2.0, "")
        assert report is not None, "the import failed"
        run.stop()
        after = await bare(embedder, parts[1::2])
        await embedder.close()
        state = stored_counts(run.data / "memory.db")
        database = (run.data / "memory.db").stat().st_size
    imported = chunks / run.seconds
    embedded = chunks / (before[0] + after[0])
    hosts = sum(process.cpu_seconds for process in run.processes if process.name == "the host" and not process.survives)
    return {
        "MB": megabytes,
        "chunks": chunks,
        "chunks a second": round(imported, 1),
        "bare embedding, chunks a second": round(embedded, 1),
        "share": round(imported / embedded, 3),
        "seconds": round(run.seconds, 1),
        "bare seconds": [round(before[0], 1), round(after[0], 1)],
        "CPU seconds of the hosts": round(hosts, 1),
        "CPU seconds bare": round(before[1] + after[1], 1),
        "kills": len(KILLS) if kills else 0,
        "last run": dict(report) | {"file": "pages.md"},
        "memory": [process.figures() for process in run.processes],
        "state": state,
        "ledger MB": round(database / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--no-kills", action="store_true", help="import without interruptions")
    parser.add_argument("--record", action="store_true", help=f"write the figures to {RESULTS.name}/")
    arguments = parser.parse_args()
    figures = asyncio.run(measure(arguments.megabytes, kills=not arguments.no_kills))
    table = Table(title=f"{figures['chunks a second']} chunks a second, {figures['share']:.0%} of the bare embedding")
    for heading in figures["memory"][0]:
        table.add_column(heading)
    for row in figures["memory"]:
        table.add_row(*map(str, row.values()))
    Console(width=100).print(table)
    print(json.dumps(figures["state"]))
    if arguments.record:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "ingest.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
