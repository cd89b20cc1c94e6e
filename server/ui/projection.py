"""Vectors on a plane, for the map: memories that mean much the same lie near each other.

Some hundred of them, the landmarks, are laid out by t-SNE (van der Maaten and Hinton, JMLR 9, 2008), which keeps
neighbours together; all others go to where their nearest landmarks are. The same vectors give the same map, and a map
that has grown a little keeps its landmarks where they lay. ADR 0060 compares it with others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_MEMORIES_LAID_OUT_BY_TSNE = 700
TSNE_PERPLEXITY = 15.0
TSNE_ITERATIONS = 300
EXAGGERATED_ITERATIONS, EXAGGERATION = 100, 6.0
LANDMARKS_PER_PLACED_MEMORY = 6
LANDMARK_WEIGHT_SOFTMAX_SHARPNESS = 24.0
"""Of the weights of the nearest landmarks, by cosine: a point lies with those it is most like, not between all."""
MAX_MEMORY_CHANGE_RATIO_BEFORE_RELAYOUT = 0.25
"""Part of the memories by which a map may have grown or shrunk before it is laid out anew."""
SCATTER_IN_LANDMARK_DISTANCES = 0.4
"""In mean distances of landmarks: those of one landmark would lie on one spot."""

Matrix = NDArray[np.float32]


def sample_landmark_memory_numbers(numbers: Sequence[int]) -> list[int]:
    """At most `MAX_MEMORIES_LAID_OUT_BY_TSNE` of the memories' numbers, the same ones each time."""
    if len(numbers) <= MAX_MEMORIES_LAID_OUT_BY_TSNE:
        return list(numbers)
    chosen = np.random.default_rng(0).choice(len(numbers), MAX_MEMORIES_LAID_OUT_BY_TSNE, replace=False)
    return [numbers[place] for place in np.sort(chosen)]


