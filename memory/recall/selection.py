"""From ranked candidates to the memories of an answer: re-ranking, fusion of two rankings, and selection within limit
and budget, preferences first (spec L2, steps 4 to 6; spec O12; ruling 15)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import RerankerUnavailable
from madeleine.memory.index import CandidatePool
from madeleine.memory.model import LIVING, Category, Emotion, Memory, MemoryId, Scope
from madeleine.memory.recall.ports import PreferenceQuery, RecallLedger, Reranker
from madeleine.memory.rules.prompting import RecallTextFormat
from madeleine.memory.rules.ranking.budget import within_budget
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.memory.text.normalization import fold_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """`themes`: only memories with all of these. `ranking` None: the configured profile."""

    text: str
    limit: int = 3
    token_budget: int = 2000
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    emotions: tuple[Emotion, ...] = ()
    ranking: RankingProfile | None = None


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """The matches of a query before any limit. `scores`: best first, in [0, 1]. `tokens`: of all text that a recall may
    return of each. `notices`: what failed, in sentences. `meaning_off`: why only words were compared, or "". `near`:
    where nothing matched, what holds the rest of a query with unknown words."""

    scores: Mapping[MemoryId, float]
    tokens: Mapping[MemoryId, int]
    pool: CandidatePool
    meaning_off: str = ""
    notices: tuple[str, ...] = ()
    near: tuple[MemoryId, ...] = ()

    @property
    def ids(self) -> tuple[MemoryId, ...]:
        return tuple(self.scores)


async def rerank(
    reranker: Reranker, ledger: RecallLedger, scope: Scope, query: str, ranked: RankedCandidates, *, limit: int
) -> RankedCandidates:
    """Score the best `limit` candidates with a cross-encoder (spec L2, step 4). The others follow in their order, with
    scores scaled to stay below. Returns `ranked` with a notice if the model is unavailable."""
    texts = {memory.id: memory.embedded_text for memory in await ledger.memories(scope, ranked.ids[:limit])}
    if not texts:
        return ranked
    try:
        new = dict(zip(texts, await reranker.scores(query, list(texts.values())), strict=True))
    except RerankerUnavailable as error:
        return replace(ranked, notices=(*ranked.notices, f"Not re-ranked. {error}"))
    floor = min(new.values())
    order = sorted(ranked.ids, key=lambda id_: (id_ not in new, -new.get(id_, 0.0)))
    return replace(ranked, scores={id_: round(new.get(id_, floor * ranked.scores[id_]), 4) for id_ in order})


def merge_rankings(first: RankedCandidates, second: RankedCandidates) -> RankedCandidates:
    """Fuse both lists by Reciprocal Rank Fusion: scores of two queries are not comparable (spec O12)."""
    notices = tuple(dict.fromkeys((*first.notices, *second.notices)))
    if not first.scores or not second.scores:
        return replace(first if first.scores else second, notices=notices)
    return replace(
        first,
        scores={id_: round(score, 4) for id_, score in fuse_rankings_by_rrf(first.ids, second.ids)},
        tokens={**first.tokens, **second.tokens},
        meaning_off=first.meaning_off or second.meaning_off,
        notices=notices,
    )


RRF_K = 60
"""Smoothing: how much less a later place counts."""

T = TypeVar("T", bound=Hashable)


def fuse_rankings_by_rrf(*lists: Sequence[T], k: int = RRF_K) -> list[tuple[T, float]]:
    """Best first: each item with Σ 1 / (k + rank) over the lists that hold it, rank from 1, min-max normalised to
    [0, 1]; 1 for all where all are equal. Equals stand in the order in which they first come."""
    sums: dict[T, float] = {}
    for ranked in lists:
        for rank, item in enumerate(dict.fromkeys(ranked), start=1):
            sums[item] = sums.get(item, 0.0) + 1 / (k + rank)
    if not sums:
        return []
    least, most = min(sums.values()), max(sums.values())
    span = most - least
    scored = [(item, (value - least) / span if span > 0 else 1.0) for item, value in sums.items()]
    return sorted(scored, key=lambda scored_item: -scored_item[1])


NON_INFERABLE_THEME = "non-inferable"
"""The theme of memories that nobody could read out of the code or the surroundings."""
MISSING_NON_INFERABLE_THEME_ADVICE = (
    f"Recall is restricted to memories with the theme {NON_INFERABLE_THEME!r}, which this one lacks: it is kept, and "
    "not recalled. If nobody could find it out by looking at the code or the surroundings (why something was decided, "
    "what the team agreed on, why not otherwise, what other projects know), add the theme by update_memory."
)


def has_non_inferable_theme(themes: Iterable[str]) -> bool:
    return any(fold_text(theme) == NON_INFERABLE_THEME for theme in themes)


BUDGET_FILL_BATCH_MEMORIES = 10
"""Memories loaded at once where the best ones do not fit."""
WEAK_PREFERENCE_BUDGET_DIVISOR = 3
"""One part in this many of the budget is open to preferences that are not among the best matches."""
MAX_SEPARATOR_TOKENS = 2
TAG_TOKENS = 16
"""Upper bounds for any separator and any tags, used where no tokenizer counts them."""


@dataclass(frozen=True, slots=True)
class RecallSelection:
    """`text`: the memories as the answer format renders them; `tokens` of it."""

    memories: tuple[Memory, ...]
    text: str
    tokens: int


@dataclass(eq=False)
class RecallSelector:
    """Selects memories for an answer of one format. Memories that died or were absorbed since they were indexed are
    skipped; the next candidates take their place, as shorter ones do where one is too long."""

    ledger: RecallLedger
    embedder: Embedder
    answer_format: RecallTextFormat
    scope: Scope
    query: RecallQuery
    ranked: RankedCandidates
    min_importance: float = 0.0

    async def select(self) -> RecallSelection:
        ranked, query = self.ranked, self.query
        if not ranked.scores:
            return RecallSelection((), "", 0)
        loaded, preferences = await self._load_best()
        leading = [memory.id for memory in preferences]
        order = order_with_preferences_first(ranked.ids, leading, limit=query.limit)
        best = [loaded[id_] for id_ in order[: query.limit] if id_ in loaded]
        if len(best) == min(query.limit, len(order)) and self._surely_fit(best):
            selection = await self._render(best)
            if selection.tokens <= query.token_budget:
                return selection
        memories = await self._fill_budget(await self._without_long_preferences(order, loaded), loaded)
        memories.sort(key=lambda memory: memory.id not in leading)
        while (selection := await self._render(memories)).tokens > query.token_budget:
            memories.pop()
        return selection

    async def _load_best(self) -> tuple[dict[MemoryId, Memory], list[Memory]]:
        """The best matches together with the preferences, and the preferences alone."""
        query, ids = self.query, self.ranked.ids
        preferences: list[Memory] = []
        if query.limit == 1 or (query.categories and "procedural" not in query.categories):
            memories = await self.ledger.memories(self.scope, ids[: query.limit])
        else:
            preference_query = PreferenceQuery(most=query.limit, matching=ids, themes=query.themes)
            memories, preferences = await self.ledger.with_preferences(self.scope, ids[: query.limit], preference_query)
            preferences = self._recallable(preferences)
        return {memory.id: memory for memory in (*self._recallable(memories), *preferences)}, preferences

    def _recallable(self, memories: Sequence[Memory]) -> list[Memory]:
        return [
            memory
            for memory in memories
            if memory.status in LIVING and not memory.compressed and memory.importance >= self.min_importance
        ]

    def _surely_fit(self, memories: Sequence[Memory]) -> bool:
        """Whether they fit by the upper bounds that the index holds."""
        tokens = self.ranked.tokens
        if self.ranked.meaning_off and any(memory.id not in tokens for memory in memories):
            return False
        most = TAG_TOKENS + sum(tokens.get(memory.id, 0) + MAX_SEPARATOR_TOKENS for memory in memories)
        return most <= self.query.token_budget

    async def _fill_budget(self, order: Sequence[MemoryId], loaded: Mapping[MemoryId, Memory]) -> list[Memory]:
        """Take the best that fit, one after the other."""
        query = self.query
        taken: list[Memory] = []
        [used] = (
            [TAG_TOKENS] if self.ranked.meaning_off else await self.embedder.count_tokens([self.answer_format.tags])
        )
        size = max(query.limit, BUDGET_FILL_BATCH_MEMORIES)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            missing = await self.ledger.memories(self.scope, [id_ for id_ in batch if id_ not in loaded])
            known = {**loaded, **{memory.id: memory for memory in self._recallable(missing)}}
            memories = [known[id_] for id_ in batch if id_ in known]
            costs = await self._costs(memories)
            fitting = within_budget(costs, limit=query.limit - len(taken), budget=query.token_budget - used)
            taken += [memories[position] for position in fitting]
            used += sum(costs[position] for position in fitting)
            if len(taken) == query.limit or used >= query.token_budget:
                break
        return taken

    async def _without_long_preferences(
        self, order: Sequence[MemoryId], loaded: Mapping[MemoryId, Memory]
    ) -> list[MemoryId]:
        limit = self.query.limit
        best = self.ranked.ids[:limit]
        weak = [loaded[id_] for id_ in order[:limit] if id_ in loaded and id_ not in best]
        budget = self.query.token_budget // WEAK_PREFERENCE_BUDGET_DIVISOR
        fitting = within_budget(await self._costs(weak), limit=limit, budget=budget)
        too_long = {memory.id for memory in weak} - {weak[position].id for position in fitting}
        return [id_ for id_ in order if id_ not in too_long]

    async def _costs(self, memories: Sequence[Memory]) -> list[int]:
        """Tokens of each memory's entry; without the model as counted at indexing, or an upper estimate."""
        indexed = self.ranked.tokens if self.ranked.meaning_off else {}
        unknown = [memory for memory in memories if memory.id not in indexed]
        counts = await self.embedder.count_tokens([self.answer_format.render_entry(memory) for memory in unknown])
        if not self.ranked.meaning_off:
            return counts
        tokens = {**indexed, **{memory.id: count for memory, count in zip(unknown, counts, strict=True)}}
        return [tokens[memory.id] + MAX_SEPARATOR_TOKENS for memory in memories]

    async def _render(self, memories: Sequence[Memory]) -> RecallSelection:
        text = self.answer_format.render(memories)
        if not text:
            return RecallSelection(tuple(memories), "", 0)
        if self.ranked.meaning_off:
            return RecallSelection(tuple(memories), text, sum(await self._costs(memories)) + TAG_TOKENS)
        return RecallSelection(tuple(memories), text, *await self.embedder.count_tokens([text]))


def order_with_preferences_first(ranked: Sequence[T], preferences: Sequence[T], *, limit: int) -> list[T]:
    """All of `ranked`, best first, and some of `preferences`, the first ones first: in the order in which they are to
    be taken until there are `limit`.

    Preferences among the best `limit` lead, then preferences that match less, then such as do not match.
    """
    if not ranked or not preferences:
        return list(ranked)
    known = set(preferences)
    earned = [id_ for id_ in ranked[:limit] if id_ in known]
    room = max(0, limit // 2 - len(earned))
    weaker = [id_ for id_ in ranked[limit:] if id_ in known][:room]
    room = max(room - len(weaker), limit - len(ranked))
    matching = set(ranked)
    others = [id_ for id_ in preferences if id_ not in matching][: max(0, min(room, limit // 3))]
    return list(dict.fromkeys([*earned, *weaker, *others, *ranked]))
