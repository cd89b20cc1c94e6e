"""ruling 14: what a new memory may supersede is proposed, and nothing is done; ruling 24: the newer comes first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.proposals import SupersessionCandidates, SupersessionCandidateSearch
from madeleine.memory.ingest.store import StoredSceneResult, StoreScenes
from madeleine.memory.model import Memory, MemoryId, Scene, Scope, content_hash
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.storage.qdrant.edge import EmbeddedQdrantIndex
from madeleine.storage.qdrant.schema import IndexFingerprint
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.doubles import ADA, NOW, Clock, FakeWordStatistics, WordEmbedder, a_memory

OTHERS = [f"animal{n} sleeps beside tree{n} in yard{n}" for n in range(60)]
NPM = "storefront-web uses npm for builds"
PNPM = "builds of storefront-web moved to pnpm now"


class Home:
    def __init__(self, ledger: LedgerRepositories, index: EmbeddedQdrantIndex) -> None:
        self.clock, self.embedder = Clock(), (embedder := WordEmbedder())
        search = SupersessionCandidateSearch(index)
        self._store = StoreScenes(ledger.memories, index, embedder, now=self.clock, search_superseded=search)
        self._recall = RecallMemories(ledger.recall, index, embedder, ledger.activations, now=self.clock)

    async def store(self, *texts: str, supersedes: MemoryId | None = None, session_id: str = "") -> StoredSceneResult:
        self.clock.advance(timedelta(hours=1))
        scenes = [NewScene(scene=Scene(action=text), supersedes=supersedes, session_id=session_id) for text in texts]
        return (await self._store(ADA, scenes))[-1]

    async def store_scenes(self, scenes: Sequence[NewScene]) -> list[StoredSceneResult]:
        return await self._store(ADA, scenes)

    async def store_dated(self, *texts_by_date: tuple[str, str]) -> list[StoredSceneResult]:
        """In one call. `texts_by_date`: date or "", text."""
        self.clock.advance(timedelta(hours=1))
        return await self._store(
            ADA, [NewScene(scene=Scene(action=text, when=(date,) if date else ())) for date, text in texts_by_date]
        )

    async def recalled(self, question: str, *, newer_first: bool = True) -> list[str]:
        recall = replace(self._recall, config=RecallConfig(newer_among_near_equals=newer_first))
        return [memory.scene.action for memory, _ in (await recall(ADA, RecallQuery(text=question))).memories]


@pytest.fixture
async def home(tmp_path: Path, new_db: Path) -> AsyncIterator[Home]:
    index = await EmbeddedQdrantIndex.open(
        tmp_path / "index", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim)
    )
    async with open_ledger(new_db) as ledger:
        home = Home(ledger, index)
        await home.store(*OTHERS)
        yield home
    await index.close()


async def test_a_changed_fact_is_proposed_with_its_text_and_both_stay_current(home: Home) -> None:
    before = await home.store(NPM)
    after = await home.store(PNPM)
    assert after.may_supersede is not None
    assert (after.may_supersede.id, after.may_supersede.scene.action) == (before.memory.id, NPM)
    assert after.may_supersede.truth == after.memory.truth == "current"


async def test_what_comes_again_with_another_value_each_time_is_a_series_and_not_proposed(home: Home) -> None:
    """The runs of each day are all true; of only two of one wording the later one may be a change."""
    told = [await home.store(f"Ran {distance} km along the canal before work") for distance in (5, 7, 6, 9)]
    assert [one.may_supersede is not None for one in told] == [False, True, False, False]


async def test_the_third_version_of_a_fact_is_proposed_to_supersede_the_second(home: Home) -> None:
    """It was taken for one of a series, since it differs from both in the number alone."""
    first, second, third = [
        await home.store(f"The nightly backup of production {text}")
        for text in (
            "runs at 02:00 with restic",
            "now runs at 03:30, to spare the vacuum",
            "now runs at 04:15 at the latest",
        )
    ]
    assert second.may_supersede is not None
    assert second.may_supersede.id == first.memory.id
    assert third.may_supersede is not None
    assert third.may_supersede.id == second.memory.id


@pytest.mark.parametrize(
    ("new", "is_proposed"),
    [("My brother's number: 07700 900648.", False), ("Call me on 07700 900648 from now on, my number.", True)],
)
async def test_the_latest_of_a_series_changes_nothing_that_lies_farther(new: str, *, is_proposed: bool) -> None:
    """ADR 87: the number of a second relative was proposed to supersede one's own."""
    wifes, mine = (
        replace(a_memory(text), created_at=NOW - timedelta(days=9))
        for text in ("My wife's number: 07700 900311.", "On 07700 900142 you reach me, my own number.")
    )
    strangers = [(a_memory(f"animal{n} sleeps"), 0.3) for n in range(3)]
    near = [(wifes, 0.85), (mine, 0.8), *strangers]
    found = await SupersessionCandidateSearch(FakeWordStatistics({NONSENSE_WORD_FOR_MAX_IDF: 8.0}))(
        ADA, a_memory(new), near
    )
    assert (found.proposed is mine) is is_proposed


