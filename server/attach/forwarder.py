"""Bytes from an MCP client to the host of its memory, and back. It outlives its host, and finds the next one."""

from __future__ import annotations

import selectors
import signal
import socket
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from madeleine.server import EXIT_USAGE
from madeleine.server.attach.connector import Ended, HostConnector
from madeleine.server.attach.handshake import HostRefused, HostRequest
from madeleine.server.attach.lines import LineBuffer
from madeleine.server.attach.pending_requests import Journal
from madeleine.server.attach.pipes import CHUNK, Sink, Source

PATIENCE_SECONDS = 15.0
"""After the client's end, for the next answer: a host hangs up somewhat earlier."""
MOST_WAITING = 1024 * 1024
"""Bytes towards one side from which the other is not read."""
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
DIED = (
    "Madeleine's process ended, or was told to, before it answered; whether this was carried out is not known. Nothing "
    "acknowledged before is lost. Call again."
)


class Forwarder:
    """One client. `run` returns when the client has closed its side, and all that it asked is answered."""

    def __init__(
        self, source: Source, sink: Sink, connector: HostConnector, request: HostRequest, alarm: socket.socket
    ) -> None:
        """When `alarm` becomes readable it ends as if the client had closed its side."""
        self._alarm = alarm
        self._source = source
        self._sink = sink
        self._connector = connector
        self._request = request
        self._journal = Journal()
        self._selector = selectors.DefaultSelector()
        self._link: socket.socket | None = None
        self._to_host = bytearray()
        self._from_host = LineBuffer()
        self._from_client = LineBuffer()
        self._unclear: list[bytes] = []
        """Lines that no host has got yet, and of which one has to say what is wrong with them."""
        self._until: float | None = None
        """Once the client has closed its side: when to give up waiting for the next answer."""

    def run(self) -> bool:
        """Whether all that was asked was answered by a host, or could not be for want of one. Raises `HostRefused` if
        there never was one."""
        answered = True
        with self._selector:
            self._selector.register(self._alarm, _READ, "alarm")
            with suppress(BrokenPipeError, Ended):
                self._connect()
                while self._goes_on():
                    self._watch()
                    left = None if self._until is None else self._until - time.monotonic()
                    for key, events in self._selector.select(None if left is None else max(0.0, left)):
                        self._serve(key.data, events)
            self._hang_up()
            with suppress(BrokenPipeError):
                for answer in self._journal.give_up(DIED, all_of_them=True):
                    answered = False
                    self._sink.write(answer)
        return answered

    def _goes_on(self) -> bool:
        if self._until is None:
            return True
        return time.monotonic() < self._until and bool(self._link or self._sink.waiting)

    def _end(self) -> None:
        if self._until is None:
            self._until = time.monotonic() + PATIENCE_SECONDS
            with suppress(KeyError):
                self._selector.unregister(self._source)
            self._send()

    # --- what can be done ---------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Neither side is read while the other does not take what it gets."""
        if self._until is None:
            self._select(self._source, _READ if len(self._to_host) < MOST_WAITING else 0, "source")
        if self._link is not None:
            reads = _READ if len(self._sink.waiting) < MOST_WAITING else 0
            self._select(self._link, reads | (_WRITE if self._to_host else 0), "link")
        if self._sink.watched:
            self._select(self._sink, _WRITE if self._sink.waiting else 0, "sink")

    def _select(self, what: Source | Sink | socket.socket, events: int, name: str) -> None:
        known = what in self._selector.get_map()
        if events and known:
            self._selector.modify(what, events, name)
        elif events:
            self._selector.register(what, events, name)
        elif known:
            self._selector.unregister(what)

    def _serve(self, name: str, events: int) -> None:
        match name:
            case "alarm":
                # It stays readable: who waits for a host must see it too.
                self._selector.unregister(self._alarm)
                self._end()
            case "source":
                self._from_the_client()
            case "sink":
                self._sink.flush()
            case _:
                if events & _READ:
                    self._from_the_host()
                if events & _WRITE:
                    self._send()

    # --- client → host ------------------------------------------------------------------------------------------

    def _from_the_client(self) -> None:
        got = self._source.read()
        for line in _whole_lines(self._from_client, got or b"\n"):
            clear = self._journal.sends(line)
            if self._link is not None and not self._journal.shaking_hands:
                self._to_host += line
            elif not clear:
                self._unclear.append(line)
        if self._link is None and (self._journal or self._unclear):
            self._connect_again()
        self._send()
        if not got:
            self._end()

    def _send(self) -> None:
        if self._link is None:
            return
        try:
            while self._to_host:
                del self._to_host[: self._link.send(self._to_host)]
            if self._until is not None and not self._journal.shaking_hands:
                self._link.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:  # the host is gone; reading will tell, after the last that it has said
            self._to_host.clear()

    # --- host → client ------------------------------------------------------------------------------------------

    def _from_the_host(self) -> None:
        if self._link is None:
            return
        try:
            got = self._link.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            got = b""
        if got:
            self._hear(got)
        else:
            self._lost()

    def _hear(self, got: bytes) -> None:
        for line in _whole_lines(self._from_host, got):
            if self._journal.hears(line):
                self._sink.write(line)
                if self._until is not None:
                    self._until = time.monotonic() + PATIENCE_SECONDS
            else:  # hands are shaken
                self._ask_again()

    def _lost(self) -> None:
        """The host is gone. What it has not answered is asked again, or answered here."""
        self._hang_up()
        for answer in self._journal.give_up(DIED):
            self._sink.write(answer)
        if self._journal:
            self._connect_again()

    def _hang_up(self) -> None:
        if self._link is not None:
            with suppress(KeyError):
                self._selector.unregister(self._link)
            self._link.close()
        self._link = None
        self._to_host.clear()
        self._from_host.clear()

    def _connect(self) -> None:
        self._link, rest = self._connector.connect(self._request, until=self._until)
        self._link.setblocking(False)
        self._hear(rest)

    def _connect_again(self) -> None:
        try:
            self._connect()
        except HostRefused as no:
            self._unclear.clear()
            for answer in self._journal.give_up(str(no), all_of_them=True):
                self._sink.write(answer)
            return
        if handshake := self._journal.handshake():
            self._to_host += handshake
            self._send()
        else:
            self._ask_again()

    def _ask_again(self) -> None:
        self._to_host += b"".join((*self._journal.again(), *self._unclear))
        self._unclear.clear()
        self._send()


