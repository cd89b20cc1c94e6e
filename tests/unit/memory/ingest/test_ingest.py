"""spec L1: a text ingested in, from cleaning to what is said of each chunk."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.memory.errors import InvalidInput, KeyConflict, StorageError
from madeleine.memory.ingest.ingest import IngestedTextWithChunks, TextIngestRequest
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import Scene
from madeleine.memory.vector_space import VectorSpace
from tests.doubles import ADA, BOB
from tests.household import Household, rows
from tests.unit.memory.ingest.ingesting import SECRET, SOUP, TEA, TRIP, Ingesting


@pytest.fixture
def ingest(home: Household) -> Ingesting:
    return Ingesting(home)


def statuses(ingested: IngestedTextWithChunks) -> list[str]:
    return [chunk.status for chunk in ingested.chunks]


# --- the steps


async def test_a_text_is_cleaned_cut_and_stored_chunk_by_chunk(ingest: Ingesting) -> None:
    ingested = await ingest(f"  {TRIP}\r\n\r\n\r\n\r\n{SOUP}\n", session_id="trip", when="2026-02-01", actors=("Ada",))
    assert ingested.text == f"{TRIP}\n\n{SOUP}"
    assert statuses(ingested) == ["stored", "stored"]
    assert [ingested.text[one.start : one.start + one.length] for one in ingested.chunks] == [TRIP, SOUP]
    first, second = sorted(await ingest.home.all(), key=lambda memory: memory.turn)
    assert [first.scene.action, second.scene.action] == [TRIP, SOUP]
    assert [(one.turn, one.provenance.tool, one.provenance.session_id) for one in (first, second)] == [
        (0, "ingest", "trip"),
        (1, "ingest", "trip"),
    ]
    assert (first.scene.when, first.scene.actors) == (("2026-02-01",), ("Ada",))
    assert [one.id for one in ingested.chunks] == [first.id, second.id]


async def test_importance_is_worked_out_from_novelty_and_salience_and_kept(ingest: Ingesting) -> None:
    """The first: 0.6 × 1 + 0.4 × (0.3 entity + 0.2 date). The second to a being that knows the same words but one."""
    [first] = (await ingest(TRIP)).chunks
    assert (first.novelty, first.salience, first.importance) == pytest.approx((1.0, 0.5, 0.8))
    other = TRIP.replace("umbrella", "suitcase")
    cosine = float(np.dot(ingest.home.embedder.vector(TRIP), ingest.home.embedder.vector(other)))
    [second] = (await ingest(other)).chunks
    assert second.novelty == pytest.approx(1 - cosine, abs=1e-5)
    assert second.importance == pytest.approx(0.6 * (1 - cosine) + 0.4 * 0.5, abs=1e-5)
    assert sorted(memory.importance for memory in await ingest.home.all()) == pytest.approx([0.8])
    assert second.status == "dropped"


async def test_what_is_neither_new_nor_telling_is_dropped_and_said_to_be(ingest: Ingesting) -> None:
    await ingest.home.store(SOUP)
    ingested = await ingest(f"{TRIP}\n\n{SOUP}")
    assert statuses(ingested) == ["stored", "dropped"]
    dropped = ingested.chunks[1]
    assert (dropped.id, dropped.category) == (None, None)
    assert dropped.importance == pytest.approx(0.6 * dropped.novelty)
    assert dropped.importance < 0.3
    assert await ingest.kept() == sorted([SOUP, TRIP])


async def test_a_dropped_chunk_leaves_nothing_behind(ingest: Ingesting) -> None:
    await ingest.home.store(SOUP, "an owl")
    await ingest(SOUP.replace("warm", "hot"), key="k")
    assert len(rows(ingest.home.path, "SELECT 1 FROM embeddings")) == 2
    [(outcome,)] = rows(ingest.home.path, "SELECT outcome FROM ingested")
    assert "soup" not in outcome


async def test_the_threshold_is_a_setting(ingest: Ingesting) -> None:
    await ingest.home.store(SOUP)
    again = SOUP.replace("content", "happy")
    assert statuses(await ingest(again)) == ["dropped"]
    ingest.ingest = ingest.again(threshold=0.0)
    assert statuses(await ingest(again)) == ["stored"]


async def test_each_chunk_goes_where_it_belongs_unless_all_are_told_where(ingest: Ingesting) -> None:
    fact = "The office of the firm in Basel has two floors."
    ingested = await ingest(f"{TRIP}\n\n{TEA}\n\n{fact}")
    assert [chunk.category for chunk in ingested.chunks] == ["episodic", "procedural", "semantic"]
    ingested = await ingest(f"{TEA} And twelve words more.", category="social", scope=BOB)
    assert [chunk.category for chunk in ingested.chunks] == ["social"]


async def test_all_chunks_are_embedded_in_one_batch_and_known_ones_not_at_all(ingest: Ingesting) -> None:
    await ingest.home.store(TRIP)
    ingest.home.embedder.batches.clear()
    await ingest(f"{TRIP}\n\n{SOUP}\n\n{TEA}")
    assert ingest.home.embedder.batches == [[SOUP, TEA]]


async def test_one_that_is_known_already_is_reinforced_and_linked_ones_say_so(ingest: Ingesting) -> None:
    ingest.ingest = ingest.again(threshold=0.0)
    [trip] = await ingest.home.store(TRIP)
    ingested = await ingest(f"{TRIP}\n\n{TRIP.replace('May', 'June')}")
    assert statuses(ingested) == ["reinforced", "stored"]
    assert ingested.chunks[0].id == trip.id
    assert ingested.chunks[1].resembles == trip.id
    assert (await ingest.home.now(trip)).access_count == 1


async def test_a_long_text_is_cut_a_section_at_a_time_and_nothing_is_lost(
    ingest: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("madeleine.memory.ingest.ingest.CHUNKING_SECTION_CHARS", 100)
    ingest.ingest = ingest.again(threshold=0.0)
    text = "\n\n".join(f"{TRIP} {number}" for number in range(20))
    ingested = await ingest(text)
    told = " ".join(ingested.text[one.start : one.start + one.length] for one in ingested.chunks)
    assert told.split() == text.split()
    assert len(ingested.chunks) >= 20


async def test_a_text_with_nothing_in_it_has_no_chunks(ingest: Ingesting) -> None:
    assert (await ingest(" \n\n ", key="k")).chunks == ()
    assert (await ingest("", key="k")).repeated


async def test_what_cannot_be_embedded_now_is_taken_for_new_and_the_answer_says_why(ingest: Ingesting) -> None:
    await ingest.home.store(SOUP)
    ingest.home.embedder.available = False
    ingested = await ingest(SOUP.replace("warm", "hot"))
    assert statuses(ingested) == ["stored"]
    assert "was told to be away" in ingested.embedding_error
    assert ingested.chunks[0].novelty == 1.0


async def test_in_a_language_that_the_model_cannot_read_nothing_counts_as_known(ingest: Ingesting) -> None:
    ingest.home.embedder.vector_space = VectorSpace(
        np.zeros((1, ingest.home.embedder.dim), np.float32), np.zeros(1, np.float32)
    )
    await ingest.home.store("東京で寿司を食べました。")
    [chunk] = (await ingest("東京で寿司を食べました。 そして帰りました。")).chunks
    assert (chunk.novelty, chunk.status) == (1.0, "stored")


async def test_rare_words_count_where_there_is_enough_to_compare_with(ingest: Ingesting) -> None:
    [chunk] = (await ingest("an extraordinarily incomprehensible deliberation happened")).chunks
    assert chunk.salience == pytest.approx(0.1)


# --- secrets


async def test_a_secret_longer_than_a_chunk_is_taken_out_before_the_text_is_cut(ingest: Ingesting) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" for _ in range(40))
    ingested = await ingest(f"{TRIP}\n{key}\n-----END PRIVATE KEY-----\n\n{SOUP} {SECRET}")
    assert dict(ingested.redacted) == {"private key": 1, "github token": 1}
    seen = f"{await ingest.kept()} {ingest.home.embedder.batches}"
    assert "MIIE" not in seen
    assert SECRET not in seen


async def test_a_key_that_is_a_secret_is_refused_before_anything_is_done(ingest: Ingesting) -> None:
    with pytest.raises(InvalidInput, match="looks like a secret"):
        await ingest(TRIP, key=SECRET)
    assert ingest.home.embedder.batches == []


# --- once


async def test_the_same_key_answers_what_it_answered_before_and_does_nothing(ingest: Ingesting) -> None:
    first = await ingest(f"{TRIP}\n\n{SOUP}", key="k")
    ingest.home.embedder.batches.clear()
    ingest.ingest = ingest.again()
    again = await ingest(f"{TRIP}\n\n{SOUP} ", key="k")
    assert again.repeated
    assert (again.chunks, again.text) == (first.chunks, first.text)
    assert ingest.home.embedder.batches == []
    assert [memory.access_count for memory in await ingest.home.all()] == [0, 0]


async def test_a_key_of_another_text_is_refused(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k")
    with pytest.raises(KeyConflict):
        await ingest(SOUP, key="k")
    assert await ingest.kept() == [TRIP]


async def test_a_key_is_of_one_being(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k")
    ingested = await ingest(SOUP, key="k", scope=BOB)
    assert statuses(ingested) == ["stored"]
    assert not ingested.repeated


class Dying:
    """A store whose process dies behind the commit."""

    def __init__(self, store: StoreScenes) -> None:
        self._store = store

    async def store_already_redacted_scenes(self, *given: Any, **fields: Any) -> list[StoredSceneResult]:
        await self._store.store_already_redacted_scenes(*given, **fields)
        raise StorageError("killed")


async def test_what_a_killed_process_had_stored_is_not_stored_twice_nor_called_dropped(ingest: Ingesting) -> None:
    """By then its own chunks are known to the being, and nothing new any more."""
    text = f"{SOUP}\n\n{TEA}"
    dying = ingest.again(store=Dying(ingest.store))
    with pytest.raises(StorageError):
        await dying(ADA, TextIngestRequest(text=text, key="k"))
    ingest.ingest = ingest.again()
    ingested = await ingest(text, key="k")
    assert statuses(ingested) == ["stored", "stored"]
    assert not ingested.repeated
    assert await ingest.kept() == sorted([SOUP, TEA])
    assert [memory.access_count for memory in await ingest.home.all()] == [0, 0]
    assert (await ingest(text, key="k")).chunks == ingested.chunks


async def test_two_at_once_with_one_key_store_once(ingest: Ingesting) -> None:
    one, other = await asyncio.gather(ingest(TRIP, key="k"), ingest(TRIP, key="k"))
    assert [chunk.id for chunk in one.chunks] == [chunk.id for chunk in other.chunks]
    assert await ingest.kept() == [TRIP]


async def test_the_texts_of_a_session_are_stored_in_the_order_in_which_they_came(
    ingest: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the second is embedded before the first."""
    first_may_go = asyncio.Event()
    embed = ingest.home.embedder.embed

    async def slowly(texts: Sequence[str]) -> NDArray[np.float32]:
        if TRIP in texts:
            await first_may_go.wait()
        else:
            first_may_go.set()
        return await embed(texts)

    monkeypatch.setattr(ingest.home.embedder, "embed", slowly)
    await asyncio.gather(ingest(TRIP, session_id="s"), ingest(SOUP, session_id="s"))
    assert {memory.scene.action: memory.turn for memory in await ingest.home.all()} == {TRIP: 0, SOUP: 1}