@pytest.mark.parametrize("reads", [True, False])
async def test_a_change_told_in_one_call_is_proposed_where_dates_tell_which_was_first(home: Home, reads: bool) -> None:
    """As if they had been stored one by one, also in a language that the model cannot read."""
    home.embedder.available = reads
    told = [("2025-01-10", NPM), ("2025-03-02", "the neighbour mows the lawn"), ("2025-05-20", PNPM)]
    before, _, after = await home.store_dated(*told)
    assert after.may_supersede is not None
    assert (after.may_supersede.id, after.may_supersede.short_id) == (before.memory.id, before.memory.short_id)
    assert after.memory.may_supersede == before.memory.id


async def test_what_one_call_tells_of_one_time_does_not_hide_what_was_stored_before(home: Home) -> None:
    before = await home.store(NPM)
    told = [f"builds of storefront-web moved to pnpm: step {n}" for n in range(8)]
    after = await home.store(*told, PNPM)
    assert after.may_supersede is not None
    assert after.may_supersede.id == before.memory.id


async def test_what_the_call_itself_has_superseded_is_not_proposed(home: Home) -> None:
    before = await home.store(NPM)
    home.clock.advance(timedelta(hours=1))
    scenes = [
        NewScene(scene=Scene(action=PNPM), supersedes=before.memory.id),
        NewScene(scene=Scene(action="builds of storefront-web moved to bun now")),
    ]
    for stored in await home.store_scenes(scenes):
        assert stored.may_supersede is None


@pytest.mark.parametrize("date", ["", "2025-01-10"])
async def test_what_one_call_tells_of_one_time_is_true_together(home: Home, date: str) -> None:
    assert [one.may_supersede for one in await home.store_dated((date, NPM), (date, PNPM))] == [None, None]


async def test_what_was_superseded_by_an_act_is_not_proposed(home: Home) -> None:
    before = await home.store(NPM)
    after = await home.store(PNPM, supersedes=before.memory.id)
    assert after.may_supersede is None


async def test_the_newer_of_two_that_speak_of_the_same_is_recalled_first(home: Home) -> None:
    await home.store(NPM)
    await home.store(PNPM)
    question = "what does storefront-web use for builds"
    assert (await home.recalled(question, newer_first=False))[:2] == [NPM, PNPM]
    assert (await home.recalled(question))[:2] == [PNPM, NPM]
    assert (await home.recalled("what did builds of storefront-web use originally"))[0] == NPM


async def test_what_was_before_or_first_stands_before_what_took_its_place(home: Home) -> None:
    """ADR 88."""
    yarn = "builds of storefront-web moved from pnpm to yarn"
    for text in (NPM, PNPM, yarn):
        await home.store(text)
    assert (await home.recalled("what did builds of storefront-web use before yarn"))[0] == PNPM
    assert (await home.recalled("what did builds of storefront-web use originally"))[0] == NPM
    assert (await home.recalled("builds of storefront-web use"))[0] == yarn


