"""Whatever is typed, wherever it runs: an exit code and a sentence, no traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from madeleine.server.cli.arguments import build_command_line_parser
from madeleine.server.cli.command_line_parser import CommandLineParser
from madeleine.server.cli.main import main

GRAMMAR = build_command_line_parser()
SUCCEED_ANYWHERE = {"config", "help", "completion", "observe", "-h", "--help", "--version"}
"""`observe` is for hooks, which must not end an agent's turn."""


def casefolded_words_of_text(grammar: CommandLineParser) -> set[str]:
    """Commands, verbs and options."""
    words = set(grammar._option_string_actions)
    for action in grammar._actions:
        for choice, below in (action.choices or {}).items() if isinstance(action.choices, dict) else ():
            words |= {choice} | casefolded_words_of_text(below)
    return words


HOSTILE = ["", "-", "--", "\x1b[31m", "\ud800", "../..", "1e999", "-1", "m12", "🙂", "x" * 5_000, "\u202e", "NaN", "@x"]
words = st.sampled_from(sorted(casefolded_words_of_text(GRAMMAR))) | st.sampled_from(HOSTILE) | st.text(max_size=8)
lines = st.tuples(st.sampled_from(sorted(casefolded_words_of_text(GRAMMAR))), st.lists(words, max_size=4)).map(
    lambda x: [x[0], *x[1]]
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(line=lines)
@example(line=["note", "-"])
@example(line=["models", "train", "--dry-run"])
@example(line=["import", "--list"])
@example(line=["restore", "/", "--yes"])
@example(line=["why", "\ud800", "m1"])
@example(line=["export", "/", "--format", "markdown"])
def test_any_arguments_where_no_memory_can_be_give_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, line: list[str]
) -> None:
    file = tmp_path_factory.getbasetemp() / "not a directory"
    file.touch()
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    environment = {"MADELEINE_DATA_DIR": str(file), "HOME": str(file), "PATH": ""}
    with (
        patch.dict(os.environ, environment, clear=True),
        patch("os.umask"),
        patch("sys.stdin", io.StringIO("")),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            code: object = main(line)
        except SystemExit as exit_:
            code = exit_.code
    said = "".join(stream.detach().getvalue().decode() for stream in (out, err))
    assert "Traceback" not in said
    assert isinstance(code, int)
    assert said.strip() or code in (0, 1)
    assert code != 0 or SUCCEED_ANYWHERE.intersection(line), (line, said)


CLOSED_OUTPUT, FULL_OUTPUT = "closed", "full"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "environment", "output", "code"),
    [
        (["status"], {"HOME": "/nonexistent", "MADELEINE_DATA_DIR": ""}, "", 0),
        (["doctor", "--quick"], {"LANG": "C", "PYTHONIOENCODING": "ascii", "MADELEINE_BEING": "Zoé"}, "", 0),
        (["doctor", "--quick"], {"MADELEINE_COLOUR": "red"}, "", 1),
        (["audit"], {"MADELEINE_LLM": "nobody"}, "", 2),
        (["token", "list"], {"MADELEINE_DATA_DIR": "/proc/nowhere"}, "", 1),
        (["token", "list"], {"COLUMNS": "-1", "TERM": "nonsense", "TMPDIR": "/nonexistent"}, "", 0),
        (["help", "recall"], {}, FULL_OUTPUT, 1),
        (["help", "recall"], {}, CLOSED_OUTPUT, 0),
        (["completion", "fish"], {"PYTHONHASHSEED": "random"}, FULL_OUTPUT, 1),
        (["serve", "--http", "--port", "99999"], {}, "", 2),
    ],
)
def test_a_hostile_environment_gets_a_sentence(
    tmp_path: Path, line: Sequence[str], environment: Mapping[str, str], output: str, code: int
) -> None:
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MADELEINE_DATA_DIR": str(tmp_path / "data")}
    command = [sys.executable, "-m", "madeleine", *line]
    if output == CLOSED_OUTPUT:
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    with (Path("/dev/full") if output == FULL_OUTPUT else tmp_path / "out").open("w") as stdout:
        run = subprocess.run(
            command,
            env={**variables, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[4],
            text=True,
            check=False,
        )
    assert (run.returncode, "Traceback" in run.stderr) == (code, False), run.stderr
    assert "Exception ignored" not in run.stderr


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (["statsu"], "There is no command 'statsu'. Is 'status' meant?"),
        (["patrol", "rnus"], "There is no verb 'rnus'. Is 'runs' meant?"),
        (["audit", "--jsn"], "There is no option '--jsn' here. Is '--json' meant?"),
        (["token", "create", "--nmae=x"], "There is no option '--nmae' here. Is '--name' meant?"),
        (["stop", "now"], "There is no argument 'now' here."),
        (["help", "recal"], "There is no page 'recal'. Is 'recall' meant?"),
    ],
)
def test_the_nearest_name_is_suggested(line: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(line)
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2
    assert meant in capsys.readouterr().err
