"""What is still to come (ruling 14, ADR 54): a version that is true only from a day on, and the moved day of an event.

The date of a memory says when an event happens, or since when something is true. What is to take the place of another
one and has a future day is a plan: the other one is true until then. But where both tell of a future day, that is the
day of the event, which the new one tells anew: it holds at once. "From January 2027 on" always tells of a beginning.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import lru_cache

from madeleine.memory.model import (
    DatedAction,
    Memory,
    TextOrDatedAction,
    first_timeline_period,
    start_of_first_dated_timeline_entry,
    time_spans_of_timeline,
)
from madeleine.memory.rules.dynamics.truth import first_timeline_period_if_not_future, is_in_future
from madeleine.memory.text.dates import IsoPeriod
from madeleine.memory.text.future_days import (
    dates_in_text_as_iso_periods,
    days_to_come_in_text,
    iso_periods_in_text_ranges_as_first_day,
    validity_start_stated_in_text,
)
from madeleine.memory.text.relative_dates import Days, first_and_last_moment_of_days

MAX_DAYS_FROM_TELLING_TO_EVENT = timedelta(days=60)
"""Up to which a day without its year is read from the date of a memory, and not from the day on which it was stored."""
MAX_DAYS_FROM_TELLING_TO_PAST_EVENT = timedelta(days=183)
"""The same where the day had passed when the memory was stored."""
MAX_ANNOUNCEMENT_CHARS = 400
"""Of a text that announces a day; a longer one tells of much besides."""


def future_start_of_replacement(old: Memory, new: Memory, now: datetime) -> datetime | None:
    """The future day from which on the new one is true, if the old one is true until then; None if the new one holds
    at once."""
    if new.valid_from is not None:
        return new.valid_from if is_in_future(new.valid_from, now) else None
    begin = future_beginning_stated_in_text(new, now)
    day = _future_day_from_dates(old, now)
    if not is_in_future(new.happened_at, now):
        return begin if begin is not None and (day is None or day < begin) else None
    if day is None and _text_names_own_date(new):
        day = next((named.start for named in _dates_named_in_text(old) if _is_day_of_event(named, old, now)), None)
    if day is None or (begin is not None and day < new.happened_at):
        return new.happened_at
    return None


def superseding_memory_and_start_date(new: Memory, old: Memory, now: datetime) -> tuple[Memory, datetime | None]:
    """The new memory with its dates as a version that supersedes the old one, and since when it does; None for a plan,
    which supersedes nothing yet. A day that has passed says since when the new text is true; a future event
    keeps its own day, or has the one that the text names."""
    is_told_as_begun = not _is_dated_on_day_of_telling(new) and not is_in_future(new.happened_at, now)
    if not is_told_as_begun and (begin := future_start_of_replacement(old, new, now)):
        return replace(new, valid_from=begin, may_supersede=old.id), None
    if is_in_future(new.happened_at, now) and old.valid_from is not None and is_in_future(old.valid_from, now):
        return replace(new, valid_from=new.happened_at, may_supersede=old.may_supersede), new.created_at
    since = start_of_supersession(old, new)
    if (when := _dates_of_retold_future_event(old, new, now)) is None:
        return new, since
    given = () if _is_dated_on_day_of_telling(new) else tuple(entry for entry in new.scene.when if entry not in when)
    scene = replace(new.scene, when=(*when, *given))
    return replace(
        new, scene=scene, happened_at=start_of_first_dated_timeline_entry(when, now), valid_from=since
    ), since


def start_of_supersession(old: Memory, new: Memory) -> datetime:
    """Since when the new one is true, as its date says. A period in which the old one began ends no earlier than that;
    a future day is that of an event."""
    period = first_timeline_period(new.scene.when)
    if new.valid_from is not None or period is None or period.start > new.created_at:
        return new.valid_from or new.created_at
    stated = validity_start_stated_in_text(new.scene.action, period.start.date())
    if stated is not None and period.start < stated.start <= new.created_at:  # a plan, told again when its day has come
        return stated.start
    told = first_timeline_period_if_not_future(old, new.created_at)
    begin = old.valid_from or (told.start if told else None)
    return begin if begin is not None and period.start < begin <= period.end else period.start


def different_future_day_in_text(memory: Memory, now: datetime) -> str:
    """The future day that the text of a future event names in place of its own; "" if it names none."""
    if not memory.scene.when or not is_in_future(memory.happened_at, now) or _text_names_own_date(memory):
        return ""
    return next(iter(_future_days_named_in_text(memory, now)), "")


def future_day_missing_from_dates(memory: Memory, now: datetime) -> str:
    """The one future day that its text names, where it is dated to no future day; "" for none, and for a day from
    which on something is true."""
    if _future_day_from_dates(memory, now) is not None or future_beginning_stated_in_text(memory, now) is not None:
        return ""
    days = _future_days_named_in_text(memory, now)
    return days[0] if len(days) == 1 and not _text_names_own_date(memory) else ""


def future_beginning_missing_from_dates(memory: Memory, now: datetime) -> str:
    """The future day or month from which on its text says that something is true, where it is dated to no future day;
    "" for none."""
    begin = _future_validity_start_period_in_text(memory, now) if _future_day_from_dates(memory, now) is None else None
    return begin.text if begin else ""


def future_day_when_new_may_replace_old(old: Memory, new: Memory, now: datetime) -> str:
    """The one future day that the text of the new memory names, where it is dated to none and the old one tells of no
    day: it may take the old one's place only then ("on 1 December it goes to 300 s"). "" for none."""
    if _future_day_from_dates(old, now) is not None or _dates_named_in_text(old):
        return ""
    return future_day_missing_from_dates(new, now)


