"""spec P11, H4: terms and cursors."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import InvalidInput
from memory.ports import KeywordQuery
from memory.recall.search import make_cursor, read_cursor, terms_of

QUERY = KeywordQuery(terms=("ramen",), mode="and")


@pytest.mark.parametrize(
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
    assert terms_of(text) == terms


def test_a_cursor_leads_back_to_its_place() -> None:
    """spec H4"""
    assert read_cursor(make_cursor((1_700_000_000_000_000, "id"), QUERY), QUERY) == (1_700_000_000_000_000, "id")


def test_a_cursor_of_another_search_is_refused() -> None:
    """Following it would skip hits in silence."""
    cursor = make_cursor((1, "id"), QUERY)
    with pytest.raises(InvalidInput, match="another search"):
        read_cursor(cursor, replace(QUERY, mode="or"))


def test_a_page_of_another_size_may_follow() -> None:
    """spec H4: the limit is not a part of what was asked."""
    assert read_cursor(make_cursor((1, "id"), QUERY), replace(QUERY, limit=50)) == (1, "id")


@pytest.mark.parametrize(
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
        read_cursor(base64.urlsafe_b64encode(content.encode()).decode(), QUERY)


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_text_whatever_makes_reading_a_cursor_fail(cursor: str) -> None:
    """spec P11: an argument that cannot be used is `InvalidInput`."""
    with pytest.raises(InvalidInput):
        read_cursor(cursor, QUERY)


def test_a_cursor_says_nothing_about_the_words_that_were_searched() -> None:
    """It may end up in a client's log."""
    decoded = json.loads(base64.urlsafe_b64decode(make_cursor((1, "id"), QUERY)))
    assert "ramen" not in str(decoded)
