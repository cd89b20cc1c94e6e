"""spec H4: deduplicated by source, id and snippet prefix; newest first."""

from __future__ import annotations

from dataclasses import replace

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Provenance
from madeleine.memory.rules.searching import deduplicated_hits, sort_hits_newest_first
from tests.doubles import NOW

HIT = SearchHit(
    source="memories", id="a", timestamp=NOW, text="x", stored_at=NOW, provenance=Provenance(tool="store"),
    snippet="x" * 100 + "end", position=(1, "a"),
)  # fmt: skip


def test_hits_with_one_source_id_and_beginning_come_once_the_first_of_them() -> None:
    same = replace(HIT, snippet="x" * 100 + "another end")
    note, other, third = replace(HIT, source="notes"), replace(HIT, snippet="y"), replace(HIT, id="b")
    assert deduplicated_hits([HIT, same, note, other, third, HIT]) == [HIT, note, other, third]


def test_the_newest_comes_first_and_equal_times_by_id() -> None:
    later, twin = replace(HIT, position=(2, "z")), replace(HIT, position=(1, "b"))
    assert sort_hits_newest_first([twin, HIT, later]) == [later, HIT, twin]
