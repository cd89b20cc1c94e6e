"""The map: what means much the same lies near each other, and the same memories lie where they lay."""

from __future__ import annotations

import numpy as np
import pytest

from madeleine.server.ui import projection
from madeleine.server.ui.projection import Planes, project_to_plane


def grouped_vectors(groups: int, each: int) -> projection.Matrix:
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.standard_normal((groups, 32)), each, axis=0) + 0.2 * rng.standard_normal((groups * each, 32))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("landmarks", [projection.MAX_LANDMARKS, 60])
def test_the_neighbours_of_a_point_are_of_its_group(monkeypatch: pytest.MonkeyPatch, landmarks: int) -> None:
    monkeypatch.setattr(projection, "MAX_LANDMARKS", landmarks)
    groups, each = 6, 25
    plane = project_to_plane(grouped_vectors(groups, each))
    group = np.repeat(np.arange(groups), each)
    distances = np.linalg.norm(plane[:, None] - plane, axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :5]
    assert (group[nearest] == group[:, None]).mean() > 0.95
    assert np.abs(plane).max() == pytest.approx(1.0)


def test_a_map_is_drawn_once_and_is_the_same_each_time() -> None:
    vectors = grouped_vectors(3, 10)
    planes = Planes()
    assert planes.plane_of(list(vectors)) is planes.plane_of(list(vectors))
    assert np.array_equal(planes.plane_of(list(vectors)), Planes().plane_of(list(vectors)))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_few_memories_have_places_too(count: int) -> None:
    plane = project_to_plane(grouped_vectors(count, 1))
    assert plane.shape == (count, 2)
    assert np.isfinite(plane).all()
    same = project_to_plane(np.repeat(grouped_vectors(1, 1), count, axis=0))
    assert np.isfinite(same).all()
