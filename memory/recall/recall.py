"""Recall (spec P9, L2, rulings 2, 7, 8): embed, gather candidates, keep the matches, rank, fit the budget, activate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

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
    TokenCounter,
    Traits,
)
from memory.rules.budget import within_budget
from memory.rules.matching import MatchThresholds, matches
from memory.rules.prompt import prompt_line
from memory.rules.ranking import RankingWeights, blended
from memory.scope import Scope


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    depth: int = 100
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
    pool: Pool
    meaning_off: str = ""


class Recall:
    """The use case."""

    def __init__(
        self,
        ledger: RecallLedger,
        index: RecallIndex,
        embedder: Embedder,
        tokens: TokenCounter,
        activations: ActivationLog,
        *,
        now: Callable[[], datetime],
        config: RecallConfig | None = None,
    ) -> None:
        self._ledger = ledger
        self._index = index
        self._embedder = embedder
        self._tokens = tokens
        self._activations = activations
        self._now = now
        self.config = config or RecallConfig()

    async def __call__(self, scope: Scope, query: Query) -> Recalled:
        ranked = await self.rank(scope, query)
        # Some of the first may be too long for the budget: shorter ones further down take their place.
        nearest = ranked.ids[: query.limit * 4]
        memories = await self._ledger.memories(scope, nearest)
        scores = dict(zip(ranked.ids, ranked.scores, strict=True))
        memories = [memory for memory in memories if not memory.compressed]
        costs = await self._tokens.count_tokens([prompt_line(memory) for memory in memories]) if memories else []
        taken = within_budget(costs, limit=query.limit, budget=query.token_budget)
        chosen = [memories[position] for position in taken]
        now = self._now()
        self._activations.add(scope, [Activation(memory.id, 1, now) for memory in chosen])
        total = sum(costs[position] for position in taken)
        return Recalled(
            memories=tuple((memory, scores[memory.id]) for memory in chosen),
            total_tokens=total,
            budget_used=total / query.token_budget,
            meaning_off=ranked.meaning_off,
        )

    async def rank(self, scope: Scope, query: Query) -> Ranked:
        """The candidate pipeline: every match of the query in order, nothing activated."""
        vector, meaning_off = await self._vector(query.text)
        question = Question(
            words=query.text, vector=vector, statuses=LIVING, categories=query.categories, depth=self.config.depth
        )
        pool = await self._index.candidates(scope, question)
        trust = self._embedder.coverage(query.text) if vector is not None else 0.0
        matching = np.flatnonzero(matches(pool, dense_trust=trust, thresholds=self.config.thresholds))
        if not len(matching):
            return Ranked((), (), pool, meaning_off)
        traits = await self._traits(scope, pool)
        scores = blended(
            query.text,
            pool,
            traits,
            dense_trust=trust,
            emotions=frozenset(query.emotions),
            weights=self.config.weights,
        )
        order = _best_first(matching, scores)
        return Ranked(
            ids=tuple(pool.ids[i] for i in order),
            scores=tuple(round(float(scores[i]), 4) for i in order),
            pool=pool,
            meaning_off=meaning_off,
        )

    async def _vector(self, text: str) -> tuple[Vector | None, str]:
        try:
            return (await self._embedder.embed([text]))[0], ""
        except EmbeddingUnavailable as error:
            return None, str(error)

    async def _traits(self, scope: Scope, pool: Pool) -> Sequence[Traits]:
        known = await self._ledger.traits(scope, pool.ids)
        return [known.get(id_) or Traits(id_, "", (), (), 0) for id_ in pool.ids]


def _best_first(matching: NDArray[np.intp], scores: NDArray[np.float32]) -> list[int]:
    """Positions by falling score; equal scores keep the engine's order."""
    return [int(i) for i in matching[np.argsort(-scores[matching], kind="stable")]]
