"""What is probably true now stands before what was, and nothing is decided (ruling 24, ADR 52)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from madeleine.memory.index import NONSENSE_WORD_FOR_MAX_IDF, CandidatePool, RecallIndex
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import PossibleNewerVersionPair, RecallLedger
from madeleine.memory.recall.selection import is_recallable_as_of
from madeleine.memory.rules.dynamics.future_dates import future_start_of_replacement
from madeleine.memory.rules.dynamics.truth import is_in_future, start_of_truth_or_telling
from madeleine.memory.rules.ranking.blended import analyse_query
from madeleine.memory.rules.ranking.near_equals import (
    MemoryMatchToQuestion,
    MemoryPairRelationFlags,
    are_short_statements_without_questions,
    asks_for_past,
    is_answered_only_by_older_statement,
    newer_replaces_older_score,
    question_mentions_only_older_statement,
    question_words_only_in_first,
    scores_with_newer_versions_before_older,
    scores_with_passages_before_summaries,
)
from madeleine.memory.rules.ranking.turns import is_turn_of_conversation
from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    cached_statement_for_comparison,
    shared_stems,
    tells_of_other_thing_in_one_wording,
)
from madeleine.memory.rules.storing.supersession import (
    idf_from_memory_count,
    tells_change_without_superseded_memory,
    word_rarities_from_idf,
)

MAX_MATCHES_CHECKED_FOR_NEWER = 10
"""Best matches that are compared with one another, and with what was proposed to supersede one of them."""


@dataclass(frozen=True, slots=True)
class NewerFirstRanking:
    """`scores`: best first. `read`: the memories that were read for it. `lifted`: each memory that stands before an
    older one, with its score, and that one. `possible_changes`: of one of the best, what was proposed to supersede it,
    or the match that was told later, resembles it and tells of a change (ADR 74)."""

    scores: Mapping[MemoryId, float]
    read: Mapping[MemoryId, Memory] = field(default_factory=dict)
    lifted: Mapping[MemoryId, MemoryId] = field(default_factory=dict)
    possible_changes: Mapping[MemoryId, MemoryId] = field(default_factory=dict)


async def put_newer_versions_before_older(
    ledger: RecallLedger,
    index: RecallIndex,
    scope: Scope,
    question: str,
    *,
    scores: Mapping[MemoryId, float],
    pool: CandidatePool,
    only_matches: bool,
    is_of_past: bool,
    now: datetime,
) -> NewerFirstRanking:
    """`scores`, best first: before one of the best stands what probably tells what became of it, if that is one of the
    best, too, or was proposed to supersede it. What was proposed, does not match, and probably tells of another thing
    stands right behind it.

    A question for the past is left as it is, unless it names its time (`is_of_past`, and `now` is that time). Until its
    day a plan comes behind what is true until then, and brings it, unless the question names what it alone tells of.
    What speaks of another thing than the question names is not put first. A passage comes before its summary."""
    best = list(scores)[:MAX_MATCHES_CHECKED_FOR_NEWER]
    if not best or (not is_of_past and asks_for_past(analyse_query(question))):
        return NewerFirstRanking(scores)
    links = await ledger.possible_newer_version_pairs(scope, best)
    proposed = [link.newer for link in links if link.newer in scores or (link.is_proposed and not only_matches)]
    ids = list(dict.fromkeys((*best, *proposed)))
    memories = {memory.id: memory for memory in await ledger.memories_with_ids(scope, ids)}
    replaced = [] if only_matches else await _plans_with_memories_true_until_them(ledger, scope, memories, now)
    memories |= {older.id: older for _, older in replaced}
    links = [*links, *(PossibleNewerVersionPair(plan, older.id, is_proposed=True) for plan, older in replaced)]
    told_again = {(one.older, one.newer) for one in links if one.has_superseded_text and one.newer in memories}
    pairs = [pair for pair in _pairs_to_compare(memories, scores, links) if pair.ids not in told_again]
    rarities = await _rarities_of_rarest_shared_words(index, scope, pairs)
    matches = {id_: _match_of_memory_to_question(memory, pool, scores) for id_, memory in memories.items()}
    asked = StatementForComparison(question)
    later: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for again, current in told_again:
        later[again].append(memories[current])
    compared = _compare_pairs(asked, matches, pairs, rarities)
    behind: defaultdict[MemoryId, list[MemoryId]] = defaultdict(list)
    for pair in compared.newer_versions:
        if not future_start_of_replacement(pair.older, pair.newer, now):
            if pair.ids not in compared.unrelated:
                later[pair.older.id].append(pair.newer)
        elif not _question_names_only_newer(asked, matches, pair):
            later[pair.newer.id].append(pair.older)
        elif pair.newer.valid_from is not None:  # told with the plan, for it is true until its day
            behind[pair.newer.id].append(pair.older.id)
    newest_first = {
        older: [
            one.id
            for one in sorted(newer_ones, key=lambda one: (start_of_truth_or_telling(one), one.number), reverse=True)
        ]
        for older, newer_ones in later.items()
    }
    ordered = scores_with_newer_versions_before_older(
        _scores_with_others_placed_behind(scores, compared.doubtful_by_older_id(scores)),
        newest_first,
        max_corrected=MAX_MATCHES_CHECKED_FOR_NEWER,
        unrelated=compared.unrelated,
    )
    ordered = _scores_with_others_placed_behind(ordered, behind)
    ordered = await _scores_with_passages_first(ledger, scope, ordered, memories)
    lifted = {
        newer: older
        for older, newer_ones in newest_first.items()
        for newer in newer_ones
        if ordered.get(newer) == ordered.get(older) and ordered.get(newer) != scores.get(newer)
    }
    return NewerFirstRanking(ordered, memories, lifted, _possible_newer_version_by_older_id(links, memories, scores))


def _possible_newer_version_by_older_id(
    links: Sequence[PossibleNewerVersionPair], memories: Mapping[MemoryId, Memory], matches: Collection[MemoryId]
) -> dict[MemoryId, MemoryId]:
    """Return, by the id of each older memory, the latest that was proposed to supersede it, or that matches, resembles
    it and tells of a change."""
    pairs = (
        (memories[link.older], memories[link.newer])
        for link in links
        if link.newer in memories and link.older in memories
        if link.is_proposed or (link.newer in matches and tells_change_without_superseded_memory(memories[link.newer]))
    )
    return {
        older.id: newer.id
        for older, newer in sorted(pairs, key=lambda pair: pair[1].number)
        if start_of_truth_or_telling(newer) > start_of_truth_or_telling(older)
    }


def _question_names_only_newer(
    asked: StatementForComparison, matches: Mapping[MemoryId, MemoryMatchToQuestion], pair: _NewerAndOlderMemory
) -> bool:
    statements = (matches[id_].statement for id_ in pair.ids)
    return bool(question_words_only_in_first(asked, *statements))


def _scores_with_others_placed_behind(
    scores: Mapping[MemoryId, float], behind: Mapping[MemoryId, Sequence[MemoryId]]
) -> dict[MemoryId, float]:
    """`scores`, best first, with what is to stand right behind one of them, with its score."""
    ordered: dict[MemoryId, float] = {}
    for first, score in scores.items():
        for id_ in (first, *behind.get(first, ())):
            ordered.setdefault(id_, score)
    return ordered


async def _scores_with_passages_first(
    ledger: RecallLedger, scope: Scope, scores: dict[MemoryId, float], memories: Mapping[MemoryId, Memory]
) -> dict[MemoryId, float]:
    """`memories`: those among which summaries are looked for."""
    summaries = [id_ for id_, memory in memories.items() if memory.compression_source and id_ in scores]
    if not summaries:
        return scores
    return scores_with_passages_before_summaries(scores, await ledger.passage_ids_by_summary_id(scope, summaries))


async def _plans_with_memories_true_until_them(
    ledger: RecallLedger, scope: Scope, memories: Mapping[MemoryId, Memory], now: datetime
) -> list[tuple[MemoryId, Memory]]:
    """(plan, what is true until its day), of what is not among the memories: a plan alone would be taken for what holds
    now."""
    plans = {
        memory.may_supersede: memory.id
        for memory in memories.values()
        if memory.valid_from is not None and is_in_future(memory.valid_from, now)
        if memory.may_supersede is not None and memory.may_supersede not in memories
    }
    if not plans:
        return []
    versions = await ledger.current_version_id_by_memory_id(scope, list(plans))
    plan_by_current = {current: plans[old] for old, current in versions.items()}
    true = (
        memory
        for memory in await ledger.memories_with_ids(scope, list(plan_by_current))
        if is_recallable_as_of(memory, None) and not memory.compressed
        if memory.valid_from is None or not is_in_future(memory.valid_from, now)
    )
    return [(plan_by_current[memory.id], memory) for memory in true]


@dataclass(frozen=True, slots=True)
class _NewerAndOlderMemory:
    newer: Memory
    older: Memory
    link: MemoryPairRelationFlags

    @property
    def ids(self) -> tuple[MemoryId, MemoryId]:
        return self.newer.id, self.older.id

    @property
    def is_declared_supersession(self) -> bool:
        """Whoever stored it said that it would take the place of the older one from a day that has come."""
        return self.link.is_proposed and self.newer.valid_from is not None

    @property
    def shared_words_by_stem(self) -> Mapping[str, str]:
        """Content words of the older one that both have, by their stems."""
        new, old = (cached_statement_for_comparison(one.scene.action) for one in (self.newer, self.older))
        return {stem: old.content_words_by_stem[stem] for stem in shared_stems(new, old)}


@dataclass(frozen=True, slots=True)
class _ComparedPairs:
    """`newer_versions`: the newer one probably tells what became of the older. `others`: probably not, yet the older
    one is not all that is asked for. `unrelated`: (newer, older) that speak of two things."""

    newer_versions: Sequence[_NewerAndOlderMemory]
    others: Sequence[_NewerAndOlderMemory]
    unrelated: Set[tuple[MemoryId, MemoryId]]

    def doubtful_by_older_id(self, scores: Mapping[MemoryId, float]) -> dict[MemoryId, list[MemoryId]]:
        """Of what does not match by itself, and was only proposed."""
        doubtful: defaultdict[MemoryId, list[MemoryId]] = defaultdict(list)
        for pair in self.others:
            if pair.newer.id not in scores:
                doubtful[pair.older.id].append(pair.newer.id)
        return doubtful


def _compare_pairs(
    asked: StatementForComparison,
    matches: Mapping[MemoryId, MemoryMatchToQuestion],
    pairs: Sequence[_NewerAndOlderMemory],
    rarities: Sequence[float],
) -> _ComparedPairs:
    """`rarities`: of each pair, that of the rarest word that both have."""
    is_read = any(match.cosine for match in matches.values())
    newer_versions, others, unrelated = [], [], set()
    for pair, rarest in zip(pairs, rarities, strict=True):
        newer, older = matches[pair.newer.id], matches[pair.older.id]
        if not pair.link.is_proposed and (
            question_mentions_only_older_statement(asked, newer.statement, older.statement)
            or (newer.rank < older.rank and tells_of_other_thing_in_one_wording(newer.statement, older.statement))
        ):
            unrelated.add(pair.ids)
        is_answered_by_older = is_answered_only_by_older_statement(asked, newer.statement, older.statement)
        score = newer_replaces_older_score(
            newer,
            older,
            pair.link,
            rarest_shared_word=rarest,
            is_answered_only_by_older=is_answered_by_older,
            is_read=is_read,
        )
        if not is_answered_by_older if pair.is_declared_supersession else score > 0:
            newer_versions.append(pair)
        elif not is_answered_by_older:
            others.append(pair)
    undeclared_proposals = {pair.ids for pair in pairs if pair.link.is_proposed and not pair.is_declared_supersession}
    return _ComparedPairs(
        newer_versions, others, _unrelated_pairs_closed_over_proposals(unrelated, undeclared_proposals)
    )


def _pairs_to_compare(
    memories: Mapping[MemoryId, Memory], scores: Mapping[MemoryId, float], links: Sequence[PossibleNewerVersionPair]
) -> Iterator[_NewerAndOlderMemory]:
    """Each of the matches with what was told later, is one of them and shares a word with it, and each memory with what
    was proposed to supersede it. Two turns of conversations are compared only where proposals join them: a later turn
    goes on, and seldom takes the place of an earlier one."""
    chains = _proposal_group_id_by_memory_id(memories.values())
    proposed = {(link.newer, link.older) for link in links if link.is_proposed}
    for older in memories.values():
        for newer in memories.values():
            if start_of_truth_or_telling(newer) <= start_of_truth_or_telling(older):
                continue
            link = MemoryPairRelationFlags(
                is_proposed=(newer.id, older.id) in proposed,
                joined_by_proposals=chains[newer.id] == chains[older.id],
                resembles=newer.resembles == older.id,
                is_event_after_fact=_is_past_event(newer) and older.category != "episodic",
            )
            pair = _NewerAndOlderMemory(newer, older, link)
            if newer.id not in scores or older.id not in scores or pair.is_declared_supersession:
                if link.is_proposed:
                    yield pair
                continue
            statements = (cached_statement_for_comparison(one.scene.action) for one in (newer, older))
            if are_short_statements_without_questions(*statements) and (
                link.joined_by_proposals
                or (
                    pair.shared_words_by_stem
                    and not (is_turn_of_conversation(newer) and is_turn_of_conversation(older))
                )
            ):
                yield pair


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


async def _rarities_of_rarest_shared_words(
    index: RecallIndex, scope: Scope, pairs: Sequence[_NewerAndOlderMemory]
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


def _match_of_memory_to_question(
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
