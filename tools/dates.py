"""Dates in arguments (ADR 0033), and the days that a query asks for: that is answered as by a calendar
(ruling 19: what a filter names matches)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from operator import itemgetter
from typing import Protocol

from madeleine.memory.errors import InvalidInput
from madeleine.memory.keyword_search import KeywordQuery
from madeleine.memory.model import DatedAction, Memory, MemoryId, TextOrDatedAction
from madeleine.memory.recall.no_match import no_match_dated_notice
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.dynamics.windows import first_moment_in_days, has_date_in_window
from madeleine.memory.text.calendar_questions import days_asked_for
from madeleine.memory.text.dates import IsoPeriod, parse_iso_period
from madeleine.memory.text.relative_dates import Days, days_as_text, first_and_last_moment_of_days
from madeleine.tools.arguments import excerpt_for_error
from madeleine.tools.tool import ToolCallContext

DATE_FORMAT_EXAMPLES = "2026-03-01, 2026-03-01T18:30, 2026-03, 2026 or 2026-03-01/2026-03-05"
MAX_OTHER_MATCHES_OF_CALENDAR_QUERY = 3
"""Of a query for days: what matches it and is dated to other days, or to none."""


class TimelineEntryArgument(Protocol):
    @property
    def date(self) -> str: ...

    @property
    def action(self) -> str: ...


def parse_iso_period_argument(argument: str, text: str) -> IsoPeriod | None:
    """The period that an argument names; None for "". Raises `InvalidInput`, which says how dates are written."""
    if not text:
        return None
    if (period := parse_iso_period(text.strip())) is None:
        raise InvalidInput(
            f"Nothing was done. {argument}: {excerpt_for_error(text)[:40]!r} is not a date. Write "
            f"{DATE_FORMAT_EXAMPLES}; resolve words such as tomorrow yourself, and leave out what you do not know."
        )
    return period


def parse_time_window(since: str, until: str) -> dict[str, datetime | None]:
    """The arguments `since` and `until` as moments, inclusive. Raises `InvalidInput` if nothing is between."""
    first, last = parse_iso_period_argument("since", since), parse_iso_period_argument("until", until)
    if first and last and first.start > last.end:
        raise InvalidInput(f"Nothing was done. since: {since} is after until: {until}. Swap them, or leave one out.")
    return {"since": first.start if first else None, "until": last.end if last else None}


def validated_timeline_argument(
    argument: str, items: Sequence[str | TimelineEntryArgument] | str
) -> tuple[TextOrDatedAction, ...]:
    """A date or a timeline. Raises `InvalidInput` for an entry whose date is none."""
    if isinstance(items, str):
        parse_iso_period_argument(argument, items)
        return (items.strip(),)
    entries: list[TextOrDatedAction] = []
    for place, item in enumerate(items):
        date, name = (item, "") if isinstance(item, str) else (item.date, ".date")
        parse_iso_period_argument(f"{argument}.{place}{name}", date)
        entries.append(date.strip() if isinstance(item, str) else DatedAction(date.strip(), item.action))
    return tuple(entries)


Recall = Callable[[RecallQuery], Awaitable[RecallResult]]


async def recall_by_days_if_asked_for(
    call: ToolCallContext, recall: Recall, query: RecallQuery, *, most: int, lists_all: bool
) -> RecallResult:
    """What `recall` makes of the query; for one of days and nothing else what is dated to these, at most `most` of each
    period, in the order of dates, and near it what else matches. A query with a time of its own is left as it is.
    `lists_all`: also what is compared by nothing."""
    has_time = query.as_of or query.has_window
    now = call.use_cases.recall.now()
    periods = () if has_time else _without_overlap(days_asked_for(query.text, now.date()))
    others = await recall(query)
    if not periods:
        return others
    of_period = replace(query, limit=most, max_limit=0, counts_tokens=True)
    answers = await _recall_each_dated(call, recall, of_period, periods, lists_all=lists_all)
    answered = [days for days in periods if any(days == of_days for of_days, _ in answers)]
    if not answered:
        notice = f"Nothing is dated {_periods_as_text(periods)}."
        said_again = {no_match_dated_notice(days) for days in periods}
        notices = (notice, *(each for each in others.notices if each not in said_again))
        return replace(others, notices=notices, unknown_words=())  # all words are of the calendar
    memories = {
        memory.id: (first_moment_in_days(memory, days), (memory, score))
        for days, answer in answers
        for memory, score in answer.memories
    }
    in_order = (scored for _, scored in sorted(memories.values(), key=itemgetter(0)))
    near = [memory for memory, _ in others.memories if memory.id not in memories][:MAX_OTHER_MATCHES_OF_CALENDAR_QUERY]
    results = [answer for _, answer in answers]
    notice = f"What is dated {_periods_as_text(answered)}."
    return replace(
        results[0],
        memories=tuple(in_order),
        near=tuple(near),
        notices=tuple(dict.fromkeys((notice, *(each for answer in results for each in answer.notices)))),
        text="\n".join(answer.text for answer in results),
        total_tokens=sum(answer.total_tokens for answer in results),
        budget_used=sum(answer.total_tokens for answer in results) / query.token_budget,
        omitted=sum(answer.omitted for answer in results),
        truncated=tuple(id_ for answer in results for id_ in answer.truncated),
        too_long=tuple(memory for answer in results for memory in answer.too_long),
        unknown_words=(),
    )


def _without_overlap(periods: Sequence[Days]) -> list[Days]:
    joined: list[Days] = []
    for first, last in sorted(periods):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return joined


def _over_and_left(days: Days, today: date) -> list[Days]:
    """What of these days is over, and what of them is left from today on."""
    first, last = days
    return [(first, today - timedelta(days=1)), (today, last)] if first < today <= last else [days]


async def _recall_each_dated(
    call: ToolCallContext, recall: Recall, query: RecallQuery, periods: Sequence[Days], *, lists_all: bool
) -> list[tuple[Days, RecallResult]]:
    """In order, with the period that it is of, what brings something. What is later is recalled first, and what is
    earlier has the tokens that it leaves, and of one period the memories."""
    parts = [(days, part) for days in periods for part in _over_and_left(days, call.use_cases.recall.now().date())]
    answers: list[tuple[Days, RecallResult]] = []
    tokens, room = query.token_budget, dict.fromkeys(periods, query.limit)
    for left, (days, part) in zip(range(len(parts), 0, -1), reversed(parts), strict=True):
        # Of a period that is half over what is left of it leaves room for what is over.
        limit = -(-room[days] // sum(each == days for each, _ in parts[:left]))
        if limit < 1:
            continue
        of_part = replace(query, token_budget=max(1, tokens // left), limit=limit)
        answer = await _recall_dated(call, recall, of_part, part, lists_all=lists_all)
        if answer.memories or answer.too_long:
            tokens -= min(tokens, answer.total_tokens)
            room[days] -= len(answer.memories)
            answers.append((days, answer))
    return answers[::-1]


async def _recall_dated(
    call: ToolCallContext, recall: Recall, query: RecallQuery, days: Days, *, lists_all: bool
) -> RecallResult:
    """Of a time that is over what was true at its end. A memory that is compared by nothing, as one in a language that
    the model cannot read, is no candidate of a recall: it is listed behind the others as far as there is room."""
    since, until = first_and_last_moment_of_days(days)
    now = call.use_cases.recall.now()
    if days[1] == date.max:  # of what is coming up: what is dated to today, but not what was told today without a date
        since = now + timedelta(seconds=1)
    as_of = until if until < now else None
    query = replace(query, since=since, until=until, as_of=as_of)
    dated = await recall(query)
    if not lists_all or dated.omitted or dated.truncated or dated.too_long:
        return dated
    shown = {memory.id for memory, _ in (*dated.memories, *dated.preferences)}
    others = [memory for memory in await _recallable_memories_dated(call, query) if memory.id not in shown]
    room = max(0, query.limit - len(dated.memories))
    return replace(dated, memories=(*dated.memories, *((memory, 0.0) for memory in others[:room])))


async def _recallable_memories_dated(call: ToolCallContext, query: RecallQuery) -> list[Memory]:
    """Within the query's time, whatever they say, newest first, at most `query.limit`; no preferences."""
    config = call.use_cases.recall.config
    listed = KeywordQuery(
        terms=(),
        themes=(*query.themes, *config.themes),
        categories=query.categories,
        since=query.since,
        until=query.until,
        sources=("memories",),
        include_dead=query.as_of is not None,
        as_of=query.as_of,
        limit=query.limit,
    )
    page = await call.use_cases.search(call.scope, listed)
    shown = await call.use_cases.browse.by_ids(call.scope, [MemoryId(hit.id) for hit in page.hits])
    return [
        memory
        for memory in shown.memories
        if memory.category != "procedural" and memory.importance >= config.min_importance
        if has_date_in_window(memory, query.since, query.until)
    ]


def _periods_as_text(periods: Sequence[Days]) -> str:
    return " or ".join(map(days_as_text, sorted(periods)))
