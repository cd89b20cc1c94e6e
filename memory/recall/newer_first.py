"""What is probably true now stands before what was, and nothing is decided (ruling 24, ADR 52, 87, 88)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from madeleine.memory.index import CandidatePool, RecallIndex
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope
from madeleine.memory.recall.newer_pairs import (
    NewerAndOlderMemory,
    compare_pairs,
    match_of_memory_to_question,
    pairs_to_compare,
    rarities_of_rarest_shared_words,
)
from madeleine.memory.recall.ports import PossibleNewerVersionPair, RecallLedger
from madeleine.memory.rules.dynamics.future_dates import future_start_of_replacement
from madeleine.memory.rules.dynamics.truth import is_in_future, start_of_truth_or_telling
from madeleine.memory.rules.ranking.blended import analyse_query
from madeleine.memory.rules.ranking.near_equals import (
    MIN_SCORE_SHARE_OF_NEAR_EQUAL,
    MemoryMatchToQuestion,
    asks_for_past,
    asks_for_what_was_before,
    asks_for_what_was_first,
    contains_word_meaning_before,
    question_words_only_in_first,
    scores_with_newer_versions_before_older,
    scores_with_passages_before_summaries,
    tells_what_was_first,
)
from madeleine.memory.rules.storing.statements import StatementForComparison, cached_statement_for_comparison
from madeleine.memory.rules.storing.supersession import became_true_after, tells_change_without_superseded_memory

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

    In a question for the past, what was before something, or first, stands before what took its place (ADR 88), and all
    else is left as it is. One that names its time (`is_of_past`, and `now` is that time) is treated like any other.

    Until its day a plan comes behind what is true until then, and brings it, unless the question names what it alone
    tells of. What speaks of another thing than the question names is not put first. A passage comes before its summary.
    """
    best = list(scores)[:MAX_MATCHES_CHECKED_FOR_NEWER]
    query = analyse_query(question)
    asks_past = not is_of_past and asks_for_past(query)
    asks_before = asks_past and asks_for_what_was_before(query)
    asks_first = asks_past and not asks_before and asks_for_what_was_first(query)
    if not best or (asks_past and not (asks_before or asks_first)):
        return NewerFirstRanking(scores)
    links = await ledger.possible_newer_version_pairs(scope, best)
    proposed = [link.newer for link in links if link.newer in scores or (link.is_proposed and not only_matches)]
    ids = list(dict.fromkeys((*best, *proposed)))
    memories = {memory.id: memory for memory in await ledger.memories_with_ids(scope, ids)}
    replaced = [] if only_matches else await _plans_with_memories_true_until_them(ledger, scope, memories, now)
    memories |= {older.id: older for _, older in replaced}
    links = [*links, *(PossibleNewerVersionPair(plan, older.id, is_proposed=True) for plan, older in replaced)]
    told_again = {(one.older, one.newer) for one in links if one.has_superseded_text and one.newer in memories}
    pairs = [pair for pair in pairs_to_compare(memories, scores, links) if pair.ids not in told_again]
    rarities = await rarities_of_rarest_shared_words(index, scope, pairs)
    matches = {id_: match_of_memory_to_question(memory, pool, scores) for id_, memory in memories.items()}
    asked = StatementForComparison(question)
    compared = compare_pairs(asked, matches, pairs, rarities)
    if asks_past:
        versions = [
            pair
            for pair in compared.newer_versions
            if pair.ids not in compared.unrelated
            if (_may_be_first_version(pair, scores) if asks_first else _is_named_as_later(asked, matches, pair))
        ]
        return NewerFirstRanking(_scores_with_older_versions_first(scores, versions, earliest=asks_first), memories)
    later: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for again, current in told_again:
        later[again].append(memories[current])
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
        scores, newest_first, max_corrected=MAX_MATCHES_CHECKED_FOR_NEWER, unrelated=compared.unrelated
    )
    ordered = _scores_with_followers_right_behind(ordered, behind)
    ordered = _scores_with_doubtful_behind(ordered, compared.doubtful_by_older_id(scores, now), newest_first)
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
        if became_true_after(newer, older)
    }


