"""The map: what means much the same lies near each other, and what was drawn once stays where it lay."""

from __future__ import annotations

import numpy as np
import pytest

from madeleine.server.ui import projection
from madeleine.server.ui.projection import MapLandmarks, lay_out_landmarks, sample_landmark_memory_numbers
from tests.rows import for_each_row


def grouped_vectors(groups: int, each: int) -> projection.Matrix:
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.standard_normal((groups, 32)), each, axis=0) + 0.2 * rng.standard_normal((groups * each, 32))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def drawn(vectors: projection.Matrix) -> projection.Matrix:
    """All memories on the plane, as the page draws them."""
    numbers = list(range(len(vectors)))
    chosen = sample_landmark_memory_numbers(numbers)
    landmarks = lay_out_landmarks(chosen, vectors[chosen], len(numbers))
    plane = landmarks.place_memories(numbers, vectors, {number: vectors[number] for number in chosen})
    plane[chosen] = [landmarks.places[number] for number in chosen]
    return plane


@pytest.mark.parametrize("landmarks", [projection.MAX_MEMORIES_LAID_OUT_BY_TSNE, 60])
def test_the_neighbours_of_a_point_are_of_its_group(monkeypatch: pytest.MonkeyPatch, landmarks: int) -> None:
    monkeypatch.setattr(projection, "MAX_MEMORIES_LAID_OUT_BY_TSNE", landmarks)
    groups, each = 6, 25
    plane = drawn(grouped_vectors(groups, each))
    group = np.repeat(np.arange(groups), each)
    distances = np.linalg.norm(plane[:, None] - plane, axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :5]
    assert (group[nearest] == group[:, None]).mean() > 0.95
    assert np.abs(plane).max() == pytest.approx(1.0)


def test_the_same_memories_lie_where_they_lay() -> None:
    vectors = grouped_vectors(3, 10)
    assert np.array_equal(drawn(vectors), drawn(vectors))


def test_a_map_is_laid_out_anew_once_a_quarter_has_changed() -> None:
    landmarks = MapLandmarks(dict.fromkeys(range(10), (0.0, 0.0)), count=100)
    expected = {
        range(100): True,
        range(125): True,
        range(126): False,
        range(74): False,
        range(2, 100): True,
        range(3, 100): False,
        range(0): False,
    }
    assert {numbers: landmarks.still_fits_memories(numbers) for numbers in expected} == expected


@for_each_row("count", [1, 2, 3, 4])
def test_a_few_memories_have_places_too(count: int) -> None:
    for vectors in (grouped_vectors(count, 1), np.repeat(grouped_vectors(1, 1), count, axis=0)):
        plane = drawn(vectors)
        assert plane.shape == (count, 2)
        assert np.isfinite(plane).all()
