"""Vectors on a plane, for the map: memories that mean much the same lie near each other.

Some hundred of them, the landmarks, are laid out by t-SNE (van der Maaten and Hinton, JMLR 9, 2008), which keeps
neighbours together; all others go to where their nearest landmarks are. The same vectors give the same map.
ADR 0060 compares it with others.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_LANDMARKS = 700
PERPLEXITY = 15.0
ITERATIONS = 300
EXAGGERATED_ITERATIONS, EXAGGERATION = 100, 6.0
NEAREST_LANDMARKS = 6
ROWS_AT_ONCE = 4_096
SHARPNESS = 24.0
"""Of the weights of the nearest landmarks, by cosine: a point lies with those it is most like, not between all."""

MAX_KEPT_PLANES = 4

Matrix = NDArray[np.float32]


class Planes:
    """The latest maps, by their vectors: a map that was drawn before is drawn again at once."""

    def __init__(self) -> None:
        self._by_digest: OrderedDict[bytes, Matrix] = OrderedDict()

    def plane_of(self, vectors: Sequence[Any]) -> Matrix:
        matrix = np.ascontiguousarray(vectors, np.float32)
        digest = hashlib.blake2b(matrix.tobytes(), digest_size=16).digest()
        plane = self._by_digest.pop(digest, None)
        self._by_digest[digest] = project_to_plane(matrix) if plane is None else plane
        while len(self._by_digest) > MAX_KEPT_PLANES:
            self._by_digest.popitem(last=False)
        return self._by_digest[digest]


def project_to_plane(matrix: Matrix) -> Matrix:
    """`matrix`: float32, (n, dim), unit rows. The places: float32, (n, 2), in [-1, 1]."""
    count = len(matrix)
    if count < 3:
        return np.linspace(-0.5, 0.5, 2 * count, dtype=np.float32).reshape(2, count).T
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(count, min(count, MAX_LANDMARKS), replace=False))
    landmarks = matrix[chosen]
    layout = _tsne(landmarks)
    plane = layout if len(chosen) == count else _place_by_landmarks(matrix, landmarks, layout, rng)
    plane = plane - (plane.max(axis=0) + plane.min(axis=0)) / 2
    return np.asarray(plane / max(float(np.abs(plane).max()), 1e-9), np.float32)


def _place_by_landmarks(matrix: Matrix, landmarks: Matrix, layout: Matrix, rng: np.random.Generator) -> Matrix:
    plane = np.empty((len(matrix), 2), np.float32)
    nearest_count = min(NEAREST_LANDMARKS, len(landmarks))
    for begin in range(0, len(matrix), ROWS_AT_ONCE):
        cosines = matrix[begin : begin + ROWS_AT_ONCE] @ landmarks.T
        nearest = np.argpartition(cosines, -nearest_count, axis=1)[:, -nearest_count:]
        near = np.take_along_axis(cosines, nearest, axis=1)
        weights = np.exp(SHARPNESS * (near - near.max(axis=1, keepdims=True)))
        weights /= weights.sum(axis=1, keepdims=True)
        plane[begin : begin + ROWS_AT_ONCE] = (layout[nearest] * weights[..., None]).sum(axis=1)
    # Those of one landmark would lie on one spot.
    spread = 0.4 * float(np.abs(layout).max()) / np.sqrt(len(landmarks))
    return np.asarray(plane + rng.normal(0.0, spread, plane.shape), np.float32)


def _tsne(points: Matrix) -> Matrix:
    """Exact t-SNE from the two main axes on: (n, 2)."""
    likeness = _neighbour_probabilities(points)
    centred = points - points.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    plane = np.asarray(centred @ axes[:, -2:], np.float32)
    plane *= 1e-4 / max(float(plane.std()), 1e-12)
    velocity, gains = np.zeros_like(plane), np.ones_like(plane)
    rate = max(len(points) / EXAGGERATION / 4, 50.0)
    # In place: a pass over a matrix costs more than the arithmetic.
    closeness, forces = np.empty_like(likeness), np.empty_like(likeness)
    for iteration in range(ITERATIONS):
        is_early = iteration < EXAGGERATED_ITERATIONS
        squares = (plane**2).sum(axis=1)
        np.matmul(plane, plane.T, out=closeness)
        closeness *= -2
        closeness += squares[:, None]
        closeness += squares + 1
        np.reciprocal(closeness, out=closeness)
        np.fill_diagonal(closeness, 0)
        np.multiply(closeness, -1 / closeness.sum(), out=forces)
        forces += likeness * EXAGGERATION if is_early else likeness
        forces *= closeness
        gradient = 4 * (forces.sum(axis=1)[:, None] * plane - forces @ plane)
        gains = np.where(np.sign(gradient) == np.sign(velocity), gains * 0.8, gains + 0.2).clip(0.01)
        velocity = (0.5 if is_early else 0.8) * velocity - rate * gains * gradient
        plane += velocity
        plane -= plane.mean(axis=0)
    return plane


def _neighbour_probabilities(points: Matrix) -> Matrix:
    """Symmetric, sum 1: of each point the width is sought by halving that gives it `PERPLEXITY` neighbours."""
    distances = np.maximum(2.0 - 2.0 * np.asarray(points @ points.T, np.float64), 0.0)
    np.fill_diagonal(distances, np.inf)
    target = np.log(min(PERPLEXITY, (len(points) - 1) / 3 + 1e-9))
    low, high = np.full(len(points), 1e-3), np.full(len(points), 1e5)
    probabilities = np.zeros_like(distances)
    for _ in range(40):
        precision = np.sqrt(low * high)
        exponent = -distances * precision[:, None]
        exponent -= exponent.max(axis=1, keepdims=True)
        probabilities = np.exp(exponent)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1)
        low, high = np.where(entropy > target, precision, low), np.where(entropy > target, high, precision)
    symmetric = probabilities + probabilities.T
    return np.asarray(symmetric / symmetric.sum(), np.float32)
