"""Recall (spec P9, L2, T7, O12, rulings 2, 7 to 9): embed, gather candidates, keep the matches, rank, perhaps look
again, fit the budget, activate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.candidates import CandidatePool, CandidateQuery
from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.metered_model import CostLog
from madeleine.memory.model import LIVING, Vector
from madeleine.memory.ports import Embedder, LanguageModel
from madeleine.memory.recall.choosing import Choosing
from madeleine.memory.recall.ports import Activation, ActivationLog, RecallIndex, RecallLedger, Reranker
from madeleine.memory.recall.ranked import Query, Ranked, RecallResult
from madeleine.memory.recall.reformulation import Attempt, Reformulation, ReformulationConfig, metered
from madeleine.memory.recall.reranking import reranked
from madeleine.memory.rules.prompting.saying import LISTED, Saying
from madeleine.memory.rules.ranking.blended import RankingWeights, blended, shared_emotions
from madeleine.memory.rules.ranking.matching import MatchThresholds, matches
from madeleine.memory.rules.ranking.profiles import (
    ProfileWeights,
    RankingProfile,
    associative,
    in_order,
    linear,
    similarity,
)
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope

__all__ = ["Query", "Ranked", "Recall", "RecallConfig", "RecallResult"]

CANDIDATES = 4
"""Of each channel at least so many for each memory that is wanted (spec L2, step 2)."""
HEAD_START_S = 0.001
"""For the model before the index: the least that an event loop can wait, a fifth of what an embedding takes."""


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    sparse_limit: int = 100
    dense_limit: int = 50
    """Candidates from each of the two channels."""
    thresholds: MatchThresholds = MatchThresholds()
    weights: RankingWeights = RankingWeights()
    ranking: RankingProfile = "blended"
    profiles: ProfileWeights = ProfileWeights()
    themes: tuple[str, ...] = ()
    """Recall is restricted to memories with all of these (spec O12, the non-inferable filter)."""
    min_importance: float = 0.0
    """Less important ones are left out (spec L2); what was stored is recallable by ruling 1, hence none."""
    rerank: int = 20
    """The best that a re-ranker looks at, where there is one."""
    reformulation: ReformulationConfig = ReformulationConfig()


class Recall:
    """The use case."""

    def __init__(
        self,
        ledger: RecallLedger,
        index: RecallIndex,
        embedder: Embedder,
        activations: ActivationLog,
        *,
        now: Callable[[], datetime],
        config: RecallConfig | None = None,
        reranker: Reranker | None = None,
        costs: CostLog | None = None,
        redact: Redact = redact_secrets,
    ) -> None:
        """`costs`: where it is recorded what a language model costs. `redact` is for queries that one is shown."""
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._activations = activations
        self._now = now
        self._reranker = reranker
        self._costs = costs
        self._redact = redact
        self.config = config or RecallConfig()

    async def __call__(
        self, scope: Scope, query: Query, saying: Saying = LISTED, *, language: LanguageModel | None = None
    ) -> RecallResult:
        """`saying`: how the answer will say it. `language` puts the query in other words, where that is configured."""
        choosing = Choosing(self._ledger, self._embedder, saying, min_importance=self.config.min_importance)
        query = replace(query, themes=tuple(dict.fromkeys((*query.themes, *self.config.themes))))
        choose = partial(choosing, scope, query)
        ranked = await self._ranked(scope, query)
        found = Attempt(ranked, await choose(ranked))
        if language is not None and self.config.reformulation.rounds:
            rank = partial(self._ranked, scope)
            model = metered(language, self._costs, scope, self._now)
            reformulate = Reformulation(model, self.config.reformulation, rank, choose, redact=self._redact)
            found = await reformulate(query, found)
        return self._recalled(scope, query, found)

    def _recalled(self, scope: Scope, query: Query, found: Attempt) -> RecallResult:
        ranked, chosen = found.ranked, found.chosen
        now = self._now()
        self._activations.add(scope, [Activation(memory.id, 1, now) for memory in chosen.memories])
        scores = ranked.score_of()
        return RecallResult(
            memories=tuple((memory, scores.get(memory.id, 0.0)) for memory in chosen.memories),
            total_tokens=chosen.tokens,
            budget_used=chosen.tokens / query.token_budget,
            meaning_off=ranked.meaning_off,
            said=chosen.said,
            notices=ranked.notices,
            reformulated=found.words,
        )

    async def _ranked(self, scope: Scope, query: Query) -> Ranked:
        ranked = await self.rank(scope, query)
        if self._reranker is None or not ranked.ids:
            return ranked
        return await reranked(self._reranker, self._ledger, scope, query.text, ranked, most=self.config.rerank)

    async def rank(self, scope: Scope, query: Query) -> Ranked:
        """The candidate pipeline: every match of the query in order, nothing activated."""
        candidate_query = CandidateQuery(
            words=query.text,
            statuses=LIVING,
            categories=query.categories,
            themes=tuple(dict.fromkeys((*query.themes, *self.config.themes))),
            sparse_limit=max(self.config.sparse_limit, CANDIDATES * query.limit),
            dense_limit=max(self.config.dense_limit, CANDIDATES * query.limit),
        )
        embedding = asyncio.create_task(self._embedded(query.text))
        try:
            # The index keeps the interpreter busy, which the model needs until it computes: let it begin.
            await asyncio.wait({embedding}, timeout=HEAD_START_S)
            pool = await self._index.candidates(scope, candidate_query, partial(_vector_of, embedding))
            vector, meaning_off = await embedding
        finally:
            embedding.cancel()
        trust = self._embedder.coverage(query.text) if vector is not None else 0.0
        matching = np.flatnonzero(matches(pool, dense_trust=trust, thresholds=self.config.thresholds))
        if not len(matching):
            return Ranked((), (), (), pool, meaning_off)
        profile = query.ranking or self.config.ranking
        if profile == "blended":
            scores = blended(
                query.text,
                pool,
                matching,
                dense_trust=trust,
                emotions=frozenset(query.emotions),
                weights=self.config.weights,
            )
        else:
            matching, scores = await self._by_profile(scope, query, profile, pool=pool, matching=matching, trust=trust)
        order = np.argsort(-scores, kind="stable")  # equals keep the engine's order
        best_first = matching[order]
        return Ranked(
            ids=tuple(pool.ids[i] for i in best_first),
            scores=tuple(round(float(score), 4) for score in scores[order]),
            tokens=tuple(pool.features[i].tokens for i in best_first),
            pool=pool,
            meaning_off=meaning_off,
        )

    async def _by_profile(
        self,
        scope: Scope,
        query: Query,
        profile: RankingProfile,
        *,
        pool: CandidatePool,
        matching: NDArray[np.intp],
        trust: float,
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Those of the matching that take part, and their scores."""
        if profile == "rrf":
            return matching, in_order(len(matching))
        ranking_states = await self._ledger.ranking_states(scope, [pool.ids[i] for i in matching])
        # What was forgotten since it was indexed has none.
        matching = matching[[pool.ids[i] in ranking_states for i in matching]]
        given = [ranking_states[pool.ids[i]] for i in matching]
        near = similarity(pool, dense_trust=trust)[matching]
        weights, now = self.config.profiles, self._now()
        if profile == "linear":
            scores = linear(near, given, now=now, weights=weights)
            enough = scores >= weights.linear.minimum
            return matching[enough], scores[enough]
        features = [pool.features[i] for i in matching]
        shared = shared_emotions(query.text, np.asarray(near, np.float64), features, frozenset(query.emotions))
        return matching, associative(near, given, shared, now=now, weights=weights)

    async def _embedded(self, text: str) -> tuple[Vector | None, str]:
        try:
            return (await self._embedder.embed([text]))[0], ""
        except EmbeddingUnavailable as error:
            return None, str(error)


async def _vector_of(embedding: asyncio.Task[tuple[Vector | None, str]]) -> Vector | None:
    return (await embedding)[0]
