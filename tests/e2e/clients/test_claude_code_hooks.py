"""The plugin: the times of its hooks are sound, and Claude Code itself installs and runs it, over a model of the tests'
own."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from madeleine.server.cli.arguments import build_command_line_parser
from tests.e2e.clients.npm import npx, output_of
from tests.e2e.clients.test_claude_code import CLAUDE
from tests.e2e.hosting import hosted, no_host_left
from tests.e2e.serving import ROOT, call_tool
from tests.household import rows
from tests.language.stub import ModelRequest, StubAnswer, language_server, raw_body

FILE = ROOT / "plugin" / "hooks" / "hooks.json"
ANSWER = "Xanthippe is at the quay."


def hooks() -> Iterator[tuple[str, dict[str, Any]]]:
    """(event, hook), as Claude Code reads them."""
    for event, matchers in json.loads(FILE.read_text())["hooks"].items():
        for matcher in matchers:
            for hook in matcher["hooks"]:
                yield event, hook


def test_each_hook_gives_up_before_it_is_killed_and_only_a_start_s_and_a_prompt_s_recall() -> None:
    """Who is killed cannot say why, and what is behind a prompt is waited for by a person."""
    found = dict(hooks())
    assert list(found) == ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"]
    for event, hook in found.items():
        program, *words = shlex.split(hook["command"])
        arguments = build_command_line_parser().parse_args(words)
        assert (program, arguments.command, arguments.strict) == ("madeleine", "observe", False)
        assert arguments.recall is (event in ("SessionStart", "UserPromptSubmit"))
        assert arguments.timeout + 2 <= hook["timeout"], event  # two seconds for the program to start
    assert found["UserPromptSubmit"]["timeout"] <= 10
    assert found["SessionEnd"]["timeout"] <= 60  # the longest that Claude Code waits at its end


def answered(asked: ModelRequest) -> StubAnswer:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
    }
    message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return raw_body(body.encode(), content_type="text/event-stream")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["plugin", "init"])
async def test_claude_code_feeds_the_memory_and_is_fed_by_it(tmp_path: Path, way: str) -> None:
    data_dir, project = tmp_path / "data", tmp_path / "project"
    code, said = await output_of(npx(CLAUDE, "--version"), home=tmp_path, cwd=tmp_path)
    if code:
        pytest.skip(f"{CLAUDE} cannot be installed here: {said[-300:]}")
    with no_host_left(data_dir), language_server(answered) as model:
        async with hosted(data_dir) as client:
            await call_tool(client, "store", text="The harbour master of Marseille is called Xanthippe.")
        project.mkdir()
        if way == "plugin":
            chosen = ("--config", f"madeleine_data_dir={data_dir}", "--config", "madeleine_being=ada")
            set_up = npx(CLAUDE, "plugin", "install", "madeleine", "--marketplace", str(ROOT), *chosen)
        else:
            own = (f"MADELEINE_DATA_DIR={data_dir}", "MADELEINE_BEING=ada")
            set_up = ["env", *own, sys.executable, "-m", "madeleine", "init", "--yes", "--client", "claude-code"]
        code, said = await output_of(set_up, home=tmp_path, cwd=ROOT)
        assert code == 0, said
        code, said = await output_of(npx(CLAUDE, "mcp", "list"), home=tmp_path, cwd=project)
        [line] = [line for line in said.splitlines() if "madeleine: " in line]
        assert line.endswith("✔ Connected"), said
        named = {"MADELEINE_PATROL_AUTO": "false", "MADELEINE_THREAD": "off"}
        named |= {"ANTHROPIC_BASE_URL": model.anthropic_url, "ANTHROPIC_API_KEY": "sk-ant-none"}
        named["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
        settings = tmp_path / ".claude" / "settings.json"
        settings.write_text(json.dumps(json.loads(settings.read_text()) | {"env": named}))
        prompts = ["Who is the harbour master of Marseille?", "And where is the harbour master?"]
        for more, prompt in (([], prompts[0]), (["--continue"], prompts[1])):
            code, said = await output_of(npx(CLAUDE, *more, "-p", prompt), home=tmp_path, cwd=project)
            assert (code, said.strip().splitlines()[-1]) == (0, ANSWER), said
        told = [asked.body for asked in model.asked if prompts[0] in json.dumps(asked.body)]
        assert "called Xanthippe" in json.dumps(told[0])
        code, said = await output_of(npx(CLAUDE, "--continue", "-p", "/compact"), home=tmp_path, cwd=project)
        assert code == 0, said
        prompts.append("What did I ask at first?")
        code, said = await output_of(npx(CLAUDE, "--continue", "-p", prompts[2]), home=tmp_path, cwd=project)
        assert code == 0, said
        last = json.dumps(model.asked[-1].body)
        assert last.count("user: Who is the harbour master") == 1, "said before the summary, and not in it"
        kept = rows(data_dir / "memory.db", "SELECT role, text, session_id FROM messages ORDER BY seq")
    assert [(role, text) for role, text, _ in kept] == [
        (role, text) for prompt in prompts for role, text in (("user", prompt), ("assistant", ANSWER))
    ]
    assert len({session for *_, session in kept}) == 1
