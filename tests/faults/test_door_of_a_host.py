"""Who calls at a host's door: of another version, with wrong words, without the token; and a host that is silent."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from madeleine.operating_system import try_to_hold_file_lock
from madeleine.server import __version__
from madeleine.server.attach import connector
from madeleine.server.attach.connector import (
    HOST_PROTOCOL_VERSION,
    HostHandshakeRequest,
    HostUnavailable,
    connect_to_host,
    encode_host_handshake_reply,
    hung_host_message,
    parse_host_handshake_request,
)
from madeleine.server.attach.endpoint import (
    HOST_INFO_FILE,
    HOST_LOCK_FILE,
    host_address,
    host_pid,
)
from tests.e2e.hosting import asking, hosted, hosts_of, madeleine, mode, no_host_left, status
from tests.e2e.serving import call_tool
from tests.waiting import DEADLOCK_S


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a host that is there, with a memory in it, for those who only call at its door."""
    folder = tmp_path_factory.mktemp("settled") / "data"
    with no_host_left(folder), asking(folder) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        yield folder


@contextmanager
def another_installation(data_dir: Path, *, protocol: int) -> Iterator[list[str]]:
    """A host of another protocol: it says no to those who want to be served, and goes when it is told to. What it
    was asked for."""
    data_dir.mkdir(mode=0o700)
    wanted: list[str] = []
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(host_address(data_dir).path)
    listener.listen()

    def serve() -> None:
        with try_to_hold_file_lock(data_dir / HOST_LOCK_FILE) as mine:
            assert mine
            held.set()
            while "stop" not in wanted:
                link, _ = listener.accept()
                with link, link.makefile("rb") as lines:
                    hello = parse_host_handshake_request(lines.readline())
                    wanted.append(hello.requested_service)
                    no = {} if hello.requested_service == "stop" else {"error": "update one of us"}
                    answer = json.loads(encode_host_handshake_reply(version="x", pid=0, **no))
                    answer["madeleine"]["protocol"] = protocol
                    link.sendall(json.dumps(answer).encode() + b"\n")
            listener.close()

    held = threading.Event()
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert held.wait(timeout=DEADLOCK_S)
    try:
        yield wanted
    finally:
        if thread.is_alive():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
                link.connect(host_address(data_dir).path)
                link.sendall(HostHandshakeRequest(requested_service="stop").json_line())
                link.recv(1)
        thread.join(timeout=DEADLOCK_S)


async def test_the_host_of_an_older_installation_makes_room(data_dir: Path) -> None:
    with another_installation(data_dir, protocol=HOST_PROTOCOL_VERSION - 1) as wanted:
        async with hosted(data_dir) as client:
            await call_tool(client, "store", text="The lamp is broken")
        assert wanted == ["serve", "stop"]


def test_the_client_of_an_older_installation_is_told_to_be_updated(data_dir: Path) -> None:
    with another_installation(data_dir, protocol=HOST_PROTOCOL_VERSION + 1) as wanted:
        completed = madeleine(data_dir)
        assert completed.returncode == 1
        assert completed.stderr == "madeleine: update one of us\n"
        assert wanted == ["serve"]


def test_a_host_says_so_to_a_client_of_another_protocol(settled: Path) -> None:
    answer = greeting(settled, {"want": "serve", "protocol": HOST_PROTOCOL_VERSION + 1, "version": "9.9"})
    assert "Update the older installation" in answer["error"]
    assert answer["protocol"] == HOST_PROTOCOL_VERSION


def test_a_client_of_another_version_is_told_which_one_serves_it(
    settled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request = HostHandshakeRequest(settings={"being": "ada"})
    here, cancelled = socket.socketpair()
    with here, cancelled:
        connector.connect_or_start_host(settled, {}, request, cancelled=cancelled).close()
        assert caplog.text == ""
        monkeypatch.setattr(connector, "__version__", "9.9")
        connector.connect_or_start_host(settled, {}, request, cancelled=cancelled).close()
    assert f"the memory's process is Madeleine {__version__} and this is 9.9: `madeleine stop`" in caplog.text


def test_a_hosts_file_that_is_damaged_or_nested_without_end_is_as_good_as_none(tmp_path: Path) -> None:
    for content in (
        b"[" * 1_000_000,
        b'{"pid":' * 100_000,
        b"\xff",
        b"",
        b"[]",
        b'{"port":1e999,"token":1}',
        b'{"pid":"x"}',
    ):
        (tmp_path / HOST_INFO_FILE).write_bytes(content)
        assert not host_address(tmp_path).port
        assert host_pid(tmp_path) == 0


def greeting(data_dir: Path, hello: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link, link.makefile("rb") as lines:
        link.connect(host_address(data_dir).path)
        link.sendall(json.dumps({"madeleine": hello}).encode() + b"\n")
        line = lines.readline()
        return json.loads(line)["madeleine"] if line else None


@pytest.mark.parametrize(
    "line", [b"\n", b"GET / HTTP/1.1\r\n", b"{}\n", b'{"madeleine":1}\n', b"\xff" * 70_000 + b"\n"]
)
async def test_a_caller_that_does_not_say_hello_properly_is_hung_up_on(settled: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(host_address(settled).path)
        link.sendall(line)
        assert link.recv(100) == b""
    async with hosted(settled) as client:
        assert len((await call_tool(client, "recall", query="Which lamp is broken?")).get("sources", [])) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"MADELEINE_NONSENSE": "1"}, "NONSENSE"),
        ({"MADELEINE_MAX_TEXT_CHARS": "few"}, "max_text_chars"),
        ({"MADELEINE_TOOLS": "remember"}, "remember"),
    ],
)
def test_a_wrong_setting_is_told_at_the_start(data_dir: Path, settled: Path, more: dict[str, str], what: str) -> None:
    """Where there is no host, and beside one."""
    for place in (data_dir, settled):
        completed = madeleine(place, **more)
        assert (completed.returncode, what in completed.stderr) == (2, True), completed


def test_over_loopback_who_does_not_know_the_token_gets_no_answer(data_dir: Path) -> None:
    with asking(data_dir, more={"MADELEINE_ATTACH": "tcp"}) as asker:
        asker.store(0, "The lamp is broken")
        asker.wait_for(1)
        address = host_address(data_dir)
        assert mode(data_dir / HOST_INFO_FILE) == 0o600
        for token in ("", "wrong", address.token[:-1]):
            with socket.create_connection(("127.0.0.1", address.port), timeout=DEADLOCK_S) as link:
                link.sendall(HostHandshakeRequest(token=token).json_line())
                assert link.recv(100) == b""
        with socket.create_connection(("127.0.0.1", address.port), timeout=DEADLOCK_S) as link:
            link.sendall(HostHandshakeRequest(requested_service="status", token=address.token).json_line())
            assert json.loads(link.recv(65536))["madeleine"]["ok"]


def test_a_stale_port_is_not_told_the_token(data_dir: Path) -> None:
    data_dir.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        about = {"pid": 1, "version": "0", "port": stranger.getsockname()[1], "token": "secret"}
        (data_dir / HOST_INFO_FILE).write_text(json.dumps(about), encoding="utf-8")
        assert "pid" not in status(data_dir)
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):
            stranger.accept()


@pytest.mark.slow
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
        with pytest.raises(HostUnavailable):
            connect_to_host(data_dir, HostHandshakeRequest(requested_service="status"), seconds=0.2)
        assert f"(id {pid}) does not answer" in hung_host_message(data_dir)
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
