"""The plan of a simulated year of daily sessions: what is stored, what is asked again, what changes. Seeded.

Each day has a session of a few facts worth keeping and much small talk that nobody asks about again; in March and
April, also the conversation of `make demo`. A fact has one of the `ASK_PATTERNS`, which says when it is asked about;
the question never uses the words of the fact. Some facts change: the earlier version is then wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from benchmarks.dynamics.plan_texts import (
    DEMO_FACTS,
    FACT_TEMPLATES,
    FILL_WORDS,
    PEOPLE,
    ROUTINE_TALK,
    SMALL_TALK,
    DemoFact,
    FactTemplate,
)
from examples.conversation import read_conversation
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.model import Scene

START = date(2026, 1, 1)
AskPattern = Literal["never", "once", "at random", "at growing intervals", "regularly"]
ASK_PATTERNS: Mapping[AskPattern, float] = {
    "never": 0.35, "once": 0.2, "at random": 0.2, "at growing intervals": 0.15, "regularly": 0.1
}  # fmt: skip
"""Shares of the facts."""
CHANGING_SHARE = 0.15
"""Share of the facts that change, once, 10 to 120 days after they were first stored."""
FACTS_A_DAY = (1, 4)
SMALL_TALK_A_DAY = (6, 9)
ROUTINE_SHARE = 0.1
"""Share of the small talk that is repeated word for word."""
UNRATED_SHARE = 0.4
"""Share of the memories stored without an importance: they get the default, 0.5."""
FACT_IMPORTANCES = (0.5, 0.6, 0.7, 0.8, 0.9)
SMALL_TALK_IMPORTANCES = (0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True, slots=True)
class Fact:
    ask_pattern: AskPattern
    version_days: tuple[int, ...]
    """The day of each version; the last one is valid."""
    asked: tuple[tuple[int, str], ...]
    """(day, question), in the order of days; all after the day of the first version."""
    questions: tuple[str, ...]
    search_words: tuple[str, ...]
    """Words for a keyword search: the person, and a word that every version contains."""


@dataclass(frozen=True, slots=True)
class PlannedScene:
    """`fact_version`: (number of the fact, number of the version); None for small talk."""

    scene: NewScene
    fact_version: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PlannedDay:
    noon: datetime
    scenes: tuple[PlannedScene, ...]
    questions: tuple[tuple[int, str], ...]
    """(number of the fact, question), asked in the afternoon."""


@dataclass(frozen=True, slots=True)
class YearPlan:
    facts: tuple[Fact, ...]
    days: tuple[PlannedDay, ...]


def plan_year(days: int, *, seed: int) -> YearPlan:
    """Plan `days` days. Equal arguments give equal plans."""
    rng = random.Random(seed)
    scenes: list[list[PlannedScene]] = [[] for _ in range(days)]
    facts = _add_demo(rng, scenes)
    pairs = [(person, template) for person in PEOPLE for template in FACT_TEMPLATES]
    rng.shuffle(pairs)
    for day in range(days):
        for _ in range(rng.randint(*FACTS_A_DAY)):
            if not pairs:
                break
            person, template = pairs.pop()
            fact, versions = _fact_with_versions(rng, person, template, day=day, days=days)
            for number, (version_day, scene) in enumerate(versions):
                scenes[version_day].append(PlannedScene(scene, (len(facts), number)))
            facts.append(fact)
        for _ in range(rng.randint(*SMALL_TALK_A_DAY)):
            scenes[day].append(PlannedScene(_small_talk(rng, day)))
    questions: list[list[tuple[int, str]]] = [[] for _ in range(days)]
    for number, fact in enumerate(facts):
        for day, question in fact.asked:
            questions[day].append((number, question))
    for of_day in scenes:
        rng.shuffle(of_day)
    noon = datetime(START.year, START.month, START.day, 12, tzinfo=UTC)
    return YearPlan(
        tuple(facts),
        tuple(PlannedDay(noon + timedelta(days=day), tuple(scenes[day]), tuple(questions[day])) for day in range(days)),
    )


def _add_demo(rng: random.Random, scenes: list[list[PlannedScene]]) -> list[Fact]:
    """Add the demo conversation to `scenes` and return its facts."""
    facts: list[Fact] = []
    for scene, day, demo_fact in _demo_scenes(len(scenes)):
        if demo_fact is None:
            scenes[day].append(PlannedScene(scene))
            continue
        number = next((i for i, fact in enumerate(facts) if fact.questions == demo_fact.questions), len(facts))
        earlier = facts[number].version_days if number < len(facts) else ()
        fact = _fact(rng, (*earlier, day), demo_fact.questions, demo_fact.search_words, len(scenes))
        facts[number : number + 1] = [fact]
        scenes[day].append(PlannedScene(scene, (number, len(earlier))))
    return facts


def _demo_scenes(days: int) -> Iterator[tuple[NewScene, int, DemoFact | None]]:
    """(scene, day, the fact it states), in the order of days."""
    for turn in read_conversation():
        day = (date.fromisoformat(turn["when"][:10]) - START).days
        if day >= days:
            return
        scene = NewScene(
            scene=Scene(action=turn["text"], actors=(turn["speaker"],), when=(turn["when"],)),
            feeling=turn.get("feeling", ""),
            importance=turn.get("importance"),
            themes=tuple(turn.get("themes", ())),
            session_id=f"demo-{turn['session']}",
        )
        stated = (fact for fact in DEMO_FACTS if any(marker in turn["text"] for marker in fact.markers))
        yield scene, day, next(stated, None)


def _fact_with_versions(
    rng: random.Random, person: str, template: FactTemplate, *, day: int, days: int
) -> tuple[Fact, list[tuple[int, NewScene]]]:
    """A fact first stored on that day, and its versions, each with its day."""
    values = rng.sample(template.values, 2)
    version_days = [day]
    change_day = day + rng.randint(10, 120)
    if rng.random() < CHANGING_SHARE and change_day < days:
        version_days.append(change_day)
    importance = _importance(rng, FACT_IMPORTANCES)
    statements = (template.statement, template.changed_statement)
    versions = [
        (on, _scene(text.format(p=person, v=value), on, actors=(person,), importance=importance))
        for on, text, value in zip(version_days, statements, values, strict=False)
    ]
    questions = tuple(text.format(p=person) for text in template.questions)
    return _fact(rng, tuple(version_days), questions, (person, template.shared_word), days), versions


def _fact(
    rng: random.Random,
    version_days: tuple[int, ...],
    questions: tuple[str, ...],
    search_words: tuple[str, ...],
    days: int,
) -> Fact:
    [pattern] = rng.choices(list(ASK_PATTERNS), weights=list(ASK_PATTERNS.values()))
    asked = [(day, rng.choice(questions)) for day in question_days(pattern, version_days[0], days, rng)]
    return Fact(pattern, version_days, tuple(asked), questions, search_words)


def question_days(pattern: AskPattern, first_day: int, days: int, rng: random.Random) -> list[int]:
    """The days, in order, on which a fact first stored on `first_day` is asked about."""
    schedules: Mapping[AskPattern, Callable[[], Iterator[int]]] = {
        "never": lambda: iter(()),
        "once": lambda: _random_days(1, first_day, days, rng),
        "at random": lambda: _random_days(rng.randint(2, 5), first_day, days, rng),
        "at growing intervals": lambda: _days_after(first_day, (2 << step for step in range(days.bit_length()))),
        "regularly": lambda: _days_after(first_day, (rng.randint(7, 21) for _ in range(days))),
    }
    return sorted({day for day in schedules[pattern]() if first_day < day < days})


def _random_days(count: int, first_day: int, days: int, rng: random.Random) -> Iterator[int]:
    return (rng.randint(first_day + 1, days) for _ in range(count))


def _days_after(day: int, intervals: Iterator[int]) -> Iterator[int]:
    for interval in intervals:
        day += interval
        yield day


def _small_talk(rng: random.Random, day: int) -> NewScene:
    if rng.random() < ROUTINE_SHARE:
        return _scene(rng.choice(ROUTINE_TALK), day, importance=_importance(rng, SMALL_TALK_IMPORTANCES))
    words = {name: rng.choice(choices) for name, choices in FILL_WORDS.items()}
    text = rng.choice(SMALL_TALK).format(**words)
    return _scene(text, day, actors=(words["p"],), importance=_importance(rng, SMALL_TALK_IMPORTANCES))


def _importance(rng: random.Random, choices: Sequence[float]) -> float | None:
    return None if rng.random() < UNRATED_SHARE else rng.choice(choices)


def _scene(text: str, day: int, *, actors: tuple[str, ...] = (), importance: float | None) -> NewScene:
    when = (START + timedelta(days=day)).isoformat()
    return NewScene(
        scene=Scene(action=text, actors=actors, when=(when,)), importance=importance, session_id=f"day-{day}"
    )
