"""What is shown of a text that is too long for an offer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.rules.excerpts import most_telling_sentences
from tests.rows import for_each_row


@given(st.text(max_size=600), st.integers(100, 400))
def test_an_excerpt_has_at_most_so_many_characters_and_a_short_text_is_whole(text: str, limit: int) -> None:
    excerpt = most_telling_sentences(text, limit)
    assert len(excerpt) <= limit
    assert excerpt == text if len(text) <= limit else len(excerpt) < len(text)
    pieces = excerpt.split("…")
    assert all(piece.strip() in text for piece in pieces)


@given(st.lists(st.sampled_from(["Ann paid 900 euros", "so it went on", "who knows", "I like tea"]), min_size=9))
def test_what_is_left_out_is_marked(sentences: list[str]) -> None:
    text = ". ".join(sentences) + "."
    assert ("…" in most_telling_sentences(text, 100)) == (len(text) > 100)


@for_each_row(
    ("text", "excerpt"),
    [
        (
            "That is really helpful, thanks a lot for all of these suggestions and resources. Could you tell me more "
            "about them? By the way, Ida Holm is our dentist since 3 March.",
            "… By the way, Ida Holm is our dentist since 3 March.",
        ),
        (
            "Das ist ja wirklich sehr nett, vielen Dank für die vielen guten Hinweise zu den Kursen. Könntest du mir "
            "noch mehr davon schicken? Übrigens zahle ich dafür 40 Euro im Monat.",
            "… Übrigens zahle ich dafür 40 Euro im Monat.",
        ),
    ],
)
def test_what_is_told_is_shown_before_what_is_said_or_asked(text: str, excerpt: str) -> None:
    assert most_telling_sentences(text, 100) == excerpt


def test_sentences_stand_in_their_order_and_gaps_are_marked() -> None:
    noise = "There was so much noise in the street below the old town hall."
    text = f"Ann paid 900 euros. {noise} Carl left on 3 May. So it goes on and on."
    assert most_telling_sentences(text, 100) == "Ann paid 900 euros. … Carl left on 3 May. So it goes on and on."


def test_of_one_long_sentence_that_tells_something_the_end_is_shown() -> None:
    text = "I was wondering " + "whether and how and when " * 8 + "I spent 10 hours on films"
    excerpt = most_telling_sentences(text, 100)
    assert excerpt.startswith("… ")
    assert excerpt.endswith("I spent 10 hours on films")


def test_of_a_very_long_text_the_beginning_is_read() -> None:
    text = "It went on and on. " * 600 + "Ann paid 900 euros."
    excerpt = most_telling_sentences(text, 200)
    assert (len(excerpt) <= 200, "euros" in excerpt, excerpt.endswith("…")) == (True, False, True)
