"""The vector space of a model (`memory.vector_space`), measured over `sample_sentences.toml`.

Of the default model it comes with the package, of another one it is measured when the model is first loaded, and kept
beside it. `python -m madeleine.inference.space_measurement` writes the packaged file anew.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.vector_space import VectorSpace, vector_space_from_samples

SAMPLE_SENTENCES_FILE = Path(__file__).parent / "sample_sentences.toml"
PACKAGED_VECTOR_SPACE_FILE = Path(__file__).parent / "packaged_vector_space.npz"

logger = logging.getLogger(__name__)


def measure_vector_space_of_model(embed: Callable[[list[str]], NDArray[np.float32]]) -> VectorSpace:
    """480 sentences: 1 s with the default model."""
    texts = tomllib.loads(SAMPLE_SENTENCES_FILE.read_text("utf-8"))
    pairs = {language: [line.split(" | ") for line in text.strip().splitlines()] for language, text in texts.items()}
    return vector_space_from_samples(
        {
            language: (embed([statement for statement, _ in lines]), embed([question for _, question in lines]))
            for language, lines in pairs.items()
        }
    )


def read_vector_space(path: Path) -> VectorSpace:
    with np.load(path) as file:
        return VectorSpace(file["means"].astype(np.float32), file["legibility"].astype(np.float32))


def write_vector_space(path: Path, space: VectorSpace) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, means=space.means.astype(np.float16), legibility=space.legibility.astype(np.float16))


def read_or_measure_vector_space(path: Path, embed: Callable[[list[str]], NDArray[np.float32]]) -> VectorSpace:
    """The space at `path`; measured and written there if it is missing or damaged."""
    try:
        return read_vector_space(path)
    except (OSError, ValueError, KeyError):
        space = measure_vector_space_of_model(embed)
    try:
        write_vector_space(path, space)
    except OSError as error:
        logger.warning("Writing the measured vector space failed; measuring it again at the next start: %s", error)
    return space


def write_packaged_vector_space() -> None:
    from madeleine.inference.packaged import load_int8_embedding_engine

    write_vector_space(PACKAGED_VECTOR_SPACE_FILE, measure_vector_space_of_model(load_int8_embedding_engine().embed))


if __name__ == "__main__":
    write_packaged_vector_space()
