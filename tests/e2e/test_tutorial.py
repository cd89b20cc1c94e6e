"""The tutorial does what it says: every program and command of `docs/tutorial.md`, in order, in one folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import DEADLOCK_S

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_STEP = re.compile(r"^```(?P<kind>python|console)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVE_AS = re.compile(r"save this as `([\w.]+)`", re.IGNORECASE)
_ANYTHING = "…"


def commands(console: str) -> Iterator[tuple[str, str]]:
    """Each command and what is shown after it."""
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def matches(shown: str, came: str) -> bool:
    """Whether all lines came, in order; `…` stands for anything."""
    pattern = "".join(
        ".*" if piece == _ANYTHING else re.escape(piece) for piece in re.split(f"({_ANYTHING})", shown.strip())
    )
    return re.fullmatch(pattern, came.strip(), re.DOTALL) is not None


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "MADELEINE_DATA_DIR": str(tmp_path / "data")}
    return {name: value for name, value in os.environ.items() if not name.startswith("MADELEINE_")} | own


@pytest.mark.slow
def test_every_line_of_the_tutorial_does_what_it_says(tmp_path: Path, environment: dict[str, str]) -> None:
    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLOCK_S,
            check=False,
        )

    page = PAGE.read_text(encoding="utf-8")
    steps = list(_STEP.finditer(page))
    try:
        for before, step in zip([0, *(step.end() for step in steps)], steps, strict=False):
            if step["kind"] == "python":
                [name] = _SAVE_AS.findall(page[before : step.start()])
                (tmp_path / name).write_text(step["body"], encoding="utf-8")
                continue
            for command, shown in commands(step["body"]):
                done = run(command)
                assert done.returncode == 0, done.stderr
                assert matches(shown, done.stdout), f"$ {command}\n{done.stdout}\ninstead of\n{shown}"
    finally:
        run("madeleine stop")
    assert {step["kind"] for step in steps} == {"python", "console"}
