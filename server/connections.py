"""Connections to the listeners of a host: how many there are at once, for all and for one owner, and accepting them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from madeleine import operating_system

logger = logging.getLogger(__name__)

RESERVED_OPEN_FILES = 128
"""Of the store, its index and log, and the requests to models and issuers: some 30 are open at rest."""
MAX_OPEN_FILES = 65_536
"""Asked for where the hard limit is none."""
MAX_HTTP_CONNECTIONS = 2_000
LISTEN_BACKLOG = 256
MAX_SOCKET_ACCEPTS_PER_LOOP_TURN = 16
"""Of the event loop: what is being served goes on while many connect."""
ACCEPT_RETRY_SECONDS = 1.0
WARNING_THROTTLE_INTERVAL_SECONDS = 60.0
"""Between two log lines."""


def raise_open_file_limit() -> int:
    """Raise the soft limit to the hard one, and return it."""
    return operating_system.raise_open_file_limit(MAX_OPEN_FILES)


@dataclass(frozen=True, slots=True)
class MaxHttpAndHostConnections:
    """Connections at once, of HTTP and of the host's own socket. HTTP never takes what the socket's clients need."""

    http: int
    host: int

    @classmethod
    def from_open_file_limit(cls, limit: int) -> MaxHttpAndHostConnections:
        available = max(limit - RESERVED_OPEN_FILES, 32)
        http = min(MAX_HTTP_CONNECTIONS, available * 3 // 4)
        return cls(http, available - http)


class ConnectionSlotHolder(Protocol):
    @property
    def is_idle(self) -> bool:
        """Whether it can be closed without taking an answer from anybody."""

    def close(self) -> None: ...


class ConnectionSlots:
    """At most `total` places, and at most `per_owner` for one owner. Where there is none, the idle occupant that was
    active longest ago is closed: one of the same owner, or else one of the owner that has most."""

    def __init__(self, total: int, per_owner: int) -> None:
        self.total = total
        self.per_owner = per_owner
        self._by_owner: dict[str, dict[ConnectionSlotHolder, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def claim(self, owner: str, occupant: ConnectionSlotHolder) -> bool:
        """False if there is no place, and no idle occupant to close for it."""
        if len(self._by_owner.get(owner, ())) >= self.per_owner and not self._close_oldest_idle([owner]):
            return False
        if self._count >= self.total:
            most_first = sorted(self._by_owner, key=lambda other: len(self._by_owner[other]), reverse=True)
            if not self._close_oldest_idle(most_first):
                return False
        self._by_owner.setdefault(owner, {})[occupant] = None
        self._count += 1
        return True

    def release(self, owner: str, occupant: ConnectionSlotHolder) -> None:
        """Nothing happens if it has no place any more."""
        own = self._by_owner.get(owner, {})
        if occupant in own:
            del own[occupant]
            self._count -= 1
            if not own:
                del self._by_owner[owner]

    def mark_as_most_recently_active(self, owner: str, occupant: ConnectionSlotHolder) -> None:
        own = self._by_owner.get(owner, {})
        if occupant in own:
            del own[occupant]
            own[occupant] = None

    def _close_oldest_idle(self, owners: Iterable[str]) -> bool:
        for owner in owners:
            for occupant in self._by_owner[owner]:
                if occupant.is_idle:
                    self.release(owner, occupant)
                    occupant.close()
                    return True
        return False


class WarningThrottle:
    """One line for many errors in a row."""

    def __init__(self, seconds: float = WARNING_THROTTLE_INTERVAL_SECONDS) -> None:
        self._seconds = seconds
        self._logged_at = float("-inf")
        self._count = 0

    def log_or_count(self, message: str, error: object, *, now: float) -> None:
        self._count += 1
        if now - self._logged_at >= self._seconds:
            logger.warning("%s (%d times): %s", message, self._count, error)
            self._logged_at, self._count = now, 0


HandleAcceptedConnection = Callable[[socket.socket, Any], None]
"""Takes the socket, which it has to close, and the peer's address."""


async def accept_connections(listener: socket.socket, on_connection: HandleAcceptedConnection) -> None:
    """Accept until cancelled.

    asyncio's own servers, when no file can be opened, log each of up to `backlog` failures at a time, and begin as many
    further attempts a second later.
    """
    loop, errors = asyncio.get_running_loop(), WarningThrottle()
    accepted = 0
    listener.setblocking(False)
    while True:
        try:
            connection, address = await loop.sock_accept(listener)
        except ConnectionError:
            continue  # the client left before it was accepted
        except OSError as error:
            errors.log_or_count("a connection could not be accepted", error, now=loop.time())
            await asyncio.sleep(ACCEPT_RETRY_SECONDS)
            continue
        on_connection(connection, address)
        accepted += 1
        if accepted % MAX_SOCKET_ACCEPTS_PER_LOOP_TURN == 0:
            await asyncio.sleep(0)
