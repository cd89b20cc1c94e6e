"""spec P12: patrols that come by themselves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from madeleine.memory.language_model import LanguageModel
from madeleine.memory.model import BeingId, RunId, Scope
from madeleine.memory.patrol_records import ActivitySinceLastPatrol
from madeleine.patrol.report import PatrolReport
from madeleine.patrol.triggers import PatrolTriggerConfig
from madeleine.server.background import loops as rounds
from madeleine.server.background.loops import (
    AUTOMATIC_PATROL_CLIENT_NAME,
    MIN_AUTOMATIC_PATROL_INTERVAL,
    AutomaticPatrolLoop,
    patrol_triggers_from_settings,
)
from madeleine.server.settings.settings import Settings
from tests.doubles import NOW, Clock

ADA, BERT = BeingId("ada"), BeingId("bert")


def many(being_id: BeingId, at: datetime = NOW) -> ActivitySinceLastPatrol:
    return ActivitySinceLastPatrol(being_id=being_id, stored=200, first=at, latest=at)


class Household:
    """A ledger that knows who has something new, and a patrol that notes for whom it came."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.new: dict[BeingId, ActivitySinceLastPatrol] = {}
        self.came: list[BeingId] = []
        self.calls: list[tuple[Scope, LanguageModel | None, bool]] = []
        self.under_way: set[BeingId] = set()
        self.fails_with: Exception | None = None
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()
        self.goes_on.set()
        self.cancelled = 0
        self.open = True
        self.time_passes = asyncio.Event()
        self.paused: asyncio.Queue[None] = asyncio.Queue()
        self.schedule = AutomaticPatrolLoop(
            PatrolTriggerConfig(after_memories=200, at_hour=None, after_idle=None),
            lambda: (self, self) if self.open else None,
            now=self.clock,
            wait=self.pause,
        )

    async def activity_of_each_being_since_last_patrol(self) -> list[ActivitySinceLastPatrol]:
        return [self.new[being] for being in sorted(self.new)]

    async def is_running(self, being_id: BeingId) -> bool:
        return being_id in self.under_way

    async def __call__(
        self, scope: Scope, *, language: LanguageModel | None = None, offer_pending: bool = True
    ) -> PatrolReport:
        self.calls.append((scope, language, offer_pending))
        self.came.append(scope.being_id)
        self.begun.set()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fails_with:
            raise self.fails_with
        self.new.pop(scope.being_id, None)
        return PatrolReport(run_id=RunId("run"))

    async def pause(self) -> None:
        self.paused.put_nowait(None)
        await self.time_passes.wait()
        self.time_passes.clear()


@pytest.fixture
def home() -> Household:
    return Household()


async def test_beings_are_patrolled_one_after_the_other_and_once_each(home: Household) -> None:
    """spec P12"""
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    await home.schedule.poll()
    assert home.came == [ADA, BERT]
    await home.schedule.poll()
    assert home.came == [ADA, BERT], "a being that is left alone does not age"


async def test_an_import_of_thousands_ages_a_being_by_one_cycle_an_hour(home: Household) -> None:
    """spec P6 ❷: each patrol is a cycle."""
    home.new = {ADA: many(ADA)}
    await home.schedule.poll()
    home.new = {ADA: many(ADA)}
    home.clock.advance(MIN_AUTOMATIC_PATROL_INTERVAL - timedelta(seconds=1))
    await home.schedule.poll()
    assert home.came == [ADA]
    home.clock.advance(timedelta(seconds=1))
    await home.schedule.poll()
    assert home.came == [ADA, ADA]


async def test_an_automatic_patrol_offers_no_decisions(home: Household) -> None:
    """spec P12, ruling 10"""
    home.new = {ADA: many(ADA)}
    await home.schedule.poll()
    assert home.calls == [(Scope(ADA, AUTOMATIC_PATROL_CLIENT_NAME), None, False)]


async def test_the_language_model_is_lent_for_each_patrol(home: Household) -> None:
    """spec P7, P12"""
    lent: list[str] = []

    @asynccontextmanager
    async def lend() -> AsyncIterator[None]:
        lent.append("lent")
        yield
        lent.append("back")

    home.schedule._language = lend
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    await home.schedule.poll()
    assert lent == ["lent", "back"] * 2


