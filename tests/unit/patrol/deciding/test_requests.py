"""spec P6 ❹ ❻, P8, L3; ruling 10: what is offered, and how much at once."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import (
    ClusterId,
    DatedAction,
    EmotionVector,
    Memory,
    MemoryId,
    MemoryStatus,
    Provenance,
    Vector,
)
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.patrol.deciding.compress import session_compression_requests
from madeleine.patrol.deciding.consolidate import consolidation_requests
from madeleine.patrol.deciding.diary import decision_requests_for_diary
from madeleine.patrol.deciding.dying import requests_about_dying_memories
from madeleine.patrol.deciding.rendering import (
    SHOWN_ABOVE,
    decision_guidance_names,
    decision_prompt,
    decision_request_as_json_for_agent,
)
from madeleine.patrol.deciding.requests import (
    DECISION_REQUEST_LIMITS_FOR_AGENT,
    DECISION_REQUEST_LIMITS_FOR_MODEL,
    DecisionKind,
    DecisionRequest,
    DecisionRequestLimits,
    is_text_unchanged_since_offer,
    offered_memory_from_memory,
)
from madeleine.patrol.deciding.split import cluster_split_requests
from tests.doubles import NOW, a_memory, unit
from tests.rows import for_each_row
from tests.unit.patrol.deciding.request_fixtures import DINNERS, HOME, ROOT, request_of

LIMITS = DecisionRequestLimits()


def size_of(request: DecisionRequest) -> int:
    """In characters."""
    return sum(memory.size_bytes for memory in request.memories) + len(request.earlier) + sum(map(len, request.think))


def numbered(count: int, *, text: str = "ramen", fresh: bool = True, status: MemoryStatus = "active") -> list[Memory]:
    return [
        replace(
            a_memory(text, id=MemoryId(f"{text[:5]}-{i:04}"), fresh=fresh, status=status, cluster_id=HOME),
            created_at=NOW + timedelta(seconds=i),
            happened_at=NOW + timedelta(seconds=i),
        )
        for i in range(count)
    ]


def ids(offer: DecisionRequest) -> list[str]:
    return [memory.id for memory in offer.memories]


# --- values -----------------------------------------------------------------------------------------------------


def test_an_offer_comes_back_from_json_as_it_was() -> None:
    memory = a_memory("ramen", when=("2026-02-01T10:00",), actors=("Ada", "Bob"), feeling="warm", pinned=True)
    for kind, fields in (
        ("consolidate", {}),
        ("diary", {"date": "2026-03-01", "earlier": "a\nb", "think": ("x", "y")}),
        ("compress", {"session_id": "s1"}),
    ):
        offer = request_of(kind, [memory], **fields)  # type: ignore[arg-type]
        assert DecisionRequest.from_json(json.loads(json.dumps(offer.as_json()))) == offer


def test_a_shown_memory_has_its_first_day_and_a_text_of_bounded_length() -> None:
    memory = a_memory("x" * 5_000, when=(DatedAction("2026-02-01", "soup"), "2026-02-03"), feeling="y" * 5_000)
    result = offered_memory_from_memory(memory, "consolidate")
    assert (result.when, "…" in result.text) == ("2026-02-01", True)
    for limits, shown in (
        (LIMITS, result),
        (DECISION_REQUEST_LIMITS_FOR_MODEL["compress"], offered_memory_from_memory(memory, "compress")),
    ):
        assert 0.9 < len(shown.text) / limits.text_chars <= 1
    assert result.size_bytes < LIMITS.size


def test_a_memory_without_a_date_is_shown_on_the_day_it_happened() -> None:
    assert offered_memory_from_memory(a_memory("ramen"), "split").when == NOW.date().isoformat()


def test_a_single_memory_that_is_not_dying_has_no_choice() -> None:
    """Nothing can be merged with it, and only dying ones may be made dead (spec P6 ❹)."""
    (fresh,) = consolidation_requests(DINNERS, numbered(1), {})
    (dying,) = requests_about_dying_memories(numbered(1, status="dying"))
    assert (fresh.has_choice, dying.has_choice) == (False, True)


def test_what_is_dying_is_asked_about_by_session_whatever_its_cluster() -> None:
    """ruling 23: the clusters of one evening were as many offers."""
    sessions = ("s", "t", "s")
    dying = [
        replace(memory, provenance=Provenance(tool="store", session_id=session), cluster_id=ClusterId(f"c-{at}"))
        for at, (memory, session) in enumerate(zip(numbered(3, fresh=False, status="dying"), sessions, strict=True))
    ]
    (offer,) = requests_about_dying_memories(dying)
    assert ids(offer) == [dying[0].id, dying[2].id, dying[1].id]
    shown = decision_request_as_json_for_agent(offer)
    first, *others = shown["memories"].items()
    assert shown["status"] == "dying"
    assert first == (offer.memories[0].short_id, {"when": NOW.date().isoformat(), "text": "ramen"})
    assert others == [(memory.short_id, "ramen") for memory in offer.memories[1:]]


def test_two_that_differ_in_a_fact_are_not_asked_about() -> None:
    """They are never merged, whatever is decided (ruling 13)."""
    first, second = numbered(2)
    first = replace(first, scene=replace(first.scene, action="Ann paid 9 euros"))
    second = replace(second, scene=replace(second.scene, action="Ann paid 8 euros"), resembles=first.id)
    (offer,) = consolidation_requests(DINNERS, [first, second], {first.id: unit([1, 0]), second.id: unit([1, 0.1])})
    assert not offer.has_choice


def test_a_summary_is_offered_as_a_repetition_of_nothing() -> None:
    """ADR 86: it stands for several memories, and what is merged into it would stand on another level."""
    told, summary = numbered(2)
    summary = replace(summary, compression_source=True)
    for pair in ([told, summary], [replace(told, fresh=False), summary]):
        offers = consolidation_requests(DINNERS, pair, {one.id: unit([1, 0]) for one in pair})
        assert not any(offer.has_choice for offer in offers)


def test_what_nothing_resembles_needs_no_decision() -> None:
    """ruling 23: a day of unrelated scenes costs the agent nothing; what a store has linked is always asked about."""
    alone, like, linked, retold = numbered(4)
    linked = replace(linked, resembles=retold.id)
    vectors: dict[MemoryId, Vector] = {m.id: unit(np.eye(4)[i]) for i, m in enumerate((alone, like, linked, retold))}
    vectors[retold.id] = unit(np.eye(4)[2] + 0.9 * np.eye(4)[3])
    near = a_memory("like it", fresh=False, cluster_id=HOME)
    vectors[near.id] = unit(np.eye(4)[1] + 0.1)
    asked, settled = consolidation_requests(DINNERS, [alone, like, linked, retold, near], vectors)
    assert (asked.has_choice, settled.has_choice) == (True, False)
    assert ({*ids(asked)}, ids(settled)) == ({like.id, near.id, linked.id, retold.id}, [alone.id])


# --- ❹ ----------------------------------------------------------------------------------------------------------


def ingested(text: str, at: int = 0, **fields: Any) -> Memory:
    origin = Provenance(tool="ingest", session_id="s")
    memory = a_memory(text, provenance=origin, fresh=False, status="dying", **fields)
    return replace(memory, created_at=NOW + timedelta(seconds=at))


def _memories_shown(offer: DecisionRequest, already_shown: Container[MemoryId] = ()) -> list[Any]:
    return list(decision_request_as_json_for_agent(offer, already_shown)["memories"].values())


def test_days_are_shown_where_they_differ_from_those_of_the_memory_before() -> None:
    """ruling 23"""
    days = ["2026-02-01", "2026-02-01", NOW.date().isoformat(), "2026-02-01"]
    dying = [a_memory(f"ramen {i}", when=(day,), status="dying") for i, day in enumerate(days)]
    (offer,) = requests_about_dying_memories(dying)
    told = [{"text": one} if isinstance(one, str) else one for one in _memories_shown(offer)]
    stored = NOW.date().isoformat()
    both = {"when": "2026-02-01", "stored": stored}
    days_shown = [{name: value for name, value in dict(one).items() if name != "text"} for one in told]
    assert days_shown == [both, {}, {"when": stored}, both]


def test_parts_of_an_ingested_text_are_offered_as_one() -> None:
    """ADR 82: told in one call, decided at once; of each part its beginning."""
    page = [ingested(f"Part {i} {'of the page ' * 30}", actors=("assistant",)) for i in range(3)]
    (offer,) = requests_about_dying_memories([*page, ingested("Another call", 1)])
    assert ids(offer) == [*(part.id for part in page), offer.memories[3].id]
    shown, other = _memories_shown(offer)
    assert shown["parts"] == 3
    assert [shown["text"].count(f"Part {i} of the page") for i in range(3)] == [1, 1, 1]
    assert "parts" not in other
    assert decision_guidance_names([offer]) == ["dying", "parts"]
    assert decision_guidance_names(requests_about_dying_memories(page[:1])) == ["dying"]
    offered = zip(page, offer.memories[:3], strict=True)
    assert all(is_text_unchanged_since_offer(part, memory, "consolidate") for part, memory in offered)
    assert '"n": 1' in (text := decision_prompt(offer).text)
    assert ('"n": 2' in text, '"n": 4' in text) == (False, True), "a model names a text by the number of its first part"
    assert DecisionRequest.from_json(offer.as_json()) == offer


@for_each_row(
    "other",
    [
        ingested("A part", 1),
        ingested("A part", actors=("user",)),
        ingested("A part", category="procedural"),
        ingested("A part", lesson="Ask first"),
        ingested("A part", pinned=True),
        ingested("A part", feeling="terrified"),
        replace(ingested("A part"), provenance=Provenance(tool="store", session_id="s")),
    ],
)
def test_what_was_not_told_in_one_go_or_weighs_otherwise_is_decided_by_itself(other: Memory) -> None:
    """ADR 82"""
    first, last = ingested("First"), ingested("Last")
    (offer,) = requests_about_dying_memories([first, other, last])
    parts = {memory.id: memory.part_of for memory in offer.memories}
    assert parts == {first.id: None, last.id: first.id, other.id: None}


def test_a_text_in_parts_is_shown_whatever_was_shown_before_and_counts_for_none_of_them() -> None:
    """ADR 82, ruling 20: nothing is decided whose text was not shown."""
    page = [ingested(f"Part {i}", importance=importance) for i, importance in enumerate((0.3, 0.9, 0.6))]
    alone = ingested("Alone", 1)
    (offer,) = requests_about_dying_memories([*page, alone])
    first, other = _memories_shown(offer, {memory.id for memory in (*page, alone)})
    assert (first["text"], first["importance"]) == ("Part 0 Part 1 Part 2", 0.9)
    assert other == SHOWN_ABOVE
    assert offer.ids_shown_with_text == {alone.id}


def test_a_text_that_was_changed_behind_what_was_shown_has_changed() -> None:
    """ruling 13: of a part only the beginning is shown."""
    memory = ingested("The appointment at the clinic in Hamburg is on the third of May, at nine o'clock. " * 5)
    (offer,) = requests_about_dying_memories([memory, ingested("and more " * 90)], LIMITS)
    moved = replace(memory, scene=replace(memory.scene, action=memory.scene.action + " It was moved to Kiel."))
    assert is_text_unchanged_since_offer(memory, offer.memories[0], "consolidate")
    assert not is_text_unchanged_since_offer(moved, offer.memories[0], "consolidate")
    old = replace(offer.memories[0], text_hash=None)
    assert is_text_unchanged_since_offer(memory, old, "consolidate")


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(1, 900)), max_size=12))
def test_no_text_is_torn_and_no_part_is_missing(texts: list[tuple[int, int]]) -> None:
    """ADR 82, ruling 20: every dying memory is in one offer, with the first part of its text."""
    dying = [ingested("x" * size, at) for at, (count, size) in enumerate(texts) for _ in range(count)]
    limits = DECISION_REQUEST_LIMITS_FOR_AGENT["consolidate"]
    offers = requests_about_dying_memories(dying, limits)
    assert [id_ for offer in offers for id_ in ids(offer)] == [memory.id for memory in dying]
    for offer in offers:
        assert len(offer.memories) <= limits.memories
        firsts = {memory.id for memory in offer.memories if memory.part_of is None}
        assert {memory.part_of for memory in offer.memories if memory.part_of} <= firsts


def test_fresh_memories_come_first_then_the_nearest_settled_and_dying_ones() -> None:
    """spec P6 ❹: clusters containing fresh nodes."""
    fresh, dying, near, far = (
        a_memory("new", id=MemoryId("fresh"), cluster_id=HOME),
        a_memory("like new too", id=MemoryId("dying"), fresh=False, status="dying", cluster_id=HOME),
        a_memory("like new", id=MemoryId("near"), fresh=False, cluster_id=HOME),
        a_memory("else", id=MemoryId("far"), fresh=False, cluster_id=HOME),
    )
    vectors: dict[MemoryId, Vector] = {
        fresh.id: unit([1, 0, 0]), dying.id: unit([0.9, 0.1, 0]), near.id: unit([0.8, 0.2, 0]), far.id: unit([0, 0, 1])
    }  # fmt: skip
    (offer,) = consolidation_requests(DINNERS, [far, near, fresh, dying], vectors)
    assert ids(offer) == ["fresh", "dying", "near"]
    assert (offer.cluster_id, offer.cluster, offer.kind) == (HOME, "Dinners", "consolidate")


def test_a_settled_cluster_is_not_offered() -> None:
    assert consolidation_requests(DINNERS, numbered(5, fresh=False), {}) == []


def test_the_dead_are_not_offered() -> None:
    fresh, dead = numbered(1) + numbered(1, text="deads", status="dead")
    (offer,) = consolidation_requests(DINNERS, [fresh, dead], {})
    assert ids(offer) == [fresh.id]


def test_a_compressed_memory_is_no_partner() -> None:
    """What is merged into it would not be recalled (spec L3, 3.3)."""
    compressed = a_memory("summarised", fresh=False, compressed=True, cluster_id=HOME)
    (offer,) = consolidation_requests(DINNERS, [*numbered(1), compressed], {})
    assert compressed.id not in ids(offer)


def test_memories_that_are_alike_are_offered_together() -> None:
    """Two of the same in different offers could not be merged."""
    memories = numbered(90)
    vectors = {m.id: unit(np.eye(3)[i % 3]) for i, m in enumerate(memories)}
    offers = consolidation_requests(DINNERS, memories, vectors)
    assert [{int(np.argmax(vectors[m.id])) for m in offer.memories} for offer in offers] == [{0, 1}, {2}]


@given(
    fresh=st.lists(st.integers(1, 1_500), max_size=100),
    settled=st.integers(0, 80),
    dying=st.integers(0, 30),
    chance=st.randoms(use_true_random=False),
)
def test_every_fresh_memory_and_every_dying_one_is_in_one_offer_within_the_bounds(
    fresh: list[int], settled: int, dying: int, chance: Random
) -> None:
    memories = [
        *(a_memory("x" * length, cluster_id=HOME) for length in fresh),
        *numbered(settled, text="settled " * 60, fresh=False),
        *numbered(dying, text="dying", fresh=False, status="dying"),
    ]
    vectors = {m.id: unit([1.0, (i * 7) % 5, (i * 3) % 11]) for i, m in enumerate(memories) if i % 4}
    offers = consolidation_requests(DINNERS, memories, vectors)
    shown_ids = [id_ for offer in offers for id_ in ids(offer)]
    for memory in memories:
        if memory.fresh:
            assert shown_ids.count(memory.id) == 1
    about_dying = requests_about_dying_memories([memory for memory in memories if memory.status == "dying"])
    assert sum(len(offer.memories) for offer in about_dying) == dying
    for offer in (*offers, *about_dying):
        assert len(offer.memories) <= LIMITS.memories
        assert size_of(offer) <= LIMITS.size
        assert len(set(ids(offer))) == len(offer.memories)
    chance.shuffle(memories)
    assert [ids(o) for o in consolidation_requests(DINNERS, memories, vectors)] == [ids(o) for o in offers]


def test_there_is_room_for_partners_however_much_is_fresh() -> None:
    settled, fresh = numbered(30, text="settled", fresh=False), numbered(100)
    vectors: dict[MemoryId, Vector] = {memory.id: unit([1, 0, 0]) for memory in (*settled, *fresh)}
    for offer in consolidation_requests(DINNERS, [*fresh, *settled], vectors):
        assert sum(not memory.fresh for memory in offer.memories) >= 20


# --- ❻ ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("active", "offered"), [(10, False), (11, True)])
def test_a_cluster_is_offered_to_be_split_above_ten_active_memories(active: int, offered: bool) -> None:
    """spec P6 ❻"""
    others = numbered(5, text="dying", status="dying")
    requests = cluster_split_requests(DINNERS, numbered(active) + others)
    assert [len(request.memories) for request in requests] == ([active] if offered else [])


def test_a_root_is_never_offered_to_be_split() -> None:
    """spec P6 ❻"""
    assert cluster_split_requests(ROOT, numbered(50)) == []


def test_of_a_very_large_cluster_a_sample_that_spans_it_is_offered() -> None:
    offered = ids(cluster_split_requests(DINNERS, numbered(100)[::-1])[0])
    everything = [m.id for m in numbered(100)]
    assert (len(offered), offered[0], offered[-1]) == (60, everything[0], everything[-1])
    assert offered == sorted(offered, key=lambda id_: everything.index(MemoryId(id_)))


# --- diary, compression -----------------------------------------------------------------------------------------


def test_a_diary_shows_the_most_important_in_the_order_in_which_they_happened() -> None:
    """spec P8"""
    memories = [replace(m, importance=(i % 2) * 0.5) for i, m in enumerate(numbered(100))]
    [offer] = decision_requests_for_diary("2026-03-01", memories[::-1], "Before.", ["A point."])
    result = ids(offer)
    assert offer is not None
    assert result == sorted(result)
    assert {m.id for m in memories if m.importance} <= set(result)
    assert (len(result), offer.earlier, offer.think, offer.date) == (60, "Before.", ("A point.",), "2026-03-01")


def test_a_day_without_memories_has_no_diary() -> None:
    assert decision_requests_for_diary("2026-03-01", [], "", []) == []


def test_a_diary_is_offered_how_the_day_felt() -> None:
    """ruling 21"""
    memories = [replace(memory, emotions=("joy",)) for memory in numbered(2)] + numbered(1)
    [offer] = decision_requests_for_diary("2026-03-01", memories, "", [])
    assert offer.felt.startswith("joy (valence +0.")
    assert decision_request_as_json_for_agent(offer)["felt"] == offer.felt
    assert f'"felt": "{offer.felt}"' in decision_prompt(offer).text
    [told] = decision_requests_for_diary(
        "2026-03-01", [replace(numbered(1)[0], emotion=EmotionVector(-1, 0, 0, 0, 0, 0))], "", []
    )
    assert told.felt == "valence -1.0, arousal +0.0"
    [unfelt] = decision_requests_for_diary("2026-03-01", numbered(3), "", [])
    assert "felt" not in decision_request_as_json_for_agent(unfelt)
    assert '"felt"' not in decision_prompt(unfelt).text


def test_a_long_diary_of_before_leaves_the_offer_within_its_bounds() -> None:
    [offer] = decision_requests_for_diary("2026-03-01", numbered(60, text="x" * 900), "y" * 9_000, ["z" * 900] * 20)
    assert offer is not None
    assert size_of(offer) <= LIMITS.size


def test_a_long_session_is_summarised_in_parts_in_the_order_in_which_it_happened() -> None:
    """spec L3: "concatenate all episodic memory content in chronological order"."""
    memories = numbered(130)
    offers = session_compression_requests("s1", memories[::-1])
    assert [len(offer.memories) for offer in offers] == [60, 60, 10]
    assert [id_ for offer in offers for id_ in ids(offer)] == [m.id for m in memories]
    assert {(offer.session_id, offer.kind) for offer in offers} == {("s1", "compress")}


def test_scenes_of_one_call_and_day_are_summarised_in_their_order() -> None:
    """They have one moment; their ids are chance, their numbers are not."""
    told = [replace(a_memory(f"scene {n}"), id=MemoryId(f"id-{9 - n}"), number=n) for n in range(1, 6)]
    (offer,) = session_compression_requests("s1", told[::-1])
    assert ids(offer) == [memory.id for memory in told]


@given(st.lists(st.integers(1, 9_000), max_size=40))
def test_no_part_of_a_session_is_longer_than_an_offer_and_none_is_lost(lengths: list[int]) -> None:
    memories = [a_memory("x" * length) for length in lengths]
    offers = session_compression_requests("s1", memories)
    assert sorted(id_ for offer in offers for id_ in ids(offer)) == sorted(m.id for m in memories)
    assert all(size_of(offer) <= LIMITS.size and offer.memories for offer in offers)


def test_what_is_not_of_the_session_s_episodes_or_has_a_summary_is_not_summarised() -> None:
    """spec L3: episodic memories that are not compressed yet. Behind a summary a lesson would be shown no more."""
    provenance = Provenance(tool="store", session_id="s1")
    kept = a_memory("said", provenance=provenance)
    others = [
        a_memory("fact", category="semantic"), a_memory("told", compressed=True), a_memory("gone", status="dead"),
        a_memory("learnt", lesson="Ask first"), replace(a_memory("changed"), may_supersede=kept.id),
    ]  # fmt: skip
    (offer,) = session_compression_requests("s1", [kept, *others])
    assert ids(offer) == [kept.id]


def test_equal_input_gives_equal_requests_except_for_their_ids() -> None:
    def anonymous(kind: DecisionKind) -> list[DecisionRequest]:
        result: dict[DecisionKind, list[DecisionRequest]] = {
            "consolidate": consolidation_requests(DINNERS, numbered(70), {}),
            "split": cluster_split_requests(DINNERS, numbered(20)),
            "diary": decision_requests_for_diary("2026-03-01", numbered(20), "", []),
            "compress": session_compression_requests("s1", numbered(70)),
        }
        return [replace(offer, id=DecisionRequestId("")) for offer in result[kind]]

    kinds: tuple[DecisionKind, ...] = ("consolidate", "split", "diary", "compress")
    for kind in kinds:
        assert anonymous(kind) == anonymous(kind) != []
