"""Whose time is over: the five steps of resolution, and what never goes (spec O8, O9; ruling 26)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.model import MEMORY_CATEGORIES, BeingId, MemoryId
from madeleine.memory.rules.archiving.retention import (
    ArchiveTogetherLinks,
    BeingRetentionConfig,
    EndedSessionOrProject,
    MemoryRetentionFacts,
    RetentionConfig,
    archive_reason_by_memory_id,
)

ADA, NOW = BeingId("ada"), datetime(2026, 11, 25, tzinfo=UTC)
RULE, DEFAULT = {"episodic": 30}, 90
OWN_RULE, OWN_DEFAULT = {"episodic": 7}, 14


def test_a_category_is_kept_by_the_first_of_five_rules_that_there_is() -> None:
    for own_rules, rules, own_days, days, expected, source in (
        (OWN_RULE, RULE, OWN_DEFAULT, DEFAULT, 7, "being_rule"),
        (OWN_RULE, {}, None, None, 7, "being_rule"),
        ({"episodic": None}, RULE, OWN_DEFAULT, DEFAULT, None, "being_rule"),
        ({"semantic": 7}, RULE, OWN_DEFAULT, DEFAULT, 30, "store_rule"),
        ({}, RULE, OWN_DEFAULT, DEFAULT, 30, "store_rule"),
        ({}, {"episodic": None}, OWN_DEFAULT, DEFAULT, None, "store_rule"),
        ({}, {"semantic": 30}, OWN_DEFAULT, DEFAULT, 14, "being_default"),
        ({}, {}, OWN_DEFAULT, None, 14, "being_default"),
        ({}, {}, None, DEFAULT, 90, "store_default"),
        ({}, {}, None, None, None, "keep"),
    ):
        own = {"ada": {"rules": own_rules, "days": own_days}, "bob": {"days": 1}}
        config = RetentionConfig.model_validate({"rules": rules, "days": days, "beings": own})
        rule = config.rule_for_being_and_category(ADA, "episodic")
        assert (rule.days, rule.source) == (expected, source)


def age(name: str, days: float = 100, **changes: object) -> MemoryRetentionFacts:
    one = MemoryRetentionFacts(
        id=MemoryId(name),
        category="episodic",
        last_used=NOW - timedelta(days=days),
        importance=0.5,
        session_count=0,
    )
    return replace(one, **changes)  # type: ignore[arg-type]


def plan(
    *ages: MemoryRetentionFacts,
    ended: EndedSessionOrProject = EndedSessionOrProject(),  # noqa: B008
    **config: object,
) -> dict[str, str]:
    going = archive_reason_by_memory_id(ages, RetentionConfig.model_validate(config), ADA, NOW, ended)
    return {str(id_): reason for id_, reason in going.items()}


def test_what_is_pinned_younger_than_its_rule_or_without_a_rule_stays() -> None:
    ages = age("old"), age("pinned", pinned=True), age("young", 29.9), age("just", 30), age("fact", category="semantic")
    assert plan(*ages, rules={"episodic": 30}) == {"old": "expired", "just": "expired"}
    assert plan(*ages) == {}


def test_a_memory_goes_only_with_all_that_hangs_on_it() -> None:
    original, summary = age("original", part_of=(MemoryId("summary"),)), age("summary")
    assert plan(original, summary, days=30) == {"original": "expired", "summary": "expired"}
    assert plan(original, replace(summary, last_used=NOW), days=30) == {"original": "expired"}
    assert plan(replace(original, last_used=NOW), summary, days=30) == {}
    first, last = age("first", truth="superseded", superseded_by=MemoryId("last")), age("last")
    assert plan(first, last, days=30).keys() == {"first", "last"}
    assert plan(first, replace(last, last_used=NOW), days=30) == {}, "the past of what is asked for stays with it"


def test_beyond_the_greatest_number_the_least_worth_goes_and_nothing_that_is_asked_for() -> None:
    ages = (
        age("asked for", 29), age("pinned", pinned=True), age("weak", importance=0.1), age("strong", importance=0.9),
        age("dead", 2, status="dead"), age("kept by a rule", category="social"),
    )  # fmt: skip
    rules = {"social": 365}
    assert plan(*ages, max_memories=5, rules=rules) == {"dead": "limit"}
    assert plan(*ages, max_memories=4, rules=rules).keys() == {"dead", "weak"}
    assert plan(*ages, max_memories=1, rules=rules).keys() == {"dead", "weak", "strong"}


def test_what_is_kept_for_a_session_or_a_project_ends_with_it() -> None:
    of_old = age("old", 0.6, level="session", session_id="s1"), age("older", 3, level="session", session_id="s1")
    of_new = age("new", 0.1, level="session", session_id="s2"), age("begun", 3, level="session", session_id="s2")
    of_project = age("boat", 3, level="project", project="boat"), age("house", 3, level="project", project="house")
    ages = (*of_old, *of_new, *of_project, age("pinned", level="session", pinned=True), age("kept", project="boat"))
    assert plan(*ages) == dict.fromkeys(("old", "older"), "session_ended")
    assert plan(*ages, ended=EndedSessionOrProject(session_id="s2")).keys() == {"old", "older", "new", "begun"}
    assert plan(*ages, ended=EndedSessionOrProject(project="boat"))["boat"] == "project_ended"


@st.composite
def stores(draw: st.DrawFn) -> list[MemoryRetentionFacts]:
    names = [MemoryId(str(number)) for number in range(draw(st.integers(0, 14)))]
    ages: list[MemoryRetentionFacts] = []
    for place, name in enumerate(names):
        later = names[place + 1 :]
        other = st.none() | st.sampled_from(later) if later else st.none()
        part_of, version = draw(other), draw(other)
        ages.append(
            MemoryRetentionFacts(
                id=name,
                category=draw(st.sampled_from(MEMORY_CATEGORIES)),
                last_used=NOW - timedelta(days=draw(st.integers(0, 120))),
                importance=draw(st.floats(0, 1)),
                session_count=draw(st.integers(0, 40)),
                pinned=draw(st.booleans()),
                status=draw(st.sampled_from(("active", "dying", "dead"))),
                truth="superseded" if version else "current",
                level=draw(st.sampled_from(("persistent", "session", "project"))),
                session_id=draw(st.sampled_from(("", "s"))),
                part_of=(part_of,) if part_of else (),
                superseded_by=version,
            )
        )
    return ages


configs = st.builds(
    RetentionConfig,
    rules=st.dictionaries(st.sampled_from(MEMORY_CATEGORIES), st.none() | st.integers(1, 100), max_size=3),
    days=st.none() | st.integers(1, 100),
    max_memories=st.none() | st.integers(1, 12),
    beings=st.dictionaries(
        st.just("ada"), st.builds(BeingRetentionConfig, days=st.none() | st.integers(1, 100)), max_size=1
    ),
)


@given(stores(), configs, st.none() | st.integers(1, 6))
def test_retention_twice_is_retention_once_and_leaves_nothing_dangling(
    ages: list[MemoryRetentionFacts], config: RetentionConfig, most: int | None
) -> None:
    going = archive_reason_by_memory_id(ages, config, ADA, NOW)
    staying = [one for one in ages if one.id not in going]
    assert archive_reason_by_memory_id(staying, config, ADA, NOW) == {}
    assert not any(one.pinned for one in ages if one.id in going)
    for one in staying:
        assert going.keys().isdisjoint((*one.part_of, *([one.superseded_by] if one.superseded_by else [])))
    # In parts it comes to the same end, and each part is whole.
    left = ages
    while most is not None and (part := archive_reason_by_memory_id(left, config, ADA, NOW, most=most)):
        left = [one for one in left if one.id not in part]
        links = ArchiveTogetherLinks.from_retention_facts(left)
        assert all(target in {one.id for one in left} for target in links.dependents)
    if most is not None:
        assert archive_reason_by_memory_id(left, config, ADA, NOW) == {}
