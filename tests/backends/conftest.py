"""A data directory whose process has ended with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hosting import no_host_left
from tests.e2e.serving import furnish


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MADELEINE_THREAD", "off")
    furnish(tmp_path / "data")
    with no_host_left(tmp_path / "data"):
        yield tmp_path / "data"
