"""spec H1: tags extracted from a message, and expanded by the themes that stand beside them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.inference.stems import stem_english_word
from madeleine.memory.rules.searching import (
    MAX_SEARCH_TAG_CHARS,
    MAX_SEARCH_TAGS_FROM_MESSAGE,
    extract_most_specific_search_tags,
    extract_search_tags_from_message,
    related_themes,
    search_tag_of_word_or_phrase,
)
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS
from tests.rows import for_each_row


@for_each_row(
    ("message", "tags"),
    [
        ("Did Anna like the ramen in Kyoto?", ["anna", "kyoto", "ramen", "like"]),
        ('On 2026-03-01 we had "hot broth" again #road_trip', ["hot broth", "road_trip", "2026-03-01", "broth", "hot"]),
        ("I'm working on Zanzibar, don't forget Ann's party!", ["zanzibar", "ann", "working", "forget", "party"]),
        ("GPT4 costs 42 or 1000, see https://example.com/foo", ["costs", "gpt4", "1000", "see"]),
        ("Ｒａｍｅｎ in der STRASSE", ["strasse", "ramen", "der"]),
        ("昨日ラーメンを食べました。京都の桜", ["昨日", "ラーメン", "京都"]),
        ("我昨天在东京吃拉面", ["昨天", "东京", "京吃", "吃拉", "拉面"]),
        ("서울에서 김치를 먹었다", ["서울", "김치", "먹었다"]),
        ("「すし屋」に行った", ["すし屋"]),
        ("can you do that for me?", []),
        ("…!? # 'a'", []),
        ("", []),
    ],
)
def test_tags_are_what_is_marked_then_names_then_words_the_longest_first(message: str, tags: list[str]) -> None:
    assert list(dict.fromkeys(extract_search_tags_from_message(message))) == tags


def test_forms_of_one_word_are_one_tag_and_there_are_never_too_many() -> None:
    assert [
        tag.text
        for tag in extract_most_specific_search_tags("Running, runs and run; berries and a berry", stem_english_word)
    ] == [
        "running",
        "berries",
    ]
    many = " ".join(f"w{n}ord" for n in range(100))
    assert len(extract_most_specific_search_tags(many, stem_english_word)) == MAX_SEARCH_TAGS_FROM_MESSAGE


@given(st.text(max_size=200) | st.lists(st.sampled_from(sorted(ENGLISH_STOP_WORDS))).map(" ".join))
def test_no_message_is_too_odd_and_no_tag_is_a_stop_word(message: str) -> None:
    for tag in extract_most_specific_search_tags(message, stem_english_word):
        assert 0 < len(tag.text) <= MAX_SEARCH_TAG_CHARS
        assert tag.text not in ENGLISH_STOP_WORDS
        assert all(tag.anchor in form for form in tag.forms)


@for_each_row(
    "message", ["“" * 32_000, "." * 32_000, "a" * 32_000, "a-" * 16_000, "a'" * 16_000, "漢" * 32_000, "ab://" * 6_000]
)
def test_a_message_made_to_be_slow_is_not(message: str) -> None:
    """Patterns that begin anew at every character would take minutes here."""
    assert len(extract_most_specific_search_tags(message, stem_english_word)) <= 1


def test_themes_that_often_stand_beside_a_tag_are_related() -> None:
    """At least twice, and on a quarter of the memories."""
    tags = [search_tag_of_word_or_phrase("ramen", stem_english_word)]
    beside = [
        ("ramen", "Food", "Kyoto"), ("Ramen", "food", "winter"), ("ramen shop", "food"), ("ramen", "kyoto"),
        *[("ramen",)] * 4,
    ]  # fmt: skip
    assert related_themes(beside, tags, most=5) == ("food", "kyoto")  # 3 and 2 of 8; winter only once
    assert related_themes([*beside, *[("ramen",)] * 4], tags, most=5) == ("food",)  # 3 of 12, 2 of 12
    assert related_themes(beside, tags, most=1) == ("food",)
    assert related_themes([], tags, most=5) == ()
