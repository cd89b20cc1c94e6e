"""Conversations with a memory thread, over the real ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.memory.watch.talks import Talks, talks


@pytest.fixture
async def home(templates: Path, tmp_path: Path) -> AsyncIterator[Talks]:
    async with talks(templates, tmp_path) as conversations:
        yield conversations


@pytest.fixture
async def whole(templates: Path, tmp_path: Path) -> AsyncIterator[Talks]:
    """With the real index."""
    async with talks(templates, tmp_path, real=True) as conversations:
        yield conversations