async def test_what_says_itself_that_it_was_before_something_is_what_is_asked_for(home: Home) -> None:
    """ADR 88."""
    told = [
        "the budget of storefront-web is 5000 euro",
        "the budget of storefront-web is 8000 euro now, before the audit",
    ]
    for text in told:
        await home.store(text)
    assert (await home.recalled("what was the budget of storefront-web before the audit"))[0] == told[1]


@pytest.mark.parametrize(("session", "actors"), [("", ("Ann",)), ("talk", ()), ("talk", ("Ann",))])
async def test_turns_of_conversations_are_not_compared_unless_proposals_join_them(
    home: Home, session: str, actors: tuple[str, ...]
) -> None:
    """A later turn goes on; it seldom takes the place of an earlier one. Notes of a session are no turns (ADR 76)."""
    told = ["Petrov and I live in Zagreb", "Petrov has left for Split without me"]
    for number, text in enumerate(told):
        scene = Scene(action=text, actors=actors)
        home.clock.advance(timedelta(hours=1))
        await home.store_scenes([NewScene(scene=scene, session_id=session and f"{session}{number}")])
    order = await home.recalled("Petrov")
    assert order[:2] == (told if session and actors else told[::-1])


async def test_a_recalled_fact_brings_what_has_changed_of_it_though_that_does_not_match(home: Home) -> None:
    """What probably changed it stands before it, what perhaps tells of another thing behind (ADR 87)."""
    await home.store(NPM)
    yarn = "yarn of storefront-web gave way to bun in spring"
    await home.store(PNPM)
    await home.store("builds of storefront-web moved from pnpm to yarn")
    assert (await home.store(yarn)).may_supersede is not None
    assert await home.recalled("npm") == [PNPM, NPM, yarn]


@pytest.mark.parametrize("others", [0, 4, 30])
async def test_what_is_proposed_does_not_hang_on_how_many_memories_there_are(
    tmp_path: Path, new_db: Path, others: int
) -> None:
    index = await EmbeddedQdrantIndex.open(
        tmp_path / "small", IndexFingerprint(WordEmbedder().model_name, WordEmbedder().dim)
    )
    async with open_ledger(new_db) as ledger:
        home = Home(ledger, index)
        for text in (*OTHERS[:others], "Tom lives in Lyon.", "Mia rents a flat in Graz."):
            await home.store(text)
        moved = await home.store("Tom has moved from Lyon to Bordeaux.")
        also_true = await home.store("Mia also sails.")
    await index.close()
    assert moved.may_supersede is not None
    assert moved.may_supersede.scene.action == "Tom lives in Lyon."
    assert also_true.may_supersede is None


class _RecordedSearch(SupersessionCandidateSearch):
    cosines: Mapping[str, float]

    async def __call__(
        self, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]], **_: object
    ) -> SupersessionCandidates:
        object.__setattr__(self, "cosines", {other.scene.action: cosine for other, cosine in near})
        return SupersessionCandidates()


async def test_memories_are_compared_without_the_date_of_the_new_one(tmp_path: Path, new_db: Path) -> None:
    """ruling 14: a vector is of date and text (spec P4), and two dates are alike whatever is told."""
    embedder = WordEmbedder(dim=1024)
    index = await EmbeddedQdrantIndex.open(tmp_path / "index", IndexFingerprint(embedder.model_name, embedder.dim))
    async with open_ledger(new_db) as ledger:
        search = _RecordedSearch(index)
        store = StoreScenes(ledger.memories, index, embedder, now=Clock(), search_superseded=search)
        for text in (NPM, "Ben waters the garden", PNPM):
            await store(ADA, [NewScene(scene=Scene(action=text, when=("2026-03-02",)))])
        assert search.cosines["Ben waters the garden"] == 0.0
        dated_npm = embedder.vector(f"2026-03-02 {NPM}")
        assert search.cosines[NPM] == pytest.approx(float(embedder.vector(PNPM) @ dated_npm), abs=1e-6)
        assert (await ledger.memories.cached_vectors_by_hash(embedder.model_name, [content_hash(PNPM)])) == {}, (
            "nothing is kept of it"
        )
    await index.close()