async def test_one_that_is_given_up_while_it_waits_lets_nobody_go_before_the_first(
    ingest: Ingesting, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_may_go, asked = asyncio.Event(), asyncio.Semaphore(0)
    embed = ingest.home.embedder.embed

    async def slowly(texts: Sequence[str]) -> NDArray[np.float32]:
        asked.release()
        if TRIP in texts:
            await first_may_go.wait()
        elif TEA in texts:
            first_may_go.set()
        return await embed(texts)

    monkeypatch.setattr(ingest.home.embedder, "embed", slowly)
    first = asyncio.create_task(ingest(TRIP, session_id="s"))
    await asked.acquire()
    second = asyncio.create_task(ingest(SOUP, session_id="s"))
    await asked.acquire()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await asyncio.gather(first, ingest(TEA, session_id="s"))
    assert {memory.scene.action: memory.turn for memory in await ingest.home.all()} == {TRIP: 0, TEA: 1}


async def test_a_text_that_fails_does_not_hold_up_the_next_of_its_session(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k", session_id="s")
    failed, ingested = await asyncio.gather(
        ingest(SOUP, key="k", session_id="s"), ingest(TEA, session_id="s"), return_exceptions=True
    )
    assert isinstance(failed, KeyConflict)
    assert isinstance(ingested, IngestedTextWithChunks)


# --- what is noted down


async def test_after_forgetting_the_note_holds_no_digest_and_the_text_does_not_come_back(ingest: Ingesting) -> None:
    first = await ingest(TRIP, key="k")
    other = await ingest(SOUP, key="other")
    [id_] = [chunk.id for chunk in first.chunks]
    assert id_ is not None
    await ingest.home.ledger.erasure.forget(ADA, [id_], at=ingest.home.clock())
    notes = [
        json.loads(outcome) for (outcome,) in rows(ingest.home.path, "SELECT outcome FROM ingested ORDER BY rowid")
    ]
    assert ["digest" in note for note in notes] == [False, True]
    again = await ingest(TRIP, key="k")
    assert again.repeated
    assert await ingest.kept() == [SOUP]
    assert other.chunks


async def forget(ingest: Ingesting, *texts: str) -> None:
    gone = [memory.id for memory in await ingest.home.all() if memory.scene.action in texts]
    assert len(gone) == len(texts)
    await ingest.home.ledger.erasure.forget(ADA, gone, at=ingest.home.clock())


async def test_the_answer_says_of_forgotten_chunks_only_that_they_are_forgotten(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k")
    await forget(ingest, TRIP)
    for text in (TRIP, TEA):
        [chunk] = (await ingest(text, key="k")).chunks
        assert (chunk.status, chunk.id, chunk.start, chunk.length) == ("forgotten", None, 0, 0)
        assert (chunk.category, chunk.importance, chunk.novelty, chunk.salience) == (None, 0, 0, 0)
    assert await ingest.kept() == []


async def test_by_what_is_left_of_it_the_text_of_a_key_is_still_known(ingest: Ingesting) -> None:
    first = await ingest(f"{TRIP}\n\n{TEA}", key="k")
    await forget(ingest, TRIP)
    again = await ingest(f"{TRIP}\n\n{TEA}", key="k")
    assert statuses(again) == ["forgotten", "stored"]
    assert again.chunks[1] == first.chunks[1]
    for other in (SOUP, f"{TEA}\n\n{TRIP}", f"{TRIP}\n\n{SOUP}"):
        with pytest.raises(KeyConflict):
            await ingest(other, key="k")


async def test_where_a_dropped_part_was_is_not_told_of_a_text_that_cannot_be_known_again(ingest: Ingesting) -> None:
    await ingest.home.store(SOUP)
    assert statuses(await ingest(f"{TRIP}\n\n{SOUP}", key="k")) == ["stored", "dropped"]
    await forget(ingest, TRIP)
    again = await ingest(TEA, key="k")
    assert statuses(again) == ["forgotten", "dropped"]
    assert again.chunks[1].length == 0


async def test_a_note_holds_nothing_against_which_guesses_at_its_key_could_be_held(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k")
    await ingest(TEA, key="other")
    kept = {key for (key,) in rows(ingest.home.path, "SELECT key FROM ingested")}
    assert len(kept) == 2
    assert not kept & {guess for key in ("k", "other") for guess in (key, hashlib.sha256(key.encode()).hexdigest())}
    [(secret,)] = rows(ingest.home.path, "SELECT value FROM settings WHERE name = 'ingested_secret'")
    assert len(bytes.fromhex(json.loads(secret))) == 32


async def test_another_being_s_forgetting_leaves_the_note(ingest: Ingesting) -> None:
    await ingest(TRIP, key="k")
    [theirs] = await ingest.store(BOB, [NewScene(scene=Scene(action=SOUP))])
    await ingest.home.ledger.erasure.forget(BOB, [theirs.memory.id], at=ingest.home.clock())
    [(outcome,)] = rows(ingest.home.path, "SELECT outcome FROM ingested")
    assert "digest" in json.loads(outcome)
