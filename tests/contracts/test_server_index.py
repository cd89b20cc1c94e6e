from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from madeleine.memory.errors import IndexUnavailable
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from tests.contracts.index_contract import IndexContract
from tests.contracts.index_points import (
    ADA,
    COSINE_TOLERANCE,
    FINGERPRINT,
    candidates,
    index_query,
    random_points,
    unit,
)

if TYPE_CHECKING:
    from madeleine.storage.qdrant.server import QdrantServerIndex


@pytest.fixture
async def index() -> AsyncIterator[QdrantServerIndex]:
    from madeleine.storage.qdrant.server import QdrantServerIndex  # two seconds that collecting the tests does not need

    index = await QdrantServerIndex.open(":memory:", FINGERPRINT)
    yield index
    await index.close()


class TestServerIndex(IndexContract):
    @pytest.mark.parametrize("seed", range(6))
    async def test_it_ranks_as_the_embedded_index_does(
        self, index: QdrantServerIndex, tmp_path: Path, seed: int
    ) -> None:
        points = random_points(80, seed=seed)
        embedded = await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
        question = index_query("harbor violin orchard quartz zeppelin", unit(1, -1, 0.5), depth=25)
        await index.upsert(points)
        await embedded.upsert(points)
        ours, theirs = await candidates(embedded, ADA, question), await candidates(index, ADA, question)
        await embedded.close()
        assert theirs.ids == ours.ids
        assert theirs.cosine.tolist() == pytest.approx(ours.cosine.tolist(), abs=COSINE_TOLERANCE)
        assert theirs.bm25.tolist() == pytest.approx(ours.bm25.tolist(), rel=1e-4)

    async def test_a_server_that_is_not_there_is_unavailable(self, index: QdrantServerIndex) -> None:
        with pytest.raises(IndexUnavailable):
            await type(index).open("http://127.0.0.1:9", FINGERPRINT)
