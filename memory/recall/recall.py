"""Recall (spec P9, L2, rulings 2, 7, 8): embed, gather candidates, keep the matches, rank, fit the budget, activate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

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
    TokenCounter,
    Traits,
)
from memory.rules.budget import within_budget
from memory.rules.matching import MatchThresholds, matches
from memory.rules.prompt import prompt_line
from memory.rules.ranking import RankingWeights, blended
from memory.scope import Scope

LOOK_FURTHER = 4
"""Times the limit: how far down memories are looked at when some do not fit the budget (spec L2)."""


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    depth: int = 50
    """Candidates from each of the two channels; 20 to 200 differ by at most 0.2 points of nDCG@10."""
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
        looked_at = ranked.ids[: query.limit * LOOK_FURTHER]
        while looked_at and len(chosen) < query.limit:
            next_, looked_at = looked_at[: query.limit - len(chosen)], looked_at[query.limit - len(chosen) :]
            memories = [memory for memory in await self._ledger.memories(scope, next_) if not memory.compressed]
            costs = await self._tokens.count_tokens([prompt_line(memory) for memory in memories]) if memories else []
            taken = within_budget(costs, limit=query.limit - len(chosen), budget=query.token_budget - used)
            chosen += [memories[position] for position in taken]
            used += sum(costs[position] for position in taken)
        return chosen, used

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
        scores = blended(
            query.text,
            pool,
            matching,
            await self._traits(scope, [pool.ids[i] for i in matching]),
            dense_trust=trust,
            emotions=frozenset(query.emotions),
            weights=self.config.weights,
        )
        order = np.argsort(-scores, kind="stable")  # equals keep the engine's order
        return Ranked(
            ids=tuple(pool.ids[i] for i in matching[order]),
            scores=tuple(round(float(score), 4) for score in scores[order]),
            pool=pool,
            meaning_off=meaning_off,
        )

    async def _vector(self, text: str) -> tuple[Vector | None, str]:
        try:
            return (await self._embedder.embed([text]))[0], ""
        except EmbeddingUnavailable as error:
            return None, str(error)

    async def _traits(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Traits]:
        known = await self._ledger.traits(scope, ids)
        return [known.get(id_) or Traits(id_, "", (), (), 0) for id_ in ids]
