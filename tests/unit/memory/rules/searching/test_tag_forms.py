"""spec H2: a text matches a tag that stands in it as a word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.inference.stems import stem_english_word
from madeleine.memory.rules.searching import (
    make_first_tag_position_finder,
    search_tag_of_word_or_phrase,
    text_has_message_tag,
)
from madeleine.memory.text.normalization import fold_text
from tests.rows import for_each_row


@for_each_row(
    ("tag", "held", "not_held"),
    [
        ("art", ["Art!", "the arts", "(art)", "pop-art", "artを見た"], ["party", "artist", "start", "art_2"]),
        ("running", ["run", "They run.", "runs", "running"], ["rung", "runt", "brun"]),
        ("party", ["a party", "parties", "partied"], ["part", "partisan", "counterparty"]),
        ("making", ["make", "makes", "making"], ["mak", "makeup", "maker"]),
        ("travelling", ["travel", "Travels", "traveller"], ["trave", "retravel"]),
        ("berries", ["berry", "berries"], ["berr", "berrycake"]),
        ("budget", ["budgets", "budgetary", "budget-wise"], ["bud get", "lowbudget"]),
        ("strasse", ["Straße", "STRASSE"], ["Hauptstraße"]),
        ("road_trip", ["#road_trip", "a road trip"], ["road", "roadtrip"]),
        ("2026-03-01", ["on 2026-03-01.", '["2026-03-01"]'], ["12026-03-01", "2026-03-011"]),
        ("寿司", ["東京で寿司を食べた"], ["寿", "司"]),
        ("сестра", ["Сестра", "сестрам"], ["медсестра"]),
    ],
)
def test_a_tag_is_held_as_a_word_in_any_form(tag: str, held: list[str], not_held: list[str]) -> None:
    one = search_tag_of_word_or_phrase(tag, stem_english_word)
    assert [text for text in held if not text_has_message_tag(fold_text(text), one)] == []
    assert [text for text in not_held if text_has_message_tag(fold_text(text), one)] == []


@given(st.text(min_size=1, max_size=12).map(fold_text), st.sampled_from(["", "x ", "日本", "«"]))
def test_every_tag_is_held_by_itself(text: str, before: str) -> None:
    tag = search_tag_of_word_or_phrase(text, stem_english_word)
    assert all(tag.anchor in form for form in tag.forms)
    if text.isalnum():
        assert text_has_message_tag(before + text, tag)


def test_the_first_place_of_any_tag_is_found() -> None:
    tags = [
        search_tag_of_word_or_phrase("soup", stem_english_word),
        search_tag_of_word_or_phrase("ramen", stem_english_word),
    ]
    assert make_first_tag_position_finder(tags)("more ramen soup") == 5
    assert make_first_tag_position_finder(tags)("soups and ramen") == 0
    assert make_first_tag_position_finder(tags)("nothing") == -1
