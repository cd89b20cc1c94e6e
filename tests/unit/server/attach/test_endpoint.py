"""Where a host is looked for."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from madeleine.operating_system import try_to_hold_file_lock
from madeleine.server.attach.endpoint import (
    HOST_INFO_FILE,
    HostAddress,
    UntrustedDirectory,
    host_address,
    host_pid,
    host_socket_path,
    is_file_locked,
    remove_own_host_info_file,
    socket_connected_to_host,
    write_host_info_file,
)
from tests.rows import for_each_row


def test_a_written_address_is_found_and_only_the_user_can_read_it(tmp_path: Path) -> None:
    for there in (HostAddress(path="/somewhere/else.sock"), HostAddress(port=4711, token="t")):
        write_host_info_file(tmp_path, there)
        assert host_address(tmp_path) == there
        assert (tmp_path / HOST_INFO_FILE).stat().st_mode & 0o777 == 0o600
        assert [path.name for path in tmp_path.iterdir()] == [HOST_INFO_FILE]
    remove_own_host_info_file(tmp_path)
    assert host_address(tmp_path) == HostAddress(path=str(tmp_path / "host.sock"))


def test_a_copied_directory_does_not_lead_to_the_host_of_the_original(tmp_path: Path) -> None:
    """Else what is stored in the copy would be written into the original."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    write_host_info_file(original, HostAddress(port=4711, token="t"))
    shutil.copytree(original, copy)
    assert (host_pid(original), host_pid(copy)) == (os.getpid(), 0)
    assert host_address(copy) == HostAddress(path=str(copy / "host.sock"))
    original.rename(tmp_path / "renamed")
    assert host_address(tmp_path / "renamed") == HostAddress(port=4711, token="t")


def test_a_directory_for_sockets_that_others_can_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    deep = tmp_path / ("d" * 120)
    path = host_socket_path(deep)
    assert path.parent.parent == tmp_path
    path.parent.chmod(0o755)
    with pytest.raises(UntrustedDirectory, match="only you can use"):
        host_socket_path(deep)
    path.parent.rmdir()
    path.parent.symlink_to(tmp_path)
    with pytest.raises(UntrustedDirectory):
        host_socket_path(deep)


def test_two_directories_have_two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert host_socket_path(tmp_path / ("d" * 120)) != host_socket_path(tmp_path / ("e" * 120))


@for_each_row("nobody", [HostAddress(), HostAddress(path="/nowhere/host.sock"), HostAddress(port=1)])
def test_an_address_without_a_listener_is_an_os_error(nobody: HostAddress) -> None:
    with pytest.raises(OSError, match=r".+"):
        socket_connected_to_host(nobody)


def test_a_lock_is_locked_by_one_and_freed_with_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert not is_file_locked(lock)
    with try_to_hold_file_lock(lock) as mine, try_to_hold_file_lock(lock) as again:
        assert mine
        assert not again
        assert is_file_locked(lock)
    assert not is_file_locked(lock)
    assert lock.stat().st_mode & 0o777 == 0o600
