"""spec P3, ruling 5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from madeleine.inference import PACKAGED_MODEL_NAME
from madeleine.inference.dense import DenseEmbedder
from madeleine.memory.rules.dynamics.clustering import (
    ROOT_CLUSTER_NAMES,
    ROOT_CLUSTER_PROTOTYPE_TEXTS,
    RootClusterName,
    nearest_root_cluster,
)
from tests.doubles import at_cosine


def test_the_roots_are_business_and_private() -> None:
    """spec P3"""
    assert ROOT_CLUSTER_NAMES == ("Business", "Private")
    assert set(ROOT_CLUSTER_PROTOTYPE_TEXTS) == set(ROOT_CLUSTER_NAMES)


def test_the_nearer_set_of_prototypes_decides() -> None:
    """ruling 5"""
    prototypes = {
        "Business": np.stack([at_cosine(0.9)] * 3),
        "Private": np.stack([at_cosine(0.8)] * 3),
    }
    assert nearest_root_cluster(at_cosine(1.0), prototypes) == "Business"  # type: ignore[arg-type]


def test_the_three_best_prototypes_of_a_root_count() -> None:
    """ruling 5: means of the three best are 0.5 for Business (0.9, 0.3, 0.3) and 0.6 for Private."""
    prototypes: dict[RootClusterName, np.typing.NDArray[np.float32]] = {
        "Business": np.stack([at_cosine(c) for c in (0.9, 0.3, 0.3, -1.0)]),
        "Private": np.stack([at_cosine(c) for c in (0.6, 0.6, 0.6, -1.0)]),
    }
    assert nearest_root_cluster(at_cosine(1.0), prototypes) == "Private"


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("The client wants the report before Friday's board meeting.", "Business"),
        ("I deployed the hotfix to the production server.", "Business"),
        ("Mum called, and we baked a cake for my brother's birthday.", "Private"),
        ("I walked along the beach with my husband and felt calm.", "Private"),
    ],
)
async def test_the_default_model_tells_business_from_private(text: str, root: RootClusterName, tmp_path: Path) -> None:
    """ruling 5: without a key."""
    embedder = DenseEmbedder(PACKAGED_MODEL_NAME, tmp_path)
    prototypes = {name: await embedder.embed(sentences) for name, sentences in ROOT_CLUSTER_PROTOTYPE_TEXTS.items()}
    [vector] = await embedder.embed([text])
    await embedder.close()
    assert nearest_root_cluster(vector, prototypes) == root
