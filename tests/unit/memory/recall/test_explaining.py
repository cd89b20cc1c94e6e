"""Why a memory came to a recall, or did not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madeleine.memory.model import Memory, MemoryId, Provenance
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.explaining import MAX_EXPLAINED_CANDIDATES, MemoryExplanation
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.ranking.profiles import RankingProfile
from tests.doubles import ADA, NOW, WordEmbedder, a_memory
from tests.unit.memory.recall.homes import DIM, Home, opened

WORDS = ("harbor", "cat", "violin", "ferry", "winter", "pier", "Ann", "yesterday", "I", "like", "when", "?")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
memories = st.builds(
    lambda text, session, **fields: replace(
        a_memory(text, **fields), provenance=Provenance(tool="store", session_id=session)
    ),
    texts,
    st.sampled_from(["", "s", "t"]),
    actors=st.sampled_from([(), ("Ann",), ("user",), ("Bob",)]),
    category=st.sampled_from(["episodic", "semantic", "procedural"]),
    emotions=st.sampled_from([(), ("joy",), ("grief", "joy")]),
    importance=st.sampled_from([0.1, 0.5, 0.9]),
    status=st.sampled_from(["active", "active", "dying", "dead"]),
    compressed=st.sampled_from([False, False, False, True]),
)


@st.composite
def stores(draw: st.DrawFn) -> list[Memory]:
    """Memories, the later of which may supersede earlier ones, have superseded them, or were never true."""
    stored: list[Memory] = []
    for number, memory in enumerate(draw(st.lists(memories, min_size=1, max_size=25))):
        at = NOW + timedelta(days=number)
        earlier = draw(st.sampled_from([None, *range(number)])) if number else None
        act = draw(st.sampled_from(["nothing", "propose", "supersede", "retract"]))
        later = replace(memory, created_at=at, happened_at=at)
        if act == "retract":
            later = replace(later, truth="retracted", retraction_reason="a joke")
        elif earlier is not None and stored[earlier].truth == "current" and act == "propose":
            later = replace(later, may_supersede=stored[earlier].id)
        elif earlier is not None and stored[earlier].truth == "current" and act == "supersede":
            later = replace(later, valid_from=at)
            stored[earlier] = replace(
                stored[earlier], truth="superseded", superseded_by=later.id, valid_until=at, may_supersede=None
            )
        stored.append(later)
    return stored


PROFILES: Sequence[RankingProfile] = ("blended", "rrf", "linear", "associative")


def explained(result: RecallResult) -> dict[MemoryId, MemoryExplanation]:
    assert result.explanation is not None
    return {one.id: one for one in result.explanation.memories}


queries = st.builds(
    RecallQuery,
    text=texts,
    limit=st.integers(1, 5),
    ranking=st.sampled_from(PROFILES),
    emotions=st.sampled_from([(), ("joy",)]),
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(stored=stores(), query=queries)
async def test_parts_add_up_to_the_score_of_the_answer(
    tmp_path_factory: pytest.TempPathFactory, stored: list[Memory], query: RecallQuery
) -> None:
    async with opened(tmp_path_factory.mktemp("home"), WordEmbedder(DIM)) as home:
        await home.put(*stored)
        asked = [memory.id for memory in stored]
        result = await home.recall()(ADA, query, explain=asked)
    why = explained(result)
    assert why.keys() == set(asked)
    for memory, score in (*result.memories, *result.preferences):
        assert (why[memory.id].outcome, why[memory.id].score) == ("recalled", score)
    for one in why.values():
        assert sum(one.parts.values()) == pytest.approx(one.score, abs=1e-6)
        assert one.outcome == "recalled" or one.reason
        if one.likeness:
            assert sum(one.likeness.parts.values()) == pytest.approx(one.likeness.value, abs=1e-6)
        is_left_out = "what became of" in one.reason or "alike enough" in one.reason
        if one.outcome in ("below the gate", "near") and not is_left_out:
            assert one.likeness is None or one.likeness.value < one.likeness.needed


async def reason_of(home: Home, memory: Memory, *, limit: int = 3, themes: tuple[str, ...] = ()) -> MemoryExplanation:
    recall = home.recall(config=RecallConfig(sparse_limit=3, dense_limit=3))
    result = await recall(ADA, RecallQuery(text="harbor", limit=limit, themes=themes), explain=[memory.id])
    return explained(result)[memory.id]


async def test_a_memory_that_did_not_come_says_where_it_fell_out(home: Home) -> None:
    current = a_memory("harbor pier now")
    stored = {
        "faded": a_memory("harbor cat", status="dead"),
        "filtered": a_memory("harbor"),
        "below the gate": a_memory("violin practice in winter"),
        "recalled": current,
        "superseded": replace(
            a_memory("harbor pier then"), truth="superseded", superseded_by=current.id, valid_until=NOW
        ),
        "retracted": replace(a_memory("harbor sank"), truth="retracted", retraction_reason="a joke"),
        "merged": replace(a_memory("harbor twice"), status="dead", absorbed_into=current.id),
        "summarised": replace(a_memory("harbor before"), compressed=True, compressed_into=current.id),
    }
    await home.put(*stored.values())
    found = {name: await reason_of(home, memory, limit=9) for name, memory in stored.items() if name != "filtered"}
    found["filtered"] = await reason_of(home, stored["filtered"], themes=("travel",))
    assert {name: one.outcome for name, one in found.items()} == {name: name for name in stored}
    assert current.id in found["superseded"].reason
    assert "rank" in found["superseded"].reason
    assert "a joke" in found["retracted"].reason
    unlike = found["below the gate"].likeness
    assert unlike is not None
    assert f"lacks {unlike.needed - unlike.value:.2f}" in found["below the gate"].reason


async def test_what_lies_on_a_named_day_to_come_says_so(tmp_path: Path) -> None:
    """ADR 102: it is near, also beside a match, whatever its words."""
    tomorrow, last = (f"{NOW + timedelta(days=days):%Y-%m-%d}" for days in (1, 5))
    freeze = a_memory(f"Nothing leaves our depot from {tomorrow} to {last}")
    query = RecallQuery(text="Does the ferry reach the harbor tomorrow?")
    async with opened(tmp_path, WordEmbedder(512)) as home:
        await home.put(a_memory("The ferry reaches the harbor"), freeze)
        result = await home.recall()(ADA, query, explain=[freeze.id])
    why = explained(result)[freeze.id]
    assert [memory.scene.action for memory, _ in result.memories] == ["The ferry reaches the harbor"]
    assert why.outcome == "near"
    assert "a day that the query names" in why.reason


async def test_what_is_past_the_limit_names_its_rank(home: Home) -> None:
    stored = [a_memory("harbor " * count + "cat") for count in (4, 3, 2, 1)]
    await home.put(*stored)
    last = await reason_of(home, stored[2], limit=2)
    assert (last.outcome, last.rank) == ("past the limit", 3)
    assert "holds 2 memories" in last.reason


async def test_what_neither_words_nor_meaning_bring_near_says_so(home: Home) -> None:
    far = a_memory("violin practice in winter")
    await home.put(*(a_memory(f"harbor {count}") for count in range(15)), far)
    assert (await reason_of(home, far)).outcome == "no candidate"


async def test_the_best_candidates_are_explained_unasked_and_nothing_is_counted_for_it(home: Home) -> None:
    await home.put(*(a_memory(f"harbor {'cat ' * count}") for count in range(15)))
    result = await home.recall()(ADA, RecallQuery(text="harbor", limit=1), explain=[])
    assert len(explained(result)) == MAX_EXPLAINED_CANDIDATES
    assert len(home.activations.added) == 1


async def test_another_beings_memory_is_unknown(home: Home, tmp_path: Path) -> None:
    [why] = explained(await home.recall()(ADA, RecallQuery(text="harbor"), explain=[MemoryId("of-bob")])).values()
    assert (why.outcome, why.memory) == ("unknown", None)