def _question_names_only_newer(
    asked: StatementForComparison, matches: Mapping[MemoryId, MemoryMatchToQuestion], pair: NewerAndOlderMemory
) -> bool:
    statements = (matches[id_].statement for id_ in pair.ids)
    return bool(question_words_only_in_first(asked, *statements))


def _is_named_as_later(
    asked: StatementForComparison, matches: Mapping[MemoryId, MemoryMatchToQuestion], pair: NewerAndOlderMemory
) -> bool:
    """Whether the question has a word of the newer one alone ("before Split"), and the newer one does not itself say
    "before" ("approved before the audit")."""
    return _question_names_only_newer(asked, matches, pair) and not contains_word_meaning_before(
        matches[pair.newer.id].statement
    )


def _may_be_first_version(pair: NewerAndOlderMemory, scores: Mapping[MemoryId, float]) -> bool:
    """Whether the older one is nearly as relevant (ruling 24), and the newer one does not say itself that it is the
    first ("In the first session …")."""
    newer, older = (scores.get(id_, 0.0) for id_ in pair.ids)
    return older >= MIN_SCORE_SHARE_OF_NEAR_EQUAL * newer and not tells_what_was_first(
        cached_statement_for_comparison(pair.newer.scene.action)
    )


def _scores_with_older_versions_first(
    scores: Mapping[MemoryId, float], versions: Sequence[NewerAndOlderMemory], *, earliest: bool
) -> dict[MemoryId, float]:
    """`scores`, best first: right before each newer version stands the latest that it took the place of, or the
    `earliest`, with its score. `versions`: the pairs of these."""
    olders: defaultdict[MemoryId, list[Memory]] = defaultdict(list)
    for pair in versions:
        if pair.older.id in scores:
            olders[pair.newer.id].append(pair.older)
    choose = min if earliest else max
    ordered: dict[MemoryId, float] = {}
    for id_, score in scores.items():
        if id_ in olders:
            older = choose(olders[id_], key=lambda one: (start_of_truth_or_telling(one), one.number))
            ordered.setdefault(older.id, score)
        ordered.setdefault(id_, score)
    return ordered


def _scores_with_followers_right_behind(
    scores: Mapping[MemoryId, float], behind: Mapping[MemoryId, Sequence[MemoryId]]
) -> dict[MemoryId, float]:
    """`scores`, best first, with what is to stand right behind one of them, with its score."""
    ordered: dict[MemoryId, float] = {}
    for first, score in scores.items():
        for id_ in (first, *behind.get(first, ())):
            ordered.setdefault(id_, score)
    return ordered


def _scores_with_doubtful_behind(
    scores: Mapping[MemoryId, float],
    doubtful: Mapping[MemoryId, Sequence[MemoryId]],
    newest_first: Mapping[MemoryId, Sequence[MemoryId]],
) -> dict[MemoryId, float]:
    """`scores`, best first, with what is `doubtful` right behind its older one, with its score; what says that anew
    before it, and what is doubtful of that behind it."""
    ordered: dict[MemoryId, float] = {}
    begun: set[MemoryId] = set()

    def put(id_: MemoryId, score: float) -> None:
        if id_ in begun:
            return
        begun.add(id_)
        if id_ not in scores:
            put_missing(newest_first.get(id_, ()), score)
        ordered[id_] = score
        put_missing(doubtful.get(id_, ()), score)

    def put_missing(ids: Sequence[MemoryId], score: float) -> None:
        for id_ in ids:
            if id_ not in scores:
                put(id_, score)

    for id_, score in scores.items():
        put(id_, score)
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
        if memory.status in LIVING_STATUSES and memory.truth == "current" and not memory.compressed
        if memory.valid_from is None or not is_in_future(memory.valid_from, now)
    )
    return [(plan_by_current[memory.id], memory) for memory in true]
