"""Which of two texts a new one resembles more: by words, numbers and meaning, in any script."""

from __future__ import annotations

import numpy as np
import pytest

from madeleine.memory.rules.storing.similar_wording import MIN_RESEMBLANCE, resemblances_to_texts
from madeleine.memory.vector_space import VectorSpace

FAR, NEAR = 0.1, 0.6


@pytest.mark.parametrize(
    ("text", "paraphrase", "other"),
    [
        ("The parcel weighs twelve kilos.", "A 12 kg parcel has come.", "The choir sings in Graz."),
        ("我们周五在上海开会。", "周五的会在上海开。", "我们在北京住。"),
        ("회의는 금요일에 서울에서 한다.", "금요일 서울에서 회의가 있다.", "회사는 부산에 있다."),
    ],
)
def test_a_text_resembles_its_paraphrase_more_than_another_text(text: str, paraphrase: str, other: str) -> None:
    like, unlike = resemblances_to_texts(text, [paraphrase, other], [None, None])
    assert like >= MIN_RESEMBLANCE > unlike


def test_function_words_alone_are_no_resemblance_and_meaning_counts() -> None:
    text = "The lift has been out of order for three weeks."
    shared = resemblances_to_texts(text, ["The choir has been on tour for a month."], [FAR])
    near, far = resemblances_to_texts(text, ["The elevator broke 3 weeks ago."] * 2, [NEAR, FAR])
    assert shared[0] < MIN_RESEMBLANCE
    assert near >= MIN_RESEMBLANCE
    assert near > far


def test_what_the_model_cannot_read_has_no_cosine() -> None:
    means = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    space = VectorSpace(means, np.array([1, 0], np.float32))
    legible, alike, illegible = (np.array(row, np.float32) for row in ([0.9, 0, 0.4], [0.8, 0, 0.5], [0, 1, 0.1]))
    cosines = space.readable_cosines(legible, [alike, illegible, None])
    assert cosines[0] is not None
    assert cosines[0] > 0.8
    assert cosines[1:] == [None, None]
    assert space.readable_cosines(None, [alike]) == [None]
