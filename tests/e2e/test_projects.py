"""The project of a client, and retention and the archive by the real commands (spec O2, O8)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ListRootsResult, Root
from pydantic import FileUrl

from madeleine.server.settings.environment import project_of_directory, settings_with_automatic_project_resolved
from tests.contracts.ledger.ledger_values import ADA, batch, memory
from tests.e2e.hosting import hosted, madeleine, no_host_left
from tests.e2e.serving import call_tool, command, environment, furnish
from tests.waiting import DEADLOCK_S

BOAT = "The boat needs paint"


def test_a_project_is_the_repository_else_the_directory_and_never_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boat" / ".git").mkdir(parents=True)
    (tmp_path / "boat" / "src").mkdir()
    (home := tmp_path / "people" / "ada").mkdir(parents=True)
    monkeypatch.setattr(Path, "home", lambda: home)
    for directory, name in (
        (tmp_path / "boat" / "src", "boat"), (home / "notes", "notes"), (home, ""), (home.parent, ""), (Path("/"), ""),
    ):  # fmt: skip
        assert project_of_directory(directory) == name, directory
    assert settings_with_automatic_project_resolved({"project": "auto", "being": "a"}, tmp_path / "boat") == {
        "project": "boat", "being": "a",
    }  # fmt: skip
    for project in ("auto", "other", ""):
        own = {"project": project} if project else {}
        assert settings_with_automatic_project_resolved(own, home) == own


@pytest.mark.slow
async def test_a_client_works_in_the_project_of_its_first_root(tmp_path: Path) -> None:
    (boat := tmp_path / "boat").mkdir()
    furnish(data := tmp_path / "data")
    executable, *arguments = command()
    more = {"MADELEINE_PROJECT": "auto"}
    server = StdioServerParameters(command=executable, args=arguments, env=environment(data, **more), cwd="/")

    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(boat.as_uri()))])

    for told, found in ((roots, 1), (None, 0)):
        async with Client(stdio_client(server), mode="legacy", list_roots_callback=told) as client:
            if told:
                await call_tool(client, "store", text=BOAT)
            recalled = await call_tool(client, "recall", query=BOAT, format="memories")
            assert len(recalled["memories"]) == found
            named = await call_tool(client, "recall", query=BOAT, format="memories", project="boat")
            assert len(named["memories"]) == 1


async def test_a_hook_recalls_what_belongs_to_the_directory_of_its_conversation(tmp_path: Path) -> None:
    (boat := tmp_path / "boat").mkdir()
    furnish(data := tmp_path / "data")
    with no_host_left(data):
        async with hosted(data) as client:
            await call_tool(client, "store", text=BOAT, project="boat")
            for cwd, found in ((boat, True), (tmp_path, False)):
                hook = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(cwd), "prompt": BOAT + "?"}
                ran = await asyncio.to_thread(
                    subprocess.run,
                    [sys.executable, "-P", "-m", "madeleine", "observe", "--recall", "--strict", "--timeout", "60"],
                    env=environment(data, MADELEINE_PROJECT="auto"), cwd="/", input=json.dumps(hook),
                    capture_output=True, text=True, timeout=DEADLOCK_S, check=False,
                )  # fmt: skip
                assert (ran.returncode, ran.stderr) == (0, "")
                assert (BOAT in ran.stdout) == found, cwd


@pytest.mark.slow
async def test_the_commands_show_what_would_go_archive_it_and_bring_it_back(tmp_path: Path) -> None:
    from madeleine.storage.sql.ledger import open_ledger

    furnish(data := tmp_path / "data")
    old = datetime.now(UTC) - timedelta(days=40)
    async with open_ledger(data / "memory.db") as ledger:
        await ledger.memories.commit_store_batch(ADA, batch(memory(BOAT, created_at=old, happened_at=old)))
    rules = {"MADELEINE_RETENTION": json.dumps({"days": 30})}

    def run(*words: str) -> str:
        ran = madeleine(data, *words, **rules)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    with no_host_left(data):
        assert "m1" in (plan := run("retention", "--dry-run"))
        assert "1 would be archived" in plan
        assert run("retention").startswith("1 archived.")
        assert "Nothing's time is over" in run("retention")
        assert BOAT in run("archive", "list", "boat")
        assert "extracts" in run("archive", "list", "--groups")
        assert "Nothing of that is archived" in run("archive", "list", "car")
        assert json.loads(run("archive", "list", "--json"))["memories"][0]["id"] == "m1"
        assert "30 days" in plan
        assert "the store's days" in plan
        partly = madeleine(data, "archive", "restore", "m1", "m7", **rules)
        assert f"m1 is back: {BOAT}" in partly.stdout
        assert (partly.returncode, "not in the archive: m7" in partly.stderr) == (2, True)
        nothing = madeleine(data, "archive", "restore", "m99", "--json", **rules)
        assert (nothing.returncode, "not in the archive: m99" in nothing.stderr) == (2, True)
        assert json.loads(run("archive", "end", "--project", "boat", "--json"))["archived"] == 0
        assert run("archive", "end", "--project", "boat") == "Nothing is kept for that session or project.\n"
        assert run("archive", "list") == "Nothing of that is archived.\n"
