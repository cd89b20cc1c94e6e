"""ruling 24, ADR 52: what is not put first because the question names another thing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.newer_first import _scores_with_doubtful_behind
from madeleine.memory.recall.newer_pairs import (
    NewerAndOlderMemory,
    _unrelated_pairs_closed_over_proposals,
    compare_pairs,
)
from madeleine.memory.rules.ranking.near_equals import MemoryMatchToQuestion, MemoryPairRelationFlags
from madeleine.memory.rules.storing.statements import StatementForComparison
from tests.doubles import NOW, a_memory

WIFE, MINE, FATHER = map(MemoryId, ("wife", "mine", "father"))


def test_what_leads_to_a_newer_one_of_another_thing_is_not_put_first_either() -> None:
    """Else the middle one would stand first, and what was proposed to supersede it behind the older one."""
    unrelated = {(FATHER, WIFE)}
    assert _unrelated_pairs_closed_over_proposals(unrelated, {(FATHER, MINE), (MINE, WIFE)}) == {
        (FATHER, WIFE),
        (MINE, WIFE),
    }
    assert _unrelated_pairs_closed_over_proposals(unrelated, {(MINE, WIFE)}) == unrelated
    assert _unrelated_pairs_closed_over_proposals(unrelated, {(FATHER, MINE), (MINE, FATHER)}) == {
        *unrelated,
        (MINE, WIFE),
    }


@pytest.mark.parametrize(
    ("question", "is_unrelated"), [("I put coin 0 into pocket 2", True), ("coin 0, pocket 2", False)]
)
@pytest.mark.parametrize("is_proposed", [True, False])
def test_what_is_asked_for_word_for_word_stands_behind_what_was_proposed_to_supersede_it_alone(
    question: str, *, is_unrelated: bool, is_proposed: bool
) -> None:
    """What tells it of another thing in the same wording stood before it."""
    older = replace(a_memory("I put coin 0 into pocket 2."), created_at=NOW - timedelta(days=2))
    middle = replace(a_memory("Then I put coin 2 into pocket 0"), may_supersede=older.id if is_proposed else None)
    newest = replace(a_memory("I put coin 2 into pocket 0"), may_supersede=middle.id)
    pairs = [NewerAndOlderMemory(newer, older, MemoryPairRelationFlags()) for newer in (newest, middle)]
    matches = {
        one.id: MemoryMatchToQuestion(StatementForComparison(one.scene.action), cosine=0.99, score=0.4)
        for one in (older, middle, newest)
    }
    compared = compare_pairs(StatementForComparison(question), matches, pairs, [1.0, 1.0])
    assert bool(compared.unrelated) is (is_unrelated and not is_proposed)
    assert bool(compared.newer_versions) is not (is_unrelated and not is_proposed)


@pytest.mark.parametrize("question", ["Who is the doctor of Giulia?", "Who is Giulia's doctor?"])
@pytest.mark.parametrize("before", ["", "2026-03-01: The doctor of Giulia is Marchetti"])
def test_what_took_the_place_of_another_memory_speaks_of_that_ones_thing(question: str, before: str) -> None:
    """Of Leo's doctor, who is newer, nothing follows for Giulia, of whose doctor the earlier version tells."""
    older = replace(a_memory("Giulia is looked after by Conti"), created_at=NOW - timedelta(days=2), before=before)
    newer = a_memory("The doctor of Leo is Galli")
    matches = {
        one.id: MemoryMatchToQuestion(StatementForComparison(one.scene.action), cosine=0.9, score=0.4)
        for one in (older, newer)
    }
    pair = NewerAndOlderMemory(newer, older, MemoryPairRelationFlags())
    compared = compare_pairs(StatementForComparison(question), matches, [pair], [1.0])
    assert bool(compared.unrelated) is bool(before)
    assert bool(compared.newer_versions) is not bool(before)


@pytest.mark.parametrize(
    ("before", "cosine", "is_changed"), [("", 0.25, True), ("Lyon", 0.25, False), ("Lyon", 0.5, True)]
)
def test_what_has_superseded_another_is_changed_only_by_what_is_likelier(
    before: str, cosine: float, *, is_changed: bool
) -> None:
    """ADR 104: whoever decided once says nothing of the newer one."""
    older = replace(a_memory("Maria has her home in Rome"), created_at=NOW - timedelta(days=2), before=before)
    newer = a_memory("In Oslo Maria found a flat")
    matches = {
        newer.id: MemoryMatchToQuestion(StatementForComparison(newer.scene.action), cosine=cosine, score=0.3),
        older.id: MemoryMatchToQuestion(StatementForComparison(older.scene.action), cosine=0.6, score=0.4),
    }
    pair = NewerAndOlderMemory(newer, older, MemoryPairRelationFlags())
    compared = compare_pairs(StatementForComparison("Where does Maria live?"), matches, [pair], [0.9])
    assert bool(compared.newer_versions) is is_changed


def test_what_perhaps_tells_of_another_thing_stands_behind_with_what_became_of_it() -> None:
    """ADR 87. Each once, whatever was proposed in a circle."""
    a, b, doubtful, its_newer, its_doubtful = map(MemoryId, "abcde")
    ordered = _scores_with_doubtful_behind(
        {a: 0.9, b: 0.8},
        {a: [doubtful, b], doubtful: [its_doubtful], its_doubtful: [a, doubtful]},
        {doubtful: [its_newer], its_newer: [doubtful]},
    )
    assert list(ordered.items()) == [(a, 0.9), (its_newer, 0.9), (doubtful, 0.9), (its_doubtful, 0.9), (b, 0.8)]


def test_two_plans_that_name_each_other_are_compared_all_the_same() -> None:
    """The walk along what was proposed had no end."""
    asked = a_memory("I put coin 2 into pocket 0")
    asked = replace(asked, created_at=NOW - timedelta(days=2))
    one = a_memory("I put coin 0 into pocket 2")
    other = replace(a_memory("I put coin 0 into pocket 3"), may_supersede=one.id)
    one = replace(one, may_supersede=other.id)
    pairs = [NewerAndOlderMemory(newer, asked, MemoryPairRelationFlags()) for newer in (one, other)]
    matches = {
        memory.id: MemoryMatchToQuestion(StatementForComparison(memory.scene.action), cosine=0.9, score=0.4)
        for memory in (asked, one, other)
    }
    compared = compare_pairs(StatementForComparison(asked.scene.action), matches, pairs, [1.0, 1.0])
    assert (one.id, asked.id) in compared.unrelated
