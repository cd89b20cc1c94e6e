"""The command `madeleine`."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from madeleine import server
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.language_model import ModelCallCost
from madeleine.memory.model import BeingId, EmbeddingModelName, Note, NoteId, RunId, Scope
from madeleine.server.cli.arguments import build_command_line_parser, parse_command_line
from madeleine.server.cli.help.text import COMMAND_EXAMPLES, COMMAND_GROUPS
from madeleine.server.cli.local_commands import note_command
from madeleine.server.cli.main import main, setting_overrides_from_arguments
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.clocks import utc_now
from madeleine.server.wiring.data_directory import LEDGER_FILE
from madeleine.storage.sql.ledger import open_ledger
from tests.doubles import NOW, a_memory
from tests.doubles_chat import a_message
from tests.rows import for_each_row


@for_each_row(
    ("line", "found"),
    [
        ([], {}),
        (["serve"], {}),
        (["--toolsets", "memory"], {"toolsets": "memory"}),
        (["--read-only", "serve", "--tools=recall,store"], {"read_only": True, "tools": "recall,store"}),
        (["serve", "--exclude-tools", "forget", "--read-only"], {"exclude_tools": "forget", "read_only": True}),
    ],
)
def test_tools_are_chosen_before_or_after_the_subcommand(line: list[str], found: dict[str, object]) -> None:
    assert setting_overrides_from_arguments(build_command_line_parser().parse_args(line)) == found


@pytest.mark.parametrize(
    "line", [["\x1b[31mx"], ["note", "file", "\x1b]0;x\x07"], ["token", "\x9bx"], ["patrol", "--\u202egnp"]]
)
def test_no_argument_reaches_the_terminal_as_an_escape_sequence(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse_command_line(line)
    assert exit_.value.code == 2
    told = capsys.readouterr().err
    assert "error: " in told
    assert all(character.isprintable() for character in told.replace("\n", "")), told


def test_an_unknown_tool_is_told_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("os.umask", lambda mask: mask)  # it would be this process's for good
    assert main(["serve", "--in-process", "--tools", "recall,remember"]) == 2
    assert (
        "Unknown tool 'remember'. Known are archive, context, core_memory, edit_core_memory, forget, ingest,"
        in capsys.readouterr().err
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
async def test_a_note_is_a_line_of_the_file_whatever_characters_it_holds(tmp_path: Path, mark: str) -> None:
    """JSON may hold what Python takes for an end of a line; notes were cut there."""
    notes = [f'{{"action":"before{mark}after"}}', '{"action":"next"}']
    file = tmp_path / "notes.jsonl"
    file.write_bytes(f"{notes[0]}\n\n{notes[1]}\r\n".encode())
    settings = Settings(data_dir=tmp_path / "data", being="ada")
    await note_command(settings, Namespace(file=str(file), json=False))
    async with open_ledger(settings.data_dir / LEDGER_FILE) as ledger:
        waiting = await ledger.patrols.unread_notes(Scope(BeingId("ada"), "test"), type="scene")
    assert sorted(note.content for note in waiting) == sorted(notes)


COMPLETION = [sys.executable, "-m", "madeleine", "completion", "bash"]
COMPLETE = """
source <({completion})
complete_words() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _shtab_madeleine; echo "${{COMPREPLY[@]}}"
}}
complete_words madeleine st
complete_words madeleine patrol ""
complete_words madeleine audit --e
"""

FAST_START = """
import sys
before = set(sys.modules)
import madeleine.server.attach.forwarder, madeleine.server.cli.main
import madeleine.server.cli.observing.command
imported = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(imported - sys.stdlib_module_names))
"""


def test_what_every_client_or_hook_starts_imports_the_standard_library_alone() -> None:
    run = subprocess.run([sys.executable, "-c", FAST_START], capture_output=True, text=True, check=True)
    assert run.stdout == "['madeleine']\n"


def test_the_status_tells_what_the_memory_thread_has_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path))

    async def observe() -> None:
        ada = Scope(BeingId("ada"), "test")
        async with open_ledger(tmp_path / LEDGER_FILE) as ledger:
            messages = [a_message(text) for text in ("thanks", "My cat is ill.", "Hm.")]
            await ledger.conversations.append_messages(ada, "s", messages, keys=[None] * 3)
            await ledger.conversations.mark_messages_read_up_to_position(ada, "s", up_to=1, abandoned=1)
            await ledger.conversations.postpone_unread_messages(ada, "s", up_to=2, until=NOW)
            cost = ModelCallCost(purpose="extract", model="m", input_tokens=1_000, output_tokens=234, usd=None)
            await ledger.patrols.record_cost(ada, RunId("r"), cost, at=utc_now())

    asyncio.run(observe())
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("Memory thread: off, as there is no language model; set MADELEINE_LLM_API_KEY")
    assert lines[-1] == (
        "Memory thread: 2 messages unread (1 of them put off until more is said), 1 abandoned after failures, "
        "1,234 tokens in 24 hours."
    )
    assert main(["status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["thread"]["put_off"], told["memory_thread"]["on"]) == (1, False)
    monkeypatch.setenv("MADELEINE_THREAD", "off")
    assert main(["status"]) == 0
    assert "Memory thread: off, as MADELEINE_THREAD is off." in capsys.readouterr().out


def test_the_status_names_the_notes_that_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """spec P6 ❶ 2"""
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path))

    async def leave() -> None:
        async with open_ledger(tmp_path / LEDGER_FILE) as ledger:
            for being in ("ada", "bob"):
                note = Note(id=NoteId(being), being_id=BeingId(being), type="scene", content="{", created_at=NOW)
                failed = replace(note, state="parse_failed", reason="[PARSE_FAILED] not JSON")
                await ledger.context.add_note(Scope(BeingId(being), "test"), failed)

    asyncio.run(leave())
    assert main(["status"]) == 0
    assert "Notes: 2 could not be read." in capsys.readouterr().out
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unreadable_notes"] == 2


def test_what_was_forgotten_and_is_still_on_disk_is_counted_with_the_time_by_which_it_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ruling 25"""
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("MADELEINE_ERASURE_SECONDS", "3600")

    async def forget() -> None:
        async with open_ledger(tmp_path / LEDGER_FILE) as ledger:
            ada = Scope(BeingId("ada"), "test")
            new = (a_memory("The key lies under the pot"), a_memory("The gate is green"))
            await ledger.memories.commit_store_batch(
                ada, StoreBatch(new=new, model=EmbeddingModelName("m"), vectors={})
            )
            await ledger.erasure.forget(ada, [memory.id for memory in new], at=NOW)

    before = utc_now()
    asyncio.run(forget())
    assert main(["status"]) == 0
    assert "Forgotten: 2 entries in no answer any more, and gone from the disk by " in (told := capsys.readouterr().out)
    assert "the next one does it first" in told
    assert main(["status", "--json"]) == 0
    erasure = json.loads(capsys.readouterr().out)["erasure"]
    assert erasure["pending"] == 2
    assert (
        before + timedelta(hours=1) <= datetime.fromisoformat(erasure["promised_by"]) <= utc_now() + timedelta(hours=1)
    )


