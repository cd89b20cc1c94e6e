"""Recall (spec P9, L2, T7, O12, rulings 2, 7 to 9): rank the matches, reword the query if configured, select within the
budget, count the activations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import CandidateQuery, RecallIndex
from madeleine.memory.language_model import LanguageModel, ModelCostRecorder
from madeleine.memory.model import Memory, MemoryId, Scope, Vector
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.explaining import RecallExplainer, RecallExplanation
from madeleine.memory.recall.match_ranking import MatchRanker, day_of_asking
from madeleine.memory.recall.no_match import (
    RespellWords,
    rank_respelled,
    unknown_words_to_name,
    with_memories_of_named_days_near,
)
from madeleine.memory.recall.ports import MemoryReactivation, ReactivationRecorder, RecallLedger, Reranker
from madeleine.memory.recall.query_reading import query_text_for_word_search
from madeleine.memory.recall.reformulation import (
    RecallAttempt,
    metered_model_for_recall,
    reformulate_query_until_sufficient,
)
from madeleine.memory.recall.selection import (
    RankedCandidates,
    RecallQuery,
    RecallSelection,
    RecallSelector,
    is_recallable,
    rerank,
)
from madeleine.memory.rules.prompting import RECALL_LIST_RENDERER, RecallTextRenderer
from madeleine.memory.rules.storing.secrets import RedactText, redact_secrets

MIN_OMITTED_SHARE_OF_WEAKEST_SHOWN_SCORE = 0.8
"""Share of the weakest score shown from which a match beyond the limit counts as omitted. Nearly every question matches
dozens of memories a little: of 136 memories 24 lie beyond the limit (mean of 114 questions), 2.5 of them above this."""


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
    config: RecallConfig = field(default_factory=RecallConfig)
    reranker: Reranker | None = None
    costs: ModelCostRecorder | None = None
    redact: RedactText = redact_secrets
    respell: RespellWords | None = None
    """`costs` records what a language model costs. `redact` is applied to queries before a model is shown them.
    `respell`: asked only for a query that nothing matches, about words that no memory holds."""

    @cached_property
    def rank(self) -> MatchRanker:
        """Of a scope and a query, without activating anything."""
        return MatchRanker(self.ledger, self.index, self.embedder, self.config, self.now)

    async def __call__(
        self,
        scope: Scope,
        query: RecallQuery,
        renderer: RecallTextRenderer = RECALL_LIST_RENDERER,
        *,
        language: LanguageModel | None = None,
        explain: Sequence[MemoryId] | None = None,
    ) -> RecallResult:
        """`renderer`: how the memories are rendered. `language` rewords the query, where that is configured.
        `explain`: why the best candidates came or not, and these memories."""
        query = replace(query, themes=tuple(dict.fromkeys((*query.themes, *self.config.themes))))
        rank = partial(self._rank_respell_and_rerank, scope)

        def select(ranked: RankedCandidates) -> Awaitable[RecallSelection]:
            minimum = self.config.min_importance
            return RecallSelector(self.ledger, self.embedder, renderer, scope, query, ranked, minimum).select()

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
        near_misses = () if memories else (*ranked.of_named_days, *ranked.near_misses)[: query.limit]
        named = dict.fromkeys((*changes, *ranked.of_named_days, *near_misses))
        near_ids = [id_ for id_ in named if id_ is not None and id_ not in shown]
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
            unknown_words=unknown_words_to_name(query.text, ranked, day_of_asking(query, self.now)),
        )

    async def _faded_match_count(self, scope: Scope, query: RecallQuery) -> int:
        """Dead memories matching by words, at most `sparse_limit`, no absorbed or superseded ones; 0 with `as_of`."""
        if query.as_of is not None or not await self.ledger.has_dead_memories(scope):
            return 0
        words = CandidateQuery(
            words=query_text_for_word_search(query.text, day_of_asking(query, self.now)),
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
        gate = await self.rank.candidate_matcher(query, pool, None, 0.0)
        memories = await self.ledger.memories_with_ids(scope, [pool.ids[i] for i in gate.matching])
        return sum(one.status == "dead" and one.absorbed_into is None and one.truth == "current" for one in memories)

    async def _rank_respell_and_rerank(self, scope: Scope, query: RecallQuery) -> RankedCandidates:
        ranked = await self.rank(scope, query)
        rank = partial(self.rank, scope)
        if ranked.has_no_match and self.respell is not None:
            ranked = await rank_respelled(rank, self.respell, scope, query, ranked)
        ranked = await with_memories_of_named_days_near(
            self.ledger, rank, scope, query, ranked, today=self.now().date()
        )
        if self.reranker is None or not ranked.scores:
            return ranked
        return await rerank(self.reranker, self.ledger, scope, query.text, ranked, limit=self.config.rerank)


async def _no_vector() -> Vector | None:
    return None
