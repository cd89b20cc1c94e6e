"""spec H2, H4: the best are pooled before they are put in order of time."""

from __future__ import annotations

import pytest

from madeleine.memory.keyword_search import SearchHit, SearchSource, TagMatchesInOneSource
from madeleine.memory.model import Provenance
from madeleine.memory.recall.search import TAG_SEARCH_POOL_SIZE_PER_HIT
from madeleine.memory.rules.searching import (
    items_best_matching_tags,
    keep_hits_near_best_tag_match,
    rarity_weights_of_tags,
)
from tests.doubles import NOW


def matches(*found: tuple[int, str, int], numbers: dict[int, int] | None = None) -> TagMatchesInOneSource:
    """(at, id, mask)"""
    masks = [mask for _, _, mask in found]
    return TagMatchesInOneSource(
        "memories",
        tuple(((at, id_), mask) for at, id_, mask in found),
        numbers or {mask: masks.count(mask) for mask in masks},
    )


def ids(*found: TagMatchesInOneSource, tags: int, limit: int) -> list[str]:
    """The pool."""
    best = [
        (a_hit(source, id_), weight)
        for (source, id_), weight in items_best_matching_tags(found, tags, TAG_SEARCH_POOL_SIZE_PER_HIT * limit)
    ]
    return [hit.id for hit in keep_hits_near_best_tag_match(best, limit)]


def a_hit(source: SearchSource, id_: str) -> SearchHit:
    return SearchHit(
        source=source, id=id_, timestamp=NOW, text="", stored_at=NOW, provenance=Provenance(tool="t"), position=(0, id_)
    )


def test_a_tag_weighs_less_the_more_texts_hold_it() -> None:
    """1 / log2(2 + n): tag 0 is held by 6, tag 1 by 14, no text has a related theme: 1/3, 1/4, 1."""
    matching = matches(numbers={0b01: 4, 0b10: 12, 0b11: 2})
    assert list(rarity_weights_of_tags([matching], 2)) == pytest.approx([1 / 3, 1 / 4, 1.0])
    assert rarity_weights_of_tags([matching, matching], 2)[0] == pytest.approx(1 / 3.8073549)  # log2(14)


def test_one_that_holds_the_rare_tag_goes_before_newer_ones_with_the_common_one() -> None:
    common = [(1_000 + n, f"c{n}", 0b01) for n in range(300)]
    matching = matches((1, "rare", 0b10), *common)
    assert ids(matching, tags=2, limit=3)[0] == "rare"
    assert ids(matching, tags=2, limit=3) == ["rare", "c299", "c298"]


def test_what_holds_no_tag_but_a_related_theme_only_fills_up() -> None:
    matching = matches((9, "related", 0b100), (1, "own", 0b001), numbers={0b100: 1, 0b001: 1_000})
    assert ids(matching, tags=2, limit=2) == ["own", "related"]
    assert ids(matching, tags=2, limit=1) == ["own"]


def test_a_related_theme_lifts_one_of_equals() -> None:
    matching = matches((9, "plain", 0b001), (1, "lifted", 0b101))
    assert ids(matching, tags=2, limit=2) == ["lifted", "plain"]


def test_the_pool_is_four_times_the_limit_of_those_near_the_best_and_else_the_limit() -> None:
    alike = matches(*[(n, f"a{n:02}", 0b1) for n in range(30)])
    assert ids(alike, tags=1, limit=5) == [f"a{n:02}" for n in range(29, 9, -1)]
    far = matches((1, "best", 0b11), *[(n, f"f{n}", 0b01) for n in range(2, 30)])
    assert ids(far, tags=2, limit=5) == ["best", "f29", "f28", "f27", "f26"]


def test_equals_come_newest_first_whatever_their_source_and_nothing_gives_nothing() -> None:
    memory, chat = matches((1, "m", 0b1)), TagMatchesInOneSource("chat", (((2, "c"), 0b1),), {0b1: 1})
    weight = (True, 0.5)  # 1 / log2(2 + 2)
    assert items_best_matching_tags([memory, chat], 1, 5) == [(("chat", "c"), weight), (("memories", "m"), weight)]
    assert items_best_matching_tags([], 1, 5) == []


def test_near_the_best_is_what_weighs_half_as_much_and_is_of_its_kind() -> None:
    hits = [a_hit("memories", id_) for id_ in "abcde"]
    weights = [(True, 1.0), (True, 0.6), (True, 0.5), (True, 0.49), (False, 0.9)]
    assert keep_hits_near_best_tag_match(list(zip(hits, weights, strict=True)), 1) == hits[:3]
    assert keep_hits_near_best_tag_match(list(zip(hits, weights, strict=True)), 4) == hits[:4]
    assert keep_hits_near_best_tag_match([(hits[0], (False, 0.5)), (hits[1], (False, 0.5))], 1) == hits[:2]
    assert keep_hits_near_best_tag_match([], 5) == []
