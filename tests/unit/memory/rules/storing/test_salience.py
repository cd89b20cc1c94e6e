"""spec L1, step 4: salience by its signals, 0.3 entity, 0.2 number or date, 0.4 preference, 0.1 technical term."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.memory.rules.storing import salience
from madeleine.memory.rules.storing.salience import (
    MIN_MEMORIES_FOR_RARITY,
    RARE_IDF,
    SalienceSignals,
    rarity,
    salience_signals,
    telling_words,
)
from madeleine.memory.text import reading
from madeleine.memory.text.reading import Reading


def read(text: str, *, rarity: float) -> SalienceSignals:
    return salience_signals(Reading(text), rarity=rarity)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We had dinner and went to bed.", 0.0),
        ("Yesterday we had dinner.", 0.2),
        ("Dinner was at 7.", 0.2),
        ("We had dinner with Maria.", 0.3),
        ("Maria called and we had dinner.", 0.3),
        ("We had dinner with Maria on 3 May.", 0.5),
        ("I prefer a late dinner.", 0.4),
        ("I always have dinner with Maria at 7.", 0.9),
        ("I always ask Maria to run make_dinner() at 7.", 1.0),
        ("the dinner needs parse_args to work", 0.1),
    ],
)
def test_each_signal_adds_what_the_spec_gives_it(text: str, expected: float) -> None:
    assert read(text, rarity=0.0).salience == pytest.approx(expected)


def test_all_signals_together_are_the_greatest_salience() -> None:
    assert SalienceSignals(entity=True, number=True, preference=True, technical=True).salience == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "we flew to Lisbon",
        "Ada Lovelace arrived",
        "the people of NASA came",
        "it runs on PostgreSQL",
        "her iPhone broke",
        "Anna's bicycle was stolen",
        "mail it to ada@example.org",
        "Wir haben Frau Müller im Garten gesehen und nicht gegrüßt",
        "Мы встретили Анну в парке",
        "田中さんと話した",
        "新宿駅で会った",
        "ジョン・スミスに会った",
        "他在北京大学学习",
        "昨日GitHubを使った",
        "김민수 씨를 만났다",
    ],
)
def test_names_of_people_places_firms_and_products_are_seen(text: str) -> None:
    assert read(text, rarity=0.0).entity


@pytest.mark.parametrize(
    "text",
    [
        "The weather was fine. Dinner was late. I slept.",
        "On Monday in January we rested.",
        "WE WERE ALL SHOUTING THAT DAY",
        "# Getting Started With The Garden\n\nwater it often",
        "Der Hund lag auf der Straße und schlief.",
        "Нам было весело. Потом мы спали.",
        "とても楽しかった。",
    ],
)
def test_what_merely_has_a_capital_names_nobody(text: str) -> None:
    assert not read(text, rarity=0.0).entity


@pytest.mark.parametrize(
    "text", ["twelve eggs", "last week", "٣ كتب", "三月に行った", "昨日は寒かった", "am Dienstag", "le 4 mai", "вчера"]
)
def test_numbers_and_dates_are_seen_in_words_and_other_scripts(text: str) -> None:
    assert read(text, rarity=0.0).number


@pytest.mark.parametrize("text", ["nobody came", "it may rain", "one has to wait", "とても寒い"])
def test_other_words_are_no_numbers(text: str) -> None:
    assert not read(text, rarity=0.0).number


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tea", "I always walk", "I hate noise", "my favorite song", "my favourite song", "I really like jazz",
        "I don't eat meat", "User prefers short answers", "Always answer in German", "Communication style: direct",
        "Ich hasse Lärm", "am liebsten Tee", "Je préfère le thé", "me gusta el té", "Я люблю чай", "お茶が好きです",
        "我喜欢喝茶", "나는 커피를 좋아해",
    ],
)  # fmt: skip
def test_preferences_are_seen_in_several_languages(text: str) -> None:
    assert read(text, rarity=0.0).preference


@pytest.mark.parametrize("text", ["I'd like to order a pizza", "it looks like rain", "she was always there", "we ate"])
def test_a_wish_of_the_moment_is_no_preference(text: str) -> None:
    assert not read(text, rarity=0.0).preference


def test_rare_words_make_a_text_technical() -> None:
    assert read("an unusual saying", rarity=RARE_IDF).technical
    assert not read("an unusual saying", rarity=RARE_IDF - 0.01).technical


def test_rarity_is_the_mean_idf_as_a_share_of_that_of_an_unheard_word() -> None:
    """(8 + 4 + 0) / 3 of 8 is 0.5."""
    assert rarity([8.0, 4.0, 0.0], absent_term_idf=8.0) == pytest.approx(0.5)
    assert rarity([], absent_term_idf=8.0) == 0.0


def test_below_a_hundred_memories_no_word_counts_as_rare() -> None:
    unheard_of_99 = math.log(1 + 99.5 / 0.5)
    assert unheard_of_99 < MIN_MEMORIES_FOR_RARITY < math.log(1 + 100.5 / 0.5)
    assert rarity([5.0], absent_term_idf=unheard_of_99) == 0.0


def test_words_are_looked_up_once_each_without_stop_words_the_longest_first() -> None:
    assert telling_words("The cat and the Cat saw a tyrannosaurus") == ["tyrannosaurus", "cat", "saw"]


@given(st.text(), st.floats(0, 1))
def test_salience_of_any_text_is_between_zero_and_one(text: str, rare: float) -> None:
    assert 0 <= read(text, rarity=rare).salience <= 1


PLAINLY = (
    (
        reading._ADDRESS,
        r"(?<!\w)@\w{2,}|\b[\w.+\-]+@[\w\-]+\.\w{2,}|\bhttps?://\w|\b\w[\w\-]+\.(?:com|org|net|io|dev|de|jp)\b",
    ),
    (
        salience._CODE,
        r"`[^`\n]+`|^\s*(?:```|~~~)|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\w\(\)|\b\w+::\w+"
        r"|\b[A-Za-z]+\d+[A-Za-z\d]*\b|(?:^|\s)(?:[./~][\w.\-]*)?/[\w.\-]+/[\w.\-/]+|--[a-z][a-z\-]+\b"
        r"|\b[A-Z]{2,}[_-][A-Z\d_-]+\b",
    ),
)
"""The same, said as one would, which takes time in proportion to the square of a text."""
_PIECES = [
    "a",
    "B",
    "é",
    "7",
    "٣",
    "_",
    ".",
    "-",
    "+",
    "@",
    "`",
    "~~~",
    "\n",
    " ",
    "\x0c",
    "/",
    ".com",
    ".c",
    "一",
    "年",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
@settings(max_examples=400)
def test_what_is_read_in_one_go_finds_the_same(text: str) -> None:
    for pattern, plainly in PLAINLY:
        assert bool(pattern.search(text)) == bool(re.search(plainly, text, re.MULTILINE)), plainly


@pytest.mark.parametrize("piece", ["a-", "a.", "a+", "7", "\n", "一", "/a"])
def test_a_text_of_a_hundred_thousand_characters_is_looked_through_in_one_go(piece: str) -> None:
    """It took minutes, for each part was read to the end of the text."""
    text = f"a{piece * (100_000 // len(piece))}é"
    assert 0 <= read(text, rarity=0.0).salience <= 1
