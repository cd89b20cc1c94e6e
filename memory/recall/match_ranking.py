"""The matches of a query, ranked (spec L2, steps 1 to 4): embed it, gather candidates, keep what matches, score it, put
what is true now first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import Embedder
from madeleine.memory.index import CandidatePool, CandidateQuery, RecallIndex
from madeleine.memory.model import ALL_MEMORY_STATUSES, LIVING_STATUSES, MemoryId, Scope, Vector
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.evidence import RankingEvidence
from madeleine.memory.recall.gate import CandidateMatcher
from madeleine.memory.recall.newer_first import NewerFirstRanking, put_newer_versions_before_older
from madeleine.memory.recall.no_match import no_match_dated_notice
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.recall.query_reading import (
    closing_text_of_message,
    content_words_with_times_joined,
    days_planned_for,
    pool_with_subject_cosines,
    query_text_for_word_search,
    restrict_query_words_of_pool,
    try_to_embed_query,
    with_words_of_one_time_joined,
    without_unknown_words_for_the_past,
    without_unknown_words_for_times,
)
from madeleine.memory.recall.scoring import (
    score_matches,
    with_matches_of_named_days_lifted,
    without_weak_companions,
)
from madeleine.memory.recall.selection import RankedCandidates, RecallQuery
from madeleine.memory.recall.true_versions import (
    distinct_true_version_ids,
    read_and_find_preferences,
    true_version_ids,
    with_versions_asked_for,
)
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.rules.ranking.matching import RecallGateOutcome, matching_and_near_positions
from madeleine.memory.rules.ranking.score_parts import ScoredCandidates
from madeleine.memory.text.calendar_questions import days_named

MIN_RECALL_CANDIDATES_PER_RESULT = 4
"""Least number of candidates from each channel for each memory to return (spec L2, step 2)."""


def day_of_asking(query: RecallQuery, now: Callable[[], datetime]) -> date:
    """From which the query tells its times."""
    return (query.as_of or now()).date()


@dataclass(frozen=True, slots=True, eq=False)
class GatedCandidates:
    """The candidates of a query, and what of them matches. `vector`: of the query, None if it could not be embedded for
    `words_only_reason`; `trust`: how much vectors count in ranking, 0 to 1. `matching`: positions in the pool;
    `near_ids`: of what does not match and is near, best first."""

    pool: CandidatePool
    vector: Vector | None
    trust: float
    words_only_reason: str
    gates: tuple[RecallGateOutcome, ...]
    matching: NDArray[np.intp]
    near_ids: Sequence[MemoryId]


@dataclass(frozen=True, eq=False)
class MatchRanker:
    """Ranks what matches a query, for a recall and for whoever only asks for the order: nothing is activated."""

    ledger: RecallLedger
    index: RecallIndex
    embedder: Embedder
    config: RecallConfig
    now: Callable[[], datetime]

    @cached_property
    def candidate_matcher(self) -> CandidateMatcher:
        return CandidateMatcher(self.index, self.embedder, self.config.thresholds, frozenset(self.config.themes))

    async def __call__(self, scope: Scope, query: RecallQuery) -> RankedCandidates:
        """Every match of the query, best first, or else what is near."""
        gated = await self._gated_candidates(scope, query)
        if len(gated.matching):
            return await self._rank_matches(scope, query, gated)
        return await self._rank_near_misses(scope, query, gated)

    async def _gated_candidates(self, scope: Scope, query: RecallQuery) -> GatedCandidates:
        """The index is asked while the model embeds the query."""
        today = day_of_asking(query, self.now)
        candidate_query = CandidateQuery(
            words=query_text_for_word_search(query.text, today),
            twice=query_text_for_word_search(closing_text_of_message(query.text), today),
            statuses=LIVING_STATUSES if query.as_of is None else ALL_MEMORY_STATUSES,
            as_of=query.as_of,
            categories=query.categories,
            themes=tuple(dict.fromkeys((*query.themes, *self.config.themes))),
            since=query.since,
            until=query.until,
            include_compressed=query.include_compressed,
            sparse_limit=max(self.config.sparse_limit, MIN_RECALL_CANDIDATES_PER_RESULT * query.limit),
            dense_limit=max(self.config.dense_limit, MIN_RECALL_CANDIDATES_PER_RESULT * query.limit),
        )
        embedding = asyncio.create_task(try_to_embed_query(self.embedder, query.text))
        try:
            await asyncio.sleep(0)  # the model begins before the index is asked
            pool = await self.index.candidates(scope, candidate_query, partial(_vector_from_embedding_task, embedding))
            pool = with_words_of_one_time_joined(pool, query.text, today)
            if days_planned_for(query.text, today):
                pool = without_unknown_words_for_times(pool, query.text)
            pool = without_unknown_words_for_the_past(pool, query.text)
            vector, reason = await embedding
        finally:
            embedding.cancel()
        space = self.embedder.vector_space
        legible = space.legibility_of_text_behind_vector(vector) if vector is not None else 0.0
        trust = space.ranking_trust_of_text_behind_vector(vector) if vector is not None else 0.0
        gates = await self._gate_outcomes(query, pool, vector, legible)
        matching, near = matching_and_near_positions(gates)
        return GatedCandidates(pool, vector, trust, reason, gates, matching, [pool.ids[i] for i in near])

    async def _rank_near_misses(self, scope: Scope, query: RecallQuery, gated: GatedCandidates) -> RankedCandidates:
        pool = gated.pool
        true = await true_version_ids(self.ledger, scope, query, pool, gated.near_ids)
        near_true = dict.fromkeys(distinct_true_version_ids(gated.near_ids, true), 0.0)
        nearest = await self._put_newer_versions_first(scope, query, near_true, pool)
        evidence = RankingEvidence(gates=gated.gates, shown_for=true)
        near_misses = tuple(nearest.scores)
        return RankedCandidates({}, {}, pool, gated.words_only_reason, near_misses=near_misses, evidence=evidence)

    async def _rank_matches(self, scope: Scope, query: RecallQuery, gated: GatedCandidates) -> RankedCandidates:
        pool, matching, scored, notices = await self._score_matches(scope, query, gated)
        order = np.argsort(-scored.scores, kind="stable")  # equals keep the engine's order
        ranked = zip(matching[order], scored.scores[order], strict=True)
        best_first = [(pool.ids[i], round(float(score), 4)) for i, score in ranked]
        true = await true_version_ids(self.ledger, scope, query, pool, {*dict(best_first), *gated.near_ids})
        shown: dict[MemoryId, float] = {}
        matches_of: dict[MemoryId, list[MemoryId]] = {}
        for id_, score in best_first:
            if (version := true.get(id_, id_)) is not None:
                shown.setdefault(version, score)
                matches_of.setdefault(version, []).append(id_)
        newer = await self._put_newer_versions_first(scope, query, shown, pool)
        ordered = newer.scores
        matched = {pool.ids[i]: pool.features[i] for i in matching}
        read, preferences = await read_and_find_preferences(
            self.ledger, scope, ordered, matched=matched, true=true, read=newer.read
        )
        if query.as_of is None:
            read = await with_versions_asked_for(
                self.ledger, scope, query.text, pool=pool, read=read, matches_of=matches_of
            )
        return RankedCandidates(
            scores=ordered,
            tokens={pool.ids[i]: pool.features[i].tokens for i in matching},
            pool=pool,
            words_only_reason=gated.words_only_reason,
            notices=notices,
            near_misses=tuple(id_ for id_ in distinct_true_version_ids(gated.near_ids, true) if id_ not in ordered),
            procedural=preferences,
            loaded_memories=read,
            possible_changes=newer.possible_changes,
            evidence=RankingEvidence(
                gates=gated.gates, scored=scored, positions=matching, shown_for=true, lifted=newer.lifted
            ),
        )

    async def _score_matches(
        self, scope: Scope, query: RecallQuery, gated: GatedCandidates
    ) -> tuple[CandidatePool, NDArray[np.intp], ScoredCandidates, tuple[str, ...]]:
        """The pool as it is ranked, the positions of the matches in it, their scores, and notices."""
        today, profile = day_of_asking(query, self.now), query.ranking or self.config.ranking
        pool = await pool_with_subject_cosines(self.index, self.embedder, query.text, gated.pool, gated.vector)
        matching, scored = await score_matches(
            self.ledger,
            scope,
            query,
            profile=profile,
            weights=self.config.weights,
            profiles=self.config.profiles,
            pool=pool,
            matching=gated.matching,
            trust=gated.trust,
            now=self.now(),
        )
        notices: tuple[str, ...] = ()
        named = None if query.has_window else days_named(query.text, today)
        if not query.has_window and (days := named or days_planned_for(query.text, today)):
            ids = [pool.ids[i] for i in matching]
            scored = await with_matches_of_named_days_lifted(self.ledger, scope, scored, ids, days)
            notices = () if named is None or scored.parts["days"].any() else (no_match_dated_notice(named),)
        if profile == "blended" and gated.gates[0].likeness is not None:
            matching, scored = without_weak_companions(query.text, pool, matching, scored)
        return pool, matching, scored, notices

    async def _gate_outcomes(
        self, query: RecallQuery, pool: CandidatePool, vector: Vector | None, legible: float
    ) -> tuple[RecallGateOutcome, ...]:
        """Of the query as asked, and of the end of a longer message."""
        whole = await self.candidate_matcher(query, pool, vector, legible)
        if not (end := closing_text_of_message(query.text)):
            return (whole,)
        of_end, _ = await try_to_embed_query(self.embedder, end)
        cosine = pool.cosine if of_end is None else await self.index.cosines(pool.ids, of_end)
        words = content_words_with_times_joined(end, day_of_asking(query, self.now))
        of_words = restrict_query_words_of_pool(pool, words, cosine)
        return whole, await self.candidate_matcher(replace(query, text=end), of_words, of_end, legible)

    async def _put_newer_versions_first(
        self, scope: Scope, query: RecallQuery, scores: Mapping[MemoryId, float], pool: CandidatePool
    ) -> NewerFirstRanking:
        if not self.config.newer_among_near_equals:
            return NewerFirstRanking(scores)
        now = self.now()
        is_of_past = query.as_of is not None and not is_in_future(query.as_of, now)
        return await put_newer_versions_before_older(
            self.ledger,
            self.index,
            scope,
            query.text,
            scores=scores,
            pool=replace(pool, cosine=pool.cosine * self.embedder.vector_space.raw_cosine_scale),
            only_matches=is_of_past or query.has_window,  # their time is not looked at again
            is_of_past=is_of_past,
            now=query.as_of or now,
        )


async def _vector_from_embedding_task(embedding: asyncio.Task[tuple[Vector | None, str]]) -> Vector | None:
    return (await embedding)[0]
