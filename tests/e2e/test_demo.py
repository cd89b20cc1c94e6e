"""`make demo` comes to its end: it checks each answer itself. `make demo UI=1` ends with the page open."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.waiting import DEADLOCK_S

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_shows_all_that_it_promises_and_then_the_page() -> None:
    """A patrol that asked less ended it, and no test told."""
    with subprocess.Popen(
        [sys.executable, "-m", "examples.demo", "--ui", "--no-browser"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        printed = ""
        try:
            while not (link := re.search(r"http://127\.0\.0\.1:\d+/\S+$", printed, re.MULTILINE)):
                line = demo.stdout.readline()
                assert line, printed
                printed += line
            assert "Done in" in printed
            assert "Madeleine" in httpx.get(link[0], follow_redirects=True, timeout=DEADLOCK_S).text
        finally:
            os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C does
        assert "is removed" in demo.stdout.read()
        assert demo.wait(60) == 0
