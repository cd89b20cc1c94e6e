"""Recall (spec P9, L2, T7, O12, rulings 2, 7 to 9): embed the query, gather candidates, keep the matches, rank them,
reword the query if configured, select within the budget, count the activations."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import date, datetime
from functools import cached_property, partial

import numpy as np

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import CandidatePool, CandidateQuery, RecallIndex
from madeleine.memory.language_model import LanguageModel, ModelCostRecorder
from madeleine.memory.model import ALL_MEMORY_STATUSES, LIVING_STATUSES, Memory, MemoryId, Scope, Vector
from madeleine.memory.recall.evidence import RankingEvidence
from madeleine.memory.recall.explaining import RecallExplainer, RecallExplanation
from madeleine.memory.recall.gate import CandidateMatcher
from madeleine.memory.recall.newer_first import NewerFirstRanking, put_newer_versions_before_older
from madeleine.memory.recall.no_match import (
    RespellWords,
    no_match_dated_notice,
    rank_respelled,
    unknown_words_to_name,
    with_memories_of_named_days_near,
)
from madeleine.memory.recall.ports import MemoryReactivation, ReactivationRecorder, RecallLedger, Reranker
from madeleine.memory.recall.query_reading import (
    closing_text_of_message,
    content_words_with_times_joined,
    pool_with_subject_cosines,
    restrict_query_words_of_pool,
    text_for_word_search,
    try_to_embed_query,
    with_words_of_one_time_joined,
)
from madeleine.memory.recall.reformulation import (
    QueryReformulationConfig,
    RecallAttempt,
    metered_model_for_recall,
    reformulate_query_until_sufficient,
)
from madeleine.memory.recall.scoring import (
    score_matches,
    with_matches_of_named_days_lifted,
    without_weak_companions,
)
from madeleine.memory.recall.selection import (
    RankedCandidates,
    RecallQuery,
    RecallSelection,
    RecallSelector,
    is_recallable,
    rerank,
)
from madeleine.memory.recall.true_versions import distinct_true_version_ids, read_and_find_preferences, true_version_ids
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.rules.prompting import RECALL_LIST_FORMAT, RecallTextFormat
from madeleine.memory.rules.ranking.blended import BlendedRankingWeights
from madeleine.memory.rules.ranking.matching import MatchThresholds, RecallGateOutcome, matching_and_near_positions
from madeleine.memory.rules.ranking.profiles import AllRankingProfileWeights, RankingProfile
from madeleine.memory.rules.storing.secrets import RedactText, redact_secrets
from madeleine.memory.text.calendar_questions import days_named

MIN_RECALL_CANDIDATES_PER_RESULT = 4
"""Least number of candidates from each channel for each memory to return (spec L2, step 2)."""
MIN_OMITTED_SHARE_OF_WEAKEST_SHOWN_SCORE = 0.8
"""Share of the weakest score shown from which a match beyond the limit counts as omitted. Nearly every question matches
dozens of memories a little: of 136 memories 24 lie beyond the limit (mean of 114 questions), 2.5 of them above this."""


@dataclass(frozen=True, slots=True)
class RecallConfig:
    """The frozen configuration of recall; the defaults are the measured ones."""

    sparse_limit: int = 100
    dense_limit: int = 50
    """Candidates from each of the two channels."""
    thresholds: MatchThresholds = MatchThresholds()
    weights: BlendedRankingWeights = BlendedRankingWeights()
    ranking: RankingProfile = "blended"
    profiles: AllRankingProfileWeights = AllRankingProfileWeights()
    themes: tuple[str, ...] = ()
    """Recall is restricted to memories with all of these (spec O12, the non-inferable filter)."""
    min_importance: float = 0.0
    """Less important memories are left out (spec L2); what was stored is recallable by ruling 1, hence 0."""
    rerank: int = 20
    """Best candidates that a re-ranker scores, where there is one."""
    reformulation: QueryReformulationConfig = QueryReformulationConfig()
    newer_among_near_equals: bool = True
    """ruling 24; `benchmarks/truth`."""


@dataclass(frozen=True, slots=True)
class RecallResult:
    """spec L2, ruling 15. Memories and preferences, each group best first, with their scores; a preference that only
    stands in a prompt block, and does not match, has the score 0. `text`: what the token budget was spent on,
    `total_tokens` of it; `budget_used` = total_tokens / token_budget. `words_only_reason`: why only words were
    compared, or "". `reformulated`: the rewordings that were tried as well. `omitted`: number of matches
    beyond the limit and the budget that are nearly as good as what is shown; `truncated` and `too_long` as in
    `RecallSelection`."""

    memories: tuple[tuple[Memory, float], ...]
    total_tokens: int
    budget_used: float
    preferences: tuple[tuple[Memory, float], ...] = ()
    words_only_reason: str = ""
    text: str = ""
    notices: tuple[str, ...] = ()
    reformulated: tuple[str, ...] = ()
    faded: int = 0
    """Only where fewer than `limit` matched: dead memories that hold the words of the query (ruling 19)."""
    omitted: int = 0
    truncated: tuple[MemoryId, ...] = ()
    too_long: tuple[Memory, ...] = ()
    near: tuple[Memory, ...] = ()
    unknown_words: tuple[str, ...] = ()
    """`near`: what may tell what became of a memory shown. Where nothing matched, but preferences by meaning: up to
    `limit` memories that hold the rest of the query, or are nearly alike, best first; `unknown_words`: the words of the
    query that no memory holds (ruling 19). What is near is not activated."""
    explanation: RecallExplanation | None = None


@dataclass(frozen=True, eq=False)
class RecallMemories:
    """The use case."""

    ledger: RecallLedger
    index: RecallIndex
    embedder: Embedder
    activations: ReactivationRecorder
    _: KW_ONLY
    now: Callable[[], datetime]
    config: RecallConfig = RecallConfig()
    reranker: Reranker | None = None
    costs: ModelCostRecorder | None = None
    redact: RedactText = redact_secrets
    respell: RespellWords | None = None
    """`costs` records what a language model costs. `redact` is applied to queries before a model is shown them.
    `respell`: asked only for a query that nothing matches, about words that no memory holds."""

    async def __call__(
        self,
        scope: Scope,
        query: RecallQuery,
        answer_format: RecallTextFormat = RECALL_LIST_FORMAT,
        *,
        language: LanguageModel | None = None,
        explain: Sequence[MemoryId] | None = None,
    ) -> RecallResult:
        """`answer_format`: how the memories are rendered. `language` rewords the query, where that is configured.
        `explain`: why the best candidates came or not, and these memories."""
        query = replace(query, themes=tuple(dict.fromkeys((*query.themes, *self.config.themes))))
        rank = partial(self._rank_respell_and_rerank, scope)

        def select(ranked: RankedCandidates) -> Awaitable[RecallSelection]:
            minimum = self.config.min_importance
            return RecallSelector(self.ledger, self.embedder, answer_format, scope, query, ranked, minimum).select()

        ranked = await rank(query)
        attempt = RecallAttempt(ranked, await select(ranked))
        if language is not None and self.config.reformulation.max_rounds:
            model = metered_model_for_recall(language, self.costs, scope, self.now)
            config = self.config.reformulation
            attempt = await reformulate_query_until_sufficient(
                query, attempt, model, config, rank=rank, select=select, redact=self.redact
            )
        result = await self._recall_result_of_attempt(scope, query, attempt)
        if explain is None:
            return result
        explainer = RecallExplainer(
            self.ledger,
            self.index,
            self.embedder,
            self.config.thresholds,
            scope,
            query,
            query.ranking or self.config.ranking,
            self.config.min_importance,
            attempt.ranked,
            attempt.selection,
            near=[memory.id for memory in result.near],
        )
        return replace(result, explanation=await explainer.explain(explain))

    async def _recall_result_of_attempt(self, scope: Scope, query: RecallQuery, attempt: RecallAttempt) -> RecallResult:
        ranked, selection = attempt.ranked, attempt.selection
        preferences, memories = (
            tuple((memory, ranked.scores.get(memory.id, 0.0)) for memory in group)
            for group in (selection.preferences, selection.memories)
        )
        shown = {memory.id for memory in selection.all_memories}
        changes = [ranked.possible_changes.get(memory.id) for memory, _ in memories]
        near_misses = () if memories else ranked.near_misses[: query.limit]
        near_ids = [id_ for id_ in dict.fromkeys((*changes, *near_misses)) if id_ is not None and id_ not in shown]
        near = await self.ledger.memories_with_ids(scope, near_ids) if near_ids else []
        weakest = min((score for _, score in (*preferences, *memories) if score), default=0.0)
        now, matching = self.now(), (memory for memory in selection.all_memories if memory.id in ranked.scores)
        if query.as_of is None:  # looking back wakes nothing (ruling 18)
            matching = (memory for memory in matching if memory.truth == "current")
            self.activations.add_reactivations(scope, [MemoryReactivation(memory.id, 1, now) for memory in matching])
        return RecallResult(
            memories=memories,
            preferences=preferences,
            total_tokens=selection.tokens,
            budget_used=selection.tokens / query.token_budget,
            words_only_reason=ranked.words_only_reason,
            text=selection.text,
            notices=ranked.notices,
            reformulated=attempt.rewordings,
            faded=await self._faded_match_count(scope, query) if len(memories) < query.limit else 0,
            omitted=sum(
                score >= MIN_OMITTED_SHARE_OF_WEAKEST_SHOWN_SCORE * weakest
                for id_, score in ranked.scores.items()
                if id_ not in shown and id_ not in near_ids
            ),
            truncated=selection.truncated,
            too_long=selection.too_long,
            near=tuple(memory for memory in near if is_recallable(memory, query)),
            unknown_words=unknown_words_to_name(query.text, ranked, self._today(query)),
        )

    async def _faded_match_count(self, scope: Scope, query: RecallQuery) -> int:
        """Dead memories matching by words, at most `sparse_limit`, no absorbed or superseded ones; 0 with `as_of`."""
        if query.as_of is not None or not await self.ledger.has_dead_memories(scope):
            return 0
        words = CandidateQuery(
            words=text_for_word_search(query.text, self._today(query)),
            statuses=("dead",),
            categories=query.categories,
            themes=query.themes,
            since=query.since,
            until=query.until,
            sparse_limit=self.config.sparse_limit,
        )
        try:
            pool = await self.index.candidates(scope, words, _no_vector)
        except IndexUnavailable:  # what was recalled before it failed is the answer
            return 0
        if not pool.ids:
            return 0
        gate = await self._candidate_matcher(query, pool, None, 0.0)
        memories = await self.ledger.memories_with_ids(scope, [pool.ids[i] for i in gate.matching])
        return sum(one.status == "dead" and one.absorbed_into is None and one.truth == "current" for one in memories)

    async def _rank_respell_and_rerank(self, scope: Scope, query: RecallQuery) -> RankedCandidates:
        ranked = await self.rank(scope, query)
        if ranked.has_no_match:
            rank = partial(self.rank, scope)
            if self.respell is not None:
                ranked = await rank_respelled(rank, self.respell, scope, query, ranked)
            ranked = await with_memories_of_named_days_near(rank, query, ranked, self.now().date())
        if self.reranker is None or not ranked.scores:
            return ranked
        return await rerank(self.reranker, self.ledger, scope, query.text, ranked, limit=self.config.rerank)

    async def rank(self, scope: Scope, query: RecallQuery) -> RankedCandidates:
        """Rank every match of the query; nothing is activated."""
        today = self._today(query)
        candidate_query = CandidateQuery(
            words=text_for_word_search(query.text, today),
            twice=text_for_word_search(closing_text_of_message(query.text), today),
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
            vector, reason = await embedding
        finally:
            embedding.cancel()
        trust = self.embedder.vector_space.legibility_of_text_behind_vector(vector) if vector is not None else 0.0
        gates = await self._gate_outcomes(query, pool, vector, trust)
        matching, near = matching_and_near_positions(gates)
        near_ids = [pool.ids[i] for i in near]
        if not len(matching):
            true = await true_version_ids(self.ledger, scope, query, pool, near_ids)
            near_true = dict.fromkeys(distinct_true_version_ids(near_ids, true), 0.0)
            nearest = await self._put_newer_versions_first(scope, query, near_true, pool)
            evidence = RankingEvidence(gates=gates, shown_for=true)
            return RankedCandidates({}, {}, pool, reason, near_misses=tuple(nearest.scores), evidence=evidence)
        pool = await pool_with_subject_cosines(self.index, self.embedder, query.text, pool, vector)
        profile = query.ranking or self.config.ranking
        matching, scored = await score_matches(
            self.ledger,
            scope,
            query,
            profile=profile,
            weights=self.config.weights,
            profiles=self.config.profiles,
            pool=pool,
            matching=matching,
            trust=trust,
            now=self.now(),
        )
        notices: tuple[str, ...] = ()
        if not query.has_window and (days := days_named(query.text, today)):
            ids = [pool.ids[i] for i in matching]
            scored = await with_matches_of_named_days_lifted(self.ledger, scope, scored, ids, days)
            notices = () if scored.parts["days"].any() else (no_match_dated_notice(days),)
        if profile == "blended" and gates[0].likeness is not None:
            matching, scored = without_weak_companions(query.text, pool, matching, scored)
        order = np.argsort(-scored.scores, kind="stable")  # equals keep the engine's order
        ranked = zip(matching[order], scored.scores[order], strict=True)
        best_first = [(pool.ids[i], round(float(score), 4)) for i, score in ranked]
        true = await true_version_ids(self.ledger, scope, query, pool, {*dict(best_first), *near_ids})
        shown: dict[MemoryId, float] = {}
        for id_, score in best_first:
            if (version := true.get(id_, id_)) is not None:
                shown.setdefault(version, score)
        newer = await self._put_newer_versions_first(scope, query, shown, pool)
        ordered = newer.scores
        matched = {pool.ids[i]: pool.features[i] for i in matching}
        read, preferences = await read_and_find_preferences(
            self.ledger, scope, ordered, matched=matched, true=true, read=newer.read
        )
        return RankedCandidates(
            scores=ordered,
            tokens={pool.ids[i]: pool.features[i].tokens for i in matching},
            pool=pool,
            words_only_reason=reason,
            notices=notices,
            near_misses=tuple(id_ for id_ in distinct_true_version_ids(near_ids, true) if id_ not in ordered),
            procedural=preferences,
            loaded_memories=read,
            possible_changes=newer.possible_changes,
            evidence=RankingEvidence(
                gates=gates, scored=scored, positions=matching, shown_for=true, lifted=newer.lifted
            ),
        )

    def _today(self, query: RecallQuery) -> date:
        return (query.as_of or self.now()).date()

    async def _gate_outcomes(
        self, query: RecallQuery, pool: CandidatePool, vector: Vector | None, trust: float
    ) -> tuple[RecallGateOutcome, ...]:
        """Of the query as asked, and of the end of a longer message."""
        whole = await self._candidate_matcher(query, pool, vector, trust)
        if not (end := closing_text_of_message(query.text)):
            return (whole,)
        of_end, _ = await try_to_embed_query(self.embedder, end)
        cosine = pool.cosine if of_end is None else await self.index.cosines(pool.ids, of_end)
        words = content_words_with_times_joined(end, self._today(query))
        of_words = restrict_query_words_of_pool(pool, words, cosine)
        return whole, await self._candidate_matcher(replace(query, text=end), of_words, of_end, trust)

    @cached_property
    def _candidate_matcher(self) -> CandidateMatcher:
        return CandidateMatcher(self.index, self.embedder, self.config.thresholds, frozenset(self.config.themes))

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
            pool=pool,
            only_matches=is_of_past or query.has_window,  # their time is not looked at again
            is_of_past=is_of_past,
            now=query.as_of or now,
        )


async def _no_vector() -> Vector | None:
    return None


async def _vector_from_embedding_task(embedding: asyncio.Task[tuple[Vector | None, str]]) -> Vector | None:
    return (await embedding)[0]
