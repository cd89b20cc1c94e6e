"""ruling 24, ADR 52: what is not put first because the question names another thing."""

from __future__ import annotations

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.newer_first import _unrelated_pairs_closed_over_proposals

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
