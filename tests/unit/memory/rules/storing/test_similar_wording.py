"""Which of two texts a new one resembles more: by words, numbers and meaning, in any script."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from madeleine.memory.rules.storing.similar_wording import (
    MIN_RESEMBLANCE_TO_LINK_MEMORIES,
    index_of_most_resembling_text,
    index_of_outstanding_text,
    resemblances_to_texts,
)
from madeleine.memory.vector_space import VectorSpace
from tests.rows import for_each_row

FAR, NEAR = 0.1, 0.6


@for_each_row(
    ("text", "paraphrase", "other"),
    [
        ("The parcel weighs twelve kilos.", "A 12 kg parcel has come.", "The choir sings in Graz."),
        ("我们周五在上海开会。", "周五的会在上海开。", "我们在北京住。"),
        ("회의는 금요일에 서울에서 한다.", "금요일 서울에서 회의가 있다.", "회사는 부산에 있다."),
    ],
)
def test_a_text_resembles_its_paraphrase_more_than_another_text(text: str, paraphrase: str, other: str) -> None:
    like, unlike = resemblances_to_texts(text, [paraphrase, other], [None, None])
    assert like >= MIN_RESEMBLANCE_TO_LINK_MEMORIES > unlike


def test_function_words_alone_are_no_resemblance_and_meaning_counts() -> None:
    text = "The lift has been out of order for three weeks."
    shared = resemblances_to_texts(text, ["The choir has been on tour for a month."], [FAR])
    near, far = resemblances_to_texts(text, ["The elevator broke 3 weeks ago."] * 2, [NEAR, FAR])
    assert shared[0] < MIN_RESEMBLANCE_TO_LINK_MEMORIES
    assert near >= MIN_RESEMBLANCE_TO_LINK_MEMORIES
    assert near > far


def test_meaning_alone_links_and_wording_alone_does_not() -> None:
    """ADR 108: "Uncle has two girls" in other words; two sentences of one form about two things."""
    uncle = resemblances_to_texts("My uncle has two daughters.", ["His only children are girls."], [0.65])
    forms = resemblances_to_texts(
        "The report for Mara is in the blue folder.", ["The key for Mara is in the blue jar."], [0.2]
    )
    assert uncle[0] >= MIN_RESEMBLANCE_TO_LINK_MEMORIES > forms[0]


@for_each_row(("nearness_of_another", "linked"), [(0.1, True), (0.5, False)])
def test_a_text_that_stands_out_among_the_others_is_linked_from_less_resemblance_on(
    nearness_of_another: float, linked: bool
) -> None:
    """ADR 111"""
    others = ["School was called off for the ice.", "The choir sings in Graz."]
    found = index_of_outstanding_text(
        "No lessons, since the roads were slippery.",
        others,
        [0.65, nearness_of_another],
        at_least=MIN_RESEMBLANCE_TO_LINK_MEMORIES,
    )
    assert found == (0 if linked else None)


def test_what_the_model_cannot_read_has_no_cosine() -> None:
    means = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    space = VectorSpace(means, np.array([1, 0], np.float32))
    legible, alike, illegible = (np.array(row, np.float32) for row in ([0.9, 0, 0.4], [0.8, 0, 0.5], [0, 1, 0.1]))
    cosines = space.cosines_where_texts_are_legible(legible, [alike, illegible, None])
    assert cosines[0] is not None
    assert cosines[0] > 0.8
    assert cosines[1:] == [None, None]
    assert space.cosines_where_texts_are_legible(None, [alike]) == [None]


WORDS = "the lift lifts is out of order for three 3 weeks since 12 May".split()
WORDS += "der Aufzug ist kaputt 电梯 坏了 엘리베이터가 고장".split()
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@given(TEXTS, st.lists(st.tuples(TEXTS, st.none() | st.floats(-0.2, 1)), max_size=8))
def test_the_most_resembling_text_is_found_without_reading_all(
    text: str, others: list[tuple[str, float | None]]
) -> None:
    texts, cosines = [other for other, _ in others], [cosine for _, cosine in others]
    scores = resemblances_to_texts(text, texts, cosines)
    best = max(range(len(scores)), key=scores.__getitem__, default=None)
    expected = best if best is not None and scores[best] >= MIN_RESEMBLANCE_TO_LINK_MEMORIES else None
    assert index_of_most_resembling_text(text, texts, cosines, at_least=MIN_RESEMBLANCE_TO_LINK_MEMORIES) == expected


@given(TEXTS, st.lists(st.tuples(TEXTS, st.none() | st.floats(-0.2, 1)), max_size=8))
def test_the_outstanding_text_is_found_without_reading_all(text: str, others: list[tuple[str, float | None]]) -> None:
    texts, cosines = [other for other, _ in others], [cosine for _, cosine in others]
    wordings = [(score - 0.15) / 0.67 for score in resemblances_to_texts(text, texts, [None] * len(texts))]
    scores = [
        0.0 if cosine is None else 0.3 * wording + 0.7 * max(cosine, 0.0)
        for wording, cosine in zip(wordings, cosines, strict=True)
    ]
    *_, second, first = sorted([0.0, 0.0, *scores])
    found = index_of_outstanding_text(text, texts, cosines, at_least=MIN_RESEMBLANCE_TO_LINK_MEMORIES)
    assume(all(abs(first - edge) > 1e-6 for edge in (0.45, second + 0.13)))
    assert found == (scores.index(first) if first >= 0.45 and first - second >= 0.13 else None)
