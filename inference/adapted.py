"""An embedding model with a linear adapter: a base model's vectors times a matrix, made by `inference.fine_tuning`.

A directory with `adapter.json` and `adapter.npy`. Its vectors are known by the base and a hash of the matrix.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from madeleine.inference.model_directory import embedding_model_directory_from_path
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import EmbeddingModelName
from madeleine.memory.vector_space import normalize_vector_rows

ADAPTER_DESCRIPTION_FILE = "adapter.json"
ADAPTER_MATRIX_FILE = "adapter.npy"


@dataclass(frozen=True, eq=False)
class AdaptedEmbeddingModel:
    """`base`: a model's name or directory. `base_identity`: what that model's vectors are known by. `matrix`: float32,
    (dimension, dimension); a vector v becomes v @ matrix, of unit length again."""

    path: Path
    base: str
    base_identity: str
    matrix: NDArray[np.float32]

    @property
    def name_with_content_hash(self) -> EmbeddingModelName:
        digest = hashlib.sha256(self.base_identity.encode() + np.ascontiguousarray(self.matrix).tobytes())
        return EmbeddingModelName(f"adapted/{self.path.name}#{digest.hexdigest()[:12]}")

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])

    def adapt_vectors(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """float32, (n, dimension), unit rows."""
        return normalize_vector_rows(vectors @ self.matrix)


def read_adapted_embedding_model_if_any(name: str) -> AdaptedEmbeddingModel | None:
    """The model in the directory that `name` is the path of; None if there is none. Raises `InvalidInput` for a damaged
    one."""
    path = Path(name).expanduser()
    if not (path / ADAPTER_DESCRIPTION_FILE).is_file():
        return None
    try:
        described = json.loads((path / ADAPTER_DESCRIPTION_FILE).read_text("utf-8"))
        base, identity = str(described["base"]), str(described["base_identity"])
        matrix = np.load(path / ADAPTER_MATRIX_FILE, allow_pickle=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"The adapter in {path} cannot be read: {error}") from error
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InvalidInput(f"The adapter in {path} is damaged: {ADAPTER_MATRIX_FILE} holds no matrix of numbers.")
    if identity != embedding_model_name_from_name_or_path(base):
        raise InvalidInput(
            f"The adapter in {path} has as its base {base}, which is another model than the one that the adapter was "
            "made for. Put that one back, or train the adapter again."
        )
    return AdaptedEmbeddingModel(path.resolve(), base, identity, np.asarray(matrix, np.float32))


def embedding_model_name_from_name_or_path(base: str) -> EmbeddingModelName:
    """What its vectors are known by. Raises `InvalidInput` for a directory without a model."""
    directory = embedding_model_directory_from_path(base)
    return directory.name_with_content_hash if directory else EmbeddingModelName(base)


def write_adapted_embedding_model(
    path: Path, base: str, matrix: NDArray[np.float32], description: dict[str, Any]
) -> None:
    """`description`: how it was made and what it gained, for people. Raises `OSError`."""
    described = {"base": base, "base_identity": embedding_model_name_from_name_or_path(base)} | description
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    np.save(path / ADAPTER_MATRIX_FILE, np.asarray(matrix, np.float32), allow_pickle=False)
    # Last: it makes the directory a model.
    (path / ADAPTER_DESCRIPTION_FILE).write_text(json.dumps(described, indent=2), encoding="utf-8")
