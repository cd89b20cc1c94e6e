"""ruling 10: whatever a mind answers, and whatever happened meanwhile, the rules of ❹ and ❻ hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.language_model import RejectedModelAnswer
from madeleine.memory.model import LIVING_STATUSES, ClusterId, Memory, MemoryId
from madeleine.memory.rules.dynamics.importance import MAX_DYING_IMPORTANCE, effective_importance
from madeleine.patrol.deciding.answers import CheckedDecisionAnswer, CurrentOfferedMemories
from madeleine.patrol.deciding.consolidate import ConsolidationAnswer, MemoryMerge, memories_changed_by_consolidation
from madeleine.patrol.deciding.requests import DecisionKind, DecisionRequest
from madeleine.patrol.deciding.split import ClusterSplitAnswer, ClusterSplitPart
from tests.doubles import NOW, a_memory
from tests.unit.patrol.deciding.request_fixtures import HOME, checked, current_of, request_of

NAMES = "ABCDEFGHIJKLMN"

LOST = [MemoryId(name) for name in "YZ"]


def heaps(draw: st.DrawFn, ids: Sequence[MemoryId], most: int) -> list[tuple[MemoryId, ...]]:
    """Ids in up to `most` heaps; one time in five whatever ids, any number of times."""
    shuffled = draw(st.permutations(ids)) if ids else []
    if draw(st.integers(0, 4)) == 0:
        shuffled = [draw(st.sampled_from([*ids, *LOST])) for _ in ids]
    cuts = sorted(draw(st.lists(st.integers(0, len(shuffled)), min_size=1, max_size=most)))
    return [tuple(shuffled[start:end]) for start, end in zip([0, *cuts], cuts, strict=False)]


@st.composite
def consolidations(draw: st.DrawFn, offer: DecisionRequest) -> ConsolidationAnswer:
    pinned = {memory.id for memory in offer.memories if memory.pinned}
    result = heaps(draw, [memory.id for memory in offer.memories if draw(st.booleans())], 4)
    piles = [sorted(heap, key=lambda id_: id_ not in pinned) for heap in result if heap]
    merges = [MemoryMerge(pile[0], tuple(pile[1:])) for pile in piles]
    if draw(st.integers(0, 4)):
        merges = [MemoryMerge(m.survivor, tuple(i for i in m.absorbed if i not in pinned)) for m in merges]
        merges = [merge for merge in merges if merge.absorbed]
    named = {id_ for merge in merges for id_ in (merge.survivor, *merge.absorbed)}
    dying = [m.id for m in offer.memories if m.status == "dying" and m.id not in named | pinned]
    return ConsolidationAnswer(tuple(merges), tuple(id_ for id_ in dying if draw(st.booleans())))


@st.composite
def splits(draw: st.DrawFn, offer: DecisionRequest) -> ClusterSplitAnswer:
    names = draw(st.permutations(["Ramen", "Trains", "Cats"]))
    result = heaps(draw, [memory.id for memory in offer.memories], 3)
    return ClusterSplitAnswer(
        tuple(ClusterSplitPart(name, heap) for name, heap in zip(names, result, strict=False) if len(heap) != 1)
    )


@st.composite
def memories(draw: st.DrawFn, kind: DecisionKind) -> list[Memory]:
    return [
        a_memory(
            f"scene {name}",
            id=MemoryId(name),
            cluster_id=HOME,
            status="active" if kind == "split" else draw(st.sampled_from(LIVING_STATUSES)),
            fresh=draw(st.booleans()),
            pinned=draw(st.integers(0, 9)) == 0,
            importance=draw(st.sampled_from([0.0, 0.5, 1.0])),
            session_count=draw(st.sampled_from([0, 70, 200])),
            reactivation_count=draw(st.integers(0, 3)),
        )
        for name in NAMES
    ]


@st.composite
def later(draw: st.DrawFn, before: Sequence[Memory]) -> list[Memory]:
    """The same memories some time on: forgotten, recalled, moved, pinned, changed, dead."""
    result: list[Memory] = []
    for memory in before:
        match draw(st.sampled_from([*[""] * 14, "forgotten", "recalled", "moved", "pinned", "changed", "dead"])):
            case "forgotten":
                continue
            case "recalled":
                result.append(replace(memory, session_count=0, reactivation_count=memory.reactivation_count + 1))
            case "moved":
                result.append(replace(memory, cluster_id=ClusterId("elsewhere")))
            case "pinned":
                result.append(replace(memory, pinned=True))
            case "changed":
                result.append(replace(memory, scene=replace(memory.scene, action="another"), fresh=True))
            case "dead":
                result.append(replace(memory, status="dead"))
            case _:
                result.append(memory)
    return result


@st.composite
def offer_and_now(draw: st.DrawFn, kind: DecisionKind) -> tuple[DecisionRequest, list[Memory]]:
    before = draw(memories(kind))
    offered = before[: draw(st.integers(4, len(before)))]
    return request_of(kind, offered), draw(later(before))


@given(st.data())
def test_any_consolidation_keeps_the_rules_of_step_4(data: st.DataObject) -> None:
    """spec P6 ❹, rulings 3 and 11"""
    offer, now = data.draw(offer_and_now("consolidate"))
    answer = data.draw(consolidations(offer))
    by_id = {memory.id: memory for memory in now}
    result = checked(answer, offer, current_of(now))
    if isinstance(result, RejectedModelAnswer):
        return
    assert isinstance(result.answer, ConsolidationAnswer)
    changed = memories_changed_by_consolidation(result.answer, CurrentOfferedMemories(offer, by_id), NOW)
    after = by_id | {memory.id: memory for memory in changed}

    offered = {memory.id for memory in offer.memories}
    assert len({memory.id for memory in changed}) == len(changed)
    survivors = {memory.absorbed_into for memory in changed if memory.absorbed_into}
    for memory in changed:
        was = by_id[memory.id]
        assert memory.id in offered
        assert was.status in LIVING_STATUSES
        assert was.cluster_id == memory.cluster_id == HOME
        assert not memory.fresh
        assert 0 <= memory.importance <= 1
        assert (memory.scene.action, memory.happened_at) == (was.scene.action, was.happened_at)
        if memory.status == "dead":
            assert not was.pinned
            assert memory.id not in survivors
            assert memory.reactivation_count == 0
            if memory.absorbed_into is None:
                assert was.status == "dying"
                assert effective_importance(was.importance, was.session_count) <= MAX_DYING_IMPORTANCE
            else:
                assert after[memory.absorbed_into].status in LIVING_STATUSES
    # Reactivations are passed on, but for those of memories that were made dead; to keep one is to recall it.
    lost = sum(by_id[id_].reactivation_count for id_ in result.answer.make_dead)
    before = sum(memory.reactivation_count for memory in now)
    assert sum(m.reactivation_count for m in after.values()) == before - lost + len(result.answer.keep)


@given(st.data())
def test_any_split_keeps_the_rules_of_step_6(data: st.DataObject) -> None:
    """spec P6 ❻"""
    offer, now = data.draw(offer_and_now("split"))
    answer = data.draw(splits(offer))
    by_id = {memory.id: memory for memory in now}
    present = current_of(now)
    result = checked(answer, offer, present)
    if isinstance(result, RejectedModelAnswer):
        return
    assert isinstance(result.answer, ClusterSplitAnswer)
    moved = [id_ for part in result.answer.parts for id_ in part.memories]
    assert len(set(moved)) == len(moved)
    assert set(moved) <= {memory.id for memory in offer.memories}
    assert all(by_id[id_].status == "active" and by_id[id_].cluster_id == HOME for id_ in moved)
    assert all(len(part.memories) >= 2 and part.name for part in result.answer.parts)
    assert not moved or (present.active_count > 10 and present.active_count - len(moved) >= 2)


@given(st.data(), st.sampled_from(["consolidate", "split"]))
def test_an_answer_that_was_checked_is_kept_when_it_is_checked_again(data: st.DataObject, kind: DecisionKind) -> None:
    offer, now = data.draw(offer_and_now(kind))
    answer = data.draw(splits(offer)) if kind == "split" else data.draw(consolidations(offer))
    result = checked(answer, offer, current_of(now))
    if not isinstance(result, RejectedModelAnswer):
        again = result.answer.checked_against_current_memories(replace(current_of(now), request=offer))
        assert again == CheckedDecisionAnswer(result.answer)
