"""Hosts of a data directory, and raw clients of the command that an MCP client starts."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.serving import COMMAND, ROOT, connected, environment, furnish, snippets
from tests.waiting import DEADLOCK_S


def madeleine(data_dir: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """One run of the command, without anything on standard input."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(data_dir, **more),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLOCK_S,
        check=False,
    )


def status(data_dir: Path) -> dict[str, Any]:
    completed = madeleine(data_dir, "status", "--json")
    assert completed.returncode == 0, completed.stderr
    answer = json.loads(completed.stdout)
    assert isinstance(answer, dict)
    return answer


def hosts_of(data_dir: Path) -> list[int]:
    """Process ids of all hosts of this directory, asked or not; zombies are none."""
    found: list[int] = []
    if not Path("/proc").is_dir():
        listed = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True).stdout
        processes = [line.split(maxsplit=1) for line in listed.splitlines()]
        return sorted(
            int(pid) for pid, words in processes if "madeleine.server.host" in words and str(data_dir) in words
        )
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if b"madeleine.server.host" in words and os.fsencode(data_dir) in words:
                found.append(int(folder.name))
    return sorted(found)


@contextmanager
def no_host_left(data_dir: Path) -> Iterator[None]:
    """Whatever happens inside, no host of this directory outlives it."""
    try:
        yield
    finally:
        for pid in hosts_of(data_dir):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


hosted = partial(connected, words=COMMAND)
"""A real client of the command as an MCP client starts it."""


GONE_SECONDS = 60


def kill(pid: int) -> None:
    """And wait until it is gone: its parent may be a forwarder, which has other things to do than to bury it."""
    with contextlib.suppress(ProcessLookupError):
        wait_until_gone(pid, signal.SIGKILL)


def wait_until_gone(pid: int, number: int = 0) -> None:
    """Send the signal, and wait until the process has ended."""
    gone = os.pidfd_open(pid)
    try:
        os.kill(pid, number)
        assert select.select([gone], [], [], GONE_SECONDS)[0], "it lives"
    finally:
        os.close(gone)


async def texts_of(data_dir: Path, word: str, being: str = "ada") -> Counter[str]:
    async with hosted(data_dir, being=being) as client:
        return await snippets(client, word)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


class Asker:
    """A raw client that goes on asking without waiting, and collects what comes back."""

    def __init__(
        self,
        data_dir: Path,
        *,
        arguments: Sequence[str] = (),
        being: str = "ada",
        more: Mapping[str, str] | None = None,
    ) -> None:
        furnish(data_dir)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            env=environment(data_dir, being, **(more or {})),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.answers: list[dict[str, Any]] = []
        self.came = threading.Condition()
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.send(
            {"id": "init", "method": "initialize"}
            | {
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "asker", "version": "1"},
                }
            }
        )
        self.send({"method": "notifications/initialized"})

    def send(self, message: Mapping[str, Any]) -> None:
        self.send_line(json.dumps({"jsonrpc": "2.0"} | dict(message)).encode())

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def call(self, id_: int | str, tool: str, **arguments: Any) -> None:
        self.send({"id": id_, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def store(self, number: int, text: str) -> None:
        self.call(number, "store", text=text)

    def wait_for(self, count: int, *, seconds: float = 120) -> list[dict[str, Any]]:
        """At least so many answers, besides the handshake's; `seconds` without any answer are too long."""
        with self.came:
            while len(self.answers) < count and not self.ended:
                if not self.came.wait(timeout=seconds):
                    break
            assert len(self.answers) >= count, f"{len(self.answers)} of {count} answers; ended: {self.ended}"
            return list(self.answers)

    def close(self) -> int:
        """End of input; the exit code when all is answered."""
        assert self.process.stdin
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(timeout=DEADLOCK_S)
        self._reader.join(timeout=DEADLOCK_S)
        assert self.process.stdout
        self.process.stdout.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") != "init":
                with self.came:
                    self.answers.append(message)
                    self.came.notify_all()
        with self.came:
            self.ended = True
            self.came.notify_all()


@contextmanager
def asking(
    data_dir: Path, *, arguments: Sequence[str] = (), being: str = "ada", more: Mapping[str, str] | None = None
) -> Iterator[Asker]:
    asker = Asker(data_dir, arguments=arguments, being=being, more=more)
    try:
        yield asker
    finally:
        asker.process.kill()
        asker.close()
