"""Installed once with a network, started without: each way that the documents name and that can be tried here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.hosting import no_host_left
from tests.e2e.serving import call_tool, connected
from tests.packaging.conftest import ROOT, Distribution, Installation, run

WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net")
"""A command in a network namespace of its own, which has not even a loopback."""
UV_VERSION = re.findall(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("unshare") or subprocess.run([*WITHOUT_NETWORK, "true"], check=False).returncode != 0,
        reason="no network namespace can be made here",
    ),
]


@dataclass(frozen=True, slots=True)
class Uv:
    program: Path
    variables: Mapping[str, str]
    """Cache, tools and downloads in a folder of the test's."""

    def run(self, *words: str | Path, cwd: Path) -> str:
        return run(self.program, *words, cwd=cwd, **self.variables)


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Uv:
    folder = tmp_path_factory.mktemp("uv")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install")
    run(*pip, "--target", folder / "packages", f"uv=={UV_VERSION}", cwd=folder)
    places = {"UV_CACHE_DIR": "cache", "UV_TOOL_DIR": "tools", "UV_TOOL_BIN_DIR": "bin"}
    chosen = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    chosen |= {name: str(folder / place) for name, place in places.items()} | {"UV_PYTHON": sys.executable}
    return Uv(folder / "packages" / "bin" / "uv", chosen)


InstallAndTellCommand = Callable[[Distribution, Uv, Path], list[str]]
"""Installs into a folder; returns the command that a client starts."""


def as_tool(distribution: Distribution, uv: Uv, folder: Path) -> list[str]:
    uv.run("tool", "install", "--force", distribution.wheel, cwd=folder)
    return [str(Path(uv.variables["UV_TOOL_BIN_DIR"]) / "madeleine")]


def by_uvx(distribution: Distribution, uv: Uv, folder: Path) -> list[str]:
    words = ["--from", str(distribution.wheel), "madeleine-memory"]
    uv.run("tool", "run", *words, "--version", cwd=folder)
    return [str(uv.program), "tool", "run", "--offline", *words]


def as_bundle(distribution: Distribution, uv: Uv, folder: Path) -> list[str]:
    """As Claude Desktop starts it, with the wheel in the place of the registry that has it."""
    bundle = folder / "bundle"
    shutil.copytree(ROOT / "packaging" / "mcpb", bundle)
    words = ["run", "--find-links", str(distribution.wheel.parent), "--directory", str(bundle)]
    uv.run(*words, "python", "-c", "import madeleine", cwd=folder)
    return [str(uv.program), words[0], "--offline", *words[1:], "src/server.py"]


async def test_installed_by_pip_it_recalls_by_meaning_without_a_network(
    installation: Installation, tmp_path: Path
) -> None:
    await assert_it_recalls_without_a_network([str(installation.scripts / "madeleine")], tmp_path / "data", {})


@pytest.mark.parametrize("install", [as_tool, by_uvx, as_bundle])
async def test_installed_by_uv_it_recalls_by_meaning_without_a_network(
    install: InstallAndTellCommand, distribution: Distribution, uv: Uv, tmp_path: Path
) -> None:
    command = install(distribution, uv, tmp_path)
    await assert_it_recalls_without_a_network(command, tmp_path / "data", uv.variables)


async def assert_it_recalls_without_a_network(command: list[str], data_dir: Path, variables: Mapping[str, str]) -> None:
    """By a client of a command without arguments, as most clients start it: through the host."""
    words, more = [*WITHOUT_NETWORK, *command], {**variables, "MADELEINE_IDLE_SECONDS": "1"}
    with no_host_left(data_dir):
        async with connected(data_dir, words=words, more=more) as client:
            await call_tool(client, "store", text="The cat is called Minka and sleeps on the piano.")
            answer = await call_tool(client, "recall", query="Where does the kitten take its nap?", format="memories")
    assert ["Minka" in memory["text"] for memory in answer["memories"]] == [True]
