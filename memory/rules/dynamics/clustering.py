"""Sub-clusters: their mean and their root (ruling 5), without a model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

MIN_CLUSTERING_COSINE = 0.45
"""Cosine from which a memory belongs to a cluster (spec P6 ❶), and two clusters may be one (❼)."""


def unit_mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The unit vector of the mean of unit rows (spec P3); None for no rows or a mean of zero."""
    if len(vectors) == 0:
        return None
    mean = vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm, np.float32) if norm > 0 else None


RootClusterName = Literal["Business", "Private"]
ROOT_CLUSTER_NAMES: tuple[RootClusterName, ...] = get_args(RootClusterName)
_PARSED_ROOT_PROTOTYPE_FILE = tomllib.loads((Path(__file__).parent / "root_prototypes.toml").read_text("utf-8"))
ROOT_CLUSTER_PROTOTYPE_TEXTS: Mapping[RootClusterName, Sequence[str]] = {
    root: _PARSED_ROOT_PROTOTYPE_FILE[root] for root in ROOT_CLUSTER_NAMES
}


def nearest_root_cluster(
    vector: NDArray[np.float32], prototypes: Mapping[RootClusterName, NDArray[np.float32]]
) -> RootClusterName:
    """`prototypes`: float32, (k, dim), unit rows. The root with the nearest prototypes (mean of its three best)."""

    def nearness(root: RootClusterName) -> float:
        return float(np.sort(prototypes[root] @ vector)[-3:].mean())

    return max(ROOT_CLUSTER_NAMES, key=lambda root: (nearness(root), root))
