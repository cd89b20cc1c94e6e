"""One host, many clients: whatever happens to the host, each request is answered, and done once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client

from server.attach.address import ABOUT, LOCK, find
from server.attach.finding import reach, silent
from server.attach.hello import PROTOCOL, Hello, NoHost, read_hello, reply
from server.attach.lock import hold
from tests.e2e.hosting import Asker, asking, hosted, hosts_of, madeleine, no_host_left, status
from tests.e2e.serving import COMMAND, ERAS, ROOT, Era, ask, environment, said

KINDS = ("unix", "tcp")


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    with no_host_left(folder):
        yield folder


def kill(pid: int) -> None:
    """And wait until it is gone: its parent may be a forwarder, which has other things to do than to bury it."""
    gone = os.pidfd_open(pid)
    try:
        os.kill(pid, signal.SIGKILL)
        signal.pidfd_send_signal(gone, 0)
    except ProcessLookupError:
        pass
    finally:
        os.close(gone)


async def texts_of(data_dir: Path, word: str, being: str = "ada") -> Counter[str]:
    found: Counter[str] = Counter()
    async with hosted(data_dir, being=being) as client:
        cursor: dict[str, str] = {}
        while True:
            page = await ask(client, "search_memory", query=word, limit=100, **cursor)
            found.update(hit["snippet"] for hit in page["hits"])
            if "next_cursor" not in page:
                return found
            cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize(("kind", "era"), zip(KINDS, ERAS, strict=True))
async def test_a_client_goes_on_with_the_next_host_when_its_own_is_killed(data_dir: Path, kind: str, era: Era) -> None:
    more = {"MADELEINE_ATTACH": kind}
    async with hosted(data_dir, era=era, more=more) as client:
        stored = await ask(client, "store", text="Ada hid the violin in the attic")
        first = status(data_dir)["pid"]
        assert hosts_of(data_dir) == [first]
        kill(first)
        answer = await ask(client, "recall", query="Where is the violin?", format="memories")
        assert [memory["id"] for memory in answer["memories"]] == [stored["id"]]
        assert (await client.list_tools()).tools
        assert hosts_of(data_dir) == [status(data_dir)["pid"]] != [first]


async def test_clients_that_start_at_once_share_one_host_and_one_memory(data_dir: Path) -> None:
    async with asyncio.TaskGroup() as tasks:
        for n in range(5):
            tasks.create_task(store_one(data_dir, f"Number {n} painted the garden gate", being="ada"))
    assert len(hosts_of(data_dir)) == 1
    assert await texts_of(data_dir, "painted") == {f"Number {n} painted the garden gate": 1 for n in range(5)}


async def store_one(data_dir: Path, text: str, *, being: str) -> None:
    async with hosted(data_dir, being=being) as client:
        await ask(client, "store", text=text)


async def test_each_client_has_the_memory_of_its_own_being(data_dir: Path) -> None:
    async with hosted(data_dir, being="ada") as ada, hosted(data_dir, being="bert") as bert:
        await ask(ada, "store", text="The key lies under the blue flower pot")
        assert (await ask(bert, "recall", query="Where does the key lie?"))["count"] == 0
        assert (await ask(ada, "recall", query="Where does the key lie?"))["count"] == 1
        assert sorted(client["being"] for client in status(data_dir)["clients"]) == ["ada", "bert"]


async def store_from_many(data_dir: Path, *, clients: int, each: int, kills: int) -> None:
    """All store at once, as fast as they can, while the host is killed again and again."""
    chance = random.Random(clients)
    askers = [Asker(data_dir) for _ in range(clients)]
    try:
        writers = [
            threading.Thread(target=write_all, args=(asker, number, each)) for number, asker in enumerate(askers)
        ]
        for writer in writers:
            writer.start()
        for n in range(kills):
            # Somewhere in the middle of the work: when so much of it is answered.
            wanted = max(1, each * (n + 1) // (kills + 1) + chance.randrange(-each // 20 - 1, each // 20 + 1))
            askers[chance.randrange(clients)].wait_for(wanted, seconds=1200)
            for pid in hosts_of(data_dir):
                kill(pid)
        for asker, writer in zip(askers, writers, strict=True):
            answers = asker.wait_for(each, seconds=1800)
            writer.join(timeout=60)
            assert sorted(answer["id"] for answer in answers) == list(range(each))
            assert [answer for answer in answers if "error" in answer or answer["result"].get("isError")] == []
            assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
    finally:
        for asker in askers:
            asker.process.kill()
            asker.close()
    expected = {text_of(client, number): 1 for client in range(clients) for number in range(each)}
    assert await texts_of(data_dir, "pocket") == expected
    [pid] = hosts_of(data_dir)
    assert "locked" not in (data_dir / "madeleine.log").read_text(encoding="utf-8"), pid


def text_of(client: int, number: int) -> str:
    return f"Client {client} put coin {number} into pocket {client * 100_000 + number}"


def write_all(asker: Asker, client: int, each: int) -> None:
    for number in range(each):
        asker.store(number, text_of(client, number))


async def test_stores_of_several_clients_are_each_done_once_while_the_host_is_killed(data_dir: Path) -> None:
    await store_from_many(data_dir, clients=3, each=40, kills=2)


@pytest.mark.slow
async def test_eight_clients_store_a_thousand_each_while_the_host_is_killed_five_times(data_dir: Path) -> None:
    await store_from_many(data_dir, clients=8, each=1000, kills=5)


async def test_what_must_not_be_repeated_is_answered_with_what_to_do(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(1, "The ladder stands behind the barn")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        os.kill(pid, signal.SIGSTOP)  # so that it is in flight when the host dies
        asker.call(2, "run_patrol")
        asker.call(3, "recall", query="Where is the ladder?")
        asker.store(4, "The kettle stands on the stove")
        kill(pid)
        by_id = {answer["id"]: answer for answer in asker.wait_for(4)}
        patrol = by_id[2]["result"]
        assert patrol["isError"]
        assert "Call again" in patrol["content"][0]["text"]
        assert by_id[3]["result"]["structuredContent"]["count"] == 1
        assert by_id[4]["result"]["structuredContent"]["status"] == "stored"
        assert asker.close() == 0


async def test_a_store_that_was_committed_but_not_answered_is_not_done_twice(data_dir: Path) -> None:
    """The host is killed some time after it has begun with four: committed or not, each is there once."""
    with asking(data_dir) as asker:
        for number in range(12):
            asker.store(number, f"In drawer {number} there is a compass")
            if number % 4 == 3:
                asker.wait_for(number - 1)
                for pid in hosts_of(data_dir):
                    kill(pid)
        answers = asker.wait_for(12)
        assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
    assert await texts_of(data_dir, "compass") == {f"In drawer {n} there is a compass": 1 for n in range(12)}


async def test_a_client_that_uses_an_id_twice_loses_nothing(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        for number in range(3):
            asker.call(1, "store", text=f"On shelf {number} there is a teapot")
            asker.wait_for(number + 1)
    assert sum((await texts_of(data_dir, "teapot")).values()) == 3


async def test_sigterm_finishes_what_was_begun_and_the_next_request_finds_a_new_host(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The first candle is red")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        for number in range(1, 20):
            asker.store(number, f"Candle number {number} is white")
        os.kill(pid, signal.SIGTERM)
        answers = asker.wait_for(20)
        assert sorted(answer["id"] for answer in answers) == list(range(20))
        assert {answer["result"]["structuredContent"]["status"] for answer in answers} == {"stored"}
        asker.call(20, "recall", query="Which candle is red?")
        assert asker.wait_for(21)[-1]["result"]["structuredContent"]["count"] >= 1
    assert sum((await texts_of(data_dir, "candle")).values()) == 20


def test_a_client_that_is_killed_takes_nobody_with_it(data_dir: Path) -> None:
    """Its answers find nobody to read them; the host, and the others, go on."""
    with asking(data_dir) as other:
        other.store(0, "The lamp is broken")
        other.wait_for(1)
        hosts = hosts_of(data_dir)
        for _ in range(3):
            with asking(data_dir) as one:
                for number in range(30):
                    one.store(number, f"Brick {number} is red")
                one.wait_for(1)
                one.process.kill()
        other.call(1, "recall", query="Which lamp is broken?")
        assert other.wait_for(2)[-1]["result"]["structuredContent"]["count"] >= 1
        assert hosts_of(data_dir) == hosts


def test_code_in_the_directory_of_a_client_is_not_run(data_dir: Path, tmp_path: Path) -> None:
    """Clients start their servers in a project, which may have a `server` of its own."""
    project = tmp_path / "project"
    (project / "server").mkdir(parents=True)
    (project / "server" / "__init__.py").write_text("raise SystemExit('foreign code')\n", encoding="utf-8")
    forwarder = "import sys; sys.path.remove(''); from server.cli import main; sys.exit(main([]))"
    line = {"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {}}
    found = subprocess.run(
        [sys.executable, "-c", forwarder],
        env=environment(data_dir),
        cwd=project,
        input=json.dumps(line).encode() + b"\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert json.loads(found.stdout)["id"] == 0
    [pid] = hosts_of(data_dir)
    assert Path(f"/proc/{pid}/cwd").resolve() == data_dir.resolve()


@pytest.mark.slow
def test_more_than_a_host_can_finish_is_finished_by_the_next(data_dir: Path) -> None:
    """No host takes longer than ten seconds to end; what it has not answered is not lost for that."""
    count = 900
    with asking(data_dir) as asker:
        for number in range(count):
            asker.store(number, f"Tile {number} is blue, says row {number * 7}")
        asker.wait_for(10)
        for pid in hosts_of(data_dir):
            os.kill(pid, signal.SIGTERM)
        answers = asker.wait_for(count)
        assert [answer for answer in answers if "error" in answer or answer["result"].get("isError")] == []
        assert sorted(answer["id"] for answer in answers) == list(range(count))


def test_a_host_that_does_not_answer_is_told_of_with_its_id(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        os.kill(pid, signal.SIGSTOP)
        with asking(data_dir) as waiting:
            wait_until_it_catches(waiting.process.pid, signal.SIGTERM)
            waiting.process.send_signal(signal.SIGTERM)
            assert waiting.process.wait(timeout=20) == 0, "who waits for a host can be told to end"
        with pytest.raises(NoHost):
            reach(data_dir, Hello(want="status"), seconds=0.2)
        assert f"(id {pid}) does not answer" in silent(data_dir)
        os.kill(pid, signal.SIGCONT)
        assert status(data_dir)["pid"] == pid


def wait_until_it_catches(pid: int, signum: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("SigCgt:") and int(line.split()[1], 16) >> (signum - 1) & 1:
                return
        os.sched_yield()
    raise AssertionError(f"process {pid} does not catch signal {signum}")


def test_a_host_leaves_the_socket_of_its_successor_alone(data_dir: Path, tmp_path: Path) -> None:
    """The directory was moved away under it, as one who begins anew does."""
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        [first] = hosts_of(data_dir)
        data_dir.rename(tmp_path / "old")
        with asking(data_dir) as other:
            other.store(0, "The kettle is new")
            other.wait_for(1)
            second = status(data_dir)["pid"]
            assert second != first
            over = os.pidfd_open(first)
            os.kill(first, signal.SIGTERM)
            assert select.select([over], [], [], 60)[0]
            os.close(over)
            assert status(data_dir)["pid"] == second


def test_a_stale_port_is_not_told_the_token(data_dir: Path) -> None:
    data_dir.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        about = {"pid": 1, "version": "0", "port": stranger.getsockname()[1], "token": "secret"}
        (data_dir / ABOUT).write_text(json.dumps(about), encoding="utf-8")
        assert status(data_dir) == {"data_dir": str(data_dir)}
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


async def test_http_that_cannot_serve_ends_nobody(data_dir: Path) -> None:
    async with hosted(data_dir) as client:
        await ask(client, "store", text="The lamp is broken")
        hosts = hosts_of(data_dir)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            for arguments in (["--port", str(taken.getsockname()[1])], ["--host", "0.0.0.0"], ["--tools", "remember"]):
                assert madeleine(data_dir, "serve", "--http", *arguments).returncode == 2
        assert hosts_of(data_dir) == hosts


async def test_stop_and_idleness_end_the_host_and_leave_nothing_behind(data_dir: Path) -> None:
    with asking(data_dir, more={"MADELEINE_IDLE_SECONDS": "0.2"}) as asker:
        asker.store(0, "The bicycle is green")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        over = os.pidfd_open(pid)
        assert asker.close() == 0
    await readable(over)
    assert not (data_dir / ABOUT).exists()
    assert not there(find(data_dir).path)
    assert madeleine(data_dir, "stop").stdout.startswith("No process serves")
    assert status(data_dir) == {"data_dir": str(data_dir)}
    async with hosted(data_dir) as client:
        assert (await ask(client, "recall", query="Which colour has the bicycle?"))["count"] == 1
        over = os.pidfd_open(hosts_of(data_dir)[0])
        assert madeleine(data_dir, "stop").stdout == "Ended.\n"
        await readable(over)
        assert (await ask(client, "recall", query="Which colour has the bicycle?"))["count"] == 1


def there(path: str) -> bool:
    return Path(path).exists()


async def test_one_process_serves_http_and_stdio_over_one_memory(data_dir: Path) -> None:
    """The host that there is makes room, its clients go on with the next; and no second one takes its place."""
    async with hosted(data_dir) as client:
        await ask(client, "store", text="The bicycle is green")
        before = hosts_of(data_dir)
        async with over_http(data_dir) as (process, url):
            assert hosts_of(data_dir) == [] != before
            assert (await ask(client, "recall", query="Which colour has the bicycle?"))["count"] == 1
            found = status(data_dir)
            assert (found["pid"], found["http"], len(found["clients"])) == (process.pid, url, 1)
            async with Client(url, mode="2026-07-28", read_timeout_seconds=60) as other:
                await ask(other, "store", text="The bicycle has a bell")
            assert (await ask(client, "recall", query="What has the bicycle?"))["count"] == 2
            second = madeleine(data_dir, "serve", "--http", "--port", "0")
            assert second.returncode == 2
            assert f"Process {process.pid} serves the memory in {data_dir} already, at {url}" in second.stderr
            assert madeleine(data_dir, "stop").stdout == "Ended.\n"
            assert await process.wait() == 0
        assert (await ask(client, "recall", query="What has the bicycle?"))["count"] == 2


@asynccontextmanager
async def over_http(data_dir: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, "serve", "--http", "--port", "0",
        env=environment(data_dir, MADELEINE_IDLE_SECONDS="0.1"),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr
        async with asyncio.timeout(60):
            async for line in process.stderr:
                if line.startswith(b"Madeleine listens on "):
                    break
        yield process, line.decode().split()[-1]
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def readable(fd: int) -> None:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, ready.set)
    try:
        async with asyncio.timeout(60):
            await ready.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def test_leftovers_of_a_dead_host_are_no_hindrance(data_dir: Path) -> None:
    async with hosted(data_dir) as client:
        await ask(client, "store", text="The mirror hangs in the hall")
    [pid] = hosts_of(data_dir)
    kill(pid)
    assert (data_dir / ABOUT).exists()
    (data_dir / ABOUT).write_text('{"pid": 1, "port": 9, "token": "x"}', encoding="utf-8")
    async with hosted(data_dir) as client:
        assert (await ask(client, "recall", query="Where does the mirror hang?"))["count"] == 1
    (data_dir / ABOUT).write_bytes(b"\x00garbage")
    async with hosted(data_dir) as client:
        assert (await ask(client, "recall", query="Where does the mirror hang?"))["count"] == 1


@contextmanager
def another_installation(data_dir: Path, *, protocol: int) -> Iterator[list[str]]:
    """A host of another protocol: it says no to those who want to be served, and goes when it is told to. What it
    was asked for."""
    data_dir.mkdir(mode=0o700)
    wanted: list[str] = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(find(data_dir).path)
    listener.listen()

    def serve() -> None:
        with hold(data_dir / LOCK) as mine:
            assert mine
            held.set()
            while "stop" not in wanted:
                link, _ = listener.accept()
                with link, link.makefile("rb") as lines:
                    hello = read_hello(lines.readline())
                    wanted.append(hello.want)
                    no = {} if hello.want == "stop" else {"error": "update one of us"}
                    answer = json.loads(reply(version="x", pid=0, **no))
                    answer["madeleine"]["protocol"] = protocol
                    link.sendall(json.dumps(answer).encode() + b"\n")
            listener.close()

    held = threading.Event()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert held.wait(timeout=60)
    try:
        yield wanted
    finally:
        if thread.is_alive():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.connect(find(data_dir).path)
                link.sendall(Hello(want="stop").line())
                link.recv(1)
        thread.join(timeout=60)


async def test_the_host_of_an_older_installation_makes_room(data_dir: Path) -> None:
    with another_installation(data_dir, protocol=PROTOCOL - 1) as wanted:
        async with hosted(data_dir) as client:
            await ask(client, "store", text="The lamp is broken")
        assert wanted == ["serve", "stop"]


def test_the_client_of_an_older_installation_is_told_to_be_updated(data_dir: Path) -> None:
    with another_installation(data_dir, protocol=PROTOCOL + 1) as wanted:
        found = madeleine(data_dir)
        assert found.returncode == 1
        assert found.stderr == "madeleine: update one of us\n"
        assert wanted == ["serve"]


def test_a_host_says_so_to_a_client_of_another_protocol(data_dir: Path) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        answer = greeting(data_dir, {"want": "serve", "protocol": PROTOCOL + 1, "version": "9.9"})
        assert "Update the older installation" in answer["error"]
        assert answer["protocol"] == PROTOCOL


def greeting(data_dir: Path, hello: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link, link.makefile("rb") as lines:
        link.connect(find(data_dir).path)
        link.sendall(json.dumps({"madeleine": hello}).encode() + b"\n")
        line = lines.readline()
        return json.loads(line)["madeleine"] if line else None


def test_over_loopback_who_does_not_know_the_token_gets_no_answer(data_dir: Path) -> None:
    with asking(data_dir, more={"MADELEINE_ATTACH": "tcp"}) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        address = find(data_dir)
        assert mode(data_dir / ABOUT) == 0o600
        for token in ("", "wrong", address.token[:-1]):
            with socket.create_connection(("127.0.0.1", address.port), timeout=60) as link:
                link.sendall(Hello(token=token).line())
                assert link.recv(100) == b""
        with socket.create_connection(("127.0.0.1", address.port), timeout=60) as link:
            link.sendall(Hello(want="status", token=address.token).line())
            assert json.loads(link.recv(65536))["madeleine"]["ok"]


@pytest.mark.parametrize(
    "line", [b"\n", b"GET / HTTP/1.1\r\n", b"{}\n", b'{"madeleine":1}\n', b"\xff" * 70_000 + b"\n"]
)
def test_a_caller_that_does_not_say_hello_properly_is_hung_up_on(data_dir: Path, line: bytes) -> None:
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.connect(find(data_dir).path)
            link.sendall(line)
            assert link.recv(100) == b""
        asker.call(1, "recall", query="Which lamp is broken?")
        assert asker.wait_for(2)[-1]["result"]["structuredContent"]["count"] == 1


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"MADELEINE_NONSENSE": "1"}, "NONSENSE"),
        ({"MADELEINE_MAX_TEXT_CHARS": "few"}, "max_text_chars"),
        ({"MADELEINE_TOOLS": "remember"}, "remember"),
    ],
)
def test_a_wrong_setting_is_told_at_the_start(data_dir: Path, more: dict[str, str], what: str) -> None:
    alone = madeleine(data_dir, **more)
    assert (alone.returncode, what in alone.stderr) == (2, True), alone
    with asking(data_dir) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        beside = madeleine(data_dir, **more)
        assert (beside.returncode, what in beside.stderr) == (2, True), beside


def test_a_directory_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = madeleine(tmp_path / "file" / "data")
    assert found.returncode == 2
    assert "Set MADELEINE_DATA_DIR to a writable directory" in found.stderr


async def test_a_memory_that_another_process_owns_is_told_to_the_call_until_it_is_free(data_dir: Path) -> None:
    with asking(data_dir, arguments=["--in-process"]) as owner:
        owner.store(0, "The lamp is broken")
        owner.wait_for(1)
        async with hosted(data_dir) as client:
            refused = await client.call_tool("recall", {"query": "lamp"})
            assert refused.is_error
            assert f"in use by another Madeleine (process {owner.process.pid})" in said(refused)
            assert owner.close() == 0
            assert (await ask(client, "recall", query="lamp"))["count"] == 1


async def test_a_data_directory_may_lie_deeper_than_a_sockets_name_may_be_long(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 60) / ("b" * 60)
    with no_host_left(deep):
        async with hosted(deep) as client:
            await ask(client, "store", text="The well is deep")
            path = Path(status(deep)["data_dir"])
            assert path == deep
            elsewhere = Path(find(deep).path)
            assert (mode(elsewhere.parent), mode(elsewhere)) == (0o700, 0o600)
        assert madeleine(deep, "stop").stdout == "Ended.\n"
        assert not there(str(elsewhere))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_requests_from_a_file_are_answered_to_the_last(data_dir: Path, tmp_path: Path) -> None:
    """A selector cannot watch a file: a thread reads it, as it does all input on Windows."""
    file, answers = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "file", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": "init", "method": "initialize", "params": info},
        {"method": "notifications/initialized"},
        *(
            {"id": n, "method": "tools/call", "params": {"name": "store", "arguments": {"text": f"Brick {n} is red"}}}
            for n in range(5)
        ),
    ]
    lines = [json.dumps({"jsonrpc": "2.0"} | message) for message in messages]
    file.write_text("\n".join([*lines, "no json at all"]), encoding="utf-8")
    with file.open("rb") as source, answers.open("wb") as sink:
        found = subprocess.run(
            COMMAND, env=environment(data_dir), cwd=ROOT, stdin=source, stdout=sink, timeout=120, check=False
        )
    assert found.returncode == 0
    got = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert sorted(str(answer.get("id")) for answer in got) == sorted(["init", *"01234", "None"])


def test_a_forwarder_that_is_told_to_end_finishes_and_leaves_the_host_to_others(data_dir: Path) -> None:
    with asking(data_dir) as one, asking(data_dir) as other:
        one.store(0, "The lamp is broken")
        one.wait_for(1)
        one.store(1, "The kettle is new")
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(timeout=60) == 0
        other.call(0, "recall", query="Which lamp is broken?")
        assert other.wait_for(1)[-1]["result"]["structuredContent"]["count"] >= 1
        assert len(hosts_of(data_dir)) == 1


def test_a_client_that_reads_nothing_holds_up_nobody_else(data_dir: Path) -> None:
    slow = subprocess.Popen(COMMAND, env=environment(data_dir), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert slow.stdin
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "slow", "version": "1"}}
        init: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
        slow.stdin.write(json.dumps(init).encode() + b"\n")
        for n in range(300):
            slow.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n + 1, "method": "tools/list"}).encode() + b"\n")
        slow.stdin.flush()
        with asking(data_dir) as other:
            other.store(0, "The lamp is broken")
            assert other.wait_for(1)[0]["result"]["structuredContent"]["status"] == "stored"
    finally:
        slow.kill()
        slow.communicate(timeout=60)


@pytest.mark.slow
def test_a_hundred_starts_and_ends_leave_no_process_and_no_file(data_dir: Path) -> None:
    before: set[Path] = set()
    for number in range(100):
        with asking(data_dir) as asker:
            asker.call(0, "recall", query="anything") if number % 10 == 0 else asker.send(
                {"id": 0, "method": "tools/list"}
            )
            asker.wait_for(1)
            assert asker.close() == 0
        if number % 2:
            assert madeleine(data_dir, "stop").stdout == "Ended.\n"
        if number == 11:
            before = {path.relative_to(data_dir) for path in data_dir.rglob("*") if "index" not in path.parts}
    assert hosts_of(data_dir) == []
    after = {path.relative_to(data_dir) for path in data_dir.rglob("*") if "index" not in path.parts}
    assert after == before
    assert len(list((data_dir / "index").glob("generation-*"))) == 1
