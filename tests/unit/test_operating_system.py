"""What differs between systems is asked in one place."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from madeleine import operating_system
from tests.unit.test_house import ROOT, SOURCES


def asks_for_system(source: str) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id, node.attr) in {("sys", "platform"), ("os", "name"), ("platform", "system")}
        for node in ast.walk(ast.parse(source))
    )


def test_no_other_module_asks_which_system_this_is() -> None:
    askers = {path for path in SOURCES if asks_for_system((ROOT / path).read_text(encoding="utf-8"))}
    assert askers == set()


def test_windows_has_no_sockets_pipes_signals_and_permission_bits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(operating_system, "OPERATING_SYSTEM", "windows")
    asked = (
        operating_system.has_unix_sockets(),
        operating_system.can_watch_pipes(),
        operating_system.system_has_permission_bits(),
        operating_system.has_glibc_allocator(),
    )
    assert asked == (False, False, False, False)
    assert operating_system.stop_signals() == ()
    assert operating_system.executable_file_name("madeleine") == "madeleine.exe"
    assert operating_system.raise_open_file_limit(77) == 77
    operating_system.fsync_folder(tmp_path / "which cannot be opened there")


def test_elsewhere_a_folder_that_is_gone_cannot_be_synced(tmp_path: Path) -> None:
    operating_system.fsync_folder(tmp_path)
    with pytest.raises(OSError, match="gone"):
        operating_system.fsync_folder(tmp_path / "gone")
