"""Imports from other programs that are killed, and those that are large."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.made_up_sentences import sentences
from tests import other_programs as programs
from tests.e2e.hosting import hosts_of, madeleine, no_host_left
from tests.e2e.serving import COMMAND, ROOT, environment
from tests.waiting import DEADLOCK_S

LARGE_MEGABYTES = 200
MAX_GROWTH_BYTES = 100_000_000
"""Of the command's resident memory, over a small import; 1 GB takes no more (docs/importing.md)."""
MEASURED_IMPORT = (
    "import resource, sys; from madeleine.server.cli.main import main; code = main(sys.argv[1:]);"
    "print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024); sys.exit(code)"
)


def count(data: Path, table: str) -> int:
    if not (data / "memory.db").exists():
        return 0
    with closing(sqlite3.connect(data / "memory.db")) as connection:
        try:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        except sqlite3.OperationalError:  # not migrated yet, or busy
            return 0


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["the command", "the host"])
def test_an_import_that_was_killed_is_continued_and_doubles_nothing(tmp_path: Path, killed: str) -> None:
    data, notes = tmp_path / "data", tmp_path / "notes"
    told = sentences(4)
    facts = list(dict.fromkeys(next(told).text() for _ in range(700)))
    for number in range(0, len(facts), 50):
        lines = "".join(f"- {fact} It is number {number + place}.\n" for place, fact in enumerate(facts[number:][:50]))
        programs.write(notes / f"{number:05}.md", f"# Facts\n\n{lines}{'x' * 700}\n")
    spoken = programs.many_transcripts(tmp_path / "notes/projects", 8, session_bytes=1_000_000)
    with no_host_left(data):
        first = subprocess.Popen(
            [*COMMAND, "import", str(notes)], env=environment(data), cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        until = time.monotonic() + DEADLOCK_S
        while count(data, "memories") < 300:
            assert first.poll() is None, first.communicate()
            assert time.monotonic() < until
        if killed == "the command":
            first.kill()
        else:
            for pid in hosts_of(data):
                os.kill(pid, signal.SIGKILL)
        first.communicate(timeout=DEADLOCK_S)
        went_on = killed == "the host" and first.returncode == 0  # killed between two requests: the next finds another
        assert went_on or first.returncode != 0
        before = count(data, "memories")
        again = madeleine(data, "import", str(notes), "--json")
        assert again.returncode == (3 if went_on else 0), again.stderr
        third = madeleine(data, "import", str(notes), "--json")
        assert (third.returncode, json.loads(third.stdout)["new"]) == (3, 0)
        [done] = json.loads(madeleine(data, "import", "--list", "--json").stdout)
        whole = count(data, "memories") + count(data, "reinforcements")
        assert before < whole or went_on
        assert whole == done["counts"]["memory"] + done["counts"].get("reinforcement", 0)
        assert count(data, "messages") == spoken == done["counts"]["message"]
        with closing(sqlite3.connect(data / "memory.db")) as connection:
            [(doubled,)] = connection.execute("SELECT count(*) - count(DISTINCT action) FROM memories")
        assert doubled == 0
        undone = madeleine(data, "import", "--undo", done["id"])
        assert undone.returncode == 0, undone.stderr
        assert [count(data, table) for table in ("memories", "messages", "sessions")] == [0, 0, 0]


def peak_of_import(data: Path, path: Path) -> tuple[int, int]:
    """(resident bytes at most, messages)."""
    command = [sys.executable, "-c", MEASURED_IMPORT, "import", str(path), "--json"]
    ended = subprocess.run(
        command, env=environment(data), cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
    )
    assert ended.returncode == 0, ended.stderr
    report, _, peak = ended.stdout.rpartition("PEAK")
    return int(peak), json.loads(report)["formats"]["Claude Code"]["messages"]


@pytest.mark.slow
def test_a_large_import_takes_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    programs.many_transcripts(small, 1)
    spoken = programs.many_transcripts(large, LARGE_MEGABYTES, session_bytes=LARGE_MEGABYTES * 500_000)
    least, _ = peak_of_import(tmp_path / "a", small)
    most, messages = peak_of_import(tmp_path / "b", large)
    assert messages == spoken
    assert most - least < MAX_GROWTH_BYTES
