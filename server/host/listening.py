"""The socket of a host. Standard library only: clients can connect before anything large is imported."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from madeleine.server import __version__
from madeleine.server.attach.address import (
    HOST_FILE,
    LOOPBACK,
    Address,
    default_transport,
    remove_host_file,
    socket_path,
    write_host_file,
)

BACKLOG = 128


@contextmanager
def listening(data_dir: Path, kind: str = "") -> Iterator[tuple[socket.socket, Address]]:
    """A socket that clients can already connect to; `kind`: "unix", "tcp", or "" for what the system has. Only who
    holds the lock may ask: what is there is a leftover. Raises `OSError`, `UntrustedDirectory`."""
    (data_dir / HOST_FILE).unlink(missing_ok=True)
    listener, address = _listen_on_loopback() if (kind or default_transport()) == "tcp" else _listen_on_unix(data_dir)
    with listener:
        try:
            write_host_file(data_dir, address, version=__version__)
        except OSError:  # a full disk; a Unix socket is found without
            if not address.path:
                raise
        created = _identity(address)
        try:
            yield listener, address
        finally:
            remove_host_file(data_dir)
            if created and _identity(address) == created:
                Path(address.path).unlink(missing_ok=True)


def _identity(address: Address) -> tuple[int, int] | None:
    """Of the socket's file: another host may have put its own there."""
    try:
        found = Path(address.path).stat() if address.path else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


def _listen_on_unix(data_dir: Path) -> tuple[socket.socket, Address]:
    path = socket_path(data_dir)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(BACKLOG)
    return listener, Address(path=str(path))


def _listen_on_loopback() -> tuple[socket.socket, Address]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((LOOPBACK, 0))
    listener.listen(BACKLOG)
    return listener, Address(port=listener.getsockname()[1], token=secrets.token_urlsafe(32))
