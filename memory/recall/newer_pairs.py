"""Pairs of a newer and an older memory, compared for a question: does the newer one tell what became of the older one
(ruling 24)?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import permutations, product

from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF, CandidatePool, RecallIndex
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import PossibleNewerVersionPair
from madeleine.memory.rules.dynamics.future_dates import future_start_of_replacement
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.rules.ranking.near_equals import (
    MIN_SCORE_OF_CHANGE_OF_DECIDED_VERSION,
    MemoryMatchToQuestion,
    MemoryPairRelationFlags,
    are_short_statements_without_questions,
    is_answered_only_by_older_statement,
    newer_names_other_bearer_of_first_name,
    newer_replaces_older_score,
    newer_speaks_of_another_thing_than_asked,
    question_mentions_only_older_statement,
    question_repeats_only_older_statement,
)
from madeleine.memory.rules.ranking.turns import is_turn_of_conversation
from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    cached_statement_for_comparison,
    shared_stems,
    tells_of_other_thing_in_one_wording,
)
from madeleine.memory.rules.storing.supersession import (
    became_true_after,
    idf_from_memory_count,
    word_rarities_from_idf,
)


@dataclass(frozen=True)
class NewerAndOlderMemory:
    newer: Memory
    older: Memory
    link: MemoryPairRelationFlags

    @property
    def ids(self) -> tuple[MemoryId, MemoryId]:
        return self.newer.id, self.older.id

    @property
    def is_declared_supersession(self) -> bool:
        """Whoever stored it said that it would take the place of the older one from a day that has come."""
        return _is_declared_supersession(self.newer, is_proposed=self.link.is_proposed)

    @cached_property
    def shared_words_by_stem(self) -> Mapping[str, str]:
        """Content words of the older one that both have, by their stems."""
        new, old = (cached_statement_for_comparison(one.scene.action) for one in (self.newer, self.older))
        return {stem: old.content_words_by_stem[stem] for stem in shared_stems(new, old)}


@dataclass(frozen=True, slots=True)
class ComparedPairs:
    """`newer_versions`: the newer one probably tells what became of the older. `others`: probably not, yet the older
    one is not all that is asked for. `unrelated`: (newer, older) that speak of two things."""

    newer_versions: Sequence[NewerAndOlderMemory]
    others: Sequence[NewerAndOlderMemory]
    unrelated: Set[tuple[MemoryId, MemoryId]]

    def doubtful_by_older_id(self, scores: Mapping[MemoryId, float], now: datetime) -> dict[MemoryId, list[MemoryId]]:
        """Of what does not match by itself, was only proposed, and is no plan."""
        doubtful: defaultdict[MemoryId, list[MemoryId]] = defaultdict(list)
        for pair in self.others:
            if pair.newer.id not in scores and not future_start_of_replacement(pair.older, pair.newer, now):
                doubtful[pair.older.id].append(pair.newer.id)
        return doubtful


def compare_pairs(
    asked: StatementForComparison,
    matches: Mapping[MemoryId, MemoryMatchToQuestion],
    pairs: Sequence[NewerAndOlderMemory],
    rarities: Sequence[float],
) -> ComparedPairs:
    """`rarities`: of each pair, that of the rarest word that both have."""
    is_read = any(match.cosine for match in matches.values())
    proposed = {pair.newer.id: pair.newer.may_supersede for pair in pairs}
    newer_versions, others, unrelated = [], [], set()
    for pair, rarest in zip(pairs, rarities, strict=True):
        newer, older = matches[pair.newer.id], matches[pair.older.id]
        texts = (newer.statement, older.statement)
        is_of_other_thing = question_repeats_only_older_statement(
            asked, *texts
        ) or newer_names_other_bearer_of_first_name(asked.text, *(one.text for one in texts))
        speaks_of_other_thing = not pair.is_declared_supersession and any(
            newer_speaks_of_another_thing_than_asked(asked, *told)
            for told in product(*(_statements_of_versions(one) for one in (pair.newer, pair.older)))
        )
        if speaks_of_other_thing or (is_of_other_thing and not _supersedes_by_proposals(pair, proposed)):
            unrelated.add(pair.ids)
            continue
        is_answered_by_older = is_answered_only_by_older_statement(asked, *texts)
        if is_answered_by_older and not pair.link.is_proposed and question_mentions_only_older_statement(asked, *texts):
            unrelated.add(pair.ids)
        if pair.is_declared_supersession:
            is_newer_version = not is_answered_by_older
        else:
            score = newer_replaces_older_score(
                newer,
                older,
                pair.link,
                rarest_shared_word=rarest,
                is_answered_only_by_older=is_answered_by_older,
                is_read=is_read,
            )
            matches_less = newer.strength < older.strength and not pair.link.is_proposed
            is_decided = bool(pair.older.before) and not pair.link.is_proposed
            least = MIN_SCORE_OF_CHANGE_OF_DECIDED_VERSION if is_decided else 0.0
            is_newer_version = score > least and not (matches_less and tells_of_other_thing_in_one_wording(*texts))
        if is_newer_version:
            newer_versions.append(pair)
        elif not is_answered_by_older:
            others.append(pair)
    undeclared_proposals = {pair.ids for pair in pairs if pair.link.is_proposed and not pair.is_declared_supersession}
    return ComparedPairs(
        newer_versions, others, _unrelated_pairs_closed_over_proposals(unrelated, undeclared_proposals)
    )


def _statements_of_versions(memory: Memory) -> list[StatementForComparison]:
    """Of what it tells, and of what it took the place of."""
    return [cached_statement_for_comparison(text) for text in (memory.scene.action, memory.before) if text]


def pairs_to_compare(
    memories: Mapping[MemoryId, Memory], scores: Mapping[MemoryId, float], links: Sequence[PossibleNewerVersionPair]
) -> Iterator[NewerAndOlderMemory]:
    """Each of the matches with what was told later, is one of them and shares a word with it, and each memory with what
    was proposed to supersede it. Two turns of conversations are compared only where proposals join them: a later turn
    goes on, and seldom takes the place of an earlier one."""
    chains = _proposal_group_id_by_memory_id(memories.values())
    proposed = {(link.newer, link.older) for link in links if link.is_proposed}
    told = {id_: cached_statement_for_comparison(memory.scene.action) for id_, memory in memories.items()}
    turns = {id_ for id_, memory in memories.items() if is_turn_of_conversation(memory)}
    for older, newer in permutations(memories.values(), 2):
        is_proposed, is_joined = (newer.id, older.id) in proposed, chains[newer.id] == chains[older.id]
        both_match = newer.id in scores and older.id in scores
        if both_match and not _is_declared_supersession(newer, is_proposed=is_proposed):
            statements = told[newer.id], told[older.id]
            share_words = is_joined or (not {newer.id, older.id} <= turns and shared_stems(*statements))
            if not (share_words and are_short_statements_without_questions(*statements)):
                continue
        elif not is_proposed:
            continue
        if not became_true_after(newer, older):
            continue
        link = MemoryPairRelationFlags(
            is_proposed=is_proposed,
            joined_by_proposals=is_joined,
            resembles=newer.resembles == older.id,
            is_event_after_fact=_is_past_event(newer) and older.category != "episodic",
        )
        yield NewerAndOlderMemory(newer, older, link)


def _is_declared_supersession(newer: Memory, *, is_proposed: bool) -> bool:
    return is_proposed and newer.valid_from is not None


def _supersedes_by_proposals(pair: NewerAndOlderMemory, proposed: Mapping[MemoryId, MemoryId | None]) -> bool:
    """Whether the newer one was proposed to supersede the older one, or what was itself proposed to. `proposed`: what
    each memory may supersede; two plans may name each other."""
    seen, earlier = {pair.newer.id}, proposed.get(pair.newer.id)
    while earlier and earlier != pair.older.id and earlier not in seen:
        seen.add(earlier)
        earlier = proposed.get(earlier)
    return earlier == pair.older.id


def _is_past_event(memory: Memory) -> bool:
    return memory.category == "episodic" and not is_in_future(memory.happened_at, memory.created_at)


def _unrelated_pairs_closed_over_proposals(
    unrelated: set[tuple[MemoryId, MemoryId]], proposed: Set[tuple[MemoryId, MemoryId]]
) -> set[tuple[MemoryId, MemoryId]]:
    """The (newer, older) that speak of two things, and (middle, older) for each middle one that the newer was proposed
    to supersede. Else the middle one would be put first, and the newer, which follows it, stay behind."""
    while (
        found := {
            (middle, older)
            for newer, middle in proposed
            for other, older in unrelated
            if other == newer and middle != older
        }
        - unrelated
    ):
        unrelated = unrelated | found
    return unrelated


def _proposal_group_id_by_memory_id(memories: Collection[Memory]) -> dict[MemoryId, MemoryId]:
    """Of each memory the same id as of all that proposals join with it."""
    before: dict[MemoryId, MemoryId] = {}

    def first(id_: MemoryId) -> MemoryId:
        while id_ in before:
            id_ = before[id_]
        return id_

    for memory in memories:
        if memory.may_supersede and first(memory.id) != first(memory.may_supersede):
            before[first(memory.id)] = first(memory.may_supersede)
    return {memory.id: first(memory.id) for memory in memories}


async def rarities_of_rarest_shared_words(
    index: RecallIndex, scope: Scope, pairs: Sequence[NewerAndOlderMemory]
) -> list[float]:
    """Of each pair the rarity of the rarest word that both have; 0 where none is known."""
    words = {stem: word for pair in pairs for stem, word in pair.shared_words_by_stem.items()}
    if not words:
        return [0.0] * len(pairs)
    *values, greatest = await index.idf(scope, [*words.values(), NONSENSE_WORD_FOR_MAX_IDF])
    most = idf_from_memory_count(2, greatest)  # two forms of one word may be two to the index
    idf = {stem: min(value, most) for stem, value in zip(words, values, strict=True) if 0 < value < greatest}
    rarity = word_rarities_from_idf(idf, greatest).by_stem
    return [max((rarity.get(stem, 0.0) for stem in pair.shared_words_by_stem), default=0.0) for pair in pairs]


def match_of_memory_to_question(
    memory: Memory, pool: CandidatePool, scores: Mapping[MemoryId, float]
) -> MemoryMatchToQuestion:
    statement, score = cached_statement_for_comparison(memory.scene.action), scores.get(memory.id, 0.0)
    if memory.id not in pool.ids:
        return MemoryMatchToQuestion(statement, score=score)
    at = pool.ids.index(memory.id)
    held = zip(pool.words, pool.rarity.tolist(), pool.holds[at], strict=True)
    return MemoryMatchToQuestion(
        statement, float(pool.cosine[at]), {word: rarity for word, rarity, holds in held if holds}, score
    )
