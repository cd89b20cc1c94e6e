"""spec P11, H4: terms and cursors."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery, SearchHit, SearchSource
from madeleine.memory.model import Memory, MemoryId, Provenance, Scope
from madeleine.memory.recall.search import (
    SearchStoredTexts,
    decode_search_cursor,
    encode_search_cursor,
    split_search_terms,
)
from madeleine.memory.rules.searching import folded_text_has_terms, sort_hits_newest_first
from tests.doubles import ADA, NOW, Clock, FakeActivationLog
from tests.rows import for_each_row

SOURCES: tuple[SearchSource, ...] = ("memories", "diary", "chat", "notes")
QUERY = KeywordQuery(terms=("ramen",), mode="and")


@for_each_row(
    ("text", "terms"),
    [
        ("Ramen", ("ramen",)),
        ("ramen  Broth\nramen", ("ramen", "broth")),
        ('the "hot broth" ramen', ("the", "hot broth", "ramen")),
        ("Ｒａｍｅｎ STRASSE straße", ("ramen", "strasse")),
        ("Hashiに正式決定", ("hashiに正式決定",)),
        ("", ()),
    ],
)
def test_terms_are_words_and_phrases_without_case_or_width(text: str, terms: tuple[str, ...]) -> None:
    """spec P11: OR logic per term."""
    assert split_search_terms(text) == terms


def test_a_cursor_leads_back_to_its_place() -> None:
    """spec H4"""
    assert decode_search_cursor(encode_search_cursor((1_700_000_000_000_000, "id"), QUERY), QUERY).after == (
        1_700_000_000_000_000,
        "id",
    )


def test_a_cursor_of_another_search_is_refused() -> None:
    """Following it would skip hits in silence."""
    cursor = encode_search_cursor((1, "id"), QUERY)
    with pytest.raises(InvalidInput, match="another search"):
        decode_search_cursor(cursor, replace(QUERY, mode="or"))


def test_a_page_of_another_size_may_follow() -> None:
    """spec H4: the limit is not a part of what was asked."""
    assert decode_search_cursor(encode_search_cursor((1, "id"), QUERY), replace(QUERY, limit=50)).after == (1, "id")


@for_each_row(
    "content",
    [
        "[]",
        "3",
        "null",
        '"x"',
        '{"a": 1}',
        '[1, "id"]',
        '["x", "id", "q"]',
        '[Infinity, "id", "q"]',
        '[NaN, "id", "q"]',
        "[",
    ],
)
def test_a_cursor_that_was_made_up_is_refused(content: str) -> None:
    """`Infinity` once raised OverflowError."""
    with pytest.raises(InvalidInput, match="cursor"):
        decode_search_cursor(base64.urlsafe_b64encode(content.encode()).decode(), QUERY)


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_text_whatever_makes_reading_a_cursor_fail(cursor: str) -> None:
    """spec P11: an argument that cannot be used is `InvalidInput`."""
    with pytest.raises(InvalidInput):
        decode_search_cursor(cursor, QUERY)


def test_a_cursor_says_nothing_about_the_words_that_were_searched() -> None:
    """It may end up in a client's log."""
    decoded = json.loads(base64.urlsafe_b64decode(encode_search_cursor((1, "id"), QUERY)))
    assert "ramen" not in str(decoded)


# --- pages


class Repeating:
    """`KeywordSearchLedger` that gives some of its hits twice, as one that joins several tables may."""

    def __init__(self, hits: Sequence[SearchHit]) -> None:
        self._hits = sort_hits_newest_first(hits)

    async def newest_matching_texts(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        after = query.after
        left = [hit for hit in self._hits if after is None or (-hit.position[0], hit.id) > (-after[0], after[1])]
        return left[: query.limit]

    async def all_versions_by_memory_id(self, scope: Scope, ids: Sequence[MemoryId]) -> dict[MemoryId, list[Memory]]:
        return {}

    async def recent_texts(self, scope: Scope, sources: Sequence[SearchSource], *, most: int) -> list[str]:
        return [hit.text for hit in self._hits][:most]


class Matching(Repeating):
    """`KeywordSearchLedger` whose hits contain all terms."""

    async def newest_matching_texts(self, scope: Scope, query: KeywordQuery) -> list[SearchHit]:
        hits = await super().newest_matching_texts(scope, replace(query, limit=99))
        return [
            hit for hit in hits if folded_text_has_terms(hit.text, query.terms, "and", within_words=query.within_words)
        ][: query.limit]


def a_hit(
    number: int, *, at: int = 0, source: SearchSource = "memories", text: str = "tea", further: tuple[str, ...] = ()
) -> SearchHit:
    id_ = f"{number:04}"
    return SearchHit(
        source=source, id=id_, timestamp=NOW, text=text, stored_at=NOW, provenance=Provenance(tool="store"),
        position=(at, id_), further_texts=further,
    )  # fmt: skip


def searching(hits: Sequence[SearchHit], log: FakeActivationLog | None = None) -> SearchStoredTexts:
    by_message: Any = None
    return SearchStoredTexts(Repeating(hits), log or FakeActivationLog(), search_by_tags=by_message, now=Clock())


@given(
    written=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from(SOURCES)), max_size=30),
    limit=st.integers(1, 7),
)
async def test_pages_are_full_and_no_hit_is_lost_or_shown_twice(
    written: list[tuple[int, int, SearchSource]], limit: int
) -> None:
    """spec H2, H4, whatever a ledger gives twice."""
    hits = [
        hit
        for number, (at, times, source) in enumerate(written)
        for hit in [a_hit(number, at=at, source=source)] * times
    ]
    search, cursor, seen = searching(hits), "", list[str]()
    while True:
        page = await search(ADA, replace(QUERY, limit=limit), cursor=cursor)
        seen += [hit.id for hit in page.hits]
        if not page.next_cursor:
            break
        assert len(page.hits) == limit
        cursor = page.next_cursor
    assert seen == list(dict.fromkeys(hit.id for hit in sort_hits_newest_first(hits)))


