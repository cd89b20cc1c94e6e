"""The program in `docs/library.md` runs, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import DEADLOCK_S

PAGE = Path(__file__).parents[2] / "docs" / "library.md"


def test_the_program_on_the_page_runs(data_dir: Path, tmp_path: Path) -> None:
    [program] = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        env=dict(os.environ) | {"MADELEINE_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = done.stdout.splitlines()
    assert shown[0].startswith("stored: ")
    assert "2026-03-01: Grace prefers tea to coffee" in shown[1]
    assert "1 hit for the word" in shown
    assert "Grace prefers green tea to coffee; before: Grace prefers tea to coffee" in shown
    assert any(line.startswith("refused: The key 'grace-tea' was used before") for line in shown)
    assert shown[-1] == "erased: 1"
