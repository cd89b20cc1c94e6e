"""What no well-behaved client sends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import EVERY_TOOL, ROOT, RawConnection, command, environment, raw_connection
from tests.waiting import DEADLOCK_S

STORE = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":'
    b'{"name":"store","arguments":{"text":"Grandmother cooked lasagne on Sunday"}}}'
)


@pytest.mark.slow
def test_numbers_that_are_none_and_half_characters_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with raw_connection(tmp_path) as client:
        for arguments, named in (
            (b'{"text":"x","importance":NaN}', "importance"),
            (b'{"text":"x","importance":Infinity}', "importance"),
            (b'{"text":"x","importance":1e999}', "importance"),
            (rb'{"text":"\ud800 half a character"}', "surrogate"),
            (rb'{"text":"x","themes":["\udfff"]}', "surrogate"),
            (rb'{"text":"x","\ud83d":1}', "arguments"),
            (rb'{"text":"a\u0000b"}', "NUL"),
        ):
            answer = client.store(arguments)
            assert answer["id"] == 7
            assert answer["result"]["isError"] is True
            assert named in answer["result"]["content"][0]["text"]
        found = client.call("tools/call", {"name": "search_memory", "arguments": {"query": "x"}})
    assert found["result"]["structuredContent"]["hits"] == []


def test_a_line_that_is_no_message_is_answered_and_the_next_one_served(tmp_path: Path) -> None:
    with raw_connection(tmp_path) as client:
        client.send(b"this is not JSON")
        assert client.answer()["error"]["code"] == -32700
        client.send(b'{"id":5,"method":"x"}')
        answer = client.answer()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)
        assert len(client.call("tools/list", {})["result"]["tools"]) == len(EVERY_TOOL)


@pytest.mark.slow
def test_the_server_ends_with_its_input_and_leaves_no_owner_behind(tmp_path: Path) -> None:
    with raw_connection(tmp_path) as client:
        client.store(b'{"text":"The last thing that was said"}')
    assert not (tmp_path / "owner.json").exists()
    with raw_connection(tmp_path) as client:
        found = client.call("tools/call", {"name": "search_memory", "arguments": {"query": "last"}})
    assert len(found["result"]["structuredContent"]["hits"]) == 1


# --- the end ----------------------------------------------------------------------------------------------------


@contextmanager
def serving(data_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command(),
        env=environment(data_dir),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def in_ledger(data_dir: Path, column: str) -> list[Any]:
    with closing(sqlite3.connect(data_dir / "memory.db")) as ledger:
        return [value for (value,) in ledger.execute(f"SELECT {column} FROM memories")]


@pytest.mark.slow
def test_what_was_asked_before_the_end_of_the_input_is_done_and_answered(tmp_path: Path) -> None:
    """`printf … | madeleine`: the calls under way were cancelled."""
    lines = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
        b'"clientInfo":{"name":"raw","version":"1"}}}',
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        STORE,
    )
    with serving(tmp_path) as process:
        output, _ = process.communicate(b"\n".join(lines) + b"\n", timeout=DEADLOCK_S)
        assert process.returncode == 0
    first, second = map(json.loads, output.splitlines())
    assert (first["id"], second["id"]) == (1, 7)
    stored = second["result"]["structuredContent"]
    assert stored["status"] == "stored"
    assert [f"m{number}" for number in in_ledger(tmp_path, "number")] == [stored["id"]]


@pytest.mark.slow
def test_a_client_that_stops_reading_ends_the_server_and_loses_nothing(tmp_path: Path) -> None:
    """It ended with a traceback and exit code 1."""
    with serving(tmp_path) as process:
        client = RawConnection(process)
        client.source.close()
        client.send(STORE)
        assert process.wait(timeout=DEADLOCK_S) == 0
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()
    assert len(in_ledger(tmp_path, "id")) == 1
    assert not (tmp_path / "owner.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="its event loop takes no signals")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_writes_what_it_knows(tmp_path: Path, told: signal.Signals) -> None:
    """What was recalled shortly before is counted, the index is flushed."""
    with serving(tmp_path) as process:
        client = RawConnection(process)
        client.send(STORE)
        client.answer()
        asked = {"name": "recall", "arguments": {"query": "What did grandmother cook?"}}
        found = client.call("tools/call", asked)["result"]["structuredContent"]
        assert found["fragments"]
        process.send_signal(told)
        assert process.wait(timeout=DEADLOCK_S) == 0
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()
    assert in_ledger(tmp_path, "reactivation_count") == [1]
    assert not (tmp_path / "owner.json").exists()
    assert not (tmp_path / "index" / "flushing").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="its files have no modes")
def test_what_is_remembered_is_for_nobody_elses_eyes(tmp_path: Path) -> None:
    """The ledger's words are in the index too."""
    with raw_connection(tmp_path) as client:
        client.send(STORE)
        client.answer()
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"index", "memory.db"} <= modes.keys()
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
