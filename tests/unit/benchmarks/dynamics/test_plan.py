from __future__ import annotations

import random

import pytest

from benchmarks.dynamics.plan import ASK_PATTERNS, YearPlan, plan_year, question_days
from benchmarks.dynamics.plan_texts import FACT_TEMPLATES, PEOPLE

DAYS = 150


@pytest.fixture(scope="module")
def plan() -> YearPlan:
    return plan_year(DAYS, seed=1)


def test_the_same_seed_gives_the_same_year(plan: YearPlan) -> None:
    assert plan_year(DAYS, seed=1) == plan
    assert plan_year(DAYS, seed=2) != plan


def test_each_version_of_a_fact_is_stored_on_its_day(plan: YearPlan) -> None:
    stored = {
        planned.fact_version: number
        for number, day in enumerate(plan.days)
        for planned in day.scenes
        if planned.fact_version
    }
    assert stored == {
        (number, version): day
        for number, fact in enumerate(plan.facts)
        for version, day in enumerate(fact.version_days)
    }


def test_a_fact_is_asked_about_later_and_in_other_words(plan: YearPlan) -> None:
    texts = {planned.scene.scene.action for day in plan.days for planned in day.scenes}
    for fact in plan.facts:
        assert all(fact.version_days[0] < day < DAYS and question not in texts for day, question in fact.asked)
        assert bool(fact.asked) <= (fact.ask_pattern != "never")


def test_every_version_of_a_fact_contains_its_search_words(plan: YearPlan) -> None:
    for day in plan.days:
        for planned in day.scenes:
            if planned.fact_version:
                text = planned.scene.scene.action.casefold()
                assert all(word.casefold() in text for word in plan.facts[planned.fact_version[0]].search_words)


def test_there_are_facts_for_a_year() -> None:
    assert len(PEOPLE) * len(FACT_TEMPLATES) >= 365 * 2.5
    assert sum(ASK_PATTERNS.values()) == pytest.approx(1)


def test_growing_intervals_double() -> None:
    assert question_days("at growing intervals", 10, 100, random.Random(1)) == [12, 16, 24, 40, 72]