def _whole_lines(buffer: LineBuffer, data: bytes) -> list[bytes]:
    """The lines that `data` completes, each with its end."""
    return [line + b"\n" for line in buffer.feed(data) if line is not None]


@contextmanager
def _alarm() -> Iterator[socket.socket]:
    """A socket that SIGTERM and SIGINT make readable, as long as they would have ended the process."""
    wakes, alarm = socket.socketpair()
    with wakes, alarm:
        wakes.setblocking(False)
        before = {one: signal.signal(one, _nothing) for one in (signal.SIGTERM, signal.SIGINT)}
        wakeup = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        try:
            yield alarm
        finally:
            signal.set_wakeup_fd(wakeup)
            for one, handler in before.items():
                signal.signal(one, handler)


def _nothing(signum: int, frame: FrameType | None) -> None:
    """The wakeup descriptor does it."""


def forward(data_dir: Path, environment: Mapping[str, str], settings: Mapping[str, str], version: str) -> int:
    """Standard input and output. The exit code: 2 for what the caller has to change, said on standard error."""
    request = HostRequest(version=version, session=uuid.uuid4().hex, settings=settings)
    try:
        with _alarm() as alarm:
            connector = HostConnector(data_dir, environment, alarm=alarm)
            answered = Forwarder(Source(0), Sink(1), connector, request, alarm).run()
    except HostRefused as no:
        print(f"madeleine: {no}", file=sys.stderr)
        return EXIT_USAGE if no.usage else 1
    return 0 if answered else 1
