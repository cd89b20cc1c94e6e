"""spec H3: a snippet of at most 400 characters, where the words were found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.searching import (
    MAX_HIT_SNIPPET_CHARS,
    excerpt_around_match,
    make_first_match_position_finder,
)
from madeleine.memory.text.normalization import fold_text
from tests.rows import for_each_row

FILLER = "many words that nobody looks for " * 40


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt_around_match("x" * 400, make_first_match_position_finder(["x"])) == "x" * 400


def test_a_long_text_is_shown_from_its_beginning_if_nothing_is_found_in_it() -> None:
    shown = excerpt_around_match(FILLER, make_first_match_position_finder(["absent"]))
    assert FILLER.startswith(shown.removesuffix("…"))
    assert shown.endswith("…")
    assert excerpt_around_match(FILLER, make_first_match_position_finder([])) == shown


@for_each_row("written", ["Quince", "quince", "ＱＵＩＮＣＥ"])
def test_the_place_where_a_word_was_found_is_shown_with_whole_words_around_it(written: str) -> None:
    shown = excerpt_around_match(
        f"{FILLER}the {written} tree {FILLER}", make_first_match_position_finder(["absent", "quince"])
    )
    assert f"the {written} tree" in shown
    assert shown[0] == shown[-1] == "…"
    assert {*shown.strip("…").split()} <= {*FILLER.split(), "the", written, "tree"}
    assert 80 <= shown.index(written) <= 110


def test_letters_that_are_two_when_folded_do_not_move_the_place() -> None:
    shown = excerpt_around_match(
        "Straße " * 300 + "quince " + "Straße " * 300, make_first_match_position_finder(["quince"])
    )
    assert "quince" in shown


def test_at_the_end_of_a_text_the_room_is_used_for_what_stands_before() -> None:
    shown = excerpt_around_match(f"{FILLER}quince", make_first_match_position_finder(["quince"]))
    assert shown.endswith("quince")
    assert len(shown) > 350


@given(
    st.text(min_size=0, max_size=600),
    st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=5),
    st.text(max_size=600),
)
def test_a_snippet_is_never_too_long_and_is_a_part_of_the_text(before: str, word: str, after: str) -> None:
    text = before + word + after
    shown = excerpt_around_match(text, make_first_match_position_finder([word]))
    assert len(shown) <= MAX_HIT_SNIPPET_CHARS
    inner = shown.removeprefix("…").removesuffix("…") if len(text) > MAX_HIT_SNIPPET_CHARS else shown
    assert inner in text


@given(st.text(st.characters(codec="ascii"), max_size=900), st.sampled_from(["q", "quince", "a b"]))
def test_what_was_found_stands_in_the_snippet(text: str, word: str) -> None:
    text += word
    assert word in fold_text(excerpt_around_match(text + "." * 300, make_first_match_position_finder([word])))


def test_two_long_terms_that_differ_at_their_ends_are_looked_for_in_no_time() -> None:
    """Compared anew at each character, as a pattern of both would be, that is 10⁹ steps."""
    text = "a" * 60_000 + "zz"
    place = make_first_match_position_finder(["a" * 30_000 + "b", "a" * 30_000 + "c", "zz"])
    assert excerpt_around_match(text, place).endswith("zz")
