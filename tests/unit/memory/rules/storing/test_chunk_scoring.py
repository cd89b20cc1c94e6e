"""spec L1, steps 4 and 5: novelty, salience, rarity and importance of a chunk, and its category."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.memory.model import Category
from madeleine.memory.rules.storing import chunk_scoring
from madeleine.memory.rules.storing.chunk_scoring import (
    MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY,
    MIN_MEAN_RARITY_OF_TECHNICAL_TEXT,
    MIN_STORED_CHUNK_IMPORTANCE,
    chunk_category,
    chunk_importance,
    chunk_novelty_against_centroid,
    chunk_salience,
    distinct_words_for_rarity_score,
    mean_word_rarity,
)
from madeleine.memory.text import reading
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.vector_space import VectorSpace
from tests.doubles import at_cosine, unit
from tests.rows import for_each_row

MEAN = unit([1, 0, 0, 0])


def salience_of(text: str, *, rarity: float = 0.0) -> float:
    return chunk_salience(AnalysedText(text), rarity=rarity)


@for_each_row(
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
    assert salience_of(text) == pytest.approx(expected)


@for_each_row(
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
    assert AnalysedText(text).contains_recognised_name


@for_each_row(
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
    assert not AnalysedText(text).contains_recognised_name


@for_each_row(
    "text", ["twelve eggs", "last week", "٣ كتب", "三月に行った", "昨日は寒かった", "am Dienstag", "le 4 mai", "вчера"]
)
def test_numbers_and_dates_are_seen_in_words_and_other_scripts(text: str) -> None:
    assert AnalysedText(text).mentions_number_or_date


@for_each_row("text", ["nobody came", "it may rain", "one has to wait", "とても寒い"])
def test_other_words_are_no_numbers(text: str) -> None:
    assert not AnalysedText(text).mentions_number_or_date


@for_each_row(
    "text",
    [
        "I prefer tea", "I always walk", "I hate noise", "my favorite song", "my favourite song", "I really like jazz",
        "I don't eat meat", "User prefers short answers", "Always answer in German", "Communication style: direct",
        "Ich hasse Lärm", "am liebsten Tee", "Je préfère le thé", "me gusta el té", "Я люблю чай", "お茶が好きです",
        "我喜欢喝茶", "나는 커피를 좋아해",
    ],
)  # fmt: skip
def test_preferences_are_seen_in_several_languages(text: str) -> None:
    assert AnalysedText(text).states_personal_taste


@for_each_row("text", ["I'd like to order a pizza", "it looks like rain", "she was always there", "we ate"])
def test_a_wish_of_the_moment_is_no_preference(text: str) -> None:
    assert not AnalysedText(text).states_personal_taste


def test_rare_words_make_a_text_technical() -> None:
    assert salience_of("an unusual saying", rarity=MIN_MEAN_RARITY_OF_TECHNICAL_TEXT) == pytest.approx(0.1)
    assert salience_of("an unusual saying", rarity=MIN_MEAN_RARITY_OF_TECHNICAL_TEXT - 0.01) == 0.0


def test_rarity_is_the_mean_idf_as_a_share_of_that_of_an_unheard_word() -> None:
    """(8 + 4 + 0) / 3 of 8 is 0.5."""
    assert mean_word_rarity([8.0, 4.0, 0.0], absent_term_idf=8.0) == pytest.approx(0.5)
    assert mean_word_rarity([], absent_term_idf=8.0) == 0.0


def test_below_a_hundred_memories_no_word_counts_as_rare() -> None:
    absent_of_99 = math.log(1 + 99.5 / 0.5)
    assert absent_of_99 < MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY < math.log(1 + 100.5 / 0.5)
    assert mean_word_rarity([5.0], absent_term_idf=absent_of_99) == 0.0


def test_words_are_looked_up_once_each_without_stop_words_the_longest_first() -> None:
    assert distinct_words_for_rarity_score("The cat and the Cat saw a tyrannosaurus") == ["tyrannosaurus", "cat", "saw"]


@given(st.text(), st.floats(0, 1))
def test_salience_of_any_text_is_between_zero_and_one(text: str, rare: float) -> None:
    assert 0 <= salience_of(text, rarity=rare) <= 1


PLAINLY = (
    (
        reading._WEB_ADDRESS_PATTERN,
        r"(?<!\w)@\w{2,}|\b[\w.+\-]+@[\w\-]+\.\w{2,}|\bhttps?://\w|\b\w[\w\-]+\.(?:com|org|net|io|dev|de|jp)\b",
    ),
    (
        chunk_scoring._CODE_NAME_OR_PATH_PATTERN,
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


@for_each_row("piece", ["a-", "a.", "a+", "7", "\n", "一", "/a"])
def test_a_text_of_a_hundred_thousand_characters_is_looked_through_in_one_go(piece: str) -> None:
    """It took minutes, for each part was read to the end of the text."""
    text = f"a{piece * (100_000 // len(piece))}é"
    assert 0 <= salience_of(text) <= 1


def test_everything_is_new_to_a_being_without_memories() -> None:
    assert chunk_novelty_against_centroid(at_cosine(0.9), None, VectorSpace.create_without_languages()) == 1.0


@for_each_row(("cosine", "expected"), [(1.0, 0.0), (0.75, 0.25), (0.0, 1.0), (-0.5, 1.0)])
def test_novelty_is_the_cosine_distance_to_the_mean_and_never_above_one(cosine: float, expected: float) -> None:
    assert chunk_novelty_against_centroid(
        at_cosine(cosine), MEAN, VectorSpace.create_without_languages()
    ) == pytest.approx(expected)


def legible(share: float) -> VectorSpace:
    return VectorSpace(np.zeros((1, len(MEAN)), np.float32), np.array([share], np.float32))


def test_a_likeness_counts_as_far_as_the_model_can_read_the_text() -> None:
    """1 − 0.25 × 0.8 = 0.8; and nothing that it cannot read is known to it."""
    assert chunk_novelty_against_centroid(at_cosine(0.8), MEAN, legible(0.25)) == pytest.approx(0.8)
    assert chunk_novelty_against_centroid(at_cosine(0.8), MEAN, legible(0.0)) == 1.0


@for_each_row(
    ("new", "salient", "expected"), [(1.0, 0.0, 0.6), (0.0, 1.0, 0.4), (0.5, 0.3, 0.42), (0.25, 0.4, 0.31), (0, 0, 0)]
)
def test_importance_is_six_tenths_novelty_and_four_tenths_salience(new: float, salient: float, expected: float) -> None:
    assert chunk_importance(novelty=new, salience=salient) == pytest.approx(expected)


def test_half_new_and_nothing_else_is_just_worth_keeping() -> None:
    assert chunk_importance(novelty=0.5, salience=0.0) >= MIN_STORED_CHUNK_IMPORTANCE
    assert chunk_importance(novelty=0.49, salience=0.0) < MIN_STORED_CHUNK_IMPORTANCE


@given(st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4).filter(lambda v: np.linalg.norm(v) > 0.01))
def test_novelty_stays_between_zero_and_one(values: list[float]) -> None:
    assert (
        0
        <= chunk_novelty_against_centroid(unit(values), unit([1, 2, 3, 4]), VectorSpace.create_without_languages())
        <= 1
    )


@for_each_row(
    ("text", "expected"),
    [
        ("I prefer answers without preamble.", "procedural"),
        ("Right now I prefer tea.", "procedural"),
        ("Right now we are fixing the build.", "working"),
        ("In this session we only look at the logs.", "working"),
        ("今すぐ直している。", "working"),
        ("User is a backend engineer specializing in Python and PostgreSQL.", "semantic"),
        ("The office of the firm has two floors.", "semantic"),
        ("Berlin ist die Hauptstadt von Deutschland.", "semantic"),
        ("東京は日本の首都です。", "semantic"),
        ("北京是中国的首都。", "semantic"),
        ("Discussed database migration from MySQL to PostgreSQL.", "episodic"),
        ("We went to the lake and swam.", "episodic"),
        ("Yesterday the office was closed.", "episodic"),
        ("I am tired.", "episodic"),
        ("What is the name of the dog?", "episodic"),
        ("The lake is cold. We swam. Then we slept.", "episodic"),
        ("The lake is cold. The water has no salt. We swam.", "semantic"),
        ("…", "episodic"),
    ],
)
def test_a_text_goes_where_the_first_rule_that_holds_sends_it(text: str, expected: Category) -> None:
    assert chunk_category(AnalysedText(text)) == expected
