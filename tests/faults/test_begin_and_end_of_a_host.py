"""How a host comes and goes: what it finds, what it leaves behind, and for whom it makes room."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from mcp.client.client import Client

from madeleine.server.attach.endpoint import HOST_INFO_FILE, host_address
from tests.e2e.hosting import asking, hosted, hosts_of, kill, madeleine, mode, no_host_left, status
from tests.e2e.serving import COMMAND, ROOT, answer_text, call_tool, environment


@pytest.mark.slow
async def test_stop_and_idleness_end_the_host_and_leave_nothing_behind(data_dir: Path) -> None:
    with asking(data_dir, more={"MADELEINE_IDLE_SECONDS": "0.2"}) as asker:
        asker.store(0, "The bicycle is green")
        asker.wait_for(1)
        [pid] = hosts_of(data_dir)
        over = os.pidfd_open(pid)
        assert asker.close() == 0
    await readable(over)
    assert not (data_dir / HOST_INFO_FILE).exists()
    assert not there(host_address(data_dir).path)
    assert madeleine(data_dir, "stop").stdout.startswith("No process serves")
    assert "pid" not in status(data_dir)
    async with hosted(data_dir) as client:
        assert len((await call_tool(client, "recall", query="Which colour has the bicycle?")).get("sources", [])) == 1
        over = os.pidfd_open(hosts_of(data_dir)[0])
        assert madeleine(data_dir, "stop").stdout == "Ended.\n"
        await readable(over)
        assert len((await call_tool(client, "recall", query="Which colour has the bicycle?")).get("sources", [])) == 1


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
        await call_tool(client, "store", text="The mirror hangs in the hall")
    [pid] = hosts_of(data_dir)
    kill(pid)
    assert (data_dir / HOST_INFO_FILE).exists()
    (data_dir / HOST_INFO_FILE).write_text('{"pid": 1, "port": 9, "token": "x"}', encoding="utf-8")
    async with hosted(data_dir) as client:
        assert len((await call_tool(client, "recall", query="Where does the mirror hang?")).get("sources", [])) == 1
    (data_dir / HOST_INFO_FILE).write_bytes(b"\x00garbage")
    async with hosted(data_dir) as client:
        assert len((await call_tool(client, "recall", query="Where does the mirror hang?")).get("sources", [])) == 1


@pytest.mark.slow
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
            with suppress(ProcessLookupError):  # whose directory is gone ends by itself
                over = os.pidfd_open(first)
                os.kill(first, signal.SIGTERM)
                assert select.select([over], [], [], 60)[0]
                os.close(over)
            assert status(data_dir)["pid"] == second


@pytest.mark.slow
async def test_a_data_directory_may_lie_deeper_than_a_sockets_name_may_be_long(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 60) / ("b" * 60)
    with no_host_left(deep):
        async with hosted(deep) as client:
            await call_tool(client, "store", text="The well is deep")
            path = Path(status(deep)["data_dir"])
            assert path == deep
            elsewhere = Path(host_address(deep).path)
            assert (mode(elsewhere.parent), mode(elsewhere)) == (0o700, 0o600)
        assert madeleine(deep, "stop").stdout == "Ended.\n"
        assert not there(str(elsewhere))


def there(path: str) -> bool:
    return Path(path).exists()


def test_a_directory_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    completed = madeleine(tmp_path / "file" / "data")
    assert completed.returncode == 2
    assert "Set MADELEINE_DATA_DIR to a writable directory" in completed.stderr


@pytest.mark.slow
async def test_a_memory_that_another_process_owns_is_told_to_the_call_until_it_is_free(data_dir: Path) -> None:
    with asking(data_dir, arguments=["--in-process"]) as owner:
        owner.store(0, "The lamp is broken")
        owner.wait_for(1)
        async with hosted(data_dir) as client:
            refused = await client.call_tool("recall", {"query": "lamp"})
            assert refused.is_error
            assert f"in use by another Madeleine (process {owner.process.pid})" in answer_text(refused)
            assert owner.close() == 0
            assert len((await call_tool(client, "recall", query="lamp")).get("sources", [])) == 1


@pytest.mark.slow
async def test_http_that_cannot_serve_ends_nobody(data_dir: Path) -> None:
    async with hosted(data_dir) as client:
        await call_tool(client, "store", text="The lamp is broken")
        hosts = hosts_of(data_dir)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            for arguments in (["--port", str(taken.getsockname()[1])], ["--host", "0.0.0.0"], ["--tools", "remember"]):
                assert madeleine(data_dir, "serve", "--http", *arguments).returncode == 2
        assert hosts_of(data_dir) == hosts


@pytest.mark.slow
async def test_one_process_serves_http_and_stdio_over_one_memory(data_dir: Path) -> None:
    """The host that there is makes room, its clients go on with the next; and no second one takes its place."""
    async with hosted(data_dir) as client:
        await call_tool(client, "store", text="The bicycle is green")
        before = hosts_of(data_dir)
        async with over_http(data_dir) as (process, url):
            assert hosts_of(data_dir) == [] != before
            assert (
                len((await call_tool(client, "recall", query="Which colour has the bicycle?")).get("sources", [])) == 1
            )
            found = status(data_dir)
            assert (found["pid"], found["http"], len(found["clients"])) == (process.pid, url, 1)
            async with Client(url, mode="2026-07-28", read_timeout_seconds=60) as other:
                await call_tool(other, "store", text="The bicycle has a bell")
            assert len((await call_tool(client, "recall", query="What has the bicycle?")).get("sources", [])) == 2
            second = madeleine(data_dir, "serve", "--http", "--port", "0")
            assert second.returncode == 2
            assert f"Process {process.pid} serves the memory in {data_dir} already, at {url}" in second.stderr
            assert madeleine(data_dir, "stop").stdout == "Ended.\n"
            assert await process.wait() == 0
        assert len((await call_tool(client, "recall", query="What has the bicycle?")).get("sources", [])) == 2


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


@pytest.mark.slow
def test_twenty_starts_and_ends_leave_no_process_and_no_file(data_dir: Path) -> None:
    before: set[Path] = set()
    for number in range(20):
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
