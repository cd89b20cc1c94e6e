"""The socket of a host. Standard library only: clients can connect before anything large is imported."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server import __version__
from server.attach.address import LOOPBACK, Address, default_kind, remove_about, socket_path, write_about

BACKLOG = 128


@contextmanager
def listening(data_dir: Path, kind: str = "") -> Iterator[tuple[socket.socket, Address]]:
    """A socket that clients can already connect to; `kind`: "unix", "tcp", or "" for what the system has. Only who
    holds the lock may ask: what is there is a leftover. Raises `OSError`, `Untrusted`."""
    listener, address = _on_loopback() if (kind or default_kind()) == "tcp" else _in_directory(data_dir)
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
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((LOOPBACK, 0))
    listener.listen(BACKLOG)
    return listener, Address(port=listener.getsockname()[1], token=secrets.token_urlsafe(32))
