"""The programs on the pages of organisations, backends and operational data run, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.hosting import no_host_left
from tests.e2e.serving import furnish
from tests.waiting import DEADLOCK_S

DOCS = Path(__file__).parents[2] / "docs"


def output_of_program(page: str, folder: Path) -> list[str]:
    """The lines that it prints in this folder."""
    [program] = re.findall(
        r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    (folder / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=folder,
        env=dict(os.environ) | {"MADELEINE_THREAD": "off"},
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_the_company_on_the_page_does_what_the_page_says(tmp_path: Path) -> None:
    furnish(tmp_path / "company")
    with no_host_left(tmp_path / "company"):
        shown = output_of_program("organisations.md", tmp_path)
    assert shown[:2] == ["bo knows 0 memories", "ada shared: The staging database is reset on Mondays"]
    assert shown[2].startswith("refused: A decision is written by c_suite, human, lead, senior")
    assert shown[3] == "policies: No commits to main; PRs need one approval"
    assert shown[4] == "lead lena: We deploy on Tuesdays, because support is full then"
    assert shown[5:8] == ["# Policies of the organisation", "- No commits to main", "- PRs need one approval"]
    assert "[SEMANTIC] The staging database is reset on Mondays (from ada)" not in shown, "its own stands among its own"


def test_the_third_backend_on_the_page_is_one(tmp_path: Path) -> None:
    shown = output_of_program("backends.md", tmp_path)
    assert shown[0] == "a memory backend: True"
    assert '"content": "The lamp is broken"' in shown[1]
    assert shown[2] == "deleted: True"


def test_the_operational_data_on_the_page_is_kept(tmp_path: Path) -> None:
    assert output_of_program("operational-data.md", tmp_path) == [
        "a persistence backend: True",
        "Deploy by ada is blocked",
        "ada: Stopped at $0.60",
        "ada: 2 calls, 2000 tokens",
        "denied: 1",
    ]
