"""ruling 16: what a language shares is taken off, and how well it is read is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from madeleine.memory.vector_space import (
    VectorRows,
    VectorSpace,
    centred_cosines,
    fit_cosine_calibration_to_reference_model,
    normalize_vector_rows,
    vector_space_from_samples,
)


def texts(count: int, towards: int, *, seed: int) -> VectorRows:
    """Vectors that share a direction."""
    rows = np.random.default_rng(seed).normal(size=(count, 32)).astype(np.float32)
    rows[:, towards] += 8
    return normalize_vector_rows(rows)


def test_what_all_texts_share_is_taken_off_in_each_language() -> None:
    one, other = texts(40, 0, seed=1), texts(40, 1, seed=2)
    space = VectorSpace(np.stack([one.mean(axis=0), other.mean(axis=0)]), np.array([1, 0.5], np.float32))
    assert (one @ one.T).mean() > 0.6
    centred = space.centred_by_language(np.concatenate([one, other]))
    assert abs((centred @ centred.T - np.eye(80)).mean()) < 0.05
    assert [space.legibility_of_text_behind_vector(one[0]), space.legibility_of_text_behind_vector(other[0])] == [
        1,
        0.5,
    ]


def test_the_centred_cosine_follows_from_the_cosines_that_an_index_gives() -> None:
    rows = texts(20, 0, seed=3)
    mean = rows.mean(axis=0)
    space = VectorSpace(mean[None], np.ones(1, np.float32))
    expected = space.centred_by_language(rows) @ space.centred_by_language(rows[:1])[0]
    found = centred_cosines(rows @ rows[0], rows @ (mean / np.linalg.norm(mean)), rows[0], mean)
    assert found == pytest.approx(expected, abs=1e-5)
    assert centred_cosines(np.zeros(1, np.float32), np.zeros(1, np.float32), rows[0], mean).tolist() == [0]


def test_a_language_is_legible_if_questions_are_nearest_to_their_own_statements() -> None:
    statements = texts(20, 0, seed=4)
    read = (statements, normalize_vector_rows(statements + 0.3 * texts(20, 0, seed=5)))
    unread = (texts(20, 1, seed=6), texts(20, 1, seed=7))
    assert vector_space_from_samples({"read": read, "unread": unread}).legibility.tolist() == [1, 0]


def test_texts_are_foreign_only_if_all_are_clearly_of_another_language() -> None:
    one, other = texts(40, 0, seed=1), texts(40, 1, seed=2)
    means = np.stack([one.mean(axis=0), other.mean(axis=0)])
    space = VectorSpace(means, np.ones(2, np.float32))
    assert space.in_other_language_mask(one[0], other[:3] @ means.T).all()
    assert not space.in_other_language_mask(one[0], np.concatenate([other[:3], one[1:2]]) @ means.T).all()
    assert not space.in_other_language_mask(one[0], np.zeros((1, 2), np.float32)).any(), "without a vector"


def test_without_languages_nothing_is_taken_off() -> None:
    rows = texts(3, 0, seed=8)
    space = VectorSpace.create_without_languages()
    assert space.centred_by_language(rows) is rows
    assert (space.legibility_of_text_behind_vector(rows[0]), space.mean_of_nearest_language(rows[0])) == (1, None)


def test_texts_can_be_compared_by_what_reads_all_languages_alone() -> None:
    """ADR 111: of two encoders side by side, the multilingual one."""
    space = replace(VectorSpace.create_without_languages(), language_bound=2)
    one, other = np.array([0.6, 0, 0, 0.8], np.float32), np.array([0, 0.6, 0, 0.8], np.float32)
    assert space.cosines_where_texts_are_legible(one, [other], across_languages=True) == [1.0]
    assert space.cosines_where_texts_are_legible(one, [other]) == [pytest.approx(0.64)]


def test_a_calibrated_model_has_the_cosines_of_the_default_one() -> None:
    """ruling 16: what is constant in all vectors squeezes cosines, (cosine + k²) / (1 + k²)."""
    rows = normalize_vector_rows(np.random.default_rng(5).standard_normal((120, 24)).astype(np.float32))
    squeezed = normalize_vector_rows(np.hstack([rows, np.full((len(rows), 1), 1.5, np.float32)]))
    plain = VectorSpace.create_without_languages()
    calibration = fit_cosine_calibration_to_reference_model(plain, squeezed, plain, rows)
    assert calibration is not None
    space = replace(plain, calibration=calibration)
    assert np.allclose(space.calibrated_cosines(squeezed @ squeezed[0])[1:], (rows @ rows[0])[1:], atol=1e-3)
    assert space.calibrated_cosines(np.zeros(1, np.float32)) == 0
    others = space.cosines_where_texts_are_legible(squeezed[0], [squeezed[1], None])
    assert others[0] == pytest.approx(float(rows[0] @ rows[1]), abs=1e-3)
    assert others[1] is None
    assert fit_cosine_calibration_to_reference_model(plain, squeezed[:9], plain, rows[:9]) is None
