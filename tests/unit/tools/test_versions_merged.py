"""A merge keeps what was true before; of two that one memory has superseded, the later was true last (ruling 14)."""

from __future__ import annotations

import pytest

from tests.unit.tools.conftest import Use, recalled

MONDAYS = "Nora has her piano lesson with Frau Adler on Mondays."
MOVED = "The piano lesson of Nora with Frau Adler was moved to Fridays."
FRIDAYS = "Nora has her piano lesson with Frau Adler on Fridays."
ON_FRIDAYS = "On Fridays Nora has her piano lesson with Frau Adler."
OTHER_MEMORIES = ("The dishwasher leaks at the hose.", "Tom is allergic to peanuts.", "Oslo has a new opera house.")
QUESTION = "When does Nora have her piano lesson with Frau Adler?"


async def merge(use: Use, ids: set[str], survivor: str = "") -> str:
    """By the decision of a patrol; returns the run."""
    answer = await use("run_patrol")
    offers = [one for one in answer["pending"] if one["kind"] == "consolidate"]
    [offer] = [one["offer"] for one in offers if ids <= one["memories"].keys()]
    decided = await use(
        "run_patrol", decisions=[{"offer": offer, "merges": [sorted(ids, key=lambda id_: (id_ != survivor, id_))]}]
    )
    assert decided["decided"][0]["merged"] == 1, decided
    return str(decided["run_id"])


async def told(use: Use, **arguments: str) -> list[str]:
    """Texts of both groups that answer the question."""
    answer = await use("recall", query=QUESTION, format="memories", **arguments)
    return [one["text"] for one in (*answer["memories"], *answer.get("preferences", ()))]


async def test_what_a_merged_memory_had_superseded_is_known_as_of_its_time(use: Use) -> None:
    mondays = (await use("store", text=MONDAYS, when="2026-01-05"))["id"]
    moved = (await use("store", text=MOVED, when="2026-02-02", distinct=True))["id"]
    fridays = (await use("store", text=FRIDAYS, when="2026-03-02", supersedes=mondays, distinct=True))["id"]
    run = await merge(use, {moved, fridays})

    assert await recalled(use, QUESTION, as_of="2026-01-20") == [MONDAYS]
    [now] = await recalled(use, QUESTION)
    assert now in (MOVED, FRIDAYS)
    assert await recalled(use, QUESTION, as_of="2026-02-20") == [now]
    [survivor] = (await use("recall", query=QUESTION, format="memories"))["memories"]
    assert survivor["before"].startswith(f"2026-01-05: {MONDAYS[:20]}")
    [whole] = (await use("recall_memory", ids=[survivor["id"]]))["memories"]
    assert [version["text"] for version in whole["versions"]] == [MONDAYS, now]

    await use("run_patrol", undo=run)
    [apart, successor] = (await use("recall_memory", ids=[moved, fridays]))["memories"]
    assert "before" not in apart
    assert successor["before"].startswith(f"2026-01-05: {MONDAYS[:20]}")


async def test_a_retracted_survivor_makes_true_again_what_it_had_taken_over(use: Use) -> None:
    mondays = (await use("store", text=MONDAYS, when="2026-01-05"))["id"]
    moved = (await use("store", text=MOVED, when="2026-02-02", distinct=True))["id"]
    fridays = (await use("store", text=FRIDAYS, when="2026-03-02", supersedes=mondays, distinct=True))["id"]
    await merge(use, {moved, fridays})
    [survivor] = (await use("recall", query=QUESTION, format="memories"))["memories"]
    await use("update_memory", id=survivor["id"], retracted="It was a rumour.")
    assert await recalled(use, QUESTION) == [MONDAYS]


@pytest.mark.parametrize("category", ["episodic", "procedural"])
async def test_as_of_a_day_before_its_survivor_a_merged_memory_is_what_was_known(use: Use, category: str) -> None:
    first = (await use("store", text=FRIDAYS, when="2026-01-05", category=category))["id"]
    again = (await use("store", text=ON_FRIDAYS, when="2026-03-02", category=category, distinct=True))["id"]
    for text in OTHER_MEMORIES:
        await use("store", text=text, when="2026-01-02")
    await merge(use, {first, again}, survivor=again)

    assert await told(use) == [ON_FRIDAYS]
    assert await told(use, as_of="2026-02-01") == [FRIDAYS]
    assert await told(use, as_of="2026-03-20") == [ON_FRIDAYS]
    assert await told(use, as_of="2025-12-24") == []
    await use("update_memory", id=again, retracted="It was a rumour.")
    assert await told(use, as_of="2026-02-01") == []


@pytest.mark.parametrize("later_first", [False, True])
async def test_of_two_that_one_memory_superseded_the_later_was_true_last(use: Use, later_first: bool) -> None:
    old = (await use("store", text="Milk costs 1.10 euro at Hof Lang.", when="2026-01-05"))["id"]
    later = (await use("store", text="Milk costs 1.20 euro at Hof Lang.", when="2026-02-02", distinct=True))["id"]
    first, second = (later, old) if later_first else (old, later)
    now = "Milk costs 1.15 euro at Hof Lang."
    await use("store", text=now, when="2026-03-02", supersedes=first, distinct=True)
    await use("store", text=now, when="2026-03-02", supersedes=second)
    question = "What does milk cost at Hof Lang?"
    assert await recalled(use, question, as_of="2026-01-20") == ["Milk costs 1.10 euro at Hof Lang."]
    assert await recalled(use, question, as_of="2026-02-20") == ["Milk costs 1.20 euro at Hof Lang."]
    assert await recalled(use, question) == [now]
