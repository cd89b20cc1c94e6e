"""A person moves in: what other programs keep on the machine is found, shown, imported, recalled, and taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import other_programs as programs
from tests.e2e.hosting import asking, madeleine, no_host_left


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    with no_host_left(tmp_path / "data"):
        yield tmp_path / "data"


@pytest.mark.slow
def test_what_is_on_the_machine_is_shown_imported_recalled_and_taken_back(data: Path, tmp_path: Path) -> None:
    home = programs.whole_home(tmp_path / "home")
    here = {"HOME": str(home), "XDG_DATA_HOME": "", "MEMORY_FILE_PATH": ""}
    shown = madeleine(data, "move-in", "--dry-run", **here)
    assert shown.returncode == 0, shown.stderr
    products = {line.split(",")[0].removeprefix("Found: ") for line in shown.stdout.splitlines() if "Found:" in line}
    assert products == {
        "Claude Code", "Codex", "Gemini CLI", "Cursor", "MCP knowledge graph", "mem0", "basic-memory", "claude-mem",
        "mcp-memory-service",
    }  # fmt: skip
    assert "for example: Ada Lovelace: Prefers tea over coffee" in shown.stdout
    assert not (data / "memory.db").exists()
    unasked = madeleine(data, "move-in", **here)
    assert (unasked.returncode, "--yes imports it" in unasked.stderr) == (2, True)
    done = madeleine(data, "move-in", "--yes", **here)
    assert done.returncode == 0, done.stderr
    import_id = done.stdout.rpartition("--undo ")[2].strip()
    with asking(data) as client:
        assert "Prefers tea over coffee" in told(client, 1, "recall", query="What does Ada prefer to drink?")
        assert "The red one." in told(client, 2, "search_memory", query="red", sources=["chat"])
    assert madeleine(data, "move-in", "--yes", **here).returncode == 3
    [listed] = json.loads(madeleine(data, "import", "--list", "--json", **here).stdout)
    assert (listed["id"], listed["source"], listed["state"]) == (import_id, "move-in", "imported")
    undone = madeleine(data, "import", "--undo", import_id, **here)
    assert f"{listed['counts']['memory']} memories" in undone.stdout
    again = madeleine(data, "move-in", "--dry-run", "--json", **here)
    assert json.loads(again.stdout)["new"] > 0


def told(client: Any, number: int, tool: str, **arguments: Any) -> str:
    client.call(number, tool, **arguments)
    [result] = [one["result"] for one in client.wait_for(number) if one["id"] == number]
    return json.dumps(result["structuredContent"])


def test_nothing_to_move_in_is_said_and_is_no_success(data: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ended = madeleine(data, "move-in", "--home", str(tmp_path / "empty"))
    assert (ended.returncode, "Nothing of another program was found" in ended.stdout) == (3, True)
