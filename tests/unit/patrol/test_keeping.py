"""What a mind has decided to keep: until when nobody is asked about it again (ruling 20, ADR 84)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import pytest

from madeleine.memory.model import Memory
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.requests import DecisionRequest
from madeleine.patrol.report import PatrolReport
from tests.doubles import ADA
from tests.household import Household

NIGHT = timedelta(days=1)
FADING = 0.06
"""An importance that has faded after six nights; of a kept memory it becomes 0.15, which lasts 33."""


def dying(report: PatrolReport) -> DecisionRequest | None:
    offers = (offer for offer in report.pending if offer.kind == "consolidate")
    return next((offer for offer in offers if any(one.status == "dying" for one in offer.memories)), None)


async def ask(home: Household, nights: int) -> tuple[list[int], PatrolReport | None]:
    """Lives through so many nights. The nights on which something dying was offered; all of it was kept. And the last
    such report."""
    asked: list[int] = []
    report = None
    for night in range(1, nights + 1):
        home.clock.advance(NIGHT)
        if offer := dying(await home.run_patrol()):
            asked.append(night)
            kept = [memory.id for memory in offer.memories if memory.status == "dying"]
            report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=offer.id, keep=kept)])
            assert not report.decided[0].refused
    return asked, report


async def offer_of_what_has_faded(home: Household) -> DecisionRequest:
    reports = []
    for _ in range(6):
        home.clock.advance(NIGHT)
        reports.append(await home.run_patrol())
    offer = dying(reports[-1])
    assert offer is not None
    return offer


async def test_nobody_is_asked_about_a_kept_memory_for_six_times_its_age(home: Household) -> None:
    """Kept on day 6 until day 42, it fades once meanwhile; kept on day 72 for a year."""
    [told] = await home.store("Ann is a pilot", importance=FADING)
    asked, _ = await ask(home, nights=175)
    assert asked == [6, 6 + 2 * 33]
    assert (await home.now(told)).reactivation_count == 2


async def test_undoing_a_decision_to_keep_takes_its_time_back(home: Household) -> None:
    """ruling 11"""
    [told] = await home.store("Ann is a pilot", importance=FADING)
    _, report = await ask(home, nights=6)
    assert report is not None
    assert (await home.now(told)).kept_until is not None
    await home.undo(report.run_id)
    now = await home.now(told)
    assert (now.status, now.kept_until) == ("dying", None)


async def superseded(home: Household, one: Memory) -> None:
    await home.store("Ann is a doctor", supersedes=one.id)


async def corrected(home: Household, one: Memory) -> None:
    await home.correct(one.id, text="Ann is a doctor")


async def pinned(home: Household, one: Memory) -> None:
    await home.correct(one.id, pinned=True)


@pytest.mark.parametrize(("change", "stands"), [(superseded, False), (corrected, False), (pinned, True)])
async def test_the_decision_stands_until_what_it_is_about_has_changed(
    home: Household, change: Callable[[Household, Memory], Coroutine[Any, Any, None]], stands: bool
) -> None:
    [told] = await home.store("Ann is a pilot", importance=FADING)
    await ask(home, nights=6)
    await change(home, told)
    assert ((await home.now(told)).kept_until is not None) == stands


async def test_what_was_superseded_before_it_was_kept_is_kept_as_long(home: Household) -> None:
    [told] = await home.store("Ann is a pilot", importance=FADING)
    await superseded(home, told)
    await ask(home, nights=150)
    assert (await home.now(told)).reactivation_count == 2, "on days 6 and 39"


async def test_what_was_recalled_since_it_faded_is_not_offered_as_dying(home: Household) -> None:
    """The decision to let go of it is refused then, and it was offered again without end."""
    [told] = await home.store("Ann is a pilot", importance=FADING)
    offer = await offer_of_what_has_faded(home)
    await home.recall(told.id)
    after = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=offer.id, make_dead=[told.id])])
    assert after.decided[0].left_out == ("m1 was recalled since: it was not made dead.",)
    assert dying(after) is None


async def test_the_survivor_of_a_merge_of_dying_memories_is_kept(home: Household) -> None:
    one, other = await home.store("Ann is a pilot", "Ann is a pilot, as told by Ben", importance=FADING)
    offer = await offer_of_what_has_faded(home)
    decision = AgentDecision(offer=offer.id, merges=[[other.id, one.id]])
    assert not (await home.patrol.apply_decisions_and_offer_more(ADA, [decision])).decided[0].refused
    survivor = await home.now(other)
    assert (survivor.status, survivor.session_count, survivor.kept_until is not None) == ("active", 0, True)
