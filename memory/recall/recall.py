"""Recall (spec P9, L2, rulings 2, 7, 8): embed, gather candidates, keep the matches, rank, fit the budget, activate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import numpy as np

from memory.errors import EmbeddingUnavailable
from memory.model import LIVING, Category, Emotion, Memory, MemoryId, Vector
from memory.ports import (
    Activation,
    ActivationLog,
    Embedder,
    Pool,
    Question,
    RecallIndex,
    RecallLedger,
)
from memory.rules.budget import within_budget
from memory.rules.matching import MatchThresholds, matches
from memory.rules.ranking import RankingWeights, blended
from memory.scope import Scope

HEAD_START_S = 0.001
"""For the model before the index: the least that an event loop can wait, a fifth of what an embedding takes."""


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    by_words: int = 100
    by_meaning: int = 50
    """Candidates from each of the two channels."""
    thresholds: MatchThresholds = MatchThresholds()
    weights: RankingWeights = RankingWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    text: str
    limit: int = 3
    token_budget: int = 2000
    categories: tuple[Category, ...] = ()
    emotions: tuple[Emotion, ...] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """Best first. `total_tokens` of their texts; `budget_used` = total_tokens / token_budget. `meaning_off`: why only
    words were compared, or ""."""

    memories: tuple[tuple[Memory, float], ...]
    total_tokens: int
    budget_used: float
    meaning_off: str = ""


@dataclass(frozen=True, slots=True)
class Ranked:
    """The matches of a query, best first, before any limit."""

    ids: tuple[MemoryId, ...]
    scores: tuple[float, ...]
    tokens: tuple[int, ...]
    pool: Pool
    meaning_off: str = ""


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
    ) -> None:
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._activations = activations
        self._now = now
        self.config = config or RecallConfig()

    async def __call__(self, scope: Scope, query: Query) -> Recalled:
        ranked = await self.rank(scope, query)
        chosen, total = await self._within_budget(scope, query, ranked)
        now = self._now()
        self._activations.add(scope, [Activation(memory.id, 1, now) for memory in chosen])
        scores = dict(zip(ranked.ids, ranked.scores, strict=True))
        return Recalled(
            memories=tuple((memory, scores[memory.id]) for memory in chosen),
            total_tokens=total,
            budget_used=total / query.token_budget,
            meaning_off=ranked.meaning_off,
        )

    async def _within_budget(self, scope: Scope, query: Query, ranked: Ranked) -> tuple[list[Memory], int]:
        """The best that fit, with their tokens. Where one is too long, shorter ones further down take its place."""
        chosen: list[Memory] = []
        used = 0
        tokens = dict(zip(ranked.ids, ranked.tokens, strict=True))
        left = list(ranked.ids)
        while left and len(chosen) < query.limit:
            limit, budget = query.limit - len(chosen), query.token_budget - used
            positions = within_budget([tokens[id_] for id_ in left], limit=limit, budget=budget)
            taken = [left[position] for position in positions]
            # What has died or been folded into another since it was indexed is not there: the next ones take its place.
            found = await self._ledger.memories(scope, taken)
            found = [memory for memory in found if memory.status in LIVING and not memory.compressed]
            chosen += found
            used += sum(tokens[memory.id] for memory in found)
            left = [id_ for id_ in left if id_ not in taken] if taken else []
        return chosen, used

    async def rank(self, scope: Scope, query: Query) -> Ranked:
        """The candidate pipeline: every match of the query in order, nothing activated."""
        question = Question(
            words=query.text,
            statuses=LIVING,
            categories=query.categories,
            by_words=self.config.by_words,
            by_meaning=self.config.by_meaning,
        )
        embedding = asyncio.create_task(self._embedded(query.text))
        try:
            # The index keeps the interpreter busy, which the model needs until it computes: let it begin.
            await asyncio.wait({embedding}, timeout=HEAD_START_S)
            pool = await self._index.candidates(scope, question, partial(_vector_of, embedding))
            vector, meaning_off = await embedding
        finally:
            embedding.cancel()
        trust = self._embedder.coverage(query.text) if vector is not None else 0.0
        matching = np.flatnonzero(matches(pool, dense_trust=trust, thresholds=self.config.thresholds))
        if not len(matching):
            return Ranked((), (), (), pool, meaning_off)
        scores = blended(
            query.text,
            pool,
            matching,
            dense_trust=trust,
            emotions=frozenset(query.emotions),
            weights=self.config.weights,
        )
        order = np.argsort(-scores, kind="stable")  # equals keep the engine's order
        best_first = matching[order]
        return Ranked(
            ids=tuple(pool.ids[i] for i in best_first),
            scores=tuple(round(float(score), 4) for score in scores[order]),
            tokens=tuple(pool.traits[i].tokens for i in best_first),
            pool=pool,
            meaning_off=meaning_off,
        )

    async def _embedded(self, text: str) -> tuple[Vector | None, str]:
        try:
            return (await self._embedder.embed([text]))[0], ""
        except EmbeddingUnavailable as error:
            return None, str(error)


async def _vector_of(embedding: asyncio.Task[tuple[Vector | None, str]]) -> Vector | None:
    return (await embedding)[0]
