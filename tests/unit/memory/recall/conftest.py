from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.doubles import WordEmbedder
from tests.unit.memory.recall.homes import DIM, Home, opened


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    async with opened(tmp_path, WordEmbedder(DIM)) as home:
        yield home