async def test_a_being_with_a_running_patrol_is_skipped(home: Household) -> None:
    """It would age twice."""
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    home.under_way = {ADA}
    await home.schedule.poll()
    assert home.came == [BERT]


async def test_a_being_patrolled_meanwhile_is_not_patrolled_again(home: Household) -> None:
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    home.goes_on.clear()
    looking = asyncio.create_task(home.schedule.poll())
    await home.begun.wait()
    del home.new[BERT]  # an agent asked for it
    home.goes_on.set()
    await looking
    assert home.came == [ADA]


async def test_a_failing_patrol_is_logged_retried_later_and_delays_no_other_being(
    home: Household, caplog: pytest.LogCaptureFixture
) -> None:
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    home.fails_with = OSError("the disk is gone")
    with caplog.at_level(logging.ERROR):
        await home.schedule.poll()
    assert [record.message for record in caplog.records] == [
        f"an automatic patrol failed; retrying in {MIN_AUTOMATIC_PATROL_INTERVAL} at the earliest"
    ] * 2
    home.fails_with = None
    await home.schedule.poll()
    assert home.came == [ADA, BERT], "not in a loop"
    home.clock.advance(MIN_AUTOMATIC_PATROL_INTERVAL)
    await home.schedule.poll()
    assert home.came == [ADA, BERT, ADA, BERT]


async def test_nothing_begins_at_the_start_nor_before_the_memory_is_open(home: Household) -> None:
    home.new = {ADA: many(ADA)}
    home.open = False
    running = asyncio.create_task(home.schedule.run())
    await home.paused.get()
    home.time_passes.set()
    await home.paused.get()
    assert home.came == []
    home.open = True
    home.time_passes.set()
    await home.paused.get()
    assert home.came == [ADA]
    await home.schedule.stop(running)


async def test_a_failing_ledger_is_read_again_at_the_next_poll(
    home: Household, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> list[ActivitySinceLastPatrol]:
        raise OSError("no")

    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(home, "activity_of_each_being_since_last_patrol", broken)
        await home.schedule.poll()
    assert len(caplog.records) == 1
    home.new = {ADA: many(ADA)}
    await home.schedule.poll()
    assert home.came == [ADA]


@pytest.mark.parametrize(("seconds", "cancelled"), [(0.0, 1), (60.0, 0)])
async def test_at_the_end_a_patrol_that_is_quick_ends_and_another_is_cancelled(
    home: Household, monkeypatch: pytest.MonkeyPatch, seconds: float, cancelled: int
) -> None:
    """Cancelled, it rolls back what it did (tests/unit/patrol/test_run.py). The others wait for the next start."""
    monkeypatch.setattr(rounds, "POLL_STOP_GRACE_SECONDS", seconds)
    home.new = {ADA: many(ADA), BERT: many(BERT)}
    home.goes_on.clear()
    home.time_passes.set()
    running = asyncio.create_task(home.schedule.run())
    await home.begun.wait()
    ending = asyncio.create_task(home.schedule.stop(running))
    if not cancelled:
        await asyncio.sleep(0)
        home.goes_on.set()
    await ending
    assert (home.cancelled, home.came) == (cancelled, [ADA])
    assert running.done()


async def test_it_is_idle_when_none_of_its_patrols_is_running(home: Household) -> None:
    await home.schedule.wait_until_idle()
    home.new = {ADA: many(ADA)}
    home.goes_on.clear()
    looking = asyncio.create_task(home.schedule.poll())
    await home.begun.wait()
    resting = asyncio.create_task(home.schedule.wait_until_idle())
    await asyncio.sleep(0)
    assert not resting.done()
    home.goes_on.set()
    await resting
    await looking


def test_triggers_come_from_the_settings() -> None:
    assert patrol_triggers_from_settings(Settings()) == PatrolTriggerConfig(
        after_memories=200, at_hour=3, after_idle=timedelta(minutes=60)
    )
    given = {"patrol_after_memories": 0, "patrol_at_hour": "off", "patrol_after_idle_minutes": 0}
    assert patrol_triggers_from_settings(Settings.model_validate(given)) == PatrolTriggerConfig(
        after_memories=0, at_hour=None, after_idle=None
    )
    assert replace(patrol_triggers_from_settings(Settings()), at_hour=None) == patrol_triggers_from_settings(
        Settings.model_validate({"patrol_at_hour": None})
    )
