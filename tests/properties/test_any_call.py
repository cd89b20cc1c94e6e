"""Whatever a client calls: it gets an answer in words, no traceback, and the server goes on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.tools.toolset import make_all_tools, to_mcp_tool
from tests.e2e.serving import ROOT, command, environment
from tests.waiting import DEADLOCK_S

AT_ONCE = 50
"""Calls an example."""
FAST, SLOW = 150, 5_000
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    tool.name: tool.input_schema for tool in (to_mcp_tool(one, 32_000) for one in make_all_tools(Random(1)))
}
WORDS = ("harbour", "umbrella", "2025-03-01", "港", "Ann", "", " ", "\x00", "\ud800", "'; --", "</recall>", "%", "_")

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**60, max_value=2**70)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(st.characters(codec=None), max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def fitting(schema: Mapping[str, Any], root: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the schema describes, more or less: bounds are often kept, patterns are not looked at."""
    if "$ref" in schema:
        return fitting(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if "anyOf" in schema:
        return st.one_of([fitting(one, root) for one in schema["anyOf"]])
    match schema.get("type"):
        case "string":
            return st.sampled_from(WORDS) | st.text(max_size=40)
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 200))
        case "number":
            return st.floats(schema.get("minimum", -1), schema.get("maximum", 2))
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            return st.lists(fitting(schema.get("items", {}), root), max_size=3)
        case "object":
            named = schema.get("properties", {})
            needed = {name: fitting(named.get(name, {}), root) for name in schema.get("required", ())}
            others = {name: fitting(one, root) for name, one in named.items() if name not in needed}
            return st.fixed_dictionaries(needed, optional=others)
        case _:
            return anything


def spoilt(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return arguments | {name: value}


def calls() -> st.SearchStrategy[tuple[Any, Any]]:
    """(tool, arguments): as the schema says, or with one thing wrong, or anything at all."""
    of_a_tool = []
    for tool, schema in SCHEMAS.items():
        good = fitting(schema, schema)
        name = st.sampled_from(sorted(schema["properties"])) | st.text(max_size=10)
        of_a_tool.append(st.tuples(st.just(tool), good | st.builds(spoilt, good, name, anything) | anything))
    return st.one_of(*of_a_tool, st.tuples(st.text(max_size=20) | anything, anything))


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    asked: int = 0
    kinds: set[str] = field(default_factory=set)

    def call(self, tool: Any, arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        assert self.process.stdout
        answer = json.loads(self.process.stdout.readline())
        assert answer["id"] == self.asked
        assert isinstance(answer, dict)
        return answer

    def send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | dict(message)).encode() + b"\n")
        self.process.stdin.flush()


@contextmanager
def served(data_dir: Path) -> Iterator[Server]:
    log = data_dir.with_name("log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command(), env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        ) as process,
    ):
        try:
            server = Server(process)
            info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
            server.request("initialize", info)
            server.send({"method": "notifications/initialized"})
            yield server
            assert process.stdin
            process.stdin.close()
            assert process.wait(timeout=DEADLOCK_S) == 0
        finally:
            process.kill()
    said = log.read_text(encoding="utf-8")
    assert "Traceback" not in said, said


@pytest.mark.parametrize("count", [FAST, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_any_call_is_answered_in_words_and_the_server_goes_on(tmp_path: Path, count: int) -> None:
    with served(tmp_path / "data") as server:

        @settings(max_examples=count // AT_ONCE, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(st.lists(calls(), min_size=AT_ONCE, max_size=AT_ONCE))
        def call_all(some: list[tuple[Any, Any]]) -> None:
            for tool, arguments in some:
                answer = server.call(tool, arguments)
                told = json.dumps(answer, ensure_ascii=False)
                assert "Traceback" not in told, told
                assert 'File "' not in told, told
                assert "failed inside Madeleine" not in told, told
                assert ("result" in answer) != ("error" in answer)
                server.kinds.add("error" if "error" in answer else str(bool(answer["result"].get("isError"))))

        call_all()
        assert server.asked >= count
        assert server.kinds == {"error", "True", "False"}, "some were refused, some were not tools, some were done"
        stored = server.call("store", {"text": "After all this somebody found the umbrella"})
        assert not stored["result"].get("isError"), stored
        found = server.call("recall", {"query": "Who found the umbrella after all this?"})
        assert len(found["result"]["structuredContent"]["sources"]) >= 1
