"""What the wording of a memory tells: hand-worked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.candidates import WordingSignals
from madeleine.memory.rules.ranking.signals import signals
from madeleine.storage.qdrant.schema import packed, unpacked


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Where were you?", True),
        ('She said "really?"  ', True),
        ("Really?) ", True),
        ("何が好きですか？", True),
        ("Where were you? I waited.", False),
        ("I waited", False),
        ("", False),
    ],
)
def test_a_question_at_the_end_asks(text: str, asks: bool) -> None:
    assert signals(text).asks is asks


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        ("I went yesterday", True),
        ("Yesterday was fun", True),
        ("Ann came last week", True),
        ("for a few months", True),
        ("on Fridays", True),
        ("in May", True),
        ("it may rain", False),
        ("back in 1987", True),
        ("the 3rd of it", True),
        ("room 2240", False),
        ("at last she came", False),
        ("", False),
    ],
)
def test_a_day_or_a_span_of_time_is_told(text: str, tells: bool) -> None:
    assert signals(text).tells_when is tells


@pytest.mark.parametrize(
    ("text", "prefers"),
    [
        ("I prefer tea", True),
        ("I really love rain", True),
        ("we always walk", True),
        ("I'd rather stay", True),
        ("i do not like it, but my favourite is red", True),
        ("my favorite colour", True),
        ("She prefers tea", False),
        ("I am like you", False),
        ("", False),
    ],
)
def test_a_preference_is_told(text: str, prefers: bool) -> None:
    """spec L1: the preference signals, among them."""
    assert signals(text).prefers is prefers


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("I went home", 1.0),
        (" ".join(["I", *["word"] * 19]), 1.0),
        (" ".join(["I", *["word"] * 39]), 0.5),
        ("He is in the i7 group", 0.0),
        ("", 0.0),
    ],
)
def test_one_word_in_twenty_makes_a_text_of_the_first_person(text: str, share: float) -> None:
    assert signals(text).first_person == pytest.approx(share)


@given(st.text())
def test_any_text_can_be_read_and_kept_in_one_number(text: str) -> None:
    found = signals(text)
    assert 0 <= found.first_person <= 1
    back = unpacked(packed(found))
    assert (back.asks, back.tells_when, back.prefers) == (found.asks, found.tells_when, found.prefers)
    assert back.first_person == pytest.approx(found.first_person, abs=0.005)


def test_every_sign_has_a_bit_of_its_own() -> None:
    each = [
        WordingSignals(asks=True),
        WordingSignals(tells_when=True),
        WordingSignals(prefers=True),
        WordingSignals(first_person=1.0),
    ]
    assert [unpacked(packed(one)) for one in each] == each
