"""ruling 14: what a newer memory may supersede is decided in a patrol, by a model or by the calling agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from madeleine.memory.ingest.proposals import SupersessionCandidates
from madeleine.memory.model import Memory, Scope
from madeleine.patrol.deciding.answers import AgentDecision
from madeleine.patrol.deciding.requests import DecisionRequest
from tests.doubles import ADA
from tests.household import MOMENT, Household, ScriptedModel

LYON, ROME, OSLO = "Tom lives in Lyon", "Tom moved to Rome", "Tom left Rome for Oslo"


class _LastStored:
    """Proposes the memory that was stored before."""

    def __init__(self) -> None:
        self.before: Memory | None = None

    async def __call__(
        self, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]], **_: object
    ) -> SupersessionCandidates:
        before, self.before = self.before, memory
        return SupersessionCandidates(before)

    async def prefetch_word_rarities(self, scope: Scope, memory: Memory, others: Sequence[Memory]) -> None:
        """Nothing to remember."""


async def proposed(home: Household, *texts: str) -> list[Memory]:
    home.store_scenes = replace(home.store_scenes, search_superseded=_LastStored())  # type: ignore[arg-type]
    memories = []
    for text in texts:
        home.clock.advance(MOMENT)
        memories += await home.store(text)
    return memories


async def offered(home: Household) -> list[DecisionRequest]:
    report = await home.run_patrol(steps=["supersede"])
    return [request for request in report.pending if request.kind == "supersede"]


def texts(request: DecisionRequest) -> Sequence[str]:
    return [memory.text for memory in request.memories]


async def decide(home: Household, request: DecisionRequest, *, superseded: bool) -> str:
    [result] = (
        await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id, superseded=superseded)])
    ).decided
    return result.refused


async def test_the_agent_decides_a_pair_and_the_decision_is_undone_by_one_call(home: Household) -> None:
    old, new = await proposed(home, LYON, ROME)
    [request] = await offered(home)
    assert texts(request) == [LYON, ROME]
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id, superseded=True)])
    assert dict(report.decided[0].counts) == {"superseded": 1, "both_true": 0}
    after = await home.now(old)
    assert (after.truth, after.superseded_by, after.valid_until) == ("superseded", new.id, new.happened_at)
    assert (await home.now(new)).truth == "current"
    assert await offered(home) == []

    await home.undo(report.run_id)
    assert [(await home.now(one)).truth for one in (old, new)] == ["current", "current"]
    assert [texts(again) for again in await offered(home)] == [[LYON, ROME]]


async def test_a_declined_pair_stays_true_and_is_offered_no_more(home: Household) -> None:
    old, new = await proposed(home, LYON, ROME)
    [request] = await offered(home)
    report = await home.patrol.apply_decisions_and_offer_more(ADA, [AgentDecision(offer=request.id)])
    assert [(await home.now(one)).truth for one in (old, new)] == ["current", "current"]
    assert (await home.now(new)).may_supersede is None
    assert await offered(home) == []
    await home.undo(report.run_id)
    assert (await home.now(new)).may_supersede == old.id


async def test_a_pair_is_offered_for_one_decision_at_a_time(home: Household) -> None:
    """It was offered for a merge as well, and whoever did both lost what was true before."""
    await proposed(home, LYON, f"{LYON} still")
    await home.run_patrol(steps=["assign"])

    async def kinds() -> list[str]:
        report = await home.run_patrol(steps=["consolidate", "supersede"])
        return [request.kind for request in report.pending if request.kind != "diary" and len(request.memories) > 1]

    assert await kinds() == ["supersede"]
    [request] = await offered(home)
    await decide(home, request, superseded=False)
    assert await kinds() == ["consolidate"]


@pytest.mark.parametrize("in_order", [True, False])
async def test_a_chain_is_offered_as_it_grew_and_decided_in_any_order(home: Household, *, in_order: bool) -> None:
    first, second, third = await proposed(home, LYON, ROME, OSLO)
    requests = await offered(home)
    assert [texts(request) for request in requests] == [[LYON, ROME], [ROME, OSLO]]
    for request in requests if in_order else reversed(requests):
        assert await decide(home, request, superseded=True) == ""
    assert [(await home.now(one)).superseded_by for one in (first, second, third)] == [second.id, third.id, None]


@pytest.mark.parametrize("change", ["text", "truth"])
async def test_a_pair_that_has_changed_since_is_not_decided(home: Household, change: str) -> None:
    old, new = await proposed(home, LYON, ROME)
    [request] = await offered(home)
    if change == "text":
        await home.correct(old.id, text="Tom lives in Lille")
    else:
        await home.ledger.memories.retract(ADA, old.id, "misheard", at=home.clock())
    assert "since this was offered" in await decide(home, request, superseded=True)
    assert (await home.now(old)).superseded_by is None
    assert (await home.now(new)).may_supersede == old.id


async def test_a_model_decides_each_pair_once(home: Household) -> None:
    old, *_ = await proposed(home, LYON, ROME, OSLO)
    mind = ScriptedModel(supersede=lambda prompt: {"superseded": "Lyon" in prompt.text})
    report = await home.run_patrol(mind, steps=["supersede"])
    assert dict(report.steps[0].counts) == {"superseded": 1, "both_true": 1, "decided": 2}
    assert (await home.now(old)).truth == "superseded"
    await home.run_patrol(mind, steps=["supersede"])
    assert mind.asked("supersede") == 2
