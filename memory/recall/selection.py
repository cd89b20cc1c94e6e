"""From ranked candidates to the memories of an answer: re-ranking, and selection within limit and budget, with
preferences as a group of their own (spec L2, steps 4 to 6; ruling 15)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import RerankerUnavailable
from madeleine.memory.index import CandidatePool
from madeleine.memory.model import LIVING_STATUSES, Category, Emotion, Memory, MemoryId, Scene, Scope
from madeleine.memory.recall.evidence import RankingEvidence
from madeleine.memory.recall.ports import RecallLedger, Reranker
from madeleine.memory.rules.dynamics.truth import was_told_before_survivor, was_true_at
from madeleine.memory.rules.dynamics.windows import has_date_in_window
from madeleine.memory.rules.prompting import RECALL_LIST_RENDERER, RecallTextRenderer
from madeleine.memory.rules.ranking.blended import analyse_query, asks_for_everything_of_a_kind
from madeleine.memory.rules.ranking.budget import positions_within_token_budget, result_count_when_no_limit_is_set
from madeleine.memory.rules.ranking.profiles import RankingProfile
from madeleine.memory.rules.searching import ELLIPSIS
from madeleine.memory.text.normalization import fold_text


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """`max_limit`: where more than `limit`, up to so many memories as match nearly as well as the best one, or as fit
    if the query asks for a list (`result_count_when_no_limit_is_set`). `themes`: only memories with all of these.
    `since`, `until`: only what has a date between these. `include_compressed`: also what a summary stands for (spec
    L3). `ranking` None: the configured profile."""

    text: str
    limit: int = 3
    max_limit: int = 0
    token_budget: int = 2000
    categories: tuple[Category, ...] = ()
    themes: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    include_compressed: bool = False
    emotions: tuple[Emotion, ...] = ()
    ranking: RankingProfile | None = None
    as_of: datetime | None = None
    """What was true then, faded memories included, instead of what is true now (ruling 14)."""
    counts_tokens: bool = True
    """Else the tokens of an answer that surely fits are an upper bound."""

    @property
    def has_window(self) -> bool:
        """Whether only what is dated to a window of time is asked for."""
        return self.since is not None or self.until is not None


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """The matches of a query before any limit. `scores`: best first, in [0, 1]. `tokens`: of all text that a recall may
    return of each. `notices`: what failed, in sentences. `words_only_reason`: why only words were compared, or "".
    `near_misses`: what does not match and is near, best first. `of_named_days`: what is near as it is dated to the days
    that the query names. `procedural`: the procedural ones among the matches.
    `loaded_memories`: memories that were read for the ranking. `possible_changes`: as in `NewerFirstRanking`."""

    scores: Mapping[MemoryId, float]
    tokens: Mapping[MemoryId, int]
    pool: CandidatePool
    words_only_reason: str = ""
    notices: tuple[str, ...] = ()
    near_misses: tuple[MemoryId, ...] = ()
    of_named_days: tuple[MemoryId, ...] = ()
    procedural: frozenset[MemoryId] = frozenset()
    loaded_memories: Mapping[MemoryId, Memory] = field(default_factory=dict)
    possible_changes: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    evidence: RankingEvidence | None = None
    rescored_by: str = ""
    """What has replaced the scores since: "reranker" or "fusion"."""

    @property
    def ids(self) -> tuple[MemoryId, ...]:
        return tuple(self.scores)

    @property
    def has_no_match(self) -> bool:
        """Whether the gate let nothing through, or only preferences by meaning."""
        return self.scores.keys() <= self.procedural and bool(self.near_misses or not self.scores)


async def rerank(
    reranker: Reranker, ledger: RecallLedger, scope: Scope, query: str, ranked: RankedCandidates, *, limit: int
) -> RankedCandidates:
    """Score the best `limit` candidates with a cross-encoder (spec L2, step 4). The others follow in their order, with
    scores scaled to stay below. Returns `ranked` with a notice if the model is unavailable."""
    texts = {memory.id: memory.embedded_text for memory in await ledger.memories_with_ids(scope, ranked.ids[:limit])}
    if not texts:
        return ranked
    try:
        new = dict(zip(texts, await reranker.scores(query, list(texts.values())), strict=True))
    except RerankerUnavailable as error:
        return replace(ranked, notices=(*ranked.notices, f"Not re-ranked. {error}"))
    floor = min(new.values())
    order = sorted(ranked.ids, key=lambda id_: (id_ not in new, -new.get(id_, 0.0)))
    scores = {id_: round(new.get(id_, floor * ranked.scores[id_]), 4) for id_ in order}
    return replace(ranked, scores=scores, rescored_by="reranker")


NON_INFERABLE_MEMORIES_THEME_NAME = "non-inferable"
"""The theme of memories that nobody could read out of the code or the surroundings."""
ADVICE_ON_MEMORY_LACKING_RECALLED_THEME = (
    f"Recall is restricted to memories with the theme {NON_INFERABLE_MEMORIES_THEME_NAME!r}, which this one lacks: "
    "it is kept, and not recalled. If nobody could find it out by looking at the code or the surroundings (why "
    "something was decided, what the team agreed on, why not otherwise, what other projects know), add the theme by "
    "update_memory."
)


def is_tagged_non_inferable(themes: Iterable[str]) -> bool:
    return any(fold_text(theme) == NON_INFERABLE_MEMORIES_THEME_NAME for theme in themes)


BUDGET_FILL_BATCH_MEMORIES = 10
"""Memories loaded at once where the best ones do not fit."""
PREFERENCE_BUDGET_DIVISOR = 4
"""One part in this many of the budget is open to preferences (ruling 15)."""
TEXT_SHORTENING_FACTOR_PER_STEP = 0.8
MIN_SHORTENED_MEMORY_CHARS = 20
"""A memory too long for the budget is cut in such steps, and to no less than this."""
MAX_SEPARATOR_TOKENS = 2
MAX_ENCLOSING_TAG_TOKENS = 16
"""Upper bounds for any separator and any tags, used where no tokenizer counts them."""


@dataclass(frozen=True, slots=True)
class RecallSelection:
    """`preferences`: a group of their own, those that match first. `text`: the memories as the answer format
    renders them; `tokens`: of it, and of preferences that stand beside it. `truncated`: whose text is cut to fit;
    `too_long`: among the best `limit`, left out by the budget (ruling 19)."""

    memories: tuple[Memory, ...] = ()
    preferences: tuple[Memory, ...] = ()
    text: str = ""
    tokens: int = 0
    truncated: tuple[MemoryId, ...] = ()
    too_long: tuple[Memory, ...] = ()

    @property
    def all_memories(self) -> tuple[Memory, ...]:
        return *self.preferences, *self.memories


def is_recallable(memory: Memory, query: RecallQuery) -> bool:
    """Whether a recall may return a memory: living and current, or, as of an earlier time, true then. Of a window of
    time also a superseded one, and only what has a date in it. The index may not have taken in the last change yet."""
    if not has_date_in_window(memory, query.since, query.until):
        return False
    if query.as_of is not None:
        return memory.absorbed_into is None and was_true_at(memory, query.as_of)
    shown = ("current", "superseded") if query.has_window else ("current",)
    return memory.status in LIVING_STATUSES and memory.truth in shown


@dataclass(eq=False)
class RecallSelector:
    """Selects memories for an answer of one format. Memories that died since they were indexed, or were absorbed
    before the time asked for, are skipped; the next candidates take their place, as shorter ones do where one is too
    long.

    Preferences that match are taken beside the limit, at most as many again, and at most a quarter of the budget
    (ruling 15); where only preferences are asked for, the whole budget is theirs. One that is disabled in the profile
    is not recalled.
    """

    ledger: RecallLedger
    embedder: Embedder
    renderer: RecallTextRenderer
    scope: Scope
    query: RecallQuery
    ranked: RankedCandidates
    min_importance: float = 0.0

    async def select(self) -> RecallSelection:
        if not self.ranked.scores:
            return RecallSelection()
        query = self.query
        preferences = await self._preferences_within_budget_share(await self._load_preferences())
        order, limit = self._non_preference_ids_best_first, self._max_memory_count(preferences)
        loaded = await self._load_recallable(order[:limit])
        best = [loaded[id_] for id_ in order[:limit] if id_ in loaded]
        if len(best) == min(limit, len(order)) and self._surely_fit(
            chosen := [*preferences, *best], query.token_budget
        ):
            tokens = None if query.counts_tokens else self._max_tokens(chosen)
            selection = await self._render_selection(best, preferences, tokens)
            if selection.tokens <= query.token_budget:
                return selection
        costs = await self._token_costs(preferences)
        budget = query.token_budget - await self._enclosing_tag_token_count() - sum(costs)
        memories = await self._fill_budget(order, loaded, budget, limit=limit)
        shortened = await self._memory_shortened_to_budget(best[0], budget) if best and not memories else None
        if shortened is not None:
            memories = [shortened]
        while (selection := await self._render_selection(memories, preferences)).tokens > query.token_budget:
            (memories or preferences).pop()
        shown = {memory.id for memory in selection.memories}
        return replace(
            selection,
            truncated=() if shortened is None else tuple(shown),
            too_long=tuple(memory for memory in best if memory.id not in shown),
        )

    @cached_property
    def _non_preference_ids_best_first(self) -> Sequence[MemoryId]:
        return [id_ for id_ in self.ranked.ids if id_ not in self.ranked.procedural]

    def _max_memory_count(self, preferences: Sequence[Memory]) -> int:
        """How many memories the answer holds at most, beside these preferences."""
        query, ranked = self.query, self.ranked
        if query.max_limit <= query.limit:
            return query.limit
        scored = [
            (ranked.scores[id_], ranked.tokens.get(id_, 0))
            for id_ in self._non_preference_ids_best_first[: query.max_limit]
        ]
        best = max((ranked.scores.get(memory.id, 0.0) for memory in preferences), default=0.0)
        return result_count_when_no_limit_is_set(
            scored, least=query.limit, best=best, whole_list=asks_for_everything_of_a_kind(analyse_query(query.text))
        )

    async def _memory_shortened_to_budget(self, memory: Memory, budget: int) -> Memory | None:
        """The memory with the beginning of its action, as much as fits; None if next to nothing fits, or no tokenizer
        counts. Its feeling, lesson and timeline are left out where they would take half of the budget."""
        if self.ranked.words_only_reason:
            return None
        action = memory.scene.action
        [beside] = await self._token_costs([replace(memory, scene=replace(memory.scene, action=ELLIPSIS))])
        if 2 * beside > budget:
            bare = Scene(action=action, when=tuple(item for item in memory.scene.when if isinstance(item, str))[:1])
            memory = replace(memory, feeling="", lesson="", scene=bare)
        chars = len(action)
        while (chars := int(chars * TEXT_SHORTENING_FACTOR_PER_STEP)) >= MIN_SHORTENED_MEMORY_CHARS:
            part = action[:chars].rsplit(maxsplit=1)[0] if " " in action[:chars] else action[:chars]
            cut = replace(memory, scene=replace(memory.scene, action=f"{part} {ELLIPSIS}"))
            [cost] = await self._token_costs([cut])
            if cost <= budget:
                return cut
        return None

    async def _load_preferences(self) -> list[Memory]:
        """The best of those that match; for a prompt block then such as do not (spec L2: "always include")."""
        ranked, query = self.ranked, self.query
        standing = self.renderer.preferences == "standing" and not (query.categories or query.themes)
        if not ranked.procedural and not standing:
            return []
        matching = [id_ for id_ in ranked.ids if id_ in ranked.procedural]
        preferences = await self.ledger.preferences(
            self.scope, matching_ids=matching, limit=query.limit, include_standing=standing
        )
        return await self._keep_recallable(preferences)

    async def _load_recallable(self, ids: Sequence[MemoryId]) -> dict[MemoryId, Memory]:
        """Those of these memories that can be recalled."""
        memories = {id_: self.ranked.loaded_memories[id_] for id_ in ids if id_ in self.ranked.loaded_memories}
        if missing := [id_ for id_ in ids if id_ not in memories]:
            memories |= {memory.id: memory for memory in await self.ledger.memories_with_ids(self.scope, missing)}
        return {memory.id: memory for memory in await self._keep_recallable(memories.values())}

    async def _keep_recallable(self, memories: Collection[Memory]) -> list[Memory]:
        told = await self._absorbed_ids_known_before_survivors(memories)
        return [
            memory
            for memory in memories
            if (memory.id in told or is_recallable(memory, self.query)) and self._passes_filters(memory)
        ]

    async def _absorbed_ids_known_before_survivors(self, memories: Iterable[Memory]) -> set[MemoryId]:
        """As of a time before their survivors, merged memories are what was known (ruling 14)."""
        if (as_of := self.query.as_of) is None:
            return set()
        absorbed = [(memory, memory.absorbed_into) for memory in memories if memory.absorbed_into]
        ids = [*dict.fromkeys(survivor for _, survivor in absorbed)]
        survivors = (
            {memory.id: memory for memory in await self.ledger.memories_with_ids(self.scope, ids)} if ids else {}
        )
        return {
            memory.id
            for memory, survivor in absorbed
            if survivor in survivors and was_told_before_survivor(memory, survivors[survivor], as_of)
        }

    def _passes_filters(self, memory: Memory) -> bool:
        """The current version may have other categories and themes than the version that matched."""
        query = self.query
        themes = {fold_text(theme) for theme in memory.themes}
        return (
            (query.include_compressed or not memory.compressed)
            and memory.importance >= self.min_importance
            and (not query.categories or memory.category in query.categories)
            and themes.issuperset(map(fold_text, query.themes))
        )

    async def _preferences_within_budget_share(self, preferences: list[Memory]) -> list[Memory]:
        """Those that fit into the share of the budget that preferences have."""
        only_preferences = self.query.categories == ("procedural",)
        share = self.query.token_budget // (1 if only_preferences else PREFERENCE_BUDGET_DIVISOR)
        if self._surely_fit(preferences, share):
            return preferences
        costs = await self._token_costs(preferences)
        fitting = positions_within_token_budget(
            costs, limit=self.query.limit, budget=share - await self._enclosing_tag_token_count()
        )
        return [preferences[position] for position in fitting]

    def _surely_fit(self, memories: Sequence[Memory], budget: int) -> bool:
        """Whether they fit by the upper bounds that the index holds."""
        return all(memory.id in self.ranked.tokens for memory in memories) and self._max_tokens(memories) <= budget

    def _max_tokens(self, memories: Sequence[Memory]) -> int:
        each = (self.ranked.tokens[memory.id] + MAX_SEPARATOR_TOKENS for memory in memories)
        return MAX_ENCLOSING_TAG_TOKENS + sum(each)

    async def _fill_budget(
        self, order: Sequence[MemoryId], loaded: Mapping[MemoryId, Memory], budget: int, *, limit: int
    ) -> list[Memory]:
        """Take the best that fit, one after the other."""
        taken: list[Memory] = []
        size = max(limit, BUDGET_FILL_BATCH_MEMORIES)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            known = {**loaded, **await self._load_recallable([id_ for id_ in batch if id_ not in loaded])}
            memories = [known[id_] for id_ in batch if id_ in known]
            costs = await self._token_costs(memories)
            fitting = positions_within_token_budget(costs, limit=limit - len(taken), budget=budget)
            taken += [memories[position] for position in fitting]
            budget -= sum(costs[position] for position in fitting)
            if len(taken) == limit or budget <= 0:
                break
        return taken

    async def _enclosing_tag_token_count(self) -> int:
        if self.ranked.words_only_reason:
            return MAX_ENCLOSING_TAG_TOKENS
        [tokens] = await self.embedder.count_tokens([self.renderer.empty_tags])
        return tokens

    async def _token_costs(self, memories: Sequence[Memory]) -> list[int]:
        """Tokens of each memory's entry; without the model as counted at indexing, or an upper estimate."""
        indexed = self.ranked.tokens if self.ranked.words_only_reason else {}
        unknown = [memory for memory in memories if memory.id not in indexed]
        counts = await self.embedder.count_tokens([self.renderer.render_entry(memory) for memory in unknown])
        if not self.ranked.words_only_reason:
            return counts
        tokens = {**indexed, **{memory.id: count for memory, count in zip(unknown, counts, strict=True)}}
        return [tokens[memory.id] + MAX_SEPARATOR_TOKENS for memory in memories]

    async def _render_selection(
        self, memories: Sequence[Memory], preferences: Sequence[Memory], tokens: int | None = None
    ) -> RecallSelection:
        inside, beside = ((), preferences) if self.renderer.preferences == "none" else (preferences, ())
        text = self.renderer.render([*inside, *memories])
        if not text and not beside:
            tokens = 0
        elif tokens is None and self.ranked.words_only_reason:
            tokens = sum(await self._token_costs([*preferences, *memories])) + MAX_ENCLOSING_TAG_TOKENS
        elif tokens is None:
            tokens = sum(await self.embedder.count_tokens([text, *map(RECALL_LIST_RENDERER.render_entry, beside)]))
        return RecallSelection(tuple(memories), tuple(preferences), text, tokens)
