"""What all texts of a language share in the vectors of a model, and how well the model reads that language (ruling 16).

Vectors of one language lie together, whatever they say: between unrelated French texts all-MiniLM-L6-v2 gives a cosine
of 0.5. The mean of the language, measured once for a model over a few sentences, is taken off; then one threshold holds
in every language. A text is of the language whose mean is nearest to its vector, so nothing depends on a script, on the
size of a store or on the order in which it was filled, and a store may hold several languages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Vector

MIN_LEGIBILITY_OF_EMBEDDED_TEXT = 0.5
"""How well the model must read a text's language for its vector to mean anything."""
VectorRows = NDArray[np.float32]

ILLEGIBLE_MARGIN, LEGIBLE_MARGIN = 0.25, 0.32
"""Mean distance between a question's cosine to its own statement and to the nearest of the others, from which a model
begins to read a language, and reads it. Of all-MiniLM-L6-v2: English 0.48, Portuguese 0.32, Russian 0.28, Japanese
0.25, Arabic 0.14, Chinese 0.04, Korean below 0. At 0.25 its vectors cost JSQuAD more than they give."""

MIN_MARGIN_FOR_DIFFERENT_LANGUAGES = 0.1
"""How much nearer two texts are to the mean of their own language than to that of the other's, together, from which
they are of two languages. With the default model questions and the memories that answer them in another language have
0.06 to 0.27, and 97 of 100 of those of one language less than this (`benchmarks/small`)."""


CALIBRATION_QUANTILES = 0.5, 0.99
"""Of the centred cosines between memories: nearly all pairs are unrelated, and the few that are not lie beyond."""
MIN_CALIBRATION_TEXTS = 50
"""From so many on there are a thousand pairs, of which the hundredth part is not chance."""


