"""ruling 1 (design: truth and index): whatever the index missed or lost, it comes to equal the ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from madeleine.memory.errors import EmbeddingUnavailable, IndexNeedsRebuild, IndexUnavailable
from madeleine.memory.index import IndexPoint
from madeleine.memory.ingest import index_keeper
from madeleine.memory.ingest.index_keeper import IndexKeeper, index_points_from_memories
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from tests.contracts.index_points import candidates, index_query
from tests.contracts.ledger.ledger_values import apply_changes, states
from tests.doubles import ADA, BOB, WordEmbedder, a_memory
from tests.fakes.ledger import InMemoryLedger

ACTIONS = ("Sailed to the harbor", "Played the violin", "Picked apples in the orchard", "Lit a lantern", "Ate saffron")


class FullDisk(EmbeddedQdrantIndex):
    """An index that cannot be made durable while the disk is full."""

    full = True

    async def flush(self) -> None:
        if self.full:
            raise IndexUnavailable("no space is left on the disk")
        await super().flush()


class BusyIndex(EmbeddedQdrantIndex):
    """Something else is done whenever an upsert begins."""

    meanwhile: Callable[[], Awaitable[None]]

    async def upsert(self, points: Sequence[IndexPoint]) -> None:
        await self.meanwhile()
        await super().upsert(points)


@dataclass
class Home:
    ledger: InMemoryLedger
    index: EmbeddedQdrantIndex
    embedder: WordEmbedder = field(default_factory=WordEmbedder)

    def __post_init__(self) -> None:
        self.keeper = IndexKeeper(self.ledger.index_source, self.index, self.embedder)

    async def commit(self, *memories: Memory, scope: Scope = ADA, embedded: bool = True) -> None:
        """Into the ledger alone, which leaves a mark for each."""
        vectors = {memory.content_hash: self.embedder.vector(memory.embedded_text) for memory in memories}
        await self.ledger.memories.commit_store_batch(
            scope, StoreBatch(new=memories, model=self.embedder.model_name, vectors=vectors if embedded else {})
        )

    async def marked(self) -> list[MemoryId]:
        return [id_ for _, id_ in await self.ledger.index_source.pending_index_marks_with_memory_ids(limit=100)]

    async def by_words(self, text: str, index: EmbeddedQdrantIndex | None = None) -> list[MemoryId]:
        return list((await candidates(index or self.index, ADA, index_query(text))).ids)

    async def by_meaning(self, text: str) -> list[MemoryId]:
        neighbours = await self.index.nearest(ADA, self.embedder.vector(text), limit=9, statuses=LIVING_STATUSES)
        return [id_ for id_, cosine in neighbours if cosine > 0.5]


@asynccontextmanager
async def opened(
    path: Path, kind: type[EmbeddedQdrantIndex] = EmbeddedQdrantIndex
) -> AsyncIterator[EmbeddedQdrantIndex]:
    index = await kind.open(path, IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim))
    yield index
    await index.close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    ledger = InMemoryLedger()
    async with opened(tmp_path / "index") as index:
        yield Home(ledger, index)


@pytest.fixture
def memories(monkeypatch: pytest.MonkeyPatch) -> Sequence[Memory]:
    """More than a page of them."""
    monkeypatch.setattr(index_keeper, "INDEXING_BATCH_MEMORIES", 2)
    monkeypatch.setattr(index_keeper, "BACKGROUND_EMBED_BATCH_TEXTS", 2)
    return [a_memory(action) for action in ACTIONS]


# --- catching up


async def test_catching_up_brings_in_all_that_is_marked_and_clears_the_marks(
    home: Home, memories: Sequence[Memory]
) -> None:
    """ruling 1: stored means recallable."""
    await home.commit(*memories)
    assert await home.keeper.index_marked_memories() == 5
    assert await home.marked() == []
    for memory in memories:
        assert await home.by_words(memory.scene.action) == await home.by_meaning(memory.scene.action) == [memory.id]
    assert await home.keeper.index_marked_memories() == 0


async def test_a_memory_that_was_changed_is_brought_in_as_it_is_now(home: Home) -> None:
    """spec P6: what a patrol lets die leaves the candidates."""
    dying, other = a_memory("Sailed to the harbor"), a_memory("Rowed to the harbor")
    await home.commit(dying, other)
    await home.keeper.index_marked_memories()
    dead = replace((await states(home.ledger))[dying.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(dead,)))
    assert await home.keeper.index_marked_memories() == 1
    assert await home.by_words("harbor") == [other.id]


async def test_a_new_memory_that_is_in_the_index_is_not_indexed_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    upserted: list[MemoryId] = []
    upsert = home.index.upsert

    async def recording(points: Sequence[IndexPoint]) -> None:
        upserted.extend(one.memory.id for one in points)
        await upsert(points)

    monkeypatch.setattr(home.index, "upsert", recording)
    first, second, third = (a_memory(action) for action in ACTIONS[:3])
    report = home.keeper.callback_for_newly_indexed_memories()
    await home.commit(first, second)
    report([first.id])
    late = home.keeper.callback_for_newly_indexed_memories()
    assert await home.keeper.index_marked_memories() == 2
    assert (upserted, await home.marked()) == ([second.id], [])
    # Its mark may be gone by then, and the next one would tell of a change.
    await home.commit(third)
    late([third.id])
    assert await home.keeper.index_marked_memories() == 1
    assert upserted == [second.id, third.id]


async def test_a_memory_that_was_changed_after_it_was_indexed_is_indexed_again(home: Home) -> None:
    memory = a_memory("Sailed to the harbor")
    report = home.keeper.callback_for_newly_indexed_memories()
    await home.commit(memory)
    await home.index.upsert(await index_points_from_memories([memory], {}, home.embedder))
    report([memory.id])
    dead = replace((await states(home.ledger))[memory.id], status="dead")
    await apply_changes(home.ledger, PatrolChanges(states=(dead,)))
    assert await home.keeper.index_marked_memories() == 1
    assert await home.by_words("harbor") == []


async def test_marks_stay_until_the_index_is_on_disk(tmp_path: Path) -> None:
    """ruling 1: a mark that is cleared too early is a memory that a power cut takes from the index for good."""
    ledger = InMemoryLedger()
    async with opened(tmp_path / "index", FullDisk) as index:
        assert isinstance(index, FullDisk)
        home = Home(ledger, index)
        memory = a_memory("Sailed to the harbor")
        await home.commit(memory)
        with pytest.raises(IndexUnavailable):
            await home.keeper.index_marked_memories()
        assert await home.marked() == [memory.id]
        index.full = False
        assert await home.keeper.index_marked_memories() == 1
        assert await home.marked() == []


# --- rebuilding


async def test_an_index_that_is_built_anew_answers_as_the_one_before(
    home: Home, memories: Sequence[Memory], tmp_path: Path
) -> None:
    """ruling 1: the index may be thrown away at any time. No text is embedded again for it."""
    *living, embedding_error = memories
    await home.commit(*living, a_memory("Sailed to another harbor", status="dead"))
    await home.commit(embedding_error, embedded=False)
    await home.commit(a_memory("Sailed to a harbor", being_id=BOB.being_id), scope=BOB)
    await home.keeper.index_marked_memories()
    told: list[tuple[int, int]] = []

    async def progress(done: int, total: int) -> None:
        told.append((done, total))

    async with opened(tmp_path / "anew") as anew:
        keeper = IndexKeeper(home.ledger.index_source, anew, home.embedder)
        assert await keeper.rebuild(progress) == 7
        await keeper.require_all_memories_indexed()
        for text in (*ACTIONS, "a violin in the harbor"):
            question = index_query(text, home.embedder.vector(text))
            before, after = [await candidates(index, ADA, question) for index in (home.index, anew)]
            assert after.ids == before.ids
            assert after.features == before.features
            assert after.cosine.tolist() == pytest.approx(before.cosine.tolist(), abs=1e-6)
            assert after.bm25.tolist() == pytest.approx(before.bm25.tolist(), rel=1e-6)
    assert told == [(2, 7), (4, 7), (6, 7), (7, 7)]
    assert home.embedder.batches == []


async def test_a_rebuild_clears_the_marks_that_it_answers_and_leaves_those_made_meanwhile(
    memories: Sequence[Memory], tmp_path: Path
) -> None:
    """spec P6: what a patrol changes behind the page that was read must still reach the index."""
    first = min(memory.id for memory in memories)
    ledger = InMemoryLedger()
    async with opened(tmp_path / "index", BusyIndex) as index:
        assert isinstance(index, BusyIndex)
        home = Home(ledger, index)
        await home.commit(*memories)

        async def patrol() -> None:
            subject = (await states(ledger))[first]
            if subject.status == "active":
                await apply_changes(ledger, PatrolChanges(states=(replace(subject, status="dead"),)))

        index.meanwhile = patrol
        await home.keeper.rebuild()
        assert await home.marked() == [first]
        assert await home.keeper.index_marked_memories() == 1
        found = await home.by_words(" ".join(ACTIONS))
        assert sorted(found) == sorted({memory.id for memory in memories} - {first})


async def test_an_index_that_lacks_a_memory_is_torn(home: Home, memories: Sequence[Memory]) -> None:
    """ruling 1: marks cannot tell it, for they are gone."""
    await home.commit(*memories)
    await home.keeper.index_marked_memories()
    await home.keeper.require_all_memories_indexed()
    await home.index.delete([memories[3].id])
    with pytest.raises(IndexNeedsRebuild, match="4 memories, the ledger 5"):
        await home.keeper.require_all_memories_indexed()


# --- vectors that are missing


async def test_memories_stored_without_the_model_are_found_by_meaning_once_it_is_there(
    home: Home, memories: Sequence[Memory]
) -> None:
    """ruling 1: each text is embedded once, a page at a time."""
    await home.commit(*memories, embedded=False)
    await home.keeper.index_marked_memories()
    assert await home.by_meaning(ACTIONS[0]) == []
    assert await home.by_words(ACTIONS[0]) == [memories[0].id]
    assert await home.keeper.embed_memories_without_vector() == 5
    for memory in memories:
        assert await home.by_meaning(memory.scene.action) == [memory.id]
    assert home.embedder.batches == [list(ACTIONS[:2]), list(ACTIONS[2:4]), list(ACTIONS[4:])]
    assert await home.marked() == []
    assert await home.keeper.embed_memories_without_vector() == 0


async def test_a_text_of_several_sentences_is_found_by_each_once_its_pieces_are_embedded(home: Home) -> None:
    """ADR 0064: in the background, once; what has no pieces is not indexed again. A memory with the same text, stored
    later, has them at once."""
    both = a_memory("The violin hangs in the hall. Saffron grows behind the orchard wall.")
    await home.commit(both, a_memory(ACTIONS[0]))
    await home.keeper.index_marked_memories()
    sentence = "Saffron grows behind the orchard wall."

    async def nearest(scope: Scope = ADA, id_: MemoryId = both.id) -> tuple[float, float]:
        """Cosine of the whole, and of the nearest piece."""
        vector = home.embedder.vector(sentence)
        pool = await candidates(home.index, scope, index_query(sentence, vector=vector))
        at = pool.ids.index(id_)
        return float(pool.cosine[at]), float(pool.max_piece_cosines_in_candidate_order(vector, pool.cosine)[at])

    whole, piece = await nearest()
    assert whole == piece
    assert await home.keeper.embed_missing_pieces() == 1
    assert set(await home.marked()) == {both.id}
    await home.keeper.index_marked_memories()
    whole, piece = await nearest()
    assert whole < 0.9
    assert piece == pytest.approx(1.0, abs=1e-2)
    assert await home.keeper.embed_missing_pieces() == 0

    report_indexed = home.keeper.callback_for_newly_indexed_memories()
    same_text = a_memory(both.scene.action, being_id=BOB.being_id)
    await home.commit(same_text, scope=BOB)
    vectors = {same_text.content_hash: home.embedder.vector(same_text.scene.action)}
    [memory] = await home.ledger.index_source.memories_of_any_being([same_text.id])
    await home.index.upsert(await index_points_from_memories([memory], vectors, home.embedder))
    report_indexed([same_text.id])
    await home.keeper.index_marked_memories()
    assert (await nearest(BOB, same_text.id))[1] == pytest.approx(1.0, abs=1e-2)


async def test_filling_in_vectors_without_the_model_says_so_and_changes_nothing(home: Home) -> None:
    """ruling 6"""
    await home.commit(a_memory(ACTIONS[0]), embedded=False)
    await home.keeper.index_marked_memories()
    home.embedder.available = False
    with pytest.raises(EmbeddingUnavailable):
        await home.keeper.embed_memories_without_vector()
    assert await home.marked() == []
    home.embedder.available = True
    assert await home.keeper.embed_memories_without_vector() == 1


async def test_vectors_of_another_precision_serve_until_the_model_has_embedded_the_texts(
    home: Home, memories: Sequence[Memory]
) -> None:
    """ruling 6, ADR 0040: a store embedded in fp32 is searched by its old vectors meanwhile, and keeps none of them."""
    await home.commit(*memories)
    eight_bits = WordEmbedder(model=f"{home.embedder.model_name}@int8")
    keeper = IndexKeeper(home.ledger.index_source, home.index, eight_bits)
    eight_bits.available = False
    await keeper.rebuild()
    for memory in memories:
        assert await home.by_meaning(memory.scene.action) == [memory.id]
    eight_bits.available = True
    assert await keeper.embed_memories_without_vector() == len(memories)
    assert await keeper.embed_memories_without_vector() == 0
    assert (
        await home.ledger.index_source.cached_vectors_by_hash(home.embedder.model_name, [memories[0].content_hash])
        == {}
    )
    assert await home.by_meaning(ACTIONS[0]) == [memories[0].id]
