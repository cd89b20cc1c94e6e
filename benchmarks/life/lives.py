"""Lives: several conversations of a retrieval set, interleaved by their dates into one being's year."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from benchmarks import data_sets
from benchmarks.data_sets import Document, LabelledQuery, Unit

Entry = Literal["store", "ingest", "observe"]
"""The tool through which a life's turns come in."""
FIRST_DAY = datetime.fromisoformat("2026-01-01T12:00+00:00")
LAST_SESSION_DAY = 330
"""Day of the last session where a set's own dates lie within a shorter time: they are stretched to it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`units`: how many conversations make a life."""

    data_set: str
    units: int
    entry: Entry


KINDS = (
    Kind("locomo", 3, "store"),
    Kind("beam100k", 4, "ingest"),
    Kind(f"longmemeval_s_dev50{data_sets.USER_TURNS}", 12, "observe"),
)


@dataclass(frozen=True, slots=True)
class LifeSession:
    """`topic`: the conversation that it belongs to; of a set whose sessions are unrelated, the session."""

    day: int
    id: str
    topic: str
    turns: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Life:
    name: str
    entry: Entry
    sessions: tuple[LifeSession, ...]
    """In the order of days."""
    questions: tuple[LabelledQuery, ...]

    def of_day(self, day: int) -> Iterator[LifeSession]:
        return (session for session in self.sessions if session.day == day)

    def answerable_on(self, day: int) -> list[LabelledQuery]:
        """The questions whose evidence was told up to that day."""
        told = {turn.id for session in self.sessions if session.day <= day for turn in session.turns}
        return [question for question in self.questions if told.issuperset(question.gold)]


def noon_of(day: int) -> datetime:
    return FIRST_DAY + timedelta(days=day)


def read_life(folder: Path, kind: Kind) -> Life:
    """The first units of a set, each from day 0 on. Ids begin with the unit's name: sets number anew in each unit."""
    units = [_with_own_ids(unit) for unit in data_sets.read(folder, kind.data_set)[: kind.units]]
    sessions = [session for unit in units for session in _sessions(unit, one_topic=kind.entry != "observe")]
    last = max(session.day for session in sessions)
    stretch = max(1.0, LAST_SESSION_DAY / max(1, last))
    placed = [_on_day(session, round(session.day * stretch)) for session in sessions]
    return Life(
        name=kind.data_set.removesuffix(data_sets.USER_TURNS),
        entry=kind.entry,
        sessions=tuple(sorted(placed, key=lambda session: session.day)),
        questions=tuple(query for unit in units for query in unit.queries),
    )


def _with_own_ids(unit: Unit) -> Unit:
    def own(id_: str) -> str:
        return f"{unit.name}/{id_}"

    documents = tuple(replace(turn, id=own(turn.id), session=own(turn.session)) for turn in unit.documents)
    queries = tuple(replace(query, gold=tuple(map(own, query.gold))) for query in unit.queries)
    return Unit(unit.name, documents, queries)


def _sessions(unit: Unit, *, one_topic: bool) -> Iterator[LifeSession]:
    turns: dict[str, list[Document]] = {}
    for turn in unit.documents:
        turns.setdefault(turn.session, []).append(turn)
    dates = {id_: _date(of_session) for id_, of_session in turns.items()}
    first = min(dates.values())
    for id_, of_session in turns.items():
        day = (dates[id_] - first).days
        yield LifeSession(day, id_, unit.name if one_topic else id_, tuple(of_session))


def _date(turns: Sequence[Document]) -> datetime:
    return datetime.fromisoformat(next(time for turn in turns if (time := data_sets.iso_time(turn.time))))


def _on_day(session: LifeSession, day: int) -> LifeSession:
    """With the life's date in place of the set's."""
    date = noon_of(day).date().isoformat()
    return replace(session, day=day, turns=tuple(replace(turn, time=date) for turn in session.turns))
