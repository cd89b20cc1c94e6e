"""The plugin's hooks as Claude Code runs them: the real commands, with its JSON on standard input, to the disk."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.hosting import hosted, no_host_left
from tests.e2e.http.http_serving import serving
from tests.e2e.serving import ROOT, call_tool, environment
from tests.household import rows

HOOKS = json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text())["hooks"]
CRANE = "The harbour crane of Lille is called Xanthippe and lifts 40 tonnes."

PATIENT = ("--strict", "--timeout", "60")
"""On a busy machine a first start takes longer than a hook waits."""

RunHook = Callable[..., Awaitable[str]]
"""The event and more of its JSON to standard output."""


class Conversation:
    """A transcript that grows as Claude Code's does."""

    def __init__(self, path: Path, session_id: str = "s") -> None:
        self.path = path
        self.about = {"session_id": session_id, "transcript_path": str(path), "cwd": str(path.parent)}
        self._count = 0

    def add(self, role: str, text: str, **more: Any) -> None:
        entry = {"type": role, "uuid": f"u{self._count}", "timestamp": f"2026-03-01T12:00:{self._count:02}Z", **more}
        self._count += 1
        with self.path.open("a") as file:
            file.write(json.dumps(entry | {"message": {"role": role, "content": text}}, separators=(",", ":")) + "\n")


@asynccontextmanager
async def hooks_of(
    conversation: Conversation, variables: Mapping[str, str], *, url: str = ""
) -> AsyncIterator[RunHook]:
    async def run(event: str, **more: Any) -> str:
        [group] = HOOKS[event]
        [hook] = group["hooks"]
        program, *words = shlex.split(hook["command"])
        assert program == "madeleine"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "madeleine"), *words, *PATIENT, *(["--url", url] if url else []),
            env=dict(variables), cwd=conversation.path.parent,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        given = json.dumps(conversation.about | {"hook_event_name": event, **more}).encode()
        output, errors = await asyncio.wait_for(process.communicate(given), hook["timeout"] + 60)
        assert (process.returncode, errors.decode()) == (0, "")
        return output.decode()

    yield run


async def assert_a_compacted_conversation_knows_what_it_knew(conversation: Conversation, run: RunHook) -> None:
    await run("SessionStart", source="startup")
    await run("UserPromptSubmit", prompt=CRANE, prompt_id="p1")
    conversation.add("user", CRANE, promptId="p1")
    conversation.add("assistant", "Noted.")
    await run("Stop", stop_hook_active=False)
    for number in range(12):
        conversation.add("user", f"Please tidy module {number}.")
        conversation.add("assistant", f"Module {number} is tidy.")
    await run("PreCompact", trigger="auto", custom_instructions="")
    conversation.add("user", "Modules were tidied.", isCompactSummary=True)
    started = await run("SessionStart", source="compact")
    assert "Module 11 is tidy." in started
    assert "Module 1 is tidy." not in started
    assert len(started) < 10_000
    asked = await run("UserPromptSubmit", prompt="What is the crane of Lille called?", prompt_id="p2")
    assert CRANE in asked
    assert "crane" not in await run("UserPromptSubmit", prompt="Which planets have rings?", prompt_id="p3")
    assert await run("SessionEnd", reason="exit") == ""


async def test_a_compacted_conversation_goes_on_knowing_what_it_knew(tmp_path: Path) -> None:
    """Its first message is in no memory, in no summary, and no longer before the model's eyes."""
    data_dir, conversation = tmp_path / "data", Conversation(tmp_path / "t.jsonl")
    with no_host_left(data_dir):
        async with hosted(data_dir) as client:  # the host is warm, as it is for all but the day's first hook
            await call_tool(client, "store", text="Always answer in metric units.", category="procedural")
            await call_tool(
                client, "store", text="Parking place 14 is ours until tonight", session_id="s", level="session"
            )
            async with hooks_of(conversation, environment(data_dir)) as run:
                assert "metric units" in await run("SessionStart", source="startup")
                await assert_a_compacted_conversation_knows_what_it_knew(conversation, run)
            assert (await call_tool(client, "recall_memory", ids=["m2"]))["missing"] == ["m2"]
            found = await call_tool(client, "search_memory", query="parking place")
            assert "until tonight" in str(found["archived"]), "what was kept for the session has ended with it"
        kept = rows(data_dir / "memory.db", "SELECT text FROM messages ORDER BY seq")
    assert [text for (text,) in kept][:2] == [CRANE, "Noted."]
    assert len(kept) == 28
    assert ("Modules were tidied.",) not in kept


@pytest.mark.slow
async def test_the_same_hooks_reach_a_server_over_http_by_its_token_alone(tmp_path: Path) -> None:
    conversation = Conversation(tmp_path / "t.jsonl")
    async with serving(tmp_path / "data", being="cyd") as server:
        token = await server.token("ada")
        variables = environment(tmp_path / "elsewhere", being="bob")
        options = {"URL": f"{server.url}/mcp", "TOKEN": token}
        chosen = {f"CLAUDE_PLUGIN_OPTION_MADELEINE_{name}": value for name, value in options.items()}
        async with hooks_of(conversation, variables | chosen) as run:
            await assert_a_compacted_conversation_knows_what_it_knew(conversation, run)
        by_word = variables | {"MADELEINE_TOKEN": token, "MADELEINE_PROJECT": "boat"}
        async with hooks_of(conversation, by_word, url=options["URL"]) as run:
            assert CRANE in await run("UserPromptSubmit", prompt="What is the crane of Lille called?", prompt_id="p4")
        harbour = Conversation(tmp_path / "harbour.jsonl", session_id="harbour")
        async with hooks_of(harbour, by_word, url=options["URL"]) as run:
            await assert_a_compacted_conversation_knows_what_it_knew(harbour, run)
    kept = rows(tmp_path / "data" / "memory.db", "SELECT being_id, session_id, project FROM sessions ORDER BY 2 DESC")
    assert kept == [("ada", "s", None), ("ada", "harbour", "boat")]
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "being"),
    [({}, "ada"), ({"BEING": ""}, "ada"), ({"BEING": "bob"}, "bob")],
    ids=["none", "empty", "set"],
)
async def test_an_option_of_the_plugin_wins_over_the_environment(
    tmp_path: Path, options: Mapping[str, str], being: str
) -> None:
    data_dir, conversation = tmp_path / "data", Conversation(tmp_path / "t.jsonl")
    chosen = {f"CLAUDE_PLUGIN_OPTION_MADELEINE_{name}": value for name, value in options.items()}
    chosen["CLAUDE_PLUGIN_OPTION_MADELEINE_DATA_DIR"] = str(data_dir)
    with no_host_left(data_dir):
        async with hosted(data_dir), hooks_of(conversation, environment(tmp_path / "elsewhere") | chosen) as run:
            await run("UserPromptSubmit", prompt=CRANE)
        assert rows(data_dir / "memory.db", "SELECT being_id FROM messages") == [(being,)]
    assert not (tmp_path / "elsewhere").exists()
