from __future__ import annotations

import random

import pytest

from benchmarks.year import HABITS, KINDS, PEOPLE, Year, asked_again, year

DAYS = 150


@pytest.fixture(scope="module")
def plan() -> Year:
    return year(DAYS, seed=1)


def test_the_same_seed_tells_the_same_year(plan: Year) -> None:
    assert year(DAYS, seed=1) == plan
    assert year(DAYS, seed=2) != plan


def test_each_version_of_a_fact_is_told_on_its_day(plan: Year) -> None:
    told = {entry.fact: number for number, day in enumerate(plan.days) for entry in day.entries if entry.fact}
    assert told == {(n, version): day for n, fact in enumerate(plan.facts) for version, day in enumerate(fact.told)}


def test_a_fact_is_asked_about_after_it_was_told_in_other_words(plan: Year) -> None:
    texts = {entry.scene.scene.action for day in plan.days for entry in day.entries}
    for fact in plan.facts:
        assert all(fact.told[0] < day < DAYS and question not in texts for day, question in fact.cues)
        assert bool(fact.cues) <= (fact.habit != "never")


def test_who_half_remembers_a_fact_finds_every_version_of_it(plan: Year) -> None:
    for day in plan.days:
        for entry in day.entries:
            if entry.fact:
                text = entry.scene.scene.action.casefold()
                assert all(word.casefold() in text for word in plan.facts[entry.fact[0]].words)


def test_there_are_facts_for_a_year() -> None:
    assert len(PEOPLE) * len(KINDS) >= 365 * 2.5
    assert sum(HABITS.values()) == pytest.approx(1)


def test_intervals_grow_by_two() -> None:
    assert asked_again("at growing intervals", 10, 100, random.Random(1)) == [12, 16, 24, 40, 72]
