"""Dates in arguments (ADR 0033), and the days that a query asks for: that is answered as by a calendar
(ruling 19: what a filter names matches)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Protocol

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import DatedAction, TextOrDatedAction
from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.text.calendar_questions import days_asked_for
from madeleine.memory.text.dates import IsoPeriod, parse_iso_period
from madeleine.memory.text.relative_dates import Days
from madeleine.tools.arguments import excerpt_for_error

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


def parse_timeline(argument: str, items: Sequence[str | TimelineEntryArgument] | str) -> tuple[TextOrDatedAction, ...]:
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


async def recall_by_days_if_asked_for(
    recall: Callable[[RecallQuery], Awaitable[RecallResult]], query: RecallQuery, today: date, *, most: int
) -> RecallResult:
    """What `recall` makes of the query; for one of days and nothing else what is dated to these, at most `most`, in the
    order of dates, and near it what else matches. A query with a time of its own is left as it is."""
    has_time = query.as_of or query.since or query.until
    alternatives = () if has_time else days_asked_for(query.text, today)
    for days in alternatives:
        window = parse_time_window(*map(str, days))
        dated = await recall(replace(query, since=window["since"], until=window["until"], limit=most, max_limit=0))
        if dated.memories:
            return await _with_other_matches_near(recall, query, dated, f"What is dated {_days_as_text(days)}.")
    others = await recall(query)
    if not alternatives:
        return others
    notice = f"Nothing is dated {' or '.join(map(_days_as_text, alternatives))}."
    return replace(others, notices=(notice, *others.notices))


async def _with_other_matches_near(
    recall: Callable[[RecallQuery], Awaitable[RecallResult]], query: RecallQuery, dated: RecallResult, notice: str
) -> RecallResult:
    others = await recall(query)
    memories = sorted(dated.memories, key=lambda scored: scored[0].happened_at)
    shown = {memory.id for memory, _ in memories}
    near = [memory for memory, _ in others.memories if memory.id not in shown][:MAX_OTHER_MATCHES_OF_CALENDAR_QUERY]
    return replace(dated, memories=tuple(memories), near=tuple(near), notices=(notice, *dated.notices))


def _days_as_text(days: Days) -> str:
    first, last = days
    return str(first) if first == last else f"{first} to {last}"
