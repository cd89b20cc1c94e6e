"""A question for the days to come and nothing else is answered as by a calendar (ruling 19: what a filter names
matches)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date

from madeleine.memory.recall.recall import RecallResult
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.text.coming_days import coming_days_asked_for
from madeleine.tools.dates import parse_time_window

MAX_OTHER_MATCHES_NEAR_DATED_ONES = 3


async def recall_with_days_to_come(
    recall: Callable[[RecallQuery], Awaitable[RecallResult]], query: RecallQuery, today: date, *, most: int
) -> RecallResult:
    """What `recall` makes of the query; for one of days to come what is dated to these, at most `most`, in the order of
    dates, and near it what matches without a date. A query with a time of its own is left as it is."""
    has_time = query.as_of or query.since or query.until
    days = None if has_time else coming_days_asked_for(query.text, today)
    if days is None:
        return await recall(query)
    first, last = map(str, days)
    named = first if first == last else f"{first} to {last}"
    window = parse_time_window(first, last)
    dated = await recall(replace(query, since=window["since"], until=window["until"], limit=most, max_limit=0))
    others = await recall(query)
    if not dated.memories:
        return replace(others, notices=(f"Nothing is dated {named}.", *others.notices))
    memories = sorted(dated.memories, key=lambda scored: scored[0].happened_at)
    shown = {memory.id for memory, _ in memories}
    near = [memory for memory, _ in others.memories if memory.id not in shown][:MAX_OTHER_MATCHES_NEAR_DATED_ONES]
    notices = (f"What is dated {named}.", *dated.notices)
    return replace(dated, memories=tuple(memories), near=tuple(near), notices=notices)