@dataclass(frozen=True, slots=True)
class CosineCalibration:
    """Centred cosines of a model, made those that all-MiniLM-L6-v2 would have: offset + slope × cosine. So a threshold
    means the same for both."""

    slope: float
    offset: float

    def __call__(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """0 stays 0, for a memory without a vector."""
        return np.asarray(np.where(cosines == 0, 0, np.clip(self.offset + self.slope * cosines, -1, 1)), np.float32)


@dataclass(frozen=True, eq=False)
class VectorSpace:
    """`means`: float32, (languages, dim). `legibility`: float32, (languages,), in [0, 1]. Without languages nothing is
    taken off, and everything is legible. `calibration`: None for the model that thresholds were measured with."""

    means: VectorRows
    legibility: NDArray[np.float32]
    calibration: CosineCalibration | None = None
    raw_cosine_scale: float = 1.0
    """Makes cosines as they are those of the model that the weights of `near_equals` were fitted to."""
    ranking_trust: NDArray[np.float32] | None = None
    """float32, (languages,), in [0, 1]: how much vectors tell of two matches which is the better one; None where that
    is the legibility."""
    language_bound: int = 0
    """So many numbers at the beginning of a vector compare texts of one language alone: the default model's encoder of
    English (ADR 106) …"""
    language_bound_shares: NDArray[np.float32] | None = None
    """… and this share of the squared length of a vector, float32, (languages,)."""

    def across_languages(self, vector: Vector) -> Vector | None:
        """What of it compares texts of different languages, of unit length; None where that is the same."""
        if not self.language_bound:
            return None
        across = np.array(vector, np.float32)
        across[: self.language_bound] = 0
        return np.asarray(across / max(float(np.linalg.norm(across)), 1e-6), np.float32)

    def calibrated_cosines(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Centred cosines as thresholds read them."""
        return self.calibration(cosines) if self.calibration else cosines

    @classmethod
    def create_without_languages(cls) -> VectorSpace:
        return cls(np.zeros((0, 0), np.float32), np.zeros(0, np.float32))

    def legibility_of_text_behind_vector(self, vector: Vector) -> float:
        """In [0, 1]: how well the model reads the text of this vector."""
        return float(self.legibility[self._nearest_language_indices(vector[None])[0]]) if len(self.means) else 1.0

    def ranking_trust_of_text_behind_vector(self, vector: Vector) -> float:
        """In [0, 1]: how much the vectors of this text's language count in ranking."""
        if self.ranking_trust is None:
            return self.legibility_of_text_behind_vector(vector)
        return float(self.ranking_trust[self._nearest_language_indices(vector[None])[0]])

    def legible_text_mask(self, vectors: VectorRows) -> NDArray[np.bool_]:
        """bool, (n,): whether the model reads the text of each."""
        if not len(self.means):
            return np.ones(len(vectors), np.bool_)
        return np.asarray(
            self.legibility[self._nearest_language_indices(vectors)] >= MIN_LEGIBILITY_OF_EMBEDDED_TEXT, np.bool_
        )

    def mean_of_nearest_language(self, vector: Vector) -> Vector | None:
        """The mean of the text's language."""
        return (
            np.asarray(self.means[self._nearest_language_indices(vector[None])[0]], np.float32)
            if len(self.means)
            else None
        )

    def in_other_language_mask(self, query: Vector, mean_products: VectorRows) -> NDArray[np.bool_]:
        """bool, (n,): which of these vectors are not of the query's language, by a clear margin. `mean_products`:
        float32, (n, languages), of each with the means; zeros for a memory without a vector, of which nothing is known.
        """
        of_query, of_vectors = (
            self._nearness_to_language_means(products) for products in (query[None] @ self.means.T, mean_products)
        )
        own, others = int(of_query.argmax()), of_vectors.argmax(axis=1)
        margins = of_query.max() - of_query[0, others] + of_vectors.max(axis=1) - of_vectors[:, own]
        return np.asarray(mean_products.any(axis=1) & (margins >= MIN_MARGIN_FOR_DIFFERENT_LANGUAGES), np.bool_)

    def cosines_across_languages(self, cosines: NDArray[np.float32], mean_products: VectorRows) -> NDArray[np.float32]:
        """Calibrated cosines, (n,), of centred ones to `across_languages`: as if each vector were that part alone."""
        if self.language_bound_shares is None:
            return cosines
        languages = self._nearness_to_language_means(mean_products).argmax(axis=1)
        return self.calibrated_cosines(
            np.asarray(cosines / np.sqrt(1 - self.language_bound_shares[languages]), np.float32)
        )

    def centred_by_language(self, vectors: VectorRows) -> VectorRows:
        """float32, (n, dim), unit rows: each without the mean of its language."""
        if not len(self.means) or not len(vectors):
            return vectors
        return normalize_vector_rows(vectors - self.means[self._nearest_language_indices(vectors)])

    def cosines_where_texts_are_legible(
        self, vector: Vector | None, others: Sequence[Vector | None], *, across_languages: bool = False
    ) -> list[float | None]:
        """Cosines of `vector` to the others, each without the mean of its language; None where one of the two is
        missing or cannot be read. `across_languages`: of the part alone that compares texts of different languages."""
        cosines: list[float | None] = [None] * len(others)
        there = [at for at, other in enumerate(others) if other is not None]
        if vector is None or not there:
            return cosines
        rows = np.asarray([vector, *(others[at] for at in there)], np.float32)
        readable, centred = self.legible_text_mask(rows), self.centred_by_language(rows)
        if across_languages:
            centred = normalize_vector_rows(centred[:, self.language_bound :])
        if readable[0]:
            calibrated = self.calibrated_cosines(centred[1:] @ centred[0])
            for at in np.flatnonzero(readable[1:]):
                cosines[there[at]] = float(calibrated[at])
        return cosines

    def row_numbers_of_nearest_language_means(self, vectors: VectorRows) -> NDArray[np.intp]:
        """Of each row the index of the nearest mean; 0 in an undivided space."""
        return self._nearest_language_indices(vectors) if len(self.means) else np.zeros(len(vectors), np.intp)

    def _nearest_language_indices(self, vectors: VectorRows) -> NDArray[np.intp]:
        return np.asarray(self._nearness_to_language_means(vectors @ self.means.T).argmax(axis=1), np.intp)

    def _nearness_to_language_means(self, mean_products: VectorRows) -> VectorRows:
        return np.asarray(mean_products - (self.means**2).sum(axis=1) / 2, np.float32)


def fit_cosine_calibration_to_reference_model(
    space: VectorSpace, vectors: VectorRows, reference_space: VectorSpace, reference: VectorRows
) -> CosineCalibration | None:
    """What makes the cosines between unrelated texts of one model those of another, the reference (ruling 16). Both
    vectors of the same texts, in the same order. Only what both models read is compared, and only within a language.
    None for too few texts."""
    languages = reference_space.row_numbers_of_nearest_language_means(reference)
    is_read = space.legible_text_mask(vectors) & reference_space.legible_text_mask(reference)
    if is_read.sum() < MIN_CALIBRATION_TEXTS:
        return None
    rows, columns = np.triu_indices(int(is_read.sum()), k=1)
    same = languages[is_read][rows] == languages[is_read][columns]
    if not same.any():
        return None
    own, other = space.centred_by_language(vectors[is_read]), reference_space.centred_by_language(reference[is_read])
    own_middle, own_high = np.quantile((own @ own.T)[rows[same], columns[same]], CALIBRATION_QUANTILES)
    middle, high = np.quantile(
        reference_space.calibrated_cosines((other @ other.T)[rows[same], columns[same]]), CALIBRATION_QUANTILES
    )
    slope = float((high - middle) / max(own_high - own_middle, 1e-3))
    return CosineCalibration(slope, float(middle - slope * own_middle))


def normalize_vector_rows(vectors: VectorRows) -> VectorRows:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), np.float32)


