"""What no well-behaved client sends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.e2e.serving import ROOT, command, environment


class Wire:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin
        assert process.stdout
        self.sink: IO[bytes] = process.stdin
        self.source: IO[bytes] = process.stdout
        self.call(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
        )
        self.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    def send(self, line: bytes) -> None:
        self.sink.write(line + b"\n")
        self.sink.flush()

    def answer(self) -> Any:
        return json.loads(self.source.readline())

    def call(self, method: str, params: Any) -> Any:
        self.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        return self.answer()

    def store(self, arguments: bytes) -> Any:
        self.send(
            b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"store","arguments":' + arguments + b"}}"
        )
        return self.answer()


@contextmanager
def wire(data_dir: Path) -> Iterator[Wire]:
    with subprocess.Popen(
        command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Wire(process)
            assert process.stdin
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()


def test_numbers_that_are_none_and_half_characters_are_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    with wire(tmp_path) as client:
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
    with wire(tmp_path) as client:
        client.send(b"this is not JSON")
        assert client.answer()["error"]["code"] == -32700
        client.send(b'{"id":5,"method":"x"}')
        answer = client.answer()
        assert (answer["id"], answer["error"]["code"]) == (5, -32600)
        assert len(client.call("tools/list", {})["result"]["tools"]) == 5


def test_the_server_ends_with_its_input_and_leaves_no_owner_behind(tmp_path: Path) -> None:
    with wire(tmp_path) as client:
        client.store(b'{"text":"The last thing that was said"}')
    assert not (tmp_path / "owner.json").exists()
    with wire(tmp_path) as client:
        found = client.call("tools/call", {"name": "search_memory", "arguments": {"query": "last"}})
    assert len(found["result"]["structuredContent"]["hits"]) == 1
