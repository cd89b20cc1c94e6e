"""Where the host of a data directory is: its lock, and its address, a Unix socket or loopback TCP with a token.

Standard library only: a forwarder uses it at its start, and a host before it imports anything large.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madeleine import operating_system
from madeleine.server import __version__

HOST_LOCK_FILE = "host.lock"
"""Held by the host as long as it lives."""
HOST_INFO_FILE = "host.json"
"""Process id, version and address of the host, and which directory it serves."""
HOST_SOCKET_FILE = "host.sock"
MAX_SOCKET_PATH_BYTES = 100
"""The smallest limit among the systems is 103."""
LOOPBACK_ADDRESS = "127.0.0.1"
MAX_HOST_CONNECT_SECONDS = 5.0
HOST_SOCKET_BACKLOG = 128


class UntrustedDirectory(Exception):
    """A directory that should be the user's own can be used by others."""


# --- lock ---------------------------------------------------------------------------------------------------------


def is_file_locked(path: Path) -> bool:
    with operating_system.try_to_hold_file_lock(path) as acquired:
        return not acquired


def is_host_locked(data_dir: Path) -> bool:
    """Return whether a process is the host. Raises `OSError` if the directory cannot be used."""
    return is_file_locked(data_dir / HOST_LOCK_FILE)


# --- address ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostAddress:
    """The path of a Unix socket, or a port on loopback with the token that a client needs."""

    path: str = ""
    port: int = 0
    token: str = ""


def host_socket_path(data_dir: Path) -> Path:
    """A path in the data directory; if that is too long for a socket, in the user's folder of the temporary directory.

    Raises `UntrustedDirectory` if others can use that folder.
    """
    path = data_dir / HOST_SOCKET_FILE
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    folder = Path(tempfile.gettempdir()) / f"madeleine-{operating_system.operating_system_user_id()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != operating_system.operating_system_user_id()
        or status.st_mode & 0o077
    ):
        raise UntrustedDirectory(
            f"{folder} is not a directory that only you can use. Remove it, or take a shorter data directory."
        )
    return folder / f"{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}.sock"


def write_host_info_file(data_dir: Path, address: HostAddress) -> None:
    """Replace the file as a whole. Raises `OSError`."""
    content = {"pid": os.getpid(), "version": __version__, "directory": _device_and_inode_of_directory(data_dir)}
    content |= {"socket": address.path} if address.path else {"port": address.port, "token": address.token}
    draft = data_dir / f"{HOST_INFO_FILE}.{os.getpid()}"
    try:
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.replace(data_dir / HOST_INFO_FILE)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def remove_own_host_info_file(data_dir: Path) -> None:
    """Remove the file if it is still this process's: another host may have a new directory at the same path."""
    if host_pid(data_dir) == os.getpid():
        with suppress(OSError):
            (data_dir / HOST_INFO_FILE).unlink(missing_ok=True)


_HOST_INFO_READ_ERRORS = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def _read_host_info_file(data_dir: Path) -> dict[str, Any]:
    """The content of the host file. Raises one of `_HOST_INFO_READ_ERRORS`, also if it came with a copy of the
    directory: the host that it names serves the original."""
    content: dict[str, Any] = json.loads((data_dir / HOST_INFO_FILE).read_bytes())
    identity = _device_and_inode_of_directory(data_dir)
    if content.get("directory", identity) != identity:
        raise ValueError("the host serves another directory")
    return content


def _device_and_inode_of_directory(path: Path) -> list[int]:
    """Kept when it is renamed, and not shared with a copy. Raises `OSError`."""
    status = path.stat()
    return [status.st_dev, status.st_ino]


def host_pid(data_dir: Path) -> int:
    """The host's process id; 0 if it is not known."""
    try:
        return int(_read_host_info_file(data_dir)["pid"])
    except _HOST_INFO_READ_ERRORS:
        return 0


def host_address(data_dir: Path) -> HostAddress:
    """The address that a host would have; an empty one if it cannot be known. Raises `UntrustedDirectory`."""
    try:
        content = _read_host_info_file(data_dir)
        if "socket" in content:
            return HostAddress(path=str(content["socket"]))
        return HostAddress(port=int(content["port"]), token=str(content["token"]))
    except _HOST_INFO_READ_ERRORS:
        # A full disk may have kept the host from writing it.
        return (
            HostAddress(path=str(host_socket_path(data_dir))) if operating_system.has_unix_sockets() else HostAddress()
        )


# --- socket -------------------------------------------------------------------------------------------------------


def socket_connected_to_host(address: HostAddress) -> socket.socket:
    """A connected, blocking socket without a timeout. Raises `OSError` if nobody listens."""
    if address.port:
        connection = socket.create_connection((LOOPBACK_ADDRESS, address.port), MAX_HOST_CONNECT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    elif address.path:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(MAX_HOST_CONNECT_SECONDS)
            connection.connect(address.path)
        except BaseException:
            connection.close()
            raise
    else:
        raise ConnectionRefusedError("the address of the host is not known")
    connection.settimeout(None)
    return connection


@contextmanager
def open_host_listener(data_dir: Path, transport: str = "") -> Iterator[tuple[socket.socket, HostAddress]]:
    """A socket that clients can already connect to, and its address in the host file.

    `transport`: "unix", "tcp", or "" for the system's own. The caller holds the lock, so a file that is there is a
    leftover. Raises `OSError`, `UntrustedDirectory`."""
    (data_dir / HOST_INFO_FILE).unlink(missing_ok=True)
    if transport == "tcp" or not (transport or operating_system.has_unix_sockets()):
        listener = socket.create_server((LOOPBACK_ADDRESS, 0), backlog=HOST_SOCKET_BACKLOG)
        address = HostAddress(port=listener.getsockname()[1], token=secrets.token_urlsafe(32))
    else:
        path = host_socket_path(data_dir)
        address = HostAddress(path=str(path))
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(address.path)
        path.chmod(0o600)
        listener.listen(HOST_SOCKET_BACKLOG)
    with listener:
        try:
            write_host_info_file(data_dir, address)
        except OSError:  # a full disk; a Unix socket is found without
            if not address.path:
                raise
        created = _device_and_inode_of_socket_file(address)
        try:
            yield listener, address
        finally:
            remove_own_host_info_file(data_dir)
            if created and _device_and_inode_of_socket_file(address) == created:
                Path(address.path).unlink(missing_ok=True)


def _device_and_inode_of_socket_file(address: HostAddress) -> tuple[int, int] | None:
    """Device and inode of the socket's file: another host may have put its own there."""
    try:
        status = Path(address.path).stat() if address.path else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status else None
