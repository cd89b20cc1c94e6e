"""The installed distribution among other people's packages of the same names as our folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madeleine.server import __version__
from tests.e2e.hosting import no_host_left
from tests.packaging.conftest import FOLDERS, Installation, run

OTHERS = ("server", "tools", "memory", "storage")


@pytest.mark.slow
@pytest.mark.parametrize("script", ["madeleine", "madeleine-memory"])
def test_the_command_runs_among_packages_of_the_same_names(
    installation: Installation, hostile: Path, script: str
) -> None:
    """A `server` anywhere on the path once broke the command and the hooks."""
    said = run(installation.scripts / script, "--version", cwd=hostile, PYTHONPATH=str(hostile))
    assert said == f"madeleine {__version__}\n"


@pytest.mark.slow
def test_the_module_runs_in_a_folder_with_packages_of_the_same_names(installation: Installation, hostile: Path) -> None:
    said = run(installation.python, "-m", "madeleine", "--version", cwd=hostile, PYTHONPATH=str(hostile))
    assert said == f"madeleine {__version__}\n"


@pytest.mark.slow
def test_hook_and_host_run_among_packages_of_the_same_names(
    installation: Installation, hostile: Path, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    variables = {
        "PYTHONPATH": str(hostile),
        "MADELEINE_DATA_DIR": str(data_dir),
        "MADELEINE_THREAD": "off",
    }
    command = installation.scripts / "madeleine"
    message = [{"role": "user", "text": "The lamp is broken"}]
    script = (
        "import json, subprocess, sys\n"
        "done = subprocess.run(sys.argv[2:], input=sys.argv[1], text=True)\n"
        "sys.exit(done.returncode)\n"
    )
    observe = (command, "observe", "--session", "s", "--strict", "--timeout", "60")
    with no_host_left(data_dir):
        run(installation.python, "-c", script, json.dumps(message), *observe, cwd=hostile, **variables)
        status = json.loads(run(command, "status", "--json", cwd=hostile, **variables))
        assert status["version"] == __version__
        assert run(command, "stop", cwd=hostile, **variables) == "Ended.\n"


def test_a_project_keeps_its_own_modules_of_the_same_names(installation: Installation, tmp_path: Path) -> None:
    for name in OTHERS:
        (tmp_path / f"{name}.py").write_text("OWNER = 'the project'\n")
    (tmp_path / "program.py").write_text(
        f"import madeleine, {', '.join(OTHERS)}\n"
        "from madeleine import MadeleineError, connect\n"
        "import madeleine.server.host.host, madeleine.tools.toolset\n"
        f"print(all(module.OWNER == 'the project' for module in ({', '.join(OTHERS)})))\n"
    )
    assert run(installation.python, "program.py", cwd=tmp_path) == "True\n"


def test_the_installation_adds_no_other_top_level_name(installation: Installation, tmp_path: Path) -> None:
    script = (
        "from importlib.util import find_spec\n"
        f"print([name for name in {FOLDERS!r} if (spec := find_spec(name)) is not None])"
    )
    assert run(installation.python, "-c", script, cwd=tmp_path) == "[]\n"


@pytest.mark.parametrize(
    "started",
    [
        "import madeleine",
        "import madeleine.server.attach.forwarder, madeleine.server.cli.main, madeleine.server.cli.arguments",
    ],
    ids=["library", "forwarder"],
)
def test_a_start_imports_nothing_but_the_standard_library(
    installation: Installation, tmp_path: Path, started: str
) -> None:
    """A client waits for the forwarder, and a program for its imports: tens of milliseconds, not a second."""
    script = (
        "import sys; before = set(sys.modules)\n"
        f"{started}\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names))"
    )
    assert run(installation.python, "-c", script, cwd=tmp_path) == "['madeleine']\n"
