"""Which of the matches an answer gives (spec L2, steps 5 and 6): preferences first, within the token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madeleine.memory.model import LIVING, Memory, MemoryId
from madeleine.memory.ports import Embedder
from madeleine.memory.recall.ports import PreferenceQuery, RecallLedger
from madeleine.memory.recall.ranked import Query, Ranked
from madeleine.memory.rules.prompting.saying import Saying
from madeleine.memory.rules.ranking.budget import within_budget
from madeleine.memory.rules.ranking.preferences import preferences_first
from madeleine.memory.scope import Scope

AT_ONCE = 10
"""Memories that are looked at together where the best ones do not fit."""
WEAKER_SHARE = 3
"""One part in so many of the budget is open to preferences that are not among the best matches."""
PARTING_TOKENS = 2
FRAME_TOKENS = 16
"""More than any separator and any frame has: for where no tokenizer counts them."""


@dataclass(frozen=True, slots=True)
class Chosen:
    memories: tuple[Memory, ...]
    said: str
    tokens: int


class Choosing:
    """For answers of one kind. What has died or been folded into another since it was indexed is not there: the next
    ones take its place, as shorter ones do where one is too long."""

    def __init__(
        self, ledger: RecallLedger, embedder: Embedder, saying: Saying, *, min_importance: float = 0.0
    ) -> None:
        self._ledger = ledger
        self._embedder = embedder
        self._saying = saying
        self._min_importance = min_importance

    async def __call__(self, scope: Scope, query: Query, ranked: Ranked) -> Chosen:
        if not ranked.ids:
            return Chosen((), "", 0)
        known, preferred = await self._best(scope, query, ranked)
        order = preferences_first(ranked.ids, [one.id for one in preferred], limit=query.limit)
        leading = {one.id for one in preferred}
        best = [known[id_] for id_ in order[: query.limit] if id_ in known]
        if len(best) == min(query.limit, len(order)) and self._surely_fit(query, ranked, best):
            chosen = await self._counted(best, ranked)
            if chosen.tokens <= query.token_budget:
                return chosen
        taken = await self._packed(scope, query, ranked, order, known)
        taken.sort(key=lambda memory: memory.id not in leading)
        while (chosen := await self._counted(taken, ranked)).tokens > query.token_budget:
            taken.pop()
        return chosen

    async def _best(self, scope: Scope, query: Query, ranked: Ranked) -> tuple[dict[MemoryId, Memory], list[Memory]]:
        """The best that match, and the being's preferences."""
        best = ranked.ids[: query.limit]
        preferred: list[Memory] = []
        if query.limit == 1 or (query.categories and "procedural" not in query.categories):
            found = await self._ledger.memories(scope, best)
        else:
            preference_query = PreferenceQuery(most=query.limit, matching=ranked.ids, themes=query.themes)
            found, preferred = await self._ledger.with_preferences(scope, best, preference_query)
        preferred = self._alive(preferred)
        return {one.id: one for one in (*self._alive(found), *preferred)}, preferred

    def _alive(self, memories: Sequence[Memory]) -> list[Memory]:
        return [
            memory
            for memory in memories
            if memory.status in LIVING and not memory.compressed and memory.importance >= self._min_importance
        ]

    def _surely_fit(self, query: Query, ranked: Ranked, memories: Sequence[Memory]) -> bool:
        """By what the index knows of all that may be said of each."""
        tokens = dict(zip(ranked.ids, ranked.tokens, strict=True))
        if any(memory.id not in tokens for memory in memories) and ranked.meaning_off:
            return False
        most = sum(tokens.get(memory.id, 0) + PARTING_TOKENS for memory in memories) + FRAME_TOKENS
        return most <= query.token_budget

    async def _packed(
        self,
        scope: Scope,
        query: Query,
        ranked: Ranked,
        order: Sequence[MemoryId],
        known: dict[MemoryId, Memory],
    ) -> list[Memory]:
        """The best that fit, one after the other."""
        taken: list[Memory] = []
        used = await self._frame_tokens(ranked)
        order = await self._without_long_preferences(query, ranked, order, known)
        at_once = max(query.limit, AT_ONCE)
        for start in range(0, len(order), at_once):
            some = order[start : start + at_once]
            missing = [id_ for id_ in some if id_ not in known]
            found = known | {one.id: one for one in self._alive(await self._ledger.memories(scope, missing))}
            memories = [found[id_] for id_ in some if id_ in found]
            costs = await self._costs(memories, ranked)
            fitting = within_budget(costs, limit=query.limit - len(taken), budget=query.token_budget - used)
            taken += [memories[position] for position in fitting]
            used += sum(costs[position] for position in fitting)
            if len(taken) == query.limit or used >= query.token_budget:
                break
        return taken

    async def _without_long_preferences(
        self, query: Query, ranked: Ranked, order: Sequence[MemoryId], known: Mapping[MemoryId, Memory]
    ) -> list[MemoryId]:
        best = ranked.ids[: query.limit]
        weaker = [known[id_] for id_ in order[: query.limit] if id_ in known and id_ not in best]
        costs = await self._costs(weaker, ranked)
        fitting = within_budget(costs, limit=query.limit, budget=query.token_budget // WEAKER_SHARE)
        too_long = {memory.id for memory in weaker} - {weaker[position].id for position in fitting}
        return [id_ for id_ in order if id_ not in too_long]

    async def _frame_tokens(self, ranked: Ranked) -> int:
        if ranked.meaning_off:
            return FRAME_TOKENS
        return (await self._embedder.count_tokens([self._saying.frame]))[0]

    async def _costs(self, memories: Sequence[Memory], ranked: Ranked) -> list[int]:
        """Of each memory's part; without the model as they were counted when it was indexed, or an upper estimate."""
        if not ranked.meaning_off:
            return await self._embedder.count_tokens([self._saying.part(memory) for memory in memories])
        tokens = dict(zip(ranked.ids, ranked.tokens, strict=True))
        unknown = [memory for memory in memories if memory.id not in tokens]
        counts = await self._embedder.count_tokens([self._saying.part(memory) for memory in unknown])
        tokens |= dict(zip((memory.id for memory in unknown), counts, strict=True))
        return [tokens[memory.id] + PARTING_TOKENS for memory in memories]

    async def _counted(self, memories: Sequence[Memory], ranked: Ranked) -> Chosen:
        said = self._saying.whole(memories)
        if not said:
            return Chosen(tuple(memories), "", 0)
        if ranked.meaning_off:
            tokens = sum(await self._costs(memories, ranked)) + FRAME_TOKENS
        else:
            [tokens] = await self._embedder.count_tokens([said])
        return Chosen(tuple(memories), said, tokens)
