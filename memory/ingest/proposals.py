"""Finds the memory that a new one may supersede (ruling 14). It changes nothing: an act decides."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF, WordIdfSource
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics.future_dates import have_different_future_days
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.rules.storing.similar_wording import resemblances_to_texts
from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    are_of_one_wording,
    cached_statement_for_comparison,
    differ_in_value_of_one_thing,
    shared_stems,
    states_change_of_number,
    states_change_of_old_statement,
    tells_same_numbers_without_change,
)
from madeleine.memory.rules.storing.subjects import speak_of_two_things
from madeleine.memory.rules.storing.supersession import (
    MAX_NEARNESS_BY_SHARED_WORDS,
    MAX_NEIGHBOURS_READ_FOR_SUPERSESSION,
    MAX_POSSIBLE_CHANGES_NAMED,
    MAX_SUPERSESSION_CANDIDATES_COMPARED,
    MIN_POSSIBLE_CHANGE_NEARNESS,
    MIN_POSSIBLE_CHANGE_SCORE,
    MIN_SUPERSESSION_PROPOSAL_COSINE,
    MIN_SUPERSESSION_PROPOSAL_SCORE,
    WordRarities,
    are_of_two_things,
    became_true_after,
    can_have_supersession_score,
    idf_from_memory_count,
    possible_change_nearness,
    supersession_score,
    word_rarities_from_idf,
)

logger = logging.getLogger(__name__)

MAX_TIME_FROM_PLANNING_TO_DAY = timedelta(days=366)
"""Before the day of a plan, in which something may have changed it."""


@dataclass(frozen=True, slots=True)
class SupersessionCandidates:
    """Memories that a new one may have made untrue. `proposed`: likely enough to be kept and offered as what the new
    one may supersede. If there is none, and the new one tells of a change: `possible`, what is only named to whoever
    stores, the likeliest first (ADR 74, 95), and `likely`, the one of them that it is linked to."""

    proposed: Memory | None = None
    likely: Memory | None = None
    possible: Sequence[Memory] = ()


@dataclass(frozen=True, eq=False)
class SupersessionCandidateSearch:
    """Read-only; part of a store."""

    index: WordIdfSource

    async def __call__(
        self,
        scope: Scope,
        memory: Memory,
        near: Sequence[tuple[Memory, float]],
        *,
        is_read: bool = True,
        unindexed: Collection[MemoryId] = (),
    ) -> SupersessionCandidates:
        """The earlier current memories that the new one most likely takes the place of, of those `near` with their
        cosines; none of them while the index cannot be read. `is_read`: by the model; else the wordings are compared in
        place of the cosines. `unindexed`: those that are stored together with the new one."""
        try:
            return await self._find(
                scope, memory, near if is_read else _resemblances_by_wording(memory, near), unindexed
            )
        except IndexUnavailable as error:
            logger.warning("Storing without a search for what may be superseded: %s", error)
            return SupersessionCandidates()

    async def prefetch_word_rarities(self, scope: Scope, memory: Memory, others: Sequence[Memory]) -> None:
        """Read what a search will most likely ask for, so that it is remembered. `others`: share words with the new
        memory, the most similar first. Raises `IndexUnavailable`."""
        new = cached_statement_for_comparison(memory.scene.action)
        old = [
            cached_statement_for_comparison(other.scene.action)
            for other in others[:MAX_SUPERSESSION_CANDIDATES_COMPARED]
        ]
        likely = [one for one in old if shared_stems(new, one) and can_have_supersession_score(new, one)]
        await self._word_rarities_of_statements(scope, likely, [True] * len(likely))

    async def _find(
        self, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]], unindexed: Collection[MemoryId]
    ) -> SupersessionCandidates:
        living = sorted((pair for pair in near if pair[0].status in LIVING_STATUSES), key=lambda pair: -pair[1])
        nearest = [(other, cosine) for other, cosine in living[:MAX_NEIGHBOURS_READ_FOR_SUPERSESSION] if cosine > 0]
        new = cached_statement_for_comparison(memory.scene.action)
        candidates = [
            (other, cosine, old)
            for other, cosine in nearest[:MAX_SUPERSESSION_CANDIDATES_COMPARED]
            if cosine >= MIN_SUPERSESSION_PROPOSAL_COSINE
            and _was_true_before(other, memory)
            and shared_stems(new, old := cached_statement_for_comparison(other.scene.action))
        ]
        but_for_a_value = [
            (other, old)
            for other, _, old in candidates
            if differ_in_value_of_one_thing(new, old)
            or states_change_of_number(new, old)
            or (have_different_future_days(memory, other) and states_change_of_old_statement(new, old))
        ]
        but_for_a_value = [pair for pair in but_for_a_value if not speak_of_two_things(new, pair[-1])]
        if but_for_a_value:  # several are a series, the runs of each day, unless one tells of a change of another
            changed = {other.may_supersede for other, old in but_for_a_value if new.states_change or old.states_change}
            latest = [other for other, _ in but_for_a_value if other.id not in changed]
            return SupersessionCandidates(latest[0] if len(latest) == 1 else None)
        best = None
        tells_of_change = new.states_change or new.states_correction
        best_score = MIN_POSSIBLE_CHANGE_SCORE if tells_of_change else MIN_SUPERSESSION_PROPOSAL_SCORE
        if candidates and not tells_of_change:  # one of a series changes nothing that lies farther than its fellows
            series = [
                cosine
                for other, cosine in nearest
                if other.truth == "current"
                and are_of_one_wording(new, cached_statement_for_comparison(other.scene.action))
            ]
            candidates = [candidate for candidate in candidates if candidate[1] > max(series, default=0.0)]
        candidates = [
            candidate
            for candidate in candidates
            if can_have_supersession_score(new, candidate[-1])
            and not tells_same_numbers_without_change(new, candidate[-1])
        ]
        indexed = [other.id not in unindexed for other, _, _ in candidates]
        rarities = await self._word_rarities_of_statements(scope, [old for _, _, old in candidates], indexed)
        for (other, cosine, old), rarity in zip(candidates, rarities, strict=True):
            cosines = [cosine for neighbour, cosine in nearest if neighbour is not other]
            score = supersession_score(new, old, cosine=cosine, other_cosines=cosines, rarity=rarity)
            if score > best_score:
                best, best_score = other, score
        if best_score > MIN_SUPERSESSION_PROPOSAL_SCORE or not tells_of_change:
            return SupersessionCandidates(best)
        earlier = [pair for pair in living if _was_true_before(pair[0], memory) or _was_planned_before(pair[0], memory)]
        possible = await self._possible_changes(scope, new, earlier)
        return SupersessionCandidates(likely=best, possible=_with_first(best, possible)[:MAX_POSSIBLE_CHANGES_NAMED])

    async def _possible_changes(
        self, scope: Scope, new: StatementForComparison, earlier: Sequence[tuple[Memory, float]]
    ) -> list[Memory]:
        """Of `earlier`, with their cosines, what the new one may have changed, the nearest first."""
        read = [(*pair, cached_statement_for_comparison(pair[0].scene.action)) for pair in earlier]
        compared = [
            (other, cosine, old)
            for other, cosine, old in read
            if cosine + MAX_NEARNESS_BY_SHARED_WORDS >= MIN_POSSIBLE_CHANGE_NEARNESS
            and can_have_supersession_score(new, old)
        ]
        statements = [old for *_, old in compared]
        rarities = await self._word_rarities_of_statements(scope, statements, [True] * len(statements))
        nearness = {
            other.id: possible_change_nearness(new, old, cosine=cosine, rarity=rarity)
            for (other, cosine, old), rarity in zip(compared, rarities, strict=True)
        }
        near = [
            other
            for other, _, old in compared
            if nearness[other.id] >= MIN_POSSIBLE_CHANGE_NEARNESS and not are_of_two_things(new, old)
        ]
        return sorted(near, key=lambda other: -nearness[other.id])

    async def _word_rarities_of_statements(
        self, scope: Scope, statements: Sequence[StatementForComparison], indexed: Sequence[bool]
    ) -> list[WordRarities]:
        """Of each statement's words that the index has; of a statement that is not `indexed` yet, of all of them, as if
        it were. A word that no memory has is as rare as a word can be."""
        if not statements:
            return []
        words = list({word for statement in statements for word in statement.content_words_by_stem.values()})
        *values, greatest = await self.index.idf(scope, [*words, NONSENSE_WORD_FOR_MAX_IDF])
        idf = dict(zip(words, values, strict=True))
        in_one_memory = idf_from_memory_count(1, greatest)
        return [
            word_rarities_from_idf(
                {
                    stem: min(idf[word], in_one_memory)
                    for stem, word in statement.content_words_by_stem.items()
                    if idf[word] > 0 and (idf[word] < greatest or not is_indexed)
                },
                greatest,
            )
            for statement, is_indexed in zip(statements, indexed, strict=True)
        ]


def _can_be_superseded(other: Memory) -> bool:
    return other.truth == "current" and not other.compressed


def _was_true_before(other: Memory, memory: Memory) -> bool:
    return _can_be_superseded(other) and became_true_after(memory, other)


def _was_planned_before(other: Memory, memory: Memory) -> bool:
    """What was planned when it was stored was told before, though the new one may have the day on which it was told."""
    is_plan = _can_be_superseded(other) and is_in_future(other.happened_at, other.created_at)
    return is_plan and timedelta() < other.happened_at - memory.happened_at < MAX_TIME_FROM_PLANNING_TO_DAY


def _with_first(first: Memory | None, memories: Sequence[Memory]) -> list[Memory]:
    return [*([first] if first else []), *(one for one in memories if first is None or one.id != first.id)]


def _resemblances_by_wording(memory: Memory, near: Sequence[tuple[Memory, float]]) -> list[tuple[Memory, float]]:
    others = [other for other, _ in near]
    texts = [other.scene.action for other in others]
    return list(zip(others, resemblances_to_texts(memory.scene.action, texts, [None] * len(others)), strict=True))
