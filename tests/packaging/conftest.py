"""The distribution, built and installed as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.waiting import DEADLOCK_S

ROOT = Path(__file__).parents[2]
FOLDERS = ("memory", "storage", "inference", "patrol", "tools", "server")
"""Of the repository; other people have folders of these names too."""


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    """Standard output of a command that succeeds."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME"} or name.startswith("PIP_")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept | variables,
        input="",
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True, slots=True)
class Distribution:
    wheel: Path
    sdist: Path


def build(source: Path, target: Path) -> Distribution:
    run(sys.executable, "-m", "hatchling", "build", "-d", target, cwd=source)
    [wheel], [sdist] = target.glob("*.whl"), target.glob("*.tar.gz")
    return Distribution(wheel, sdist)


@pytest.fixture(scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True, slots=True)
class Installation:
    scripts: Path

    @property
    def python(self) -> Path:
        return self.scripts / "python"


@pytest.fixture(scope="session")
def installation(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A fresh environment with the wheel in it, installed by pip. The other packages come from this one, whose own
    `.pth` files, the editable installation's among them, do not count there."""
    folder = tmp_path_factory.mktemp("installation")
    venv.create(folder, with_pip=False, symlinks=True)
    where = {"base": str(folder), "platbase": str(folder)}
    scripts = Path(sysconfig.get_path("scripts", "venv", where))
    packages = Path(sysconfig.get_path("purelib", "venv", where))
    (packages / "third-party.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", scripts / "python")
    run(*pip, "install", "-q", "--no-deps", "--no-index", "--ignore-installed", distribution.wheel, cwd=folder)
    return Installation(scripts)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of packages with the names of ours, which cannot be imported."""
    folder = tmp_path / "hostile"
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"raise ImportError('somebody else has a {name}')\n")
    return folder