def leaf_commands(grammar: ArgumentParser, *names: str) -> Iterator[tuple[str, ArgumentParser]]:
    below = [action for action in grammar._actions if isinstance(action, _SubParsersAction)]
    if not below:
        yield " ".join(names), grammar
    for action in below:
        for name, command in action.choices.items():
            yield from leaf_commands(command, *names, name)


def test_every_command_that_prints_data_prints_json_and_has_examples() -> None:
    print_no_data = {"serve", "observe", "help", "completion", "init", "ui"}
    grammar = build_command_line_parser()
    without = {name for name, one in leaf_commands(grammar) if "--json" not in one._option_string_actions}
    assert without == print_no_data
    named = {command for commands in COMMAND_GROUPS.values() for command in commands}
    assert named == {name.split()[0] for name, _ in leaf_commands(grammar)}, "a command belongs into a group"
    for command, examples in COMMAND_EXAMPLES.items():
        for line in examples:
            assert line.partition(" | ")[2 * ("| madeleine" in line)].startswith("madeleine"), line
        assert not command or command in named


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_names_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert {name for name, _ in leaf_commands(build_command_line_parser()) if name.split()[0] not in script} == set()


def test_bash_completes_commands_verbs_and_options(tmp_path: Path) -> None:
    completed = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE.format(completion=shlex.join(COMPLETION))],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )
    assert completed.stdout.splitlines() == ["status stop", "runs undo", "--event"]


def test_the_exit_codes_are_documented() -> None:
    text = (Path(__file__).parents[4] / "docs/commands.md").read_text(encoding="utf-8")
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)}
    assert documented == {0, *(value for name, value in vars(server).items() if name.startswith("EXIT_"))}
