"""`make demo` comes to its end: it checks each answer itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_shows_all_that_it_promises() -> None:
    """A patrol that asked less ended it, and no test told."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    assert "Done in" in done.stdout
