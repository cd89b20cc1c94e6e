"""One HTTP connection: it has a place among all, a time limit for the head of each request, and a limit of chunks."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from madeleine.server.connections import SharedPlaces

MAX_HEAD_ARRIVAL_SECONDS = 10.0
"""From the connection, or the first byte after an answer, to the end of the request's head."""
MAX_HEAD_BYTES = 32 * 1024
MIN_MAX_CHUNKS = 1_024
CHUNK_BYTES_WITHOUT_LIMIT = 1_024
"""Chunks of this mean size may be as many as fit the body; parsing takes 30 µs for each, however small."""


class _ChunkLimitedParser(h11.Connection):
    def __init__(self, max_chunks: int) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self._max_chunks = max_chunks
        self._chunks = 0

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = 0
        elif isinstance(event, h11.Data) and event.chunk_start:
            self._chunks += 1
            if self._chunks > self._max_chunks:
                raise h11.RemoteProtocolError("The body has too many chunks", error_status_hint=400)
        return event


class HttpConnection(H11Protocol):
    """uvicorn's protocol, with limits. An `Occupant` of `places`, under the peer's address."""

    def __init__(self, *, places: SharedPlaces, address: str, max_body_bytes: int, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self.conn = _ChunkLimitedParser(MIN_MAX_CHUNKS + max_body_bytes // CHUNK_BYTES_WITHOUT_LIMIT)
        self._places = places
        self._address = address
        self._head_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived in full that is not answered."""
        if self.transport is None:
            return False
        return self._awaits_head or (self.cycle.more_body and not self.cycle.response_started)

    @property
    def _awaits_head(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def close(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_head_timer()

    def data_received(self, data: bytes) -> None:
        awaited_head = self._awaits_head
        super().data_received(data)
        if awaited_head and not self._awaits_head:
            self._places.mark_active(self._address, self)
        self._update_head_timer()

    def on_response_complete(self) -> None:
        self._places.mark_active(self._address, self)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.leave(self._address, self)
        super().connection_lost(exc)
        self._stop_head_timer()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # answered already
            self.transport.abort()

    def _update_head_timer(self) -> None:
        if not self._awaits_head:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(MAX_HEAD_ARRIVAL_SECONDS, self.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
