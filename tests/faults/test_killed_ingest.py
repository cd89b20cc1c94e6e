"""SIGKILL while a file is ingested: the second run continues where the first one stopped, storing nothing twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.made_up_sentences import sentences
from tests.e2e.hosting import hosts_of, madeleine, no_host_left
from tests.e2e.serving import COMMAND, ROOT, environment
from tests.waiting import DEADLOCK_S


def a_text(paragraphs: int) -> str:
    told = sentences(4)
    return "\n\n".join(" ".join(next(told).text() for _ in range(8)) for _ in range(paragraphs))


def outcomes(data: Path) -> int:
    """How many parts are done."""
    if not (data / "memory.db").exists():
        return 0
    with closing(sqlite3.connect(data / "memory.db")) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM ingested").fetchone()[0])
        except sqlite3.OperationalError:  # not migrated yet
            return 0


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["the command", "the host"])
def test_a_second_run_goes_on_where_the_first_was_killed(tmp_path: Path, killed: str) -> None:
    data, file = tmp_path / "data", tmp_path / "long.txt"
    file.write_text(a_text(24))
    small = {"MADELEINE_MAX_TEXT_CHARS": "1500"}
    with no_host_left(data):
        first = subprocess.Popen(
            [*COMMAND, "ingest", str(file)], env=environment(data, **small), cwd=ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        until = time.monotonic() + DEADLOCK_S
        while outcomes(data) < 3:
            assert first.poll() is None
            assert time.monotonic() < until
        if killed == "the command":
            first.kill()
        else:
            for pid in hosts_of(data):
                os.kill(pid, signal.SIGKILL)
        _, told = first.communicate(timeout=DEADLOCK_S)
        if killed == "the host":
            assert first.returncode == 1
            assert b"Run the same command again: it continues where it stopped" in told
        done = outcomes(data)
        second = madeleine(data, "ingest", str(file), "--json", **small)
        assert second.returncode == 0, second.stderr
        [tally] = json.loads(second.stdout)
        third = json.loads(madeleine(data, "ingest", str(file), "--json", **small).stdout)[0]
    assert done < tally["parts"], "it was killed in the middle"
    assert tally["already"] > 0
    assert (third["stored"], third["reinforced"], third["dropped"]) == (0, 0, 0)
    with closing(sqlite3.connect(data / "memory.db")) as connection:
        texts = Counter(text for (text,) in connection.execute("SELECT action FROM memories"))
        [(again,)] = connection.execute("SELECT count(*) FROM reinforcements")
        kept = [json.loads(outcome) for (outcome,) in connection.execute("SELECT outcome FROM ingested")]
    assert set(texts.values()) == {1}
    assert again == 0
    chunks = Counter(chunk["status"] for one in kept for chunk in one["chunks"])
    assert chunks["stored"] == len(texts)
    assert third["already"] == sum(chunks.values())
