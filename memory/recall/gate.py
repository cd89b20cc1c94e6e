"""What of the candidates matches a query, and what is near to it (rulings 16 and 19, ADR 39)."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import Embedder
from madeleine.memory.index import CandidatePool, RecallIndex
from madeleine.memory.model import MemoryId, Vector
from madeleine.memory.recall.query_reading import try_to_embed_query
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.ranking.blended import matching_emotion_shares
from madeleine.memory.rules.ranking.matching import (
    CandidateCoverageOfNamedThings,
    CandidateSimilarities,
    MatchThresholds,
    RecallGateOutcome,
    common_names_in_query,
    matching_candidate_mask,
    matching_preference_mask,
    positions_of_near_unmatched_candidates,
    procedural_candidate_mask,
    similarities_of_all_candidates,
    unknown_words_may_decide,
)
from madeleine.memory.text.content_words import question_without_words
from madeleine.memory.vector_space import centred_cosines

CentredCosineFunction = Callable[[NDArray[np.float32], Vector], NDArray[np.float32]]
"""Of each candidate to a vector; as they are when what all texts of a language share is taken off."""

PREFERENCE_QUERY_FOR_FEELINGS_TEMPLATE = "When someone feels {}"
"""How a preference tells of the feelings in which it applies; of labels alone the model makes less."""
FEELING_COSINE_BONUS = 0.1
"""Added to that likeness: a preference says more than its feeling. "When Ada is sad she does not want advice …" has
0.25 to grief and 0.27 to sadness and grief; of unlike feelings the nearest has 0.24."""
MAX_LANGUAGE_CHECKED_CANDIDATES = 5
"""Best candidates whose language is compared with that of the query."""


@dataclass(frozen=True, eq=False)
class CandidateMatcher:
    """Decides by words, names and vectors. `configured_themes`: those that every query is restricted to; they are not
    named by the caller."""

    index: RecallIndex
    embedder: Embedder
    thresholds: MatchThresholds
    configured_themes: Set[str] = frozenset()

    async def __call__(
        self, query: RecallQuery, pool: CandidatePool, vector: Vector | None, legible: float
    ) -> RecallGateOutcome:
        """`legible`: how much of the query the model reads, 0 to 1. What the caller's filter names is a match
        (ruling 19)."""
        if query.categories or query.has_window or set(query.themes) - self.configured_themes:
            return RecallGateOutcome(np.arange(len(pool.ids)), np.zeros(0, np.intp))
        thresholds, named = self.thresholds, CandidateCoverageOfNamedThings.from_query(query.text, pool)
        gate = partial(
            similarities_of_all_candidates, named, legible=legible, thresholds=thresholds, memories=pool.memories
        )
        cosine = pool.cosine
        likenesses = gate(cosine)
        if vector is not None and legible:
            centred = await self._centred_cosine_function(pool, vector)
            cosine = centred(cosine, vector)
            likenesses = gate(cosine)
            if not (likenesses.value >= likenesses.needed).any():
                cosine = await self._with_cosines_across_languages(pool, vector, cosine)
                likenesses = gate(cosine)
            if unknown_words_may_decide(likenesses, thresholds):
                if await self._are_candidates_in_other_language(pool, vector, likenesses):
                    likenesses = gate(cosine, thresholds=replace(thresholds, unknown_words=0.0))
                else:
                    rest = await self._cosines_to_query_without_unknown_words(query.text, pool, centred)
                    likenesses = gate(cosine, without_unknown=rest)
        matches = matching_candidate_mask(likenesses, thresholds)
        near = positions_of_near_unmatched_candidates(named, likenesses, legible * cosine, thresholds)
        procedural, situation = procedural_candidate_mask(pool), None
        if procedural.any():
            situation = await self._query_similarities_ignoring_names(query, pool, cosine, legible)
            matches = np.where(procedural, matching_preference_mask(likenesses.value, situation, thresholds), matches)
        return RecallGateOutcome(np.flatnonzero(matches), near[~matches[near]], likenesses, situation)

    async def _centred_cosine_function(self, pool: CandidatePool, vector: Vector) -> CentredCosineFunction:
        """Takes off the mean of the query's language."""
        space = self.embedder.vector_space
        mean = space.mean_of_nearest_language(vector)
        if mean is None:
            return lambda cosines, _: space.calibrated_cosines(cosines)
        to_mean = await self.index.cosines(pool.ids, mean)
        return lambda cosines, to: space.calibrated_cosines(centred_cosines(cosines, to_mean, to, mean))

    async def _with_cosines_across_languages(
        self, pool: CandidatePool, vector: Vector, cosine: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """The cosines, of the best candidates in another language by what the model says of texts in two languages."""
        space = self.embedder.vector_space
        across, mean = space.across_languages(vector), space.mean_of_nearest_language(vector)
        if across is None or mean is None or not pool.ids:
            return cosine
        shared = np.array(mean)
        shared[: space.language_bound] = 0
        to_query, to_mean = [await self.index.cosines(pool.ids, one) for one in (across, shared)]
        centred = centred_cosines(to_query, to_mean, across, shared)
        best = np.argsort(-centred)[:MAX_LANGUAGE_CHECKED_CANDIDATES]
        products = await self._products_with_language_means([pool.ids[int(at)] for at in best])
        in_other = space.in_other_language_mask(vector, products)
        found = np.array(cosine)
        found[best] = np.where(
            in_other, np.maximum(cosine[best], space.cosines_across_languages(centred[best], products)), cosine[best]
        )
        return found

    async def _products_with_language_means(self, ids: Sequence[MemoryId]) -> NDArray[np.float32]:
        """float32, (n, languages); zeros for a memory without a vector."""
        means = self.embedder.vector_space.means
        return np.stack([await self.index.cosines(ids, mean) * np.linalg.norm(mean) for mean in means], axis=1)

    async def _query_similarities_ignoring_names(
        self, query: RecallQuery, pool: CandidatePool, cosine: NDArray[np.float32], legible: float
    ) -> CandidateSimilarities:
        """Of each candidate to what the query tells but for everyday names, or to the feelings that are asked for.
        `cosine`: of each to the query as it stands, which counts for a third."""
        names = common_names_in_query(query.text, pool, self.thresholds)
        is_name = np.array([word in names for word in pool.words], np.bool_)
        if legible:
            if names:
                rest = await self._centred_cosines_to_text(question_without_words(query.text, names), pool)
                cosine = np.asarray((cosine + 2 * rest) / 3, np.float32)
            if query.emotions:
                feeling = PREFERENCE_QUERY_FOR_FEELINGS_TEMPLATE.format(" and ".join(query.emotions))
                cosine = np.maximum(cosine, await self._centred_cosines_to_text(feeling, pool) + FEELING_COSINE_BONUS)
        shares = matching_emotion_shares(pool.features, frozenset(query.emotions)).astype(np.float32)
        cosine = np.maximum(cosine, shares)
        named = CandidateCoverageOfNamedThings.from_query(query.text, replace(pool, holds=pool.holds & ~is_name))
        return similarities_of_all_candidates(named, cosine, legible=legible, thresholds=self.thresholds)

    async def _centred_cosines_to_text(self, text: str, pool: CandidatePool) -> NDArray[np.float32]:
        """Of each candidate to a text; 0 for none, and without a model."""
        if not text or (vector := (await try_to_embed_query(self.embedder, text))[0]) is None:
            return np.zeros(len(pool.ids), np.float32)
        return (await self._centred_cosine_function(pool, vector))(await self.index.cosines(pool.ids, vector), vector)

    async def _are_candidates_in_other_language(
        self, pool: CandidatePool, vector: Vector, likeness: CandidateSimilarities
    ) -> bool:
        """Whether the candidates that would match if nothing were unknown are in another language than the query: of
        its words only names and numbers can be known then."""
        space = self.embedder.vector_space
        alike = likeness.values_without_penalty
        best = [int(at) for at in np.argsort(-alike)[:MAX_LANGUAGE_CHECKED_CANDIDATES]]
        ids = [pool.ids[at] for at in best if alike[at] >= self.thresholds.likeness - self.thresholds.companions]
        if not len(space.means):
            return False
        return bool(space.in_other_language_mask(vector, await self._products_with_language_means(ids)).all())

    async def _cosines_to_query_without_unknown_words(
        self, text: str, pool: CandidatePool, centred: CentredCosineFunction
    ) -> NDArray[np.float32]:
        """Of each candidate to the query without its unknown words, as far as anything can be known of it."""
        rest = question_without_words(text, pool.unknown_words)
        if not rest or (vector := (await try_to_embed_query(self.embedder, rest))[0]) is None:
            return np.zeros(len(pool.ids), np.float32)
        return centred(await self.index.cosines(pool.ids, vector), vector)
