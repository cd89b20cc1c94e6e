from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from madeleine.memory.errors import IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.model import LIVING_STATUSES, EmbeddingModelName, MemoryId
from madeleine.storage.qdrant import edge, point_contents
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from tests.contracts.index_contract import IndexContract
from tests.contracts.index_points import (
    ADA,
    DIM,
    FINGERPRINT,
    VOCABULARY,
    assert_scores_are_true,
    candidates,
    index_query,
    memory_id,
    point,
    random_points,
    unit,
)
from tests.remains import found_in


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[EmbeddedQdrantIndex]:
    index = await EmbeddedQdrantIndex.open(tmp_path / "index", FINGERPRINT)
    yield index
    await index.close()


def enough_for_a_graph() -> list[IndexPoint]:
    """600 points with vectors, of one word each: quickly read."""
    random = Random(5)
    return [
        point(1 + number, random.choice(VOCABULARY), unit(*(random.gauss(0, 1) for _ in range(DIM))))
        for number in range(600)
    ]


async def written_until(index: EmbeddedQdrantIndex, points: dict[MemoryId, IndexPoint], done: asyncio.Task[Any]) -> int:
    """Points come and go, in the index and in `points`, until that is done; how many came."""
    later = random_points(300, seed=6, start=400)
    written = 0
    while not done.done():
        part = later[written % 300 : written % 300 + 10]
        await index.upsert(part)
        points.update({p.memory.id: p for p in part})
        gone = memory_id(1 + written // 10 % 300)
        await index.delete([gone])
        points.pop(gone, None)
        written += 10
        assert await index.count() == len(points)
        await asyncio.sleep(0.001)
    return written


class TestEdgeIndex(IndexContract):
    async def test_everything_survives_close_and_reopen(self, tmp_path: Path) -> None:
        points = random_points(80, seed=3)
        question = index_query("harbor violin orchard", unit(1, -1, 0.5))
        first = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await first.upsert(points)
        before = await candidates(first, ADA, question)
        await first.close()
        second = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        after = await candidates(second, ADA, question)
        assert after.ids == before.ids
        assert after.bm25.tolist() == before.bm25.tolist()
        assert await second.count() == 80
        await second.close()

    async def test_hits_that_have_left_the_cache_of_contents_are_compared_too(
        self, index: EmbeddedQdrantIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They had the cosine 0 where a store is larger than the cache."""
        monkeypatch.setattr(point_contents, "MAX_CACHED_INDEX_POINTS", 7)
        points = random_points(60, seed=3)
        await index.upsert(points)
        question = index_query(VOCABULARY[0], unit(*range(1, DIM + 1)), depth=20)
        for _ in range(2):
            assert_scores_are_true(await candidates(index, ADA, question), question, points)

    @pytest.mark.skipif(sys.platform != "linux", reason="names of threads are read from /proc")
    async def test_it_searches_in_one_thread(self, tmp_path: Path) -> None:
        """ADR 89: others would wait for a processor while a text is embedded. A shard on disk does not remember it."""

        def search_threads() -> set[str]:
            names = Path("/proc/self/task").glob("*/comm")
            return {name.parent.name for name in names if name.read_text().startswith("edge-search")}

        for _ in ("new", "from the disk"):
            before = search_threads()
            index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
            assert len(search_threads() - before) == 1
            await index.close()

    async def test_an_index_of_another_model_is_torn_and_made_anew(self, tmp_path: Path) -> None:
        first = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await first.upsert(random_points(5, seed=3))
        await first.close()
        other = IndexFingerprint(model=EmbeddingModelName("another"), dim=DIM)
        with pytest.raises(IndexNeedsRebuild):
            await EmbeddedQdrantIndex.open(tmp_path / "i", other)
        anew = await EmbeddedQdrantIndex.recreate(tmp_path / "i", other)
        assert await anew.count() == 0
        await anew.close()
        await (await EmbeddedQdrantIndex.open(tmp_path / "i", other)).close()

    async def test_a_second_opener_is_told_that_the_index_is_taken_and_does_no_harm(self, tmp_path: Path) -> None:
        first = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        with pytest.raises(IndexUnavailable) as error:
            await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        assert not isinstance(error.value, IndexNeedsRebuild)
        await first.upsert(random_points(5, seed=3))
        await first.close()
        second = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        assert await second.count() == 5
        await second.close()

    async def test_nobody_else_opens_it_by_another_link_or_while_an_unclosed_shard_may_still_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Closed on a full disk the shard stays open: it writes when it is collected, over what another has written."""
        first = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        (tmp_path / "link").symlink_to(tmp_path / "i")
        with pytest.raises(IndexUnavailable):
            await EmbeddedQdrantIndex.open(tmp_path / "link", FINGERPRINT)
        with monkeypatch.context() as full:
            full.setattr(edge, "has_disk_space", lambda *_: False)
            await first.close()
        with pytest.raises(IndexUnavailable):
            await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        first._disk.shutdown()  # its thread may still hold what it has done last, and so the index
        del first
        gc.collect()
        await (await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)).close()

    async def test_a_close_that_was_cancelled_is_made_good_by_the_next(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        async with index._writing:
            closing = asyncio.create_task(index.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
        await index.close()
        await (await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)).close()

    async def test_a_graph_is_built_as_soon_as_there_are_more_points_than_are_scanned(self, tmp_path: Path) -> None:
        """The engine counts vectors by their bytes, two a component."""
        wide = IndexFingerprint(model=FINGERPRINT.model, dim=256)
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", wide, full_scan_points=400)
        vectors = np.random.default_rng(4).normal(size=(600, wide.dim)).astype(np.float32)
        points = zip(random_points(600, seed=4), vectors, strict=True)
        await index.upsert([replace(one, vector=vector / np.linalg.norm(vector)) for one, vector in points])
        assert await index.optimize_if_worthwhile()
        assert not await index.optimize_if_worthwhile()
        await index.close()

    async def test_a_closed_index_is_unavailable_and_closes_again(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await index.close()
        await index.close()
        with pytest.raises(IndexUnavailable):
            await candidates(index, ADA, index_query("harbor", unit(1)))
        with pytest.raises(IndexUnavailable):
            await index.upsert([point(1, "harbor")])

    @pytest.mark.slow
    async def test_optimizing_changes_no_answer_and_keeps_what_was_written_meanwhile(self, tmp_path: Path) -> None:
        points = {p.memory.id: p for p in random_points(600, seed=5)}
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", FINGERPRINT, full_scan_points=100)
        await index.upsert(list(points.values()))
        optimizing = asyncio.create_task(index.optimize_if_worthwhile())
        written = await written_until(index, points, optimizing)
        assert await optimizing
        assert written >= 20
        question = index_query("harbor violin orchard zeppelin", unit(1, -1, 0.5), depth=300)
        for _ in range(2):
            assert await index.count() == len(points)
            pool = await candidates(index, ADA, question)
            assert len(pool.ids) > 250
            assert_scores_are_true(pool, question, list(points.values()))
            await index.close()
            index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await index.optimize_if_worthwhile()  # for what was written meanwhile
        assert not await index.optimize_if_worthwhile()
        assert len(list((tmp_path / "i").glob("generation-*"))) == 1
        target = unit(1, -1, 0.5)
        best = max(points.values(), key=lambda p: float(p.vector @ target) if p.vector is not None else -1.0)
        assert (await index.nearest(ADA, target, limit=1, statuses=LIVING_STATUSES))[0][0] == best.memory.id
        await index.close()

    async def test_what_a_renewal_lets_go_of_goes_back_to_the_system(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """spec L1: ingesting keeps memory flat. Each renewal left the process larger."""
        left: list[int] = []
        monkeypatch.setattr(
            edge, "return_unused_process_memory", lambda: left.append(len(list((tmp_path / "i").glob("generation-*"))))
        )
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", FINGERPRINT, full_scan_points=100)
        await index.upsert(enough_for_a_graph())
        assert left == []
        assert await index.optimize_if_worthwhile()
        assert left == [1]  # the old one was gone by then
        await index.close()

    async def test_closing_ends_an_optimization_and_leaves_the_index_whole(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", FINGERPRINT, full_scan_points=100)
        await index.upsert(enough_for_a_graph())
        optimizing = asyncio.create_task(index.optimize_if_worthwhile())
        while index._builder.process is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await index.close()
        assert not await optimizing
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        assert await index.count() == 600
        assert len(list((tmp_path / "i").glob("generation-*"))) == 1
        await index.close()

    # --- scrubbing (ruling 11)

    async def test_scrubbing_leaves_no_byte_of_what_was_deleted_or_replaced(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        points = random_points(100, seed=5)
        gone, changed = points[3], points[4]
        await index.upsert(points)
        await index.upsert([named(gone, "Zoé Xylander"), named(changed, "Yannick Xylander")])
        await index.flush()
        await index.upsert([changed])
        await index.delete([gone.memory.id])
        await index.flush()
        assert gone.vector is not None
        assert set(found_in(tmp_path, ["Zoé Xylander", "Yannick Xylander"])) == {"Zoé Xylander", "Yannick Xylander"}
        await index.scrub_deleted_bytes()
        for _ in range(2):
            assert found_in(tmp_path, ["Zoé Xylander", "Yannick Xylander"], [gone.vector]) == {}
            assert await index.count() == 99
            await index.close()
            index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await index.close()

    @pytest.mark.slow
    async def test_scrubbing_changes_no_answer_and_keeps_what_was_written_meanwhile(self, tmp_path: Path) -> None:
        points = {p.memory.id: p for p in random_points(600, seed=5)}
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", FINGERPRINT, full_scan_points=100)
        await index.upsert(list(points.values()))
        scrubbing = asyncio.create_task(index.scrub_deleted_bytes())
        written = await written_until(index, points, scrubbing)
        await scrubbing
        assert written >= 20
        question = index_query("harbor violin orchard zeppelin", unit(1, -1, 0.5), depth=300)
        for _ in range(2):
            assert await index.count() == len(points)
            assert_scores_are_true(await candidates(index, ADA, question), question, list(points.values()))
            await index.close()
            index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        assert (
            await index.optimize_if_worthwhile()
        )  # the threshold was taken over, and the graph is built when there is time
        assert len(list((tmp_path / "i").glob("generation-*"))) == 1
        await index.close()

    async def test_scrubbing_an_empty_index_is_no_error(self, index: EmbeddedQdrantIndex) -> None:
        await index.upsert([point(1, "harbor")])
        await index.delete([memory_id(1)])
        await index.scrub_deleted_bytes()
        assert await index.count() == 0

    async def test_scrubbing_does_not_wait_for_an_optimization_but_ends_it(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.recreate(tmp_path / "i", FINGERPRINT, full_scan_points=100)
        await index.upsert(enough_for_a_graph())
        optimizing = asyncio.create_task(index.optimize_if_worthwhile())
        while index._builder.process is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await index.scrub_deleted_bytes()
        assert not await optimizing
        assert await index.count() == 600
        assert await index.optimize_if_worthwhile()
        await index.close()

    async def test_closing_ends_a_scrub_and_leaves_the_index_whole(self, tmp_path: Path) -> None:
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        await index.upsert(enough_for_a_graph())
        scrubbing = asyncio.create_task(index.scrub_deleted_bytes())
        while index._builder.process is None:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await index.close()
        with pytest.raises(IndexUnavailable):
            await scrubbing
        index = await EmbeddedQdrantIndex.open(tmp_path / "i", FINGERPRINT)
        assert await index.count() == 600
        assert len(list((tmp_path / "i").glob("generation-*"))) == 1
        await index.close()


def named(one: IndexPoint, actor: str) -> IndexPoint:
    return replace(one, memory=replace(one.memory, scene=replace(one.memory.scene, actors=(actor,))))
