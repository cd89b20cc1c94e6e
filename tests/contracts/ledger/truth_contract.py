"""What every ledger must do about what is true now (ruling 14): acts, their undo, and chains of versions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from madeleine.memory.errors import CannotUndo, InvalidInput, NotCurrent
from madeleine.memory.model import Memory
from madeleine.memory.recall.ports import PossibleNewerVersionPair
from madeleine.memory.rules.dynamics.truth import Supersession
from tests.contracts.ledger.any_ledger import StoringLedger
from tests.contracts.ledger.ledger_values import ADA, BOB, MOMENT, batch, ids, keyword_query, memory, stored_memory

CHANGED_AT = MOMENT + timedelta(days=30)


def superseding(old: Memory, new: Memory, **other: object) -> Supersession:
    since = {"since": CHANGED_AT} | other
    return Supersession(old=old.id, new=new.id, at=CHANGED_AT, tool="store", **since)  # type: ignore[arg-type]


async def told_again(ledger: StoringLedger, old: Memory, new: Memory, **other: object) -> list[Memory]:
    """`new` stored in the place of `old`."""
    return list(
        (
            await ledger.memories.commit_store_batch(
                ADA, replace(batch(new), supersessions=(superseding(old, new, **other),))
            )
        ).changed
    )


async def chain_of_three(ledger: StoringLedger) -> tuple[Memory, Memory, Memory]:
    chain = (memory("lives in Lyon"), memory("lives in Rome"), memory("lives in Oslo"))
    await ledger.memories.commit_store_batch(ADA, batch(chain[0]))
    await told_again(ledger, chain[0], chain[1])
    await told_again(ledger, chain[1], chain[2], since=CHANGED_AT + timedelta(days=1))
    return chain


class TruthContract:
    """A fixture `ledger` gives an empty one."""

    async def test_a_search_in_a_window_finds_the_latest_version_that_lies_in_it(self, ledger: StoringLedger) -> None:
        """rulings 14 and 19, ADR 94."""
        days = [MOMENT + timedelta(days=day) for day in (1, 2, 40)]
        texts = ("the lake house is let", "the lake house is sold", "the lake house is ours")
        first, second, third = (memory(text, happened_at=day) for text, day in zip(texts, days, strict=True))
        await ledger.memories.commit_store_batch(ADA, batch(first))
        await told_again(ledger, first, second, since=days[1])
        await told_again(ledger, second, third, since=days[2])
        planned = memory("the lake house party", happened_at=MOMENT + timedelta(days=3))
        await ledger.memories.commit_store_batch(ADA, batch(planned))
        await told_again(
            ledger, planned, called_off := memory("no party", happened_at=MOMENT), since=MOMENT + timedelta(days=1)
        )
        for window, found in {
            (None, None): [third, called_off],
            (days[0], days[1]): [second],
            (days[0], days[0]): [first],
            (None, days[1]): [second, called_off],
            (days[1], None): [third],
            (days[1] + timedelta(hours=1), days[2] - timedelta(hours=1)): [],
        }.items():
            for terms in (("lake",), ("let",), ()):
                query = keyword_query(*terms, since=window[0], until=window[1], sources=("memories",))
                held = [one for one in found if terms != ("let",) or one is not called_off]
                assert ids(await ledger.search.newest_matching_texts(ADA, query)) == [one.id for one in held], (
                    window,
                    terms,
                )

    async def test_a_superseded_memory_names_its_successor_and_ends_when_that_begins(
        self, ledger: StoringLedger
    ) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(old := memory("lives in Lyon")))
        new = memory("lives in Rome")
        changed = await told_again(ledger, old, new)
        assert changed == [
            replace(old, truth="superseded", valid_until=CHANGED_AT, superseded_by=new.id),
            replace(new, valid_from=CHANGED_AT, before=f"{old.happened_at.date()}: lives in Lyon"),
        ]
        assert [await stored_memory(ledger, old), await stored_memory(ledger, new)] == changed
        marked = [id_ for _, id_ in await ledger.index_source.pending_index_marks_with_memory_ids(limit=9)]
        assert marked.count(old.id) == 2, "the index has to take it in again"

    async def test_of_two_that_supersede_one_memory_at_once_one_is_told_and_stores_nothing(
        self, ledger: StoringLedger
    ) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(old := memory("lives in Lyon")))
        ends = await asyncio.gather(
            *(told_again(ledger, old, memory(f"lives in {city}")) for city in ("Rome", "Oslo")), return_exceptions=True
        )
        [refused] = [end for end in ends if isinstance(end, BaseException)]
        [winner] = [end for end in ends if not isinstance(end, BaseException)]
        assert isinstance(refused, NotCurrent)
        assert refused.current == winner[1].id
        assert await ledger.index_source.count_memories() == 2

    async def test_a_memory_of_another_being_is_never_superseded(self, ledger: StoringLedger) -> None:
        await ledger.memories.commit_store_batch(BOB, batch(other := memory("lives in Lyon", scope=BOB)))
        with pytest.raises(InvalidInput):
            await told_again(ledger, other, memory("lives in Rome"))
        assert (await stored_memory(ledger, other, BOB)).truth == "current"
        assert await ledger.memories.retract(ADA, other.id, "no", at=CHANGED_AT) is None
        assert await ledger.memories.undo_last_truth_change(ADA, other.id, at=CHANGED_AT) is None

    async def test_any_version_leads_to_the_current_one_and_to_all(self, ledger: StoringLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        alone = memory("alone")
        await ledger.memories.commit_store_batch(ADA, batch(alone))
        asked = [first.id, third.id, alone.id]
        current = {first.id: third.id, third.id: third.id, alone.id: alone.id}
        assert await ledger.recall.current_version_id_by_memory_id(ADA, asked) == current
        versions = await ledger.recall.all_versions_by_memory_id(ADA, asked)
        for id_ in (first.id, third.id):
            assert [one.id for one in versions[id_]] == [first.id, second.id, third.id]
        assert [one.id for one in versions[alone.id]] == [alone.id]
        assert await ledger.recall.current_version_id_by_memory_id(BOB, asked) == {}
        assert await ledger.recall.all_versions_by_memory_id(BOB, asked) == {}

    async def test_what_was_proposed_to_supersede_a_memory_is_found_through_any_number_of_links(
        self, ledger: StoringLedger
    ) -> None:
        first, second, third = memory("lives in Lyon"), memory("moved to Rome"), memory("left for Oslo")
        second, third = replace(second, may_supersede=first.id), replace(third, may_supersede=second.id)
        await ledger.memories.commit_store_batch(ADA, batch(first, second, third))
        links = {
            PossibleNewerVersionPair(second.id, first.id, is_proposed=True),
            PossibleNewerVersionPair(third.id, second.id, is_proposed=True),
        }
        assert set(await ledger.recall.possible_newer_version_pairs(ADA, [first.id])) == links
        [last] = await ledger.recall.possible_newer_version_pairs(ADA, [second.id])
        assert (last.newer, last.older) == (third.id, second.id)
        assert await ledger.recall.possible_newer_version_pairs(ADA, [third.id]) == []
        assert await ledger.recall.possible_newer_version_pairs(BOB, [first.id]) == []
        await ledger.memories.retract(ADA, second.id, "misheard", at=CHANGED_AT)
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id]) == []

    async def test_what_has_superseded_a_proposed_memory_stands_for_it(self, ledger: StoringLedger) -> None:
        first, second, third = memory("lives in Lyon"), memory("moved to Rome"), memory("left for Oslo")
        await ledger.memories.commit_store_batch(ADA, batch(first, replace(second, may_supersede=first.id)))
        await told_again(ledger, second, third)
        links = [PossibleNewerVersionPair(third.id, first.id, is_proposed=True)]
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id]) == links
        assert await ledger.recall.possible_newer_version_pairs(BOB, [first.id]) == []
        await ledger.memories.retract(ADA, third.id, "misheard", at=CHANGED_AT)
        links = [PossibleNewerVersionPair(second.id, first.id, is_proposed=True)]
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id]) == links

    async def test_what_resembles_a_memory_is_found(self, ledger: StoringLedger) -> None:
        first = memory("the class teacher is Frau Pohl")
        second = replace(memory("Herr Yildiz teaches the class"), resembles=first.id)
        await ledger.memories.commit_store_batch(ADA, batch(first, second))
        links = [PossibleNewerVersionPair(second.id, first.id, is_proposed=False)]
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id, second.id]) == links
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id]) == links
        assert await ledger.recall.possible_newer_version_pairs(BOB, [first.id]) == []
        await ledger.memories.retract(ADA, second.id, "misheard", at=CHANGED_AT)
        assert await ledger.recall.possible_newer_version_pairs(ADA, [first.id, second.id]) == []

    async def test_a_superseded_text_that_is_told_again_is_known_to_be_superseded(self, ledger: StoringLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        again = replace(memory(first.scene.action), resembles=first.id)
        other = replace(memory("said otherwise"), resembles=second.id)
        await ledger.memories.commit_store_batch(ADA, batch(again, other))
        [link] = await ledger.recall.possible_newer_version_pairs(ADA, [again.id, other.id])
        assert link == PossibleNewerVersionPair(third.id, again.id, is_proposed=True, has_superseded_text=True)
        assert await ledger.recall.possible_newer_version_pairs(BOB, [again.id]) == []
        act = superseding(third, again, since=CHANGED_AT + timedelta(days=2))
        await ledger.memories.commit_store_batch(ADA, replace(batch(), supersessions=(act,)))
        assert await ledger.recall.possible_newer_version_pairs(ADA, [again.id]) == []

    async def test_what_a_wrong_version_took_the_place_of_takes_it_back(self, ledger: StoringLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        outcome = await ledger.memories.retract(ADA, second.id, "misheard", at=CHANGED_AT)
        assert outcome is not None
        [retracted, predecessor] = outcome.changed
        assert (retracted.truth, retracted.retraction_reason, retracted.superseded_by) == (
            "retracted",
            "misheard",
            None,
        )
        assert (predecessor.id, predecessor.superseded_by) == (first.id, third.id)
        assert predecessor.valid_until == CHANGED_AT + timedelta(days=1)
        await ledger.memories.retract(ADA, third.id, "misheard again", at=CHANGED_AT)
        assert (await stored_memory(ledger, first)).truth == "current"
        with pytest.raises(NotCurrent, match="misheard"):
            await ledger.memories.retract(ADA, third.id, "twice", at=CHANGED_AT)

    async def test_acts_are_undone_one_by_one_and_nothing_stays_of_them(self, ledger: StoringLedger) -> None:
        first, second, third = await chain_of_three(ledger)
        before = [await stored_memory(ledger, one) for one in (first, second, third)]
        await ledger.memories.retract(ADA, third.id, "misheard", at=CHANGED_AT)
        outcome = await ledger.memories.undo_last_truth_change(ADA, third.id, at=CHANGED_AT)
        assert outcome is not None
        assert outcome.kind == "retract"
        assert [await stored_memory(ledger, one) for one in (first, second, third)] == before
        await ledger.memories.undo_last_truth_change(ADA, second.id, at=CHANGED_AT)
        await ledger.memories.undo_last_truth_change(ADA, second.id, at=CHANGED_AT)
        assert [await stored_memory(ledger, one) for one in (first, second, third)] == [first, second, third]
        with pytest.raises(CannotUndo, match="neither"):
            await ledger.memories.undo_last_truth_change(ADA, first.id, at=CHANGED_AT)

    async def test_an_act_on_which_a_later_one_stands_is_not_undone_before_that(self, ledger: StoringLedger) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(first := memory("lives in Lyon")))
        await told_again(ledger, first, second := memory("lives in Rome"), makes_new=True)
        await told_again(ledger, second, third := memory("lives in Oslo"))
        with pytest.raises(CannotUndo, match="undo that first"):
            await ledger.memories.undo_last_truth_change(ADA, first.id, at=CHANGED_AT)
        await ledger.memories.undo_last_truth_change(ADA, third.id, at=CHANGED_AT)
        await ledger.memories.undo_last_truth_change(ADA, first.id, at=CHANGED_AT)
        assert await stored_memory(ledger, first) == first

    async def test_a_version_that_an_undone_act_has_made_is_retracted(self, ledger: StoringLedger) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(old := memory("lives in Lyon")))
        await told_again(ledger, old, new := memory("lives in Rome"), makes_new=True)
        await ledger.memories.undo_last_truth_change(ADA, new.id, at=CHANGED_AT)
        assert await stored_memory(ledger, old) == old
        assert (await stored_memory(ledger, new)).truth == "retracted"

    async def test_plans_to_replace_a_memory_are_found_until_they_are_retracted(self, ledger: StoringLedger) -> None:
        old, guess = memory("lives in Lyon"), memory("moved to Rome")
        await ledger.memories.commit_store_batch(ADA, batch(old, replace(guess, may_supersede=old.id)))
        plans = [
            replace(memory(f"lives in {city} from June on"), may_supersede=old.id, valid_from=CHANGED_AT)
            for city in ("Oslo", "Bern")
        ]
        for plan in plans:
            await ledger.memories.commit_store_batch(ADA, batch(plan))
        assert [one.id for one in await ledger.memories.planned_successors_of_memory(ADA, old.id)] == [
            one.id for one in plans
        ]
        assert await ledger.memories.planned_successors_of_memory(BOB, old.id) == []
        await ledger.memories.retract(ADA, plans[1].id, "undone", at=CHANGED_AT)
        assert [one.id for one in await ledger.memories.planned_successors_of_memory(ADA, old.id)] == [plans[0].id]
