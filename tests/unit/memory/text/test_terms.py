"""What BM25 sees (ruling 8)."""

from __future__ import annotations

from madeleine.memory.model import DatedAction
from madeleine.memory.text.terms import (
    bm25_text_of_memory,
    normalize_and_drop_apostrophes,
    normalize_text_for_bm25,
    question_words_by_lesson_or_emotion,
)
from tests.doubles import a_memory
from tests.rows import for_each_row


def test_a_memorys_words_hold_its_date_in_words() -> None:
    """ruling 8: "on Friday", "in February" find what happened then. 2026-02-27 was a Friday."""
    assert bm25_text_of_memory(a_memory("We cook.", when=("2026-02-27",))) == "Friday 2026-02-27 We cook."


def test_a_memory_without_a_date_has_the_day_it_was_stored() -> None:
    """spec P2: 2026-03-01 was a Sunday."""
    assert bm25_text_of_memory(a_memory("We cook.")) == "Sunday 2026-03-01 We cook."


def test_dates_that_cannot_be_read_and_what_happened_on_them_are_words_too() -> None:
    """spec P4"""
    words = bm25_text_of_memory(a_memory("We cook.", when=("Day7", DatedAction("2026-02-27", "booked"))))
    assert words == "Friday 2026-02-27 Day7 booked We cook."


def test_an_actor_whom_the_action_names_is_not_said_twice() -> None:
    """A name in both would count double for BM25."""
    words = bm25_text_of_memory(a_memory("hashi cooked for us", actors=("Hashi", "Ada")))
    assert words == "Sunday 2026-03-01 Ada hashi cooked for us"


def test_everything_that_was_said_of_a_scene_is_among_its_words() -> None:
    """ruling 8"""
    memory = a_memory(
        "act", setting="set", dialogue=("one", "two"), sensory=("smell",), feeling="feel", themes=("th",), lesson="les"
    )
    assert bm25_text_of_memory(memory) == "Sunday 2026-03-01 set act one two smell feel th les zqlesson"


@for_each_row(
    ("text", "normal"),
    [("don't", "dont"), ("don’t", "dont"), ("Ｒａｍｅｎ", "Ramen"), ("ﬁne", "fine"), ("か\u3099", "が")],
)
def test_spellings_of_one_word_are_one(text: str, normal: str) -> None:
    """NFKC, apostrophes dropped."""
    assert normalize_and_drop_apostrophes(text) == normal


def test_a_form_that_no_ending_tells_is_the_word_that_it_is_of() -> None:
    """ "What did they find?" names what they found (ADR 77)."""
    told = "They found the Children, who’d forgotten it"
    assert normalize_text_for_bm25(told) == "They find the child, whod forget it"
    assert normalize_text_for_bm25("The LED, ein Stück") == "The LED, ein Stuck"


@for_each_row(
    ("text", "names"),
    [
        ("2200 W and 16GB", "watt gigabyte"),
        ("1,180 g of flour, 2-3 kg", "gram gramme kilogram kilogramme kilo"),
        ("体重は5kgです", "kilogram kilogramme kilo"),
        ("W is the director, V8, 5G, 12 GBit, 5 génies", ""),
        ("qx7r2W, v2 g, MB-12 g, 5MB-12, flat 12B", ""),
    ],
)
def test_a_number_with_the_sign_of_a_unit_has_its_name_beside_it(text: str, names: str) -> None:
    """ADR 112: "How many watts?" asks for 2200 W. Nothing is taken away, so that "GB" finds 16 GB as before."""
    assert bm25_text_of_memory(a_memory(text)) == normalize_text_for_bm25(f"Sunday 2026-03-01 {text} {names}").strip()


def test_a_shortened_article_is_no_part_of_the_next_word() -> None:
    """ruling 19: "l'entretien" holds "entretien"; English contractions stay one word, a stop word."""
    text = "l'entretien, dell’acqua, we've don't"
    assert normalize_text_for_bm25(text).replace(",", "").split() == ["entretien", "dell", "acqua", "weve", "dont"]


def test_the_labels_of_its_emotions_are_among_its_words() -> None:
    """ruling 21"""
    memory = a_memory("She passed.", emotions=("pride", "joy"))
    assert bm25_text_of_memory(memory) == "Sunday 2026-03-01 She passed. zqemotionpride zqemotionjoy"


@for_each_row(
    ("question", "asking"),
    [
        ("What is Mara proud of?", {"zqemotionpride": ("proud",)}),
        (
            "Worauf bin ich stolz, und wovor habe ich Angst?",
            {"zqemotionpride": ("stolz",), "zqemotionfear": ("angst",)},
        ),
        ("De quoi est-elle fière ?", {"zqemotionpride": ("fiere",)}),
        ("何を誇りに思っていますか", {"zqemotionpride": ("誇り",)}),
        ("What have we learned?", {"zqlesson": ("learned",)}),
        ("Where does Mara live?", {}),
    ],
)
def test_a_question_asks_for_emotions_and_lessons_in_its_own_words(
    question: str, asking: dict[str, tuple[str, ...]]
) -> None:
    """rulings 21 and 22"""
    assert question_words_by_lesson_or_emotion(question) == asking