def announced_time_span(memory: Memory) -> tuple[datetime, datetime] | None:
    """The first and the last moment of `announced_days`."""
    text, when = memory.scene.action, memory.scene.when
    days = announced_days(text, when, created_at=memory.created_at, happened_at=memory.happened_at)
    return first_and_last_moment_of_days(days) if days else None


@lru_cache(maxsize=1_000)
def announced_days(
    text: str, when: tuple[TextOrDatedAction, ...], *, created_at: datetime, happened_at: datetime
) -> Days | None:
    """The one day or period that the text of a memory with these dates names, or tells from the day of telling
    ("tomorrow"), where that was still to come when it was told, and none of its dates was but those of the period;
    None for none, and for several (ADR 99). A question for days asks it of each match."""
    if len(text) > MAX_ANNOUNCEMENT_CHARS:
        return None
    told = _day_on_which_text_was_told(text, created_at=created_at, happened_at=happened_at)
    dated = [first.date() for first, _ in time_spans_of_timeline(when, happened_at) if first.date() > told]
    days = days_to_come_in_text(text, told)
    is_period_of_dates = days is not None and days[0] < days[1] and all(days[0] <= day <= days[1] for day in dated)
    return days if not dated or is_period_of_dates else None


def have_different_future_days(new: Memory, old: Memory) -> bool:
    """Whether both tell, by their dates, of a future day, and of another one each."""
    days = [memory.happened_at for memory in (new, old) if is_in_future(memory.happened_at, new.created_at)]
    return len(set(days)) > 1


def _future_day_from_dates(memory: Memory, now: datetime) -> datetime | None:
    day = memory.valid_from or memory.happened_at
    return day if is_in_future(day, now) else None


def future_beginning_stated_in_text(memory: Memory, now: datetime) -> datetime | None:
    """The future moment from which on the memory is true by its own text; None if it states none."""
    begin = _future_validity_start_period_in_text(memory, now)
    return begin.start if begin else None


def _future_validity_start_period_in_text(memory: Memory, now: datetime) -> IsoPeriod | None:
    begin = validity_start_stated_in_text(memory.scene.action, _day_of_telling(memory))
    return begin if begin and is_in_future(begin.start, now) else None


def _day_of_telling(memory: Memory) -> date:
    return _day_on_which_text_was_told(
        memory.scene.action, created_at=memory.created_at, happened_at=memory.happened_at
    )


def _day_on_which_text_was_told(text: str, *, created_at: datetime, happened_at: datetime) -> date:
    """A day without its year is the one that is nearest to it. What was stored later than it was told has the day of
    telling for its date, if it names a day soon after; a fact may have that since which it is true."""
    told, stored = min(happened_at, created_at).date(), created_at.date()
    named = [day.start.date() for day in iso_periods_in_text_ranges_as_first_day(text, told)]
    is_soon_after = any(
        told <= day <= told + (MAX_DAYS_FROM_TELLING_TO_PAST_EVENT if day <= stored else MAX_DAYS_FROM_TELLING_TO_EVENT)
        for day in named
    )
    return told if is_soon_after else stored


def _dates_named_in_text(memory: Memory) -> list[IsoPeriod]:
    return dates_in_text_as_iso_periods(memory.scene.action, _day_of_telling(memory))


def _future_days_named_in_text(memory: Memory, now: datetime) -> tuple[str, ...]:
    """ISO, each once, in order; of a period its first day."""
    named = iso_periods_in_text_ranges_as_first_day(memory.scene.action, _day_of_telling(memory))
    days = (day.text for day in named if day.precision == "day" and is_in_future(day.start, now))
    return tuple(dict.fromkeys(days))


def _is_day_of_event(named: IsoPeriod, memory: Memory, now: datetime) -> bool:
    """Whether a day that the text names is that of an event: it is to come, or was when it was told. What is true since
    a day is told on that day or later."""
    told = min(memory.happened_at, memory.created_at)
    return named.precision == "day" and (named.end >= now or named.start.date() > told.date())


def _is_dated_on_day_of_telling(memory: Memory) -> bool:
    return memory.happened_at.date() == memory.created_at.date()


def _text_names_own_date(memory: Memory) -> bool:
    return any(named.start <= memory.happened_at <= named.end for named in _dates_named_in_text(memory))


def _dates_of_retold_future_event(old: Memory, new: Memory, now: datetime) -> tuple[TextOrDatedAction, ...] | None:
    """Dates of the future event that both tell of, if the new one's own say no future day; None for no event."""
    if is_in_future(new.happened_at, now) or any(isinstance(entry, DatedAction) for entry in new.scene.when):
        return None
    if (
        not old.scene.when
        or not is_in_future(old.happened_at, now)
        or future_beginning_stated_in_text(old, now) is not None
    ):
        return None
    known = {named.text for named in _dates_named_in_text(old)}
    told = _future_days_named_in_text(new, now)
    return told if len(told) == 1 and known.isdisjoint(told) else old.scene.when
