"""The README does what it says: every command that it names is run as a newcomer would, on one memory."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import pytest

from madeleine.server.settings.settings import Settings
from tests.e2e.hosting import no_host_left
from tests.e2e.serving import ROOT, connected

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN_ELSEWHERE = {
    "make demo": "tests/e2e/test_demo.py",
    "make demo UI=1": "tests/e2e/test_demo.py",
    "make test": ".ci/run",
    "make check": ".ci/run",
    "uv tool install madeleine-memory": "tests/packaging/test_offline.py",
    "uv tool install .": "tests/packaging/test_offline.py",
    "/plugin install madeleine --marketplace madeleine-memory/madeleine": "tests/packaging/test_validators.py",
}
"""What other tests run."""
SECONDS = 120


def code_of(text: str) -> Iterator[str]:
    """Indented lines and code spans."""
    for line in text.splitlines():
        yield from [line.strip()] if line.startswith("    ") else re.findall(r"`([^`]+)`", line)


def commands_of(text: str) -> set[str]:
    """What a reader could type: programs with their arguments, and options."""
    starts = ("madeleine ", "make ", "uv ", "/plugin ", "--")
    return {code for code in code_of(text) if code.startswith(starts)}


@dataclass(frozen=True, slots=True)
class Command:
    shown: str
    """As the README has it."""
    words: str
    says: str
    """A pattern in its output."""
    typed: str = ""


COMMANDS = (
    Command("madeleine init", "init --yes", r"Claude Code"),
    Command("--undo", "init --undo --yes", r"Claude Code"),
    Command("madeleine config", "config", r'"mcpServers"'),
    Command(
        "madeleine observe",
        "observe --session s --role user --strict --timeout 60",
        r"^$",
        typed="Minka was born in Riga.",
    ),
    Command("madeleine move-in", "move-in --dry-run", r"Claude Code"),
    Command("madeleine import PATH…", "import notes.md", r"1 (file|memory|that)"),
    Command("madeleine ingest FILE…", "ingest story.md", r"\d+ stored"),
    Command("madeleine profile", "profile set soul voice calm", r"Written: voice"),
    Command("--dry-run", "patrol --dry-run", r"What a patrol would do"),
    Command("madeleine patrol", "patrol", r"To undo it: madeleine patrol undo"),
    Command("madeleine doctor", "doctor --quick", r"0 problems"),
    Command("madeleine why QUERY", "why 'Where do the bees swarm?'", r"The bees of the roof"),
    Command("madeleine token create", "token create --being ada", r"^mdl_\S+$"),
    Command("madeleine org share", "org share 'We deploy on Tuesdays' --kind convention", r"s1 shared"),
    Command("madeleine audit", "audit", r"share \(1\)"),
    Command("madeleine status", "status", r"serves the memory"),
)
MEMORY_TOOLS = {"recall", "recall_memory", "search_memory", "store", "update_memory", "forget"}
READ_ONLY = {"recall", "recall_memory", "search_memory", "search_shared", "context", "related", "core_memory"}
TABLES = [
    set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    for table in re.findall(r"^\| tool \|.*?(?=^$)", README, re.MULTILINE | re.DOTALL)
]
"""The tools of the README's two tables."""
SELECTIONS = {
    "": TABLES[0],
    "--toolsets memory": MEMORY_TOOLS,
    "--toolsets conversation,context,organisation,lessons,graph,self_editing,archive": TABLES[1],
    "--tools recall,store": {"recall", "store"},
    "--exclude-tools forget": TABLES[0] - {"forget"},
    "--read-only": READ_ONLY & TABLES[0],
    "--toolsets all --read-only": READ_ONLY,
    "--toolsets all": TABLES[0] | TABLES[1],
}
SERVED = {"madeleine ui", "--watch", "--url", "madeleine serve --http", "madeleine --in-process", "madeleine stop"}
"""Those that go on until they are ended have tests of their own here."""


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A home in which Claude Code keeps notes, with two texts."""

    home: Path
    environment: dict[str, str] = field(repr=False)

    def run(self, words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", f"madeleine {words}"],
            env=self.environment,
            cwd=self.home,
            input=typed,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextmanager
    def running(self, *words: str) -> Iterator[WaitFor]:
        """A command that goes on until it is ended; yields what waits until it has printed a pattern."""
        with subprocess.Popen(
            ["madeleine", *words],
            env=self.environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                yield partial(_wait_for, process)
            finally:
                process.terminate()
                process.wait(SECONDS)


WaitFor = Callable[[str], re.Match[str]]


def _wait_for(process: subprocess.Popen[bytes], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    printed, end = "", time.monotonic() + SECONDS
    while not (found := re.search(pattern, printed)):
        assert select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))[0], printed
        piece = os.read(process.stdout.fileno(), 4_096)
        assert piece, f"it ended: {printed}"
        printed += piece.decode()
    return found


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    home = tmp_path / "home"
    memories = home / ".claude" / "projects" / "-home-build" / "memory"
    memories.mkdir(parents=True)
    (memories / "MEMORY.md").write_text("# Notes\n\n- The build needs Python 3.12.\n")
    (home / "notes.md").write_text("The bees of the roof swarm in May.\n")
    (home / "story.md").write_text("The harbour crane is called Xanthippe.\n")
    data_dir = home / "data"
    scripts = Path(sys.executable).parent
    own = {"PATH": f"{scripts}:{os.environ['PATH']}", "HOME": str(home), "MADELEINE_DATA_DIR": str(data_dir)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MADELEINE_")}
    with no_host_left(data_dir):
        yield Newcomer(home, kept | own)


def test_every_command_of_the_readme_is_run_by_a_test() -> None:
    run = {command.shown for command in COMMANDS} | set(SELECTIONS) | SERVED | set(SHOWN_ELSEWHERE)
    assert commands_of(README) - run == set()
    assert run - commands_of(README) - {"", "--toolsets all --read-only", "--toolsets all"} == set()
    assert [path for path in SHOWN_ELSEWHERE.values() if not (ROOT / path).exists()] == []


@pytest.mark.slow
def test_a_first_day_with_every_command(newcomer: Newcomer) -> None:
    for command in COMMANDS:
        done = newcomer.run(command.words, command.typed)
        assert done.returncode == 0, f"{command.shown}: {done.stdout}{done.stderr}"
        assert re.search(command.says, done.stdout, re.MULTILINE), f"{command.shown}: {done.stdout}{done.stderr}"
    runs = newcomer.run("patrol runs --json").stdout
    assert newcomer.run(f"patrol undo {json.loads(runs)[0]['run_id']}").returncode == 0
    with newcomer.running("ui", "--no-browser") as wait_for:
        link = wait_for(r"http://127\.0\.0\.1:\d+/\S*")[0]
        assert "Madeleine" in httpx.get(link, follow_redirects=True, timeout=SECONDS).text
    ended = newcomer.run("stop")
    assert (ended.returncode, ended.stdout) == (0, "Ended.\n")


@pytest.mark.slow
def test_a_patrol_is_watched(newcomer: Newcomer) -> None:
    newcomer.run("ingest story.md")
    with newcomer.running("patrol", "--watch") as wait_for:
        wait_for("Watching")
        newcomer.run("patrol")
        wait_for("assign")


@pytest.mark.slow
async def test_the_selections_of_tools(newcomer: Newcomer) -> None:
    words = (sys.executable, "-m", "madeleine", "serve")
    for selection, tools in SELECTIONS.items():
        async with connected(newcomer.home / "data", words=(*words, *selection.split())) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == tools, selection
    async with connected(newcomer.home / "data-2", words=(sys.executable, "-m", "madeleine", "--in-process")) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TABLES[0]


@pytest.mark.slow
def test_over_http_with_a_token(newcomer: Newcomer) -> None:
    """At a free port; the README's is the default of the setting."""
    assert f"http://127.0.0.1:{Settings().http_port}/mcp" in README
    with newcomer.running("serve", "--http", "--port", "0") as wait_for:
        url = wait_for(r"http://127\.0\.0\.1:\d+/mcp$")[0]
        token = newcomer.run(f"token create --being ada --resource {url}").stdout.strip()
        own = replace(newcomer, environment=newcomer.environment | {"MADELEINE_TOKEN": token})
        told = own.run(f"observe --session s --role user --strict --timeout 60 --url {url}", "Minka was born in Riga.")
        assert (told.returncode, told.stderr) == (0, "")
    found = newcomer.run("export ada.jsonl --being ada")
    assert found.returncode == 0, found.stderr
    assert "Minka was born in Riga." in (newcomer.home / "ada.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_program_of_the_readme(newcomer: Newcomer) -> None:
    [program] = re.findall(r"^## From Python\n\n((?:    .*\n)+)", README, re.MULTILINE)
    program += "        print(answer.memories[0].text)\n"
    script = f"import asyncio, madeleine\nasync def main():\n{program}asyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=newcomer.environment,
        cwd=newcomer.home,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("We moved to the harbour.\n", 0), done.stderr
