"""The data directory is for its owner alone, whoever made it and how."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from madeleine.server.wiring.data_directory import lock_data_directory, make_data_directory_private

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions are inherited there")


def modes(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): oct(path.lstat().st_mode & 0o777) for path in root.rglob("*")}


def a_lax_directory(root: Path) -> Path:
    data_dir = root / "data"
    for name in ("memory.db", "memory.db-wal", "owner.lock", "madeleine.toml", "index/a/b", "models/m/model.onnx"):
        (data_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (data_dir / name).write_text("", encoding="utf-8")
    for path in (data_dir, *data_dir.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o664)
    return data_dir


def test_what_is_open_to_others_is_closed_at_the_start_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data_dir = a_lax_directory(tmp_path)
    with caplog.at_level(logging.WARNING), lock_data_directory(data_dir):
        found = modes(tmp_path)
    assert {name for name, mode in found.items() if mode not in {"0o600", "0o700"}} - {"data/owner.json"} == set()
    assert found["data"] == "0o700"
    [record] = caplog.records
    assert "others could read" in record.getMessage()


def test_what_is_closed_already_is_not_spoken_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data_dir = a_lax_directory(tmp_path)
    make_data_directory_private(data_dir)
    caplog.clear()
    make_data_directory_private(data_dir)
    assert not caplog.records


def test_a_directory_that_holds_other_things_stays_open_and_so_do_they(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data_dir = a_lax_directory(tmp_path)
    (data_dir / "homepage").mkdir()
    (data_dir / "homepage").chmod(0o755)
    (data_dir / "homepage" / "index.html").touch()
    (data_dir / "homepage" / "index.html").chmod(0o644)
    with caplog.at_level(logging.WARNING):
        make_data_directory_private(data_dir)
    found = modes(tmp_path)
    assert (found["data"], found["data/homepage"], found["data/homepage/index.html"]) == ("0o755", "0o755", "0o644")
    assert found["data/memory.db"] == "0o600"
    assert any("homepage" in record.getMessage() for record in caplog.records)


def test_what_a_link_leads_to_is_left_alone(tmp_path: Path) -> None:
    data_dir, shared = a_lax_directory(tmp_path), tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "weights").touch()
    (shared / "weights").chmod(0o644)
    (data_dir / "models" / "link").symlink_to(shared / "weights")
    (data_dir / "models").rename(tmp_path / "moved")
    (data_dir / "models").symlink_to(tmp_path / "moved")
    before = modes(shared) | modes(tmp_path / "moved")
    make_data_directory_private(data_dir)
    assert modes(shared) | modes(tmp_path / "moved") == before
