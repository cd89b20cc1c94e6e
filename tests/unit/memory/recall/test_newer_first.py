"""ruling 24, ADR 52: what is not put first because the question names another thing."""

from __future__ import annotations

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.newer_first import _scores_with_doubtful_behind
from madeleine.memory.recall.newer_pairs import _unrelated_pairs_closed_over_proposals

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


def test_what_perhaps_tells_of_another_thing_stands_behind_with_what_became_of_it() -> None:
    """ADR 87. Each once, whatever was proposed in a circle."""
    a, b, doubtful, its_newer, its_doubtful = map(MemoryId, "abcde")
    ordered = _scores_with_doubtful_behind(
        {a: 0.9, b: 0.8},
        {a: [doubtful, b], doubtful: [its_doubtful], its_doubtful: [a, doubtful]},
        {doubtful: [its_newer], its_newer: [doubtful]},
    )
    assert list(ordered.items()) == [(a, 0.9), (its_newer, 0.9), (doubtful, 0.9), (its_doubtful, 0.9), (b, 0.8)]
