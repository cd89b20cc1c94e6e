"""The address of the host of a data directory: a Unix socket in it, or loopback TCP with a token."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HOST_LOCK_FILE = "host.lock"
"""Held by the host as long as it lives."""
HOST_FILE = "host.json"
"""Process id, version and address of the host."""
SOCKET = "host.sock"
LONGEST_SOCKET_PATH = 100
"""Bytes; the smallest limit among the systems is 103."""
LOOPBACK = "127.0.0.1"
CONNECT_SECONDS = 5.0

Transport = Literal["unix", "tcp"]


class UntrustedDirectory(Exception):
    """A directory that should be the user's own can be used by others."""


@dataclass(frozen=True, slots=True)
class Address:
    """The path of a Unix socket, or a port on loopback with the token that a client needs."""

    path: str = ""
    port: int = 0
    token: str = ""


def default_transport() -> Transport:
    return "tcp" if sys.platform == "win32" or not hasattr(socket, "AF_UNIX") else "unix"


def socket_path(data_dir: Path) -> Path:
    """In the data directory; if its path is too long for a socket, in the user's own folder of the temporary directory.

    Raises `UntrustedDirectory` if others can use that folder.
    """
    path = data_dir / SOCKET
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    folder = Path(tempfile.gettempdir()) / f"madeleine-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UntrustedDirectory(
            f"{folder} is not a directory that only you can use. Remove it, or take a shorter data directory."
        )
    return folder / f"{hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]}.sock"


def write_host_file(data_dir: Path, address: Address, *, version: str) -> None:
    """Replaced as a whole. Raises `OSError`."""
    content = {"pid": os.getpid(), "version": version}
    content |= {"socket": address.path} if address.path else {"port": address.port, "token": address.token}
    draft = data_dir / f"{HOST_FILE}.{os.getpid()}"
    try:
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(content), encoding="utf-8")
        draft.replace(data_dir / HOST_FILE)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def remove_host_file(data_dir: Path) -> None:
    """If it is still this process's: another host may have a new directory at the same path."""
    if host_pid(data_dir) == os.getpid():
        with suppress(OSError):
            (data_dir / HOST_FILE).unlink(missing_ok=True)


def host_pid(data_dir: Path) -> int:
    """0 if it is not known."""
    try:
        return int(json.loads((data_dir / HOST_FILE).read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def find_address(data_dir: Path) -> Address:
    """The address that a host would have; an empty one if it cannot be known. Raises `UntrustedDirectory`."""
    try:
        content = json.loads((data_dir / HOST_FILE).read_bytes())
        if "socket" in content:
            return Address(path=str(content["socket"]))
        return Address(port=int(content["port"]), token=str(content["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        # A full disk may have kept the host from writing it.
        return Address(path=str(socket_path(data_dir))) if default_transport() == "unix" else Address()


def connect_socket(address: Address) -> socket.socket:
    """A connected, blocking socket without a timeout. Raises `OSError` if nobody listens."""
    if address.path:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target: str | tuple[str, int] = address.path
    elif address.port:
        link = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = LOOPBACK, address.port
    else:
        raise ConnectionRefusedError("the address of the host is not known")
    try:
        link.settimeout(CONNECT_SECONDS)
        link.connect(target)
        link.settimeout(None)
    except BaseException:
        link.close()
        raise
    return link
