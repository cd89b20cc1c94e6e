"""The vector space of a model (`memory.vector_space`), measured over `sample_sentences.toml`.

Of the default model and of its encoder of English it comes with the package, of another one it is measured when the
model is first loaded, and kept beside it. `python -m madeleine.inference.space_measurement` writes the packaged files
anew.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from madeleine.inference.default_model import english_encoder
from madeleine.memory.vector_space import (
    CosineCalibration,
    VectorRows,
    VectorSpace,
    margins_by_language,
    vector_space_from_samples,
)

Embed = Callable[[list[str]], VectorRows]
"""Texts to unit rows."""

SAMPLE_SENTENCES_FILE = Path(__file__).parent / "sample_sentences.toml"
ENGLISH_VECTOR_SPACE_FILE = Path(__file__).parent / "default_model" / "english_vector_space.npz"
PACKAGED_VECTOR_SPACE_FILE = Path(__file__).parent / "default_model" / "vector_space.npz"
ENGLISH_SHARES_FILE = Path(__file__).parent / "default_model" / "english_shares.npy"
PACKAGED_MODEL_CALIBRATION = CosineCalibration(slope=1.07, offset=0.01)
"""Makes the default model's cosines those of its encoder of English between English texts, which the thresholds were
measured with."""
PACKAGED_RAW_COSINE_SCALE = 8.8 / 6.8
"""The same for cosines with the mean of the language; by `make truth` (ADR 106)."""
MAX_ENGLISH_SHARE = 2 / 3
"""Of the encoder of English in the default model's vectors: between what is best for LoCoMo and for BEAM (ADR 106)."""
MIN_RANKING_TRUST = 0.25
"""Where the multilingual encoder works alone: it finds what a question is about, and orders details less well. At full
trust JSQuAD loses 0.8 points of nDCG@10, at this 0.3."""

logger = logging.getLogger(__name__)


def measure_vector_space_of_model(embed: Embed) -> VectorSpace:
    """480 sentences: 1 s with the default model."""
    return vector_space_from_samples(embedded_samples(embed))


def embedded_samples(embed: Embed) -> dict[str, tuple[VectorRows, VectorRows]]:
    """Of each language the vectors of statements, and of the question about each."""
    texts = tomllib.loads(SAMPLE_SENTENCES_FILE.read_text("utf-8"))
    pairs = {language: [line.split(" | ") for line in text.strip().splitlines()] for language, text in texts.items()}
    return {
        language: (embed([statement for statement, _ in lines]), embed([question for _, question in lines]))
        for language, lines in pairs.items()
    }


def read_vector_space(path: Path) -> VectorSpace:
    with np.load(path) as file:
        return VectorSpace(file["means"].astype(np.float32), file["legibility"].astype(np.float32))


def write_vector_space(path: Path, space: VectorSpace) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, means=space.means.astype(np.float16), legibility=space.legibility.astype(np.float16))


def read_or_measure_vector_space(path: Path, embed: Embed) -> VectorSpace:
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


@cache
def english_vector_space() -> VectorSpace:
    """Of the encoder of English, in either precision."""
    return read_vector_space(ENGLISH_VECTOR_SPACE_FILE)


@cache
def packaged_vector_space() -> VectorSpace:
    """Of the default model."""
    space = read_vector_space(PACKAGED_VECTOR_SPACE_FILE)
    shares = np.load(ENGLISH_SHARES_FILE)
    trust = MIN_RANKING_TRUST + (1 - MIN_RANKING_TRUST) * shares / shares.max()
    return replace(
        space,
        calibration=PACKAGED_MODEL_CALIBRATION,
        raw_cosine_scale=PACKAGED_RAW_COSINE_SCALE,
        ranking_trust=np.asarray(trust, np.float32),
        language_bound=english_encoder.WIDTH,
        language_bound_shares=shares,
    )


def write_packaged_vector_spaces() -> None:
    from madeleine.inference.default_model import engines

    english = engines.load_english_encoder()
    samples = embedded_samples(english.embed)
    write_vector_space(ENGLISH_VECTOR_SPACE_FILE, vector_space_from_samples(samples))
    margins = margins_by_language(samples)
    np.save(ENGLISH_SHARES_FILE, np.asarray(MAX_ENGLISH_SHARE * np.clip(margins / margins.max(), 0, 1), np.float32))
    english_vector_space.cache_clear()
    write_vector_space(PACKAGED_VECTOR_SPACE_FILE, measure_vector_space_of_model(engines.load_both_encoders().embed))


if __name__ == "__main__":
    write_packaged_vector_spaces()
