"""Of what matches, the versions that are true or lie in the window asked for, and which of them are preferences
(rulings 14, 15)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime

from madeleine.memory.index import CandidatePool, MemoryRankingFeatures
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.dynamics.truth import dated_start_of_superseded_text, id_of_version_true_at
from madeleine.memory.rules.dynamics.windows import has_date_in_window, id_of_version_in_window
from madeleine.memory.rules.ranking.blended import analyse_query
from madeleine.memory.rules.ranking.near_equals import asks_for_past, asks_for_what_was_first
from madeleine.memory.rules.storing.statements import StatementForComparison

_WORD_PART_PATTERN = re.compile(r"[^\W_]+")
MemoryAndVersion = tuple[Memory, Memory]
"""A memory that is shown, and the version that its `before` shall tell."""
MAX_MATCHES_OF_FIRST_VERSION = 10
"""Best matches of which the first version is looked up for a question that asks what was first."""


async def true_version_ids(
    ledger: RecallLedger, scope: Scope, query: RecallQuery, pool: CandidatePool, matching: Collection[MemoryId]
) -> Mapping[MemoryId, MemoryId | None]:
    """The version that is true now, or was true as of the query, of each match that has several (ruling 14); None
    where nothing is known of that time. Of a window of time (`since`, `until`) the latest version that lies in it, also
    one that is superseded. Matches that were never superseded cost nothing."""
    as_of, places = query.as_of, {"earlier"} if query.as_of is None else {"earlier", "last"}
    features = zip(pool.ids, pool.features, strict=True)
    versions = [id_ for id_, found in features if found.version in places and id_ in matching]
    if not versions:
        return {}
    if as_of is None and not query.has_window:
        return {**await ledger.current_version_id_by_memory_id(scope, versions)}
    chains = await ledger.all_versions_by_memory_id(scope, versions)
    if as_of is None:
        return {id_: id_of_version_in_window(id_, chain, query.since, query.until) for id_, chain in chains.items()}
    return {id_: _id_of_version_true_in_window(chain, query, as_of) for id_, chain in chains.items()}


def _id_of_version_true_in_window(chain: Sequence[Memory], query: RecallQuery, as_of: datetime) -> MemoryId | None:
    true = id_of_version_true_at(chain, as_of)
    dated = (one.id for one in chain if one.id == true and has_date_in_window(one, query.since, query.until))
    return next(dated, None)


def distinct_true_version_ids(
    ids: Sequence[MemoryId], true: Mapping[MemoryId, MemoryId | None]
) -> tuple[MemoryId, ...]:
    """The true version of each memory that has several, each once; those of which nothing is known are left out."""
    return tuple(filter(None, dict.fromkeys(true.get(id_, id_) for id_ in ids)))


async def read_and_find_preferences(
    ledger: RecallLedger,
    scope: Scope,
    shown: Collection[MemoryId],
    *,
    matched: Mapping[MemoryId, MemoryRankingFeatures],
    true: Mapping[MemoryId, MemoryId | None],
    read: Mapping[MemoryId, Memory],
) -> tuple[Mapping[MemoryId, Memory], frozenset[MemoryId]]:
    """Return `read` with the memories that had to be read for this, and the ids of the preferences among `shown`. The
    index knows the category of a match that is shown itself; a version shown in its place may be of another one.
    `matched`: the matches, as the index knows them. `true`: as `true_version_ids` returns it."""
    of_index = {id_ for id_, features in matched.items() if features.category == "procedural" and id_ not in true}
    versions = [id_ for id_ in shown if id_ not in matched or id_ in true]
    read = await _with_missing_read(ledger, scope, read, versions)
    of_ledger = {id_ for id_ in versions if id_ in read and read[id_].category == "procedural"}
    return read, frozenset(of_index.intersection(shown) | of_ledger)


async def _with_missing_read(
    ledger: RecallLedger, scope: Scope, read: Mapping[MemoryId, Memory], ids: Sequence[MemoryId]
) -> Mapping[MemoryId, Memory]:
    if not (missing := [id_ for id_ in ids if id_ not in read]):
        return read
    return {**read, **{memory.id: memory for memory in await ledger.memories_with_ids(scope, missing)}}


async def with_versions_asked_for(
    ledger: RecallLedger,
    scope: Scope,
    question: str,
    *,
    pool: CandidatePool,
    read: Mapping[MemoryId, Memory],
    matches_of: Mapping[MemoryId, Sequence[MemoryId]],
) -> Mapping[MemoryId, Memory]:
    """`read`, where `before` of a memory tells not the version before the last, but one by which it was found, if that
    alone holds a word of the question, or the first one, if it asks what was first. `matches_of`: the matching
    versions, best first, by the one that is shown."""
    query = analyse_query(question)
    if asks_for_past(query) and asks_for_what_was_first(query):
        earlier = await _first_versions(ledger, scope, list(matches_of)[:MAX_MATCHES_OF_FIRST_VERSION])
    else:
        found_by = {shown: [one for one in ids if one != shown] for shown, ids in matches_of.items()}
        read = await _with_missing_read(ledger, scope, read, [shown for shown, ids in found_by.items() if ids])
        earlier = await _versions_with_words_not_told(ledger, scope, pool, read, found_by)
    told = {shown: replace(memory, before=_superseded_text(version)) for shown, (memory, version) in earlier.items()}
    return {**read, **told} if told else read


async def _first_versions(
    ledger: RecallLedger, scope: Scope, shown: Sequence[MemoryId]
) -> Mapping[MemoryId, MemoryAndVersion]:
    """Each memory with the first version of its chain, of those that have an earlier one."""
    chains = (await ledger.all_versions_by_memory_id(scope, shown)).items()
    by_id = {id_: {memory.id: memory for memory in chain} for id_, chain in chains}
    return {id_: (by_id[id_][id_], chain[0]) for id_, chain in chains if id_ in by_id[id_] and chain[0].id != id_}


async def _versions_with_words_not_told(
    ledger: RecallLedger,
    scope: Scope,
    pool: CandidatePool,
    read: Mapping[MemoryId, Memory],
    found_by: Mapping[MemoryId, Sequence[MemoryId]],
) -> Mapping[MemoryId, MemoryAndVersion]:
    """Each memory with the best match among its earlier versions that alone holds a word of the question."""
    asked = {
        shown: match
        for shown, matches in found_by.items()
        for match in reversed(matches)
        if shown in read and _holds_word_that_is_not_told(pool, match, read[shown])
    }
    memories = await ledger.memories_with_ids(scope, list(asked.values())) if asked else []
    versions = {memory.id: memory for memory in memories if memory.truth == "superseded"}
    return {shown: (read[shown], versions[match]) for shown, match in asked.items() if match in versions}


def _superseded_text(version: Memory) -> str:
    return dated_start_of_superseded_text(version.scene.when, version.happened_at, version.scene.action)


def _holds_word_that_is_not_told(pool: CandidatePool, match: MemoryId, shown: Memory) -> bool:
    """Whether the match holds a word of the question that neither the memory shown for it nor its `before` holds, nor
    a part of a word of theirs (`max_open_conns`)."""
    words = [word for word, holds in zip(pool.words, pool.holds[pool.ids.index(match)], strict=True) if holds]
    text = f"{shown.scene.action} {shown.before}"
    told = {*_stems_of(text), *_stems_of(" ".join(_WORD_PART_PATTERN.findall(text)))}
    return bool(_stems_of(" ".join(words)) - told)


def _stems_of(text: str) -> Set[str]:
    return StatementForComparison(text).content_words_by_stem.keys()
