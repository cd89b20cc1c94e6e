"""What a recall names beside its matches or where there are none: what is dated to the days that the query names, those
to come also beside a match (ADR 90, 102), and words that no memory holds. Where nothing matches it tries other
spellings of these (ADR 34, 75)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from madeleine.memory.model import Scope
from madeleine.memory.recall.ports import RecallLedger
from madeleine.memory.recall.query_reading import days_planned_for
from madeleine.memory.recall.selection import RankedCandidates, RecallQuery
from madeleine.memory.rules.dynamics.windows import has_date_in_window
from madeleine.memory.rules.storing.statements import StatementForComparison
from madeleine.memory.text.calendar_questions import days_named
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.relative_dates import Days, days_as_text, first_and_last_moment_of_days

MAX_NEAR_MEMORIES_OF_NAMED_DAYS = 3
MAX_UNKNOWN_WORDS_NAMED = 8
_WORD = re.compile(r"\w+")
RankQuery = Callable[[RecallQuery], Awaitable[RankedCandidates]]
RespellWords = Callable[[Scope, Sequence[str], str], Awaitable[Mapping[str, str]]]
"""`memory.recall.search.find_spelling_corrections`: words of a query, and what they were probably meant to be."""


def unknown_words_to_name(query: str, ranked: RankedCandidates, today: date) -> tuple[str, ...]:
    """Words of the query that no memory holds (ruling 19). Where something matches only those that may be names:
    nothing is known of "Kubernetes", whatever has a version, and other words may be said in other words. None then of a
    query that names days: a word for a time is no name."""
    words = ranked.pool.unknown_words
    if words and not ranked.has_no_match:
        names = {fold_text(name) for name in StatementForComparison(query).words_capitalized_inside_sentence}
        words = tuple(word for word in words if fold_text(word) in names)
        if words and days_named(query, today) is not None:
            return ()
    return words[:MAX_UNKNOWN_WORDS_NAMED]


def no_match_dated_notice(days: Days) -> str:
    return f"No match is dated {days_as_text(days)}."


async def rank_respelled(
    rank: RankQuery, respell: RespellWords, scope: Scope, query: RecallQuery, ranked: RankedCandidates
) -> RankedCandidates:
    """Words that no memory holds are replaced by like or related ones; `ranked` if there are none or that finds
    nothing."""
    unknown = [word for word in ranked.pool.unknown_words if " " not in word]
    if not unknown or not (respelled := await respell(scope, unknown, query.text)):
        return ranked
    folded = {fold_text(word): other for word, other in respelled.items()}
    text = _WORD.sub(lambda word: folded.get(fold_text(word[0]), word[0]), query.text)
    again = await rank(replace(query, text=text))
    named = (f"Nothing has {word!r}; {other!r} was searched instead." for word, other in respelled.items())
    return replace(again, notices=(*again.notices, *named)) if again.scores or again.near_misses else ranked


async def with_memories_of_named_days_near(
    ledger: RecallLedger, rank: RankQuery, scope: Scope, query: RecallQuery, ranked: RankedCandidates, *, today: date
) -> RankedCandidates:
    """What is dated to the days that the query names is near, before all else (ruling 19: what a filter names
    matches); where something matches only what lies on a day to come (ADR 102)."""
    if query.has_window or query.as_of:
        return ranked
    named = days_named(query.text, today) if ranked.has_no_match else None
    if (days := named or days_planned_for(query.text, today)) is None:
        return ranked
    since, until = first_and_last_moment_of_days(days)
    dated = await rank(replace(query, since=since, until=until))
    ids = [id_ for id_ in dated.ids if id_ not in dated.procedural and id_ not in ranked.scores]
    memories = await ledger.memories_with_ids(scope, ids)
    dated_ids = [one.id for one in memories if has_date_in_window(one, since, until)]
    if not (ids := dated_ids[:MAX_NEAR_MEMORIES_OF_NAMED_DAYS]):
        return ranked
    notice = f"Near is first what is dated {days_as_text(days)}."
    others = (each for each in ranked.notices if each != no_match_dated_notice(days))
    return replace(ranked, of_named_days=tuple(ids), notices=(*others, notice))
