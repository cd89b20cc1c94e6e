"""How many connections there are at once, and whose."""

from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.server import connections
from madeleine.server.connections import (
    RESERVED_OPEN_FILES,
    ConnectionSlots,
    MaxHttpAndHostConnections,
    accept_connections,
)
from tests.rows import for_each_row


@dataclass(eq=False)
class Guest:
    is_idle: bool = True
    closed: bool = False

    def close(self) -> None:
        self.closed = True


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60), st.integers(1, 6), st.integers(1, 4))
def test_places_are_never_exceeded_and_only_idle_occupants_are_closed(
    arrivals: list[tuple[str, bool]], total: int, per_owner: int
) -> None:
    places, inside = ConnectionSlots(total, per_owner), dict[Guest, str]()
    for owner, is_idle in arrivals:
        guest = Guest(is_idle)
        if places.claim(owner, guest):
            inside[guest] = owner
        else:
            assert not any(other.is_idle for other, whose in inside.items() if whose == owner)
        inside = {other: whose for other, whose in inside.items() if not other.closed}
        assert len(places) == len(inside) <= total
        assert all(list(inside.values()).count(owner) <= per_owner for owner in "abc")
        assert all(other.is_idle for other in inside if other.closed)


def test_the_own_oldest_idle_occupant_makes_room_before_those_of_others() -> None:
    places = ConnectionSlots(total=4, per_owner=2)
    other, first, busy, second, third = Guest(), Guest(), Guest(is_idle=False), Guest(), Guest()
    for owner, guest in (("other", other), ("greedy", first), ("greedy", second)):
        assert places.claim(owner, guest)
    places.mark_as_most_recently_active("greedy", first)
    assert places.claim("greedy", third)
    assert [guest.closed for guest in (other, first, second)] == [False, False, True]
    # Of all, the owner with most gives way.
    assert places.claim("x", busy)
    assert places.claim("y", Guest())
    assert [guest.closed for guest in (other, first, third, busy)] == [False, True, False, False]


@for_each_row("open_files", [256, 1_024, 8_192, 65_536])
def test_http_leaves_files_to_the_store_and_places_to_the_hosts_own_clients(open_files: int) -> None:
    limits = MaxHttpAndHostConnections.from_open_file_limit(open_files)
    assert limits.http + limits.host + RESERVED_OPEN_FILES <= open_files
    assert limits.host >= min(limits.http // 3, 32)


async def test_errors_of_accepting_are_one_log_line_and_end_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop, failures = asyncio.get_running_loop(), 1_000
    accept = loop.sock_accept

    async def sock_accept(listener: socket.socket) -> tuple[socket.socket, object]:
        nonlocal failures
        if failures:
            failures -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", sock_accept)
    monkeypatch.setattr(connections, "ACCEPT_RETRY_SECONDS", 0)
    arrived = asyncio.Event()

    def arrive(connection: socket.socket, _: object) -> None:
        connection.close()
        arrived.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(accept_connections(listener, arrive))
        with socket.create_connection(listener.getsockname()):
            async with asyncio.timeout(60):
                await arrived.wait()
        task.cancel()
    assert [record.getMessage() for record in caplog.records] == [
        "a connection could not be accepted (1 times): [Errno 24] Too many open files"
    ]
