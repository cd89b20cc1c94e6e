"""A small disk of its own, a tmpfs in a mount namespace: nobody else sees it, and it is gone with its holder."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.e2e.serving import ROOT, command, environment
from tests.waiting import DEADLOCK_S

TOOLS = ("unshare", "nsenter", "mount")


class SmallDisk:
    """`path` is where servers see it; `outside` is where this process does."""

    def __init__(self, path: Path, holder: int) -> None:
        self.path = path
        self.outside = Path(f"/proc/{holder}/root{path}")
        self.log = path.with_suffix(".log")
        self._ballast = self.outside / "ballast"
        self._enter = ["nsenter", f"--target={holder}", "--user", "--mount", "--preserve-credentials"]

    def fill(self, *, leave: int = 0) -> None:
        """Until `leave` bytes are free, or as good as."""
        with self._ballast.open("ab") as ballast:
            for _ in range(100):
                disk = os.statvfs(self.outside)
                if (more := disk.f_bavail * disk.f_frsize - leave) < disk.f_frsize:
                    return
                with suppress(OSError):  # others write and delete, too
                    os.posix_fallocate(ballast.fileno(), 0, os.fstat(ballast.fileno()).st_size + more)

    def keep_blocks(self) -> None:
        """Writes again whatever has a block, once no server runs.

        What was only read of a hole has a block that a tmpfs takes back at any time, which makes room on a full disk.
        """
        for path in self.outside.rglob("*"):
            if path.is_file():
                with path.open("r+b", buffering=0) as file:
                    start = 0
                    with suppress(OSError):  # no more data
                        while (start := os.lseek(file.fileno(), start, os.SEEK_DATA)) >= 0:
                            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
                            os.pwrite(file.fileno(), os.pread(file.fileno(), end - start, start), start)
                            start = end

    def make_room(self) -> None:
        self._ballast.unlink()

    def command(self, words: Sequence[str] = ()) -> list[str]:
        """`words` as they run on the disk; by default a server that lives no longer than its client."""
        return [*self._enter, f"--wd={ROOT}", *(words or command())]

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        """A real client of a real server whose data directory is on the disk, and which has the time to end.

        What a killed server leaves is deleted by the next one, which makes room on a disk without a byte left.
        """
        executable, *arguments = self.command()
        env = environment(self.path / "data") | {"PYTHONPATH": str(ROOT)}
        server = StdioServerParameters(command=executable, args=arguments, env=env, cwd=ROOT)
        patience = patch("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", DEADLOCK_S)
        with patience, self.log.open("a", encoding="utf-8") as log:
            async with Client(stdio_client(server, errlog=log), read_timeout_seconds=DEADLOCK_S) as client:
                yield client

    async def logged(self, words: str) -> None:
        """Waits until the server says so."""
        async with asyncio.timeout(DEADLOCK_S):
            with self.log.open(encoding="utf-8") as log:
                while words not in (log.readline() or await asyncio.sleep(0.05, "")):
                    pass


@contextmanager
def small_disk(path: Path, *, megabytes: int) -> Iterator[SmallDisk | None]:
    """None where a process may not mount one."""
    if not all(shutil.which(tool) for tool in TOOLS):
        yield None
        return
    path.mkdir()
    mount = f'mount -t tmpfs -o size={megabytes}m tmpfs "$0" && echo ready && exec cat'
    with subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as holder:  # fmt: skip
        try:
            assert holder.stdin
            assert holder.stdout
            ready = holder.stdout.readline() == b"ready\n"
            yield SmallDisk(path, holder.pid) if ready else None
            holder.stdin.close()
            holder.wait(timeout=10)
        finally:
            holder.kill()