def centred_cosines(
    cosine: NDArray[np.float32], mean_cosine: NDArray[np.float32], query: Vector, mean: Vector
) -> NDArray[np.float32]:
    """float32, (n,): cosines to `query` when `mean` is taken off both sides; 0 stays 0, for a candidate without vector.

    `cosine` and `mean_cosine`: of each candidate to the query and to the mean. (q − m)·(v − m) follows from these, and
    |v − m|² = 1 − 2 v·m + |m|².
    """
    length = float(np.linalg.norm(mean))
    to_mean = mean_cosine * length
    products = cosine - to_mean - float(query @ mean) + length**2
    lengths = np.sqrt(np.maximum(1 - 2 * to_mean + length**2, 1e-6)) * max(float(np.linalg.norm(query - mean)), 1e-6)
    return np.asarray(np.where(cosine == 0, 0, np.clip(products / lengths, -1, 1)), np.float32)


def vector_space_from_samples(samples: Mapping[str, tuple[VectorRows, VectorRows]]) -> VectorSpace:
    """`samples`: of each language the vectors of statements, and of the question about each."""
    means = [np.concatenate(rows).mean(axis=0) for rows in samples.values()]
    legibility = (margins_by_language(samples) - ILLEGIBLE_MARGIN) / (LEGIBLE_MARGIN - ILLEGIBLE_MARGIN)
    return VectorSpace(np.asarray(means, np.float32), np.asarray(np.clip(legibility, 0, 1), np.float32))


def margins_by_language(samples: Mapping[str, tuple[VectorRows, VectorRows]]) -> NDArray[np.float32]:
    """float32, (languages,): how much nearer a question is to its own statement than to the nearest of the others."""
    margins = []
    for statements, questions in samples.values():
        mean = np.concatenate([statements, questions]).mean(axis=0)
        cosines = normalize_vector_rows(questions - mean) @ normalize_vector_rows(statements - mean).T
        others = np.where(np.eye(len(cosines), dtype=bool), -1, cosines).max(axis=1)
        margins.append(float((np.diag(cosines) - others).mean()))
    return np.asarray(margins, np.float32)
