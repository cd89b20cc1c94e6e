"""Vectors on a plane, for the map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def project_to_plane(vectors: Sequence[Any]) -> NDArray[np.float32]:
    """float32, (n, 2), in [-1, 1]."""
    matrix = np.asarray(vectors, np.float32)
    centred = matrix - matrix.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    plane = centred @ axes[:, -2:]
    return np.asarray(plane / max(float(np.abs(plane).max()), 1e-9), np.float32)
