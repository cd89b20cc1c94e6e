"""A kill at every other statement, from the first or the second on, of the migrations, of `reindex`, of a switch of the
model, and of archiving, restoring and undoing that: fault points, not chance (rulings 1, 11 and 26, ADR 40, ADR 55).
Nothing is lost, nothing is there twice, and the next process goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.serving import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(("work", "least"), [("migrations", 12), ("reindex", 3), ("switch", 3), ("archive", 5)])
def test_a_kill_at_every_eighth_point_loses_and_doubles_nothing(tmp_path: Path, work: str, least: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.fault_points", str(tmp_path), work, "8"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    figures = json.loads(ran.stdout.splitlines()[-1])
    print(f"{work}: {figures['points']} kills, lost or doubled after {len(figures['faults'])}")
    assert figures["points"] >= least
    assert figures["faults"] == [], ran.stderr[-3000:]
