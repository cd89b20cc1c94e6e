"""Which memories' time is over (spec O8, O9): rules by category, and what may go together. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from madeleine.memory.model import LIVING_STATUSES, BeingId, Category, MemoryId, MemoryLevel, MemoryStatus, TruthStatus
from madeleine.memory.rules.dynamics.importance import effective_importance

ConsolidationInterval = Literal["hourly", "daily", "weekly", "never"]
RETENTION_INTERVAL_DURATIONS: Mapping[ConsolidationInterval, timedelta | None] = {
    "hourly": timedelta(hours=1),
    "daily": timedelta(days=1),
    "weekly": timedelta(weeks=1),
    "never": None,
}
PROTECTED_DAYS_AFTER_USE = 30
"""A current memory that was stored, told again or recalled within these is not archived for want of room."""
SESSION_ENDS_AFTER_IDLE_TIME = timedelta(hours=12)
"""A session that nothing was stored or recalled in for so long has ended, if nobody has said so before."""

RetentionSource = Literal["being_rule", "store_rule", "being_default", "store_default", "keep"]
RetentionArchiveReason = Literal["expired", "limit", "session_ended", "project_ended"]
RetentionDays = Annotated[int, Field(ge=1, le=100_000)]


class BeingRetentionConfig(BaseModel):
    """A being's own rules; a category or `days` that is left out is the store's. None: kept for good."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: Mapping[Category, RetentionDays | None] = Field(default_factory=dict)
    days: RetentionDays | None = None
    max_memories: int | None = Field(default=None, ge=1, le=10**9)


class RetentionConfig(BaseModel):
    """The store's rules (spec O8): days by category, days of categories without a rule, the most memories of a being;
    `interval`: the least time between two enforcements by patrols. By default everything is kept."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rules: Mapping[Category, RetentionDays | None] = Field(default_factory=dict)
    days: RetentionDays | None = None
    max_memories: int | None = Field(default=None, ge=1, le=10**9)
    interval: ConsolidationInterval = "daily"
    beings: Mapping[str, BeingRetentionConfig] = Field(default_factory=dict)

    def rule_for_being_and_category(self, being: BeingId, category: Category) -> RetentionRule:
        """The five steps of spec O9."""
        own = self.beings.get(being, BeingRetentionConfig())
        if category in own.rules:
            return RetentionRule(category, own.rules[category], "being_rule")
        if category in self.rules:
            return RetentionRule(category, self.rules[category], "store_rule")
        if own.days is not None:
            return RetentionRule(category, own.days, "being_default")
        if self.days is not None:
            return RetentionRule(category, self.days, "store_default")
        return RetentionRule(category, None, "keep")

    def has_rules_for_being(self, being: BeingId) -> bool:
        """Whether anything of the being may have to go."""
        own = self.beings.get(being, BeingRetentionConfig())
        days = (self.days, own.days, *self.rules.values(), *own.rules.values())
        return any(one is not None for one in days) or self.max_memories_of(being) is not None

    def max_memories_of(self, being: BeingId) -> int | None:
        own = self.beings.get(being)
        return own.max_memories if own and own.max_memories is not None else self.max_memories


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """`days` after which a memory of the category has had its time; None: never."""

    category: Category
    days: int | None
    source: RetentionSource


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRetentionFacts:
    """What decides whether a memory's time is over. `last_used`: when it was last stored, told again, recalled or
    brought back. `part_of`: the memories that it was absorbed into or is summarised by; `superseded_by`: its next
    version."""

    id: MemoryId
    category: Category
    last_used: datetime
    importance: float
    session_count: int
    pinned: bool = False
    status: MemoryStatus = "active"
    truth: TruthStatus = "current"
    level: MemoryLevel = "persistent"
    session_id: str = ""
    project: str = ""
    part_of: tuple[MemoryId, ...] = ()
    superseded_by: MemoryId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSessionOrProject:
    """A session or a project that has ended by somebody's word; "" for none."""

    session_id: str = ""
    project: str = ""


EMPTY_ENDED_SESSION_OR_PROJECT = EndedSessionOrProject()


@dataclass(frozen=True, slots=True)
class ArchiveTogetherLinks:
    """How memories hang together: a memory goes only with all that was absorbed into it or that it summarises, and a
    version only with its whole chain, so that nothing that stays points to what went."""

    dependents: Mapping[MemoryId, Sequence[MemoryId]]
    versions: Mapping[MemoryId, Sequence[MemoryId]]

    @classmethod
    def from_retention_facts(cls, ages: Iterable[MemoryRetentionFacts]) -> ArchiveTogetherLinks:
        dependents: defaultdict[MemoryId, list[MemoryId]] = defaultdict(list)
        versions: defaultdict[MemoryId, list[MemoryId]] = defaultdict(list)
        for age in ages:
            for target in age.part_of:
                dependents[target].append(age.id)
            if age.superseded_by is not None:
                versions[age.superseded_by].append(age.id)
                versions[age.id].append(age.superseded_by)
        return cls(dependents, versions)

    def memories_to_archive_together(self, id_: MemoryId) -> list[MemoryId]:
        """The memory and all that have to go with it."""
        together: dict[MemoryId, None] = {id_: None}
        waiting = [id_]
        while waiting:
            one = waiting.pop()
            for other in (*self.dependents.get(one, ()), *self.versions.get(one, ())):
                if other not in together:
                    together[other] = None
                    waiting.append(other)
        return list(together)


