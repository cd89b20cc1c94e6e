"""A plan that is called off before its day was never true (ruling 14, ADR 97)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from madeleine.server.wiring import open_memory as wiring
from tests.unit.tools.conftest import Use, recalled

PLAN = "We plan to go to Barcelona from 23 to 27 October"
CALLED_OFF = "The trains are on strike: in the end we do not go to Barcelona."
NOW = [datetime(2026, 9, 12, 9, tzinfo=UTC)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    at(2026, 9, 12)
    monkeypatch.setattr(wiring, "utc_now", lambda: NOW[0])


def at(year: int, month: int, day: int) -> None:
    NOW[0] = datetime(year, month, day, 9, tzinfo=UTC)


async def planned(use: Use) -> str:
    for text in ("The harbour froze over", "Tom plays the violin", "The bakery opens at seven"):
        await use("store", text=text)
    return str((await use("store", text=PLAN, when="2026-10-23"))["id"])


async def call_off(use: Use, tool: str, plan: str, when: str = "2026-10-08") -> str:
    named = {"supersedes": plan} if tool == "store" else {"id": plan}
    answer = await use(tool, text=CALLED_OFF, when=when, **named)
    assert answer["superseded"]["id"] == plan
    return str(answer["id"])


async def holding(use: Use, as_of: str) -> list[str]:
    return await recalled(use, "Barcelona", as_of=as_of)


@pytest.mark.parametrize("tool", ["store", "update_memory"])
@pytest.mark.parametrize("told", [(10, 8), (10, 20), (11, 2)], ids=["that day", "before its day", "after its day"])
async def test_a_plan_is_called_off_before_its_day_whenever_that_is_told(
    use: Use, tool: str, told: tuple[int, int]
) -> None:
    """It was "true since 2026-10-23, so it cannot have ended before"."""
    plan = await planned(use)
    at(2026, *told)
    new = await call_off(use, tool, plan)
    assert await holding(use, "2026-10-01") == [PLAN]
    for day in ("2026-10-10", "2026-10-25", "2026-11-20"):
        assert await holding(use, day) == [CALLED_OFF]
    assert await recalled(use, "Barcelona") == [CALLED_OFF]
    [shown] = (await use("recall_memory", ids=[plan]))["memories"]
    assert [version["id"] for version in shown["versions"]] == [plan, new]
    await use("update_memory", id=plan, undo=True)
    assert PLAN in await holding(use, "2026-10-25")
    [shown] = (await use("recall_memory", ids=[plan]))["memories"]
    assert shown.get("truth", "current") == "current"


async def test_a_plan_that_was_to_take_a_facts_place_leaves_that_true(use: Use) -> None:
    """Its beginning comes back with the undo."""
    await use("store", text="The harbour froze over")
    rent = "The flat costs 900 euros a month"
    old = (await use("store", text=rent, when="2026-01"))["id"]
    rise = "From 23 October 2026 on the flat costs 1000 euros a month"
    plan = (await use("store", text=rise, when="2026-10-23", supersedes=old))["id"]
    before = (await use("recall_memory", ids=[plan], details=True))["memories"]
    at(2026, 11, 2)
    await use("store", text="The rent of the flat does not rise.", when="2026-10-08", supersedes=plan)
    assert rise not in await recalled(use, "flat euros month", as_of="2026-10-25")
    assert rent in await recalled(use, "flat euros month", as_of="2026-10-25")
    await use("update_memory", id=plan, undo=True)
    assert (await use("recall_memory", ids=[plan], details=True))["memories"][0]["truth"] == before[0]["truth"]
    assert rise in await recalled(use, "flat euros month", as_of="2026-10-25")


async def test_an_appointment_is_called_off_some_hours_before_it(use: Use) -> None:
    await use("store", text="The dentist is at 17:00", when="2026-09-12T17:00")
    at(2026, 9, 13)
    answer = await use("store", text="The dentist has fallen ill", when="2026-09-12T14:00", supersedes="m1")
    assert answer["superseded"]["id"] == "m1"


async def test_what_was_told_when_it_was_true_already_says_what_to_do(use: Use) -> None:
    """A plan that is told after its day cannot be known to be one: with the day of telling it can be called off."""
    at(2026, 11, 2)
    plan = await planned(use)
    with pytest.raises(RuntimeError, match="cannot have ended before") as refused:
        await call_off(use, "store", plan)
    assert f"if this was true before {plan}, store it without supersedes" in str(refused.value)
    assert "was a plan that was told before that day, update_memory its when alone, to the day of telling" in str(
        refused.value
    )
    await use("update_memory", id=plan, when="2026-09-12")
    await call_off(use, "store", plan)
    assert await holding(use, "2026-10-01") == [PLAN]
    assert await holding(use, "2026-10-25") == [CALLED_OFF]


async def test_a_plan_that_has_come_true_by_an_act_is_retracted_first(use: Use) -> None:
    await use("store", text="The flat costs 900 euros a month", when="2026-01")
    rise = {"text": "From 23 October 2026 on the flat costs 1000 euros a month", "when": "2026-10-23"}
    plan = (await use("store", **rise, supersedes="m1"))["id"]
    at(2026, 10, 24)
    assert (await use("store", **rise, supersedes="m1"))["superseded"]["id"] == "m1"
    with pytest.raises(RuntimeError, match="never came true, retract it"):
        await use("store", text="The rent does not rise.", when="2026-10-08", supersedes=plan)


async def test_a_called_off_plan_is_dated_to_its_day_and_that_of_the_calling_off_and_to_none_between(use: Use) -> None:
    """It stood in the calendar of each day between."""
    plan = await planned(use)
    await call_off(use, "store", plan, when="2026-09-03")
    on_its_day = await use("recall", query="What is on 23 October?", format="memories")
    assert [memory["text"] for memory in on_its_day["memories"]] == [CALLED_OFF]
    assert "unknown_words" not in on_its_day
    for between in ("2026-09-08", "2026-10-14"):
        asked = await use("recall", query=f"What is on {between}?", format="memories")
        assert asked["notice"] == f"Nothing is dated {between}."
        assert await recalled(use, "Barcelona", since=between, until=between) == []


async def test_a_plan_that_was_stored_before_may_be_changed_by_what_has_an_earlier_day(use: Use) -> None:
    """Told anew with the day of telling, it was taken for what was told before the plan."""
    plan = await planned(use)
    at(2026, 9, 20)
    changed = await use("store", text="There is a strike, we no longer go to Barcelona by train.", when="2026-09-10")
    named = [*changed.get("may_supersede", ()), changed.get("resembles", {})]
    assert plan in [one.get("id") for one in named]
    assert "may_supersede" in changed or "This tells of a change." in changed["notice"]
