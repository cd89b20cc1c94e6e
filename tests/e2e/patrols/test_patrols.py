"""spec P12: patrols by themselves, from the terminal, watched, and with progress; through real hosts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from madeleine.patrol.report import PATROL_STEPS
from madeleine.server.attach.connector import HostHandshakeRequest, HostRefused, connect_to_host
from madeleine.server.cli.patrol_command import patrol_run_as_json
from madeleine.server.settings.settings import Settings
from madeleine.server.wiring.data_directory import open_ledger_without_index
from tests.doubles import ADA
from tests.e2e.hosting import asking, hosted, hosts_of, madeleine, no_host_left, status
from tests.e2e.serving import COMMAND, ERAS, ROOT, Era, call_tool, connected, environment
from tests.waiting import DEADLOCK_S


def after(memories: int) -> dict[str, str]:
    """Settings of a host that patrols by itself after so many, and for no other reason."""
    return {
        "MADELEINE_PATROL_AUTO": "true",
        "MADELEINE_PATROL_AFTER_MEMORIES": str(memories),
        "MADELEINE_PATROL_AT_HOUR": "off",
        "MADELEINE_PATROL_AFTER_IDLE_MINUTES": "0",
        "MADELEINE_PATROL_CHECK_SECONDS": "0.05",
    }


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    with no_host_left(folder):
        yield folder


@contextmanager
def news_of(data_dir: Path, being: str = "ada") -> Iterator[Iterator[dict[str, Any]]]:
    """As its watchers get it, line by line. The host must be there."""
    link, _ = connect_to_host(data_dir, HostHandshakeRequest(requested_service="watch", settings={"being": being}))
    link.settimeout(60)
    with link, link.makefile("rb") as source:
        yield (json.loads(line) for line in source)


def until_the_end(news: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in news:
        found.append(one)
        if one["event"] in ("ends", "fails"):
            break
    return found


def runs_of(data_dir: Path) -> list[dict[str, Any]]:
    """As `madeleine patrol runs --json` prints them; also amid a test that is a coroutine."""

    async def read() -> list[dict[str, Any]]:
        async with open_ledger_without_index(Settings(data_dir=data_dir), create=False) as ledger:
            return [patrol_run_as_json(one) for one in await ledger.patrols.runs(ADA, limit=20)]

    with ThreadPoolExecutor(max_workers=1) as other:
        return other.submit(asyncio.run, read()).result()


def leave_notes(data_dir: Path, tmp_path: Path, count: int) -> None:
    file = tmp_path / "notes.jsonl"
    file.write_text("".join(json.dumps({"action": f"Plank {n} of the fence is green"}) + "\n" for n in range(count)))
    assert madeleine(data_dir, "note", str(file)).returncode == 0


# --- by itself --------------------------------------------------------------------------------------------------


def test_a_patrol_comes_by_itself_after_many_memories(data_dir: Path) -> None:
    with asking(data_dir, more=after(3)) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        with news_of(data_dir) as news:
            asker.store(1, "The kettle is new")
            asker.store(2, "Bert paints a boat")
            told = until_the_end(news)
        assert [told[0]["event"], told[-1]["event"]] == ["begins", "ends"]
        [run] = runs_of(data_dir)
    assert (run["run_id"], run["state"]) == (told[0]["run_id"][:8], "finished")
    assert "assign: 3 assigned" in run["changed"]
    assert run["report"] == told[-1]["report"]


@pytest.mark.slow
def test_an_idle_host_waits_for_the_patrol_that_came_by_itself_and_then_ends(data_dir: Path, tmp_path: Path) -> None:
    with asking(data_dir, more=after(100) | {"MADELEINE_IDLE_SECONDS": "0.01"}) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        over = os.pidfd_open(hosts_of(data_dir)[0])
        with news_of(data_dir) as news:
            leave_notes(data_dir, tmp_path, 100)
            assert next(news)["event"] == "begins"
            assert asker.close() == 0
        # Nobody is here any more.
    wait_for(over)
    [run] = runs_of(data_dir)
    assert (run["state"], run["report"]["steps"][0]["name"]) == ("finished", "assign")


def wait_for(pidfd: int) -> None:
    try:
        assert select.select([pidfd], [], [], 60)[0]
    finally:
        os.close(pidfd)


# --- from the terminal ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_runs_lists_and_undoes_a_patrol(data_dir: Path, tmp_path: Path) -> None:
    nothing = madeleine(data_dir, "patrol", "runs")
    assert (nothing.returncode, "There is no memory" in nothing.stderr) == (2, True)
    leave_notes(data_dir, tmp_path, 2)
    assert madeleine(data_dir, "patrol", "runs").stdout == "No patrol of 'ada' has run yet.\n"

    rehearsed = madeleine(data_dir, "patrol", "--dry-run", "--json")
    assert json.loads(rehearsed.stdout)["dry_run"] is True
    assert runs_of(data_dir) == []

    ran = madeleine(data_dir, "patrol", "--json", "--steps", "assign, age")
    report = json.loads(ran.stdout)
    assert (ran.returncode, [step["name"] for step in report["steps"]]) == (0, ["assign", "age"])
    assert ran.stderr.splitlines() == ["1 of 2 ❶ assign", "2 of 2 ❷ age"]
    [run] = runs_of(data_dir)
    assert (run["run_id"], run["state"]) == (report["run_id"], "finished")
    assert json.loads(madeleine(data_dir, "patrol", "runs", "--json").stdout) == [run]
    shown = madeleine(data_dir, "patrol", "runs").stdout
    assert re.search(rf"{run['run_id']} +finished +assign: 2 notes read, 2 assigned", shown)

    undone = madeleine(data_dir, "patrol", "undo", run["run_id"])
    assert undone.stdout.startswith(f"The patrol {run['run_id']} is undone: ")
    assert [one["state"] for one in runs_of(data_dir)] == ["undone"]
    again = madeleine(data_dir, "patrol", "undo", run["run_id"])
    assert (again.returncode, again.stdout) == (2, "")
    assert "was undone before" in again.stderr

    table = madeleine(data_dir, "patrol")
    assert re.search(r"❹ +consolidate +needs a language model", table.stdout)
    assert not re.search("[│┃─━]", table.stdout), "what is piped has no lines around it"
    assert f"madeleine patrol undo {runs_of(data_dir)[0]['run_id']}" in table.stdout
    assert len(hosts_of(data_dir)) == 1, "through the host, as any client"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "dream"], "there is no step 'dream'. Known are assign, age"),
        (["--steps", ","], "name some of assign"),
        (["--watch", "--dry-run"], "--watch stands alone"),
        (["undo", "no-such-run"], "There is no patrol run 'no-such-run'"),
        (["runs", "--limit", "0"], "--limit: must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_said_with_what_to_change(common_dir: Path, words: list[str], said: str) -> None:
    completed = madeleine(common_dir, "patrol", *words)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert said in completed.stderr
    assert "Traceback" not in completed.stderr


def test_a_client_that_may_only_read_runs_none(common_dir: Path) -> None:
    completed = madeleine(common_dir, "patrol", MADELEINE_READ_ONLY="true")
    assert (completed.returncode, "Traceback" in completed.stderr) == (2, False)


# --- watched ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_watcher_sees_the_patrol_that_another_client_asked_for(data_dir: Path) -> None:
    async with hosted(data_dir) as client:
        await call_tool(client, "store", text="The lamp is broken")
        async with watching(data_dir, "--json") as lines:
            report = await call_tool(client, "run_patrol", steps=["assign", "age"])
            told = [await anext(lines) for _ in range(4)]
    assert {one["run_id"][:8] for one in told} == {report["run_id"]}
    assert [one["event"] for one in told] == ["begins", "progress", "progress", "ends"]
    assert told[-1]["report"]["steps"][1] == {"step": "❷", "name": "age", "aged": 1}


class watching:
    """The command, in a process of its own; ends it as Ctrl-C does."""

    def __init__(self, data_dir: Path, *words: str) -> None:
        self._data_dir, self._words = data_dir, words

    async def __aenter__(self) -> Any:
        self._process = await asyncio.create_subprocess_exec(
            *COMMAND, "patrol", "--watch", *self._words,
            env=environment(self._data_dir), cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout
        assert self._process.stderr
        assert await self._process.stderr.readline() == b"Watching for patrols of 'ada'. Ctrl-C ends this.\n"
        return (json.loads(line) async for line in self._process.stdout)

    async def __aexit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(60):
                assert await self._process.wait() == 0
        finally:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.communicate()


@pytest.mark.slow
def test_a_watcher_that_reads_nothing_or_goes_away_holds_up_no_patrol(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        silent = connect_to_host(data_dir, HostHandshakeRequest(requested_service="watch", settings={"being": "ada"}))[
            0
        ]
        gone = connect_to_host(data_dir, HostHandshakeRequest(requested_service="watch", settings={"being": "ada"}))[0]
        gone.close()
        with silent, news_of(data_dir, "bert") as others:
            for number in range(3):
                asker.call(1 + number, "run_patrol", steps=["age"])
            answers = asker.wait_for(4)
            assert all(not answer["result"].get("isError") for answer in answers)
            silent.shutdown(socket.SHUT_RDWR)
            assert madeleine(data_dir, "stop").returncode == 0
            assert list(others) == [], "another being's patrols are nobody's to watch"


@pytest.mark.slow
def test_a_host_that_does_not_know_what_is_wanted_says_so(data_dir: Path) -> None:
    """It hung up before, and who had asked waited for a minute."""
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        with pytest.raises(HostRefused, match=r"does not know what is asked of it \('sing'\)"):
            connect_to_host(data_dir, HostHandshakeRequest(requested_service="sing"))
        assert len(status(data_dir)["clients"]) == 1


# --- progress over MCP ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("era", "through_host"), zip(ERAS, [True, False], strict=True))
async def test_progress_comes_while_a_patrol_runs_and_never_goes_back(
    data_dir: Path, tmp_path: Path, era: Era, through_host: bool
) -> None:
    """Notifications with progress, total and a message, before the answer."""
    leave_notes(data_dir, tmp_path, 5)
    told: list[tuple[float, float | None, str | None]] = []
    answered = False

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        assert not answered
        told.append((progress, total, message))

    async with (hosted if through_host else connected)(data_dir, era=era) as client:
        answer = await client.call_tool("run_patrol", {}, progress_callback=tell)
        answered = True
    assert not answer.is_error
    done = [progress for progress, _, _ in told]
    assert done == sorted(done)
    assert done[-1] == len(PATROL_STEPS)
    assert {total for _, total, _ in told} == {len(PATROL_STEPS)}
    assert told[-len(PATROL_STEPS)][2] == "❶ assign"
    assert all(message for _, _, message in told)


# --- at once, and killed ----------------------------------------------------------------------------------------


async def test_two_clients_that_ask_at_once_are_served_one_after_the_other(data_dir: Path) -> None:
    async with hosted(data_dir) as one, hosted(data_dir) as other:
        await call_tool(one, "store", text="The lamp is broken")
        reports = await asyncio.gather(*(call_tool(client, "run_patrol") for client in (one, other)))
        assert len({report["run_id"] for report in reports}) == 2
        later, earlier = runs_of(data_dir)
        assert later["started"] >= earlier["finished"]
        assert [later["state"], earlier["state"]] == ["finished"] * 2


@pytest.mark.slow
def test_a_host_that_is_killed_in_mid_patrol_leaves_no_run_running(data_dir: Path, tmp_path: Path) -> None:
    """And who asked is told."""
    leave_notes(data_dir, tmp_path, 300)
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        with news_of(data_dir) as news:
            command = subprocess.Popen(
                [*COMMAND, "patrol"], env=environment(data_dir), cwd=ROOT, stderr=subprocess.PIPE, text=True
            )
            begun = next(news)
            assert begun["event"] == "begins"
            for pid in hosts_of(data_dir):
                os.kill(pid, signal.SIGKILL)
        said = command.communicate(timeout=DEADLOCK_S)[1]
        assert (command.returncode, "went away before it answered" in said) == (1, True)
        asker.call(1, "search_memory", query="lamp")
        asker.wait_for(2)
        assert [(run["run_id"], run["state"]) for run in runs_of(data_dir)] == [(begun["run_id"][:8], "rolled_back")]


@pytest.mark.slow
def test_a_host_that_is_told_to_end_in_mid_patrol_rolls_it_back(data_dir: Path, tmp_path: Path) -> None:
    with asking(data_dir, more=after(1_500)) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        with news_of(data_dir) as news:
            leave_notes(data_dir, tmp_path, 1_500)
            begun = next(news)
            asker.process.kill()
            assert madeleine(data_dir, "stop").returncode == 0
    found = {run["run_id"]: run["state"] for run in runs_of(data_dir)}
    assert found[begun["run_id"][:8]] == "rolled_back"
    assert set(found.values()) == {"rolled_back"}
