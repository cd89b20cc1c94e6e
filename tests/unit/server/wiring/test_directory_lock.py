"""One process owns a data directory; what it says of itself there is for information only."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from madeleine.memory.errors import StorageBusy
from madeleine.server.attach.endpoint import is_file_locked
from madeleine.server.wiring.data_directory import (
    DATA_DIRECTORY_LOCK_FILE,
    DATA_DIRECTORY_OWNER_FILE,
    lock_data_directory,
)


def a_full_disk(about: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    about.symlink_to("/dev/full")


def a_directory(about: Path) -> None:
    about.mkdir()


def test_the_owner_says_who_it_is_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with lock_data_directory(tmp_path):
        assert json.loads((tmp_path / DATA_DIRECTORY_OWNER_FILE).read_text(encoding="utf-8"))["pid"] == os.getpid()
        with pytest.raises(StorageBusy, match=f"process {os.getpid()}"), lock_data_directory(tmp_path):
            pass
    assert not (tmp_path / DATA_DIRECTORY_OWNER_FILE).exists()


@pytest.mark.parametrize("in_the_way", [a_full_disk, a_directory])
def test_an_owner_that_cannot_say_who_it_is_owns_all_the_same(
    tmp_path: Path, in_the_way: Callable[[Path], None]
) -> None:
    """A full disk once made every call fail inside Madeleine."""
    in_the_way(tmp_path / DATA_DIRECTORY_OWNER_FILE)
    with lock_data_directory(tmp_path):
        assert is_file_locked(tmp_path / DATA_DIRECTORY_LOCK_FILE)
    assert not is_file_locked(tmp_path / DATA_DIRECTORY_LOCK_FILE)