async def test_only_memories_that_are_hit_are_counted() -> None:
    """spec P11"""
    log = FakeActivationLog()
    hits = [a_hit(n, source=source) for n, source in enumerate(SOURCES)]
    await searching(hits, log)(ADA, QUERY)
    assert [one.memory_id for _, one in log.added] == ["0000"]


async def test_a_snippet_shows_the_place_where_the_words_stand() -> None:
    """spec H3"""
    search = searching([a_hit(1, text="milk " * 200 + "ramen" + " milk" * 200)])
    [hit] = (await search(ADA, QUERY)).hits
    assert "ramen" in hit.snippet
    assert len(hit.snippet) <= 400


async def test_a_snippet_shows_the_further_text_that_the_words_were_found_in() -> None:
    """issue 12.6: a hit by a later line of dialogue did not show it."""
    search = searching([a_hit(1, text="We ate", further=("Ada", "More Ramen?"))])
    assert [hit.snippet for hit in (await search(ADA, QUERY)).hits] == ["We ate — More Ramen?"]


async def test_a_misspelt_word_is_searched_as_the_word_it_resembles_if_nothing_else_is_found() -> None:
    """ruling 19"""
    hits = [a_hit(1, text="kubernetes in frankfurt"), a_hit(2, text="kubernetes at home"), a_hit(3, text="tea")]
    by_message: Any = None
    search = SearchStoredTexts(Matching(hits), FakeActivationLog(), search_by_tags=by_message, now=Clock())
    query = KeywordQuery(terms=("kubernets",), mode="and", limit=1)
    first = await search(ADA, query)
    second = await search(ADA, query, cursor=first.next_cursor)
    assert [hit.id for hit in (*first.hits, *second.hits)] == ["0001", "0002"]
    assert first.respelled == second.respelled == {"kubernets": "kubernetes"}
    assert (await search(ADA, replace(query, terms=("kubernetes",)))).respelled == {}
    assert (await search(ADA, replace(query, terms=("umbrella",)))).hits == ()


async def test_what_has_a_term_within_words_alone_is_found_only_where_no_word_begins_with_it() -> None:
    """Six "Friday" stood before Ida, and "Ines" found "600 lines" beside her."""
    texts = ["the best friday so far", "ida and bryony", "on fridays we close", "ask ida's sister", "sunday", "idaho"]
    hits = [a_hit(number, at=-number, text=text) for number, text in enumerate(texts)]
    by_message: Any = None
    search = SearchStoredTexts(Matching(hits), FakeActivationLog(), search_by_tags=by_message, now=Clock())
    query = KeywordQuery(terms=("ida",), limit=2)
    first = await search(ADA, query)
    assert [hit.id for hit in first.hits] == ["0001", "0003"]
    assert [hit.id for hit in (await search(ADA, query, cursor=first.next_cursor)).hits] == ["0005"]
    query = KeywordQuery(terms=("riday",), limit=1)
    first = await search(ADA, query)
    second = await search(ADA, query, cursor=first.next_cursor)
    assert [hit.id for hit in (*first.hits, *second.hits)] == ["0000", "0002"]
    assert (first.respelled, second.next_cursor) == ({}, "")


async def test_a_list_without_words_activates_nothing() -> None:
    """ruling 18"""
    log = FakeActivationLog()
    assert len((await searching([a_hit(1), a_hit(2)], log)(ADA, replace(QUERY, terms=()))).hits) == 2
    assert log.added == []