@dataclass(frozen=True)
class MapLandmarks:
    """`places`: by the memories' numbers, in [-1, 1]. `count`: of all memories when they were laid out. Vectors are not
    kept: those of a forgotten memory would stay."""

    places: dict[int, tuple[float, float]]
    count: int

    def still_fits_memories(self, numbers: Sequence[int]) -> bool:
        remaining = len(self.places.keys() & set(numbers))
        return (
            abs(len(numbers) - self.count) <= MAX_MEMORY_CHANGE_RATIO_BEFORE_RELAYOUT * self.count
            and remaining >= (1 - MAX_MEMORY_CHANGE_RATIO_BEFORE_RELAYOUT) * len(self.places)
            and remaining > 0
        )

    def place_memories(self, numbers: Sequence[int], vectors: Matrix, landmark_vectors: dict[int, Matrix]) -> Matrix:
        """Where memories go that are no landmarks: float32, (n, 2), in [-1, 1]. `vectors`: float32, (n, dim), unit
        rows. `landmark_vectors`: those of the landmarks that there still are."""
        layout = np.array([self.places[number] for number in landmark_vectors], np.float32)
        cosines = vectors @ np.array(list(landmark_vectors.values()), np.float32).T
        nearest_count = min(LANDMARKS_PER_PLACED_MEMORY, len(layout))
        nearest = np.argpartition(cosines, -nearest_count, axis=1)[:, -nearest_count:]
        near = np.take_along_axis(cosines, nearest, axis=1)
        weights = np.exp(LANDMARK_WEIGHT_SOFTMAX_SHARPNESS * (near - near.max(axis=1, keepdims=True)))
        weights /= weights.sum(axis=1, keepdims=True)
        plane = (layout[nearest] * weights[..., None]).sum(axis=1) + self._scatter_offsets(numbers)
        return np.asarray(plane.clip(-1, 1), np.float32)

    def _scatter_offsets(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """A small step by each memory's number, evenly over all directions and lengths: by the golden ratio, as seeds
        lie in a sunflower."""
        turns = np.array(numbers, np.float64) * 0.618033988749895
        lengths = np.sqrt(turns * 97.0 % 1.0) * (2 * SCATTER_IN_LANDMARK_DISTANCES / np.sqrt(len(self.places)))
        angles = 2 * np.pi * (turns % 1.0)
        return np.stack([np.cos(angles) * lengths, np.sin(angles) * lengths], axis=1)


def lay_out_landmarks(numbers: Sequence[int], vectors: Matrix, count: int) -> MapLandmarks:
    """The landmarks on the plane. `vectors`: float32, (n, dim), unit rows, one a number. `count`: of all memories."""
    if len(numbers) < 3:
        plane = np.linspace(-0.5, 0.5, 2 * len(numbers), dtype=np.float32).reshape(2, len(numbers)).T
    else:
        plane = _tsne(vectors)
        plane = plane - (plane.max(axis=0) + plane.min(axis=0)) / 2
        plane = plane / max(float(np.abs(plane).max()), 1e-9)
    places = {number: (float(x), float(y)) for number, (x, y) in zip(numbers, plane, strict=True)}
    return MapLandmarks(places, count)


def _tsne(points: Matrix) -> Matrix:
    """Exact t-SNE from the two main axes on: (n, 2).

    Without products of matrices: for ones this narrow the threads of the linear algebra wait for each other longer
    than they reckon, four times as long on a machine that has other work (measured: 6.0 and 1.6 s of processor time).
    """
    likeness = _neighbour_probabilities(points)
    centred = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    plane = np.asarray((centred @ axes[:, -2:]).T, np.float32)
    plane *= 1e-4 / max(float(plane.std()), 1e-12)
    velocity, gains = np.zeros_like(plane), np.ones_like(plane)
    rate = max(len(points) / EXAGGERATION / 4, 50.0)
    exaggerated = likeness * EXAGGERATION
    # In place: a pass over a matrix costs more than the arithmetic.
    closeness, forces = np.empty_like(likeness), np.empty_like(likeness)
    apart = np.empty((2, *likeness.shape), np.float32)
    for iteration in range(TSNE_ITERATIONS):
        is_early = iteration < EXAGGERATED_ITERATIONS
        for axis in range(2):
            np.subtract(plane[axis][:, None], plane[axis], out=apart[axis])
        np.multiply(apart[0], apart[0], out=closeness)
        np.multiply(apart[1], apart[1], out=forces)
        closeness += forces
        closeness += 1
        np.reciprocal(closeness, out=closeness)
        # Each point is at 1 of itself, which counts for nothing.
        np.multiply(closeness, -1 / (float(closeness.sum()) - len(points)), out=forces)
        forces += exaggerated if is_early else likeness
        forces *= closeness
        gradient = 4 * np.einsum("ij,aij->ai", forces, apart)
        gains = np.where(np.sign(gradient) == np.sign(velocity), gains * 0.8, gains + 0.2).clip(0.01)
        velocity = (0.5 if is_early else 0.8) * velocity - rate * gains * gradient
        plane += velocity
        plane -= plane.mean(axis=1, keepdims=True)
    return plane.T


def _neighbour_probabilities(points: Matrix) -> Matrix:
    """Symmetric, sum 1: of each point the width is sought by halving that gives it `TSNE_PERPLEXITY` neighbours, among
    the nearest of three times that number."""
    count = len(points)
    distances = np.maximum(2.0 - 2.0 * (points @ points.T), 0.0)
    np.fill_diagonal(distances, np.inf)
    among = min(3 * round(TSNE_PERPLEXITY), count - 1)
    nearest = np.argpartition(distances, among - 1, axis=1)[:, :among]
    near = np.take_along_axis(distances, nearest, axis=1).astype(np.float64)
    target = np.log(min(TSNE_PERPLEXITY, (count - 1) / 3 + 1e-9))
    low, high = np.full(count, 1e-3), np.full(count, 1e5)
    probabilities = np.zeros_like(near)
    for _ in range(40):
        precision = np.sqrt(low * high)
        exponent = -near * precision[:, None]
        exponent -= exponent.max(axis=1, keepdims=True)
        probabilities = np.exp(exponent)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1)
        low, high = np.where(entropy > target, precision, low), np.where(entropy > target, high, precision)
    dense = np.zeros((count, count), np.float32)
    np.put_along_axis(dense, nearest, probabilities.astype(np.float32), axis=1)
    symmetric = dense + dense.T
    return np.asarray(symmetric / symmetric.sum(), np.float32)
