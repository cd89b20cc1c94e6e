"""`python -m server.host DIRECTORY`: become its host, or end with 0 if another is.

It listens before it imports what is large, so that a client's connection waits no longer than it must. What it prints
until it serves is for whoever started it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server import __version__
from server.attach.address import (
    LOCK,
    LOOPBACK,
    Address,
    Untrusted,
    default_kind,
    remove_about,
    socket_path,
    write_about,
)
from server.attach.lock import hold
from server.environment import environment, given

BACKLOG = 128
EXIT_USAGE = 2


def main() -> int:
    os.umask(0o077)
    data_dir = Path(sys.argv[1])
    try:
        with hold(data_dir / LOCK) as mine:
            if not mine:
                return 0
            with listening(data_dir, given(environment()).get("attach") or default_kind()) as (listener, address):
                from server.host.serving import run

                return run(data_dir, listener, address)
    except (OSError, Untrusted) as error:
        print(f"madeleine: {data_dir} cannot be used: {error}", file=sys.stderr)
        return EXIT_USAGE


@contextmanager
def listening(data_dir: Path, kind: str) -> Iterator[tuple[socket.socket, Address]]:
    """A socket that clients can already connect to. Only who holds the lock may ask: what is there is a leftover."""
    listener, address = _on_loopback() if kind == "tcp" else _in_directory(data_dir)
    with listener:
        with suppress(OSError):  # on a full disk; a Unix socket is found without
            write_about(data_dir, address, version=__version__)
        try:
            yield listener, address
        finally:
            remove_about(data_dir)
            if address.path:
                Path(address.path).unlink(missing_ok=True)


def _in_directory(data_dir: Path) -> tuple[socket.socket, Address]:
    path = socket_path(data_dir)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(BACKLOG)
    return listener, Address(path=str(path))


def _on_loopback() -> tuple[socket.socket, Address]:
    import secrets

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((LOOPBACK, 0))
    listener.listen(BACKLOG)
    return listener, Address(port=listener.getsockname()[1], token=secrets.token_urlsafe(32))


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    sys.stderr.flush()
    # All is closed. A thread that still waits for a network must not keep the process alive.
    os._exit(code)
