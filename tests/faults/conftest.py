"""A data directory of a test's own, whose hosts end with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hosting import no_host_left


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    with no_host_left(folder):
        yield folder
