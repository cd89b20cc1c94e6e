"""What differs on Windows and macOS, as far as it can be run here: every process of the command takes itself to be on
that system (`madeleine.operating_system`)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.e2e.hosting import hosted, madeleine, no_host_left, status
from tests.e2e.serving import call_tool

SWITCH = "from madeleine import operating_system\noperating_system.OPERATING_SYSTEM = {!r}\n"


@pytest.fixture
def on_system(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Variables by which a Python process, and those that it starts, take this for another system."""
    folder = tmp_path / "switch"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SWITCH.format(request.param), encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.slow
@pytest.mark.parametrize("on_system", ["windows", "macos"], indirect=True)
async def test_a_client_stores_recalls_and_comes_back_to_the_same_host(
    tmp_path: Path, on_system: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """On Windows by loopback TCP with a token, relayed standard input and no stop signals; the client, its host and the
    command that ends it."""
    data = tmp_path / "data"
    with no_host_left(data):
        async with hosted(data, more=on_system) as client:
            await call_tool(client, "store", text="The harbour is at the end of the road.")
            answer = await call_tool(client, "recall", query="Where is the harbour?", format="memories")
            assert len(answer["memories"]) == 1
            host = json.loads((data / "host.json").read_bytes())
            assert stat.S_IMODE((data / "host.json").stat().st_mode) == 0o600
            is_windows = "windows" in request.node.callspec.id
            assert ("token" in host, "socket" in host) == (is_windows, not is_windows)
            assert status(data)["pid"] == host["pid"]
        stopped = madeleine(data, "stop", "--json", **on_system)
        assert json.loads(stopped.stdout)["stopped"], stopped.stderr
        doctor = madeleine(data, "doctor", "--json", **on_system)
        assert doctor.returncode == 0, doctor.stdout
        assert json.loads(doctor.stdout)["problems"] == 0