def archive_reason_by_memory_id(
    ages: Sequence[MemoryRetentionFacts],
    config: RetentionConfig,
    being: BeingId,
    now: datetime,
    ended: EndedSessionOrProject = EMPTY_ENDED_SESSION_OR_PROJECT,
    *,
    most: int | None = None,
) -> dict[MemoryId, RetentionArchiveReason]:
    """The memories of a being that go, and why (spec O8, ruling 26). `ages`: all of them. Never one that is pinned, or
    younger than its rule; when all of them have gone, the plan for what stays is empty. `most`: ends with the memory
    by which there are so many, and those that go with it. `ended`: only what was kept for these goes then."""
    links = ArchiveTogetherLinks.from_retention_facts(ages)
    rules = _RetentionRulesOfBeingAtTime(config, being, now)
    by_rules = ended == EMPTY_ENDED_SESSION_OR_PROJECT
    over: dict[MemoryId, RetentionArchiveReason] = {
        age.id: "expired" for age in ages if by_rules and rules.is_expired(age)
    }
    over |= _reasons_of_ended_session_or_project(ages, now, ended)
    going = _reasons_of_complete_linked_groups(over, links, {}, most=most)
    if by_rules:
        going |= _reasons_of_memories_beyond_limit(ages, links, going, rules, most=most)
    while more := _reasons_of_complete_linked_groups(over, links, going, most=most):  # what hung on them is gone by now
        going |= more
    return going


def _reasons_of_complete_linked_groups(
    over: Mapping[MemoryId, RetentionArchiveReason],
    links: ArchiveTogetherLinks,
    going: Collection[MemoryId],
    *,
    most: int | None,
) -> dict[MemoryId, RetentionArchiveReason]:
    """Of those whose time is over, the ones that may go as all that hangs on them goes, too."""
    whole: dict[MemoryId, RetentionArchiveReason] = {}
    for id_ in over:
        if most is not None and len(going) + len(whole) >= most:
            break
        if id_ not in going and id_ not in whole:
            together = [one for one in links.memories_to_archive_together(id_) if one not in going and one not in whole]
            if over.keys() >= set(together):
                whole |= {one: over[one] for one in together}
    return whole


@dataclass(frozen=True, slots=True)
class _RetentionRulesOfBeingAtTime:
    """The rules of one being at a moment."""

    config: RetentionConfig
    being: BeingId
    now: datetime

    def is_expired(self, age: MemoryRetentionFacts) -> bool:
        days = self.config.rule_for_being_and_category(self.being, age.category).days
        return not age.pinned and days is not None and self.now - age.last_used >= timedelta(days=days)

    def may_be_archived_for_room(self, age: MemoryRetentionFacts) -> bool:
        """Not what is pinned, what is asked for, or what a rule keeps for longer."""
        rule = self.config.rule_for_being_and_category(self.being, age.category)
        if age.pinned or (rule.source != "keep" and rule.days is None):
            return False
        is_current = age.truth == "current" and age.status in LIVING_STATUSES
        least = max(rule.days or 0, PROTECTED_DAYS_AFTER_USE if is_current else 1)
        return self.now - age.last_used >= timedelta(days=least)


def _reasons_of_ended_session_or_project(
    ages: Sequence[MemoryRetentionFacts], now: datetime, ended: EndedSessionOrProject
) -> dict[MemoryId, RetentionArchiveReason]:
    """Memories whose session or project has ended (spec O2)."""
    latest: dict[str, datetime] = {}
    of_sessions = [age for age in ages if age.level == "session" and not age.pinned]
    for age in of_sessions:
        key = age.session_id or age.id
        latest[key] = max(latest.get(key, age.last_used), age.last_used)
    reasons: dict[MemoryId, RetentionArchiveReason] = {}
    for age in of_sessions:
        is_told = bool(ended.session_id) and age.session_id == ended.session_id
        if is_told or now - latest[age.session_id or age.id] >= SESSION_ENDS_AFTER_IDLE_TIME:
            reasons[age.id] = "session_ended"
    for age in ages:
        if ended.project and age.level == "project" and age.project == ended.project and not age.pinned:
            reasons[age.id] = "project_ended"
    return reasons


def _reasons_of_memories_beyond_limit(
    ages: Sequence[MemoryRetentionFacts],
    links: ArchiveTogetherLinks,
    going: Collection[MemoryId],
    rules: _RetentionRulesOfBeingAtTime,
    *,
    most: int | None,
) -> dict[MemoryId, RetentionArchiveReason]:
    """What goes so that at most the greatest number stays: what no one asks for, the least worth first."""
    greatest = rules.config.max_memories_of(rules.being)
    excess = 0 if greatest is None else len(ages) - len(going) - greatest
    excess = excess if most is None else min(excess, most - len(going))
    if excess <= 0:
        return {}
    eligible = {age.id for age in ages if rules.may_be_archived_for_room(age)}
    chosen: dict[MemoryId, RetentionArchiveReason] = {}
    for age in sorted((age for age in ages if age.id in eligible), key=_worth_sort_key):
        if len(chosen) >= excess:
            break
        together = [one for one in links.memories_to_archive_together(age.id) if one not in going and one not in chosen]
        if eligible >= set(together):
            chosen |= dict.fromkeys(together, "limit")
    return chosen


def _worth_sort_key(age: MemoryRetentionFacts) -> tuple[bool, bool, float, datetime, MemoryId]:
    return (
        age.truth == "current",
        age.status in LIVING_STATUSES,
        round(effective_importance(age.importance, age.session_count), 6),
        age.last_used,
        age.id,
    )
