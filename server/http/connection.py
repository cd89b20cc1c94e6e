"""One HTTP connection: it has a place among all, time limits for the head of each request and for reading its answer,
and a limit of chunks."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from madeleine.server.connections import ConnectionSlots

MAX_REQUEST_HEAD_ARRIVAL_SECONDS = 10.0
"""From the connection, or the first byte after an answer, to the end of the request's head."""
MAX_UNREAD_ANSWER_SECONDS = 20.0
"""For the client to take what waits to be sent: all but asyncio's low-water mark (16 of 64 KiB), or the end of an
answer."""
MAX_REQUEST_HEAD_BYTES = 32 * 1024
BASE_ALLOWED_BODY_CHUNKS = 1_024
BODY_BYTES_PER_ALLOWED_CHUNK = 1_024
"""Chunks of this mean size may be as many as fit the body; parsing takes 30 µs for each, however small."""


class _ChunkLimitedParser(h11.Connection):
    def __init__(self, max_chunks: int) -> None:
        super().__init__(h11.SERVER, MAX_REQUEST_HEAD_BYTES)
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


class LimitedHttpServerConnection(H11Protocol):
    """uvicorn's protocol, with limits. An `ConnectionSlotHolder` of `places`, under the peer's address."""

    def __init__(self, *, places: ConnectionSlots, address: str, max_body_bytes: int, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self.conn = _ChunkLimitedParser(BASE_ALLOWED_BODY_CHUNKS + max_body_bytes // BODY_BYTES_PER_ALLOWED_CHUNK)
        self._places = places
        self._address = address
        self._head_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request has arrived in full that is not answered."""
        if self.transport is None:
            return False
        return self._awaits_request_head or (self.cycle.more_body and not self.cycle.response_started)

    @property
    def _awaits_request_head(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def close(self) -> None:
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._update_request_head_timer()

    def data_received(self, data: bytes) -> None:
        awaited_head = self._awaits_request_head
        super().data_received(data)
        if awaited_head and not self._awaits_request_head:
            self._places.mark_as_most_recently_active(self._address, self)
        self._update_request_head_timer()

    def on_response_complete(self) -> None:
        self._places.mark_as_most_recently_active(self._address, self)
        super().on_response_complete()
        self._start_unread_answer_timer_if_unsent()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread_answer_timer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread_answer_timer()
        if self._awaits_request_head:
            self._start_unread_answer_timer_if_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        self._places.release(self._address, self)
        super().connection_lost(exc)
        self._stop_request_head_timer()
        self._stop_unread_answer_timer()

    def send_400_response(self, msg: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # answered already
            self.transport.abort()

    def _update_request_head_timer(self) -> None:
        if not self._awaits_request_head:
            self._stop_request_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(MAX_REQUEST_HEAD_ARRIVAL_SECONDS, self.close)

    def _stop_request_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _start_unread_answer_timer_if_unsent(self) -> None:
        if self.transport.get_write_buffer_size():
            self._start_unread_answer_timer()

    def _start_unread_answer_timer(self) -> None:
        if self._reading_timer is None:
            self._reading_timer = self.loop.call_later(MAX_UNREAD_ANSWER_SECONDS, self._abort_if_answer_unread)

    def _abort_if_answer_unread(self) -> None:
        """Without SO_LINGER the kernel would go on offering what was written."""
        self._reading_timer = None
        if self.transport.get_write_buffer_size():
            with suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
            self.close()

    def _stop_unread_answer_timer(self) -> None:
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None
