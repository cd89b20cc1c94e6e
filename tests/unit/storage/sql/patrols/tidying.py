"""A being whose patrol does something in every step, and a model that decides for it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from madeleine.memory.language_model import Prompt
from madeleine.memory.model import Memory, RunId
from madeleine.memory.patrol_records import PatrolRunState
from madeleine.patrol.report import PATROL_STEPS, PatrolReport
from tests.doubles import ADA
from tests.household import Household, ScriptedModel, shown_memories

_POTS = "oak elm fir ash yew box bay fig gum haw ivy nut pea rye".split()


def soup(number: int) -> str:
    """Texts that a mind may merge: they differ in no number and no name."""
    pot = _POTS[number % len(_POTS)] + "wood" * (number // len(_POTS))
    return f"Ann cooked lentil soup with carrots and garlic: pot {pot}."


TRIP = "Ben sailed across the windy lake on boat {}"


def numbers(prompt: Prompt, *words: str) -> list[int]:
    return [n for n, line in enumerate(shown_memories(prompt), start=1) if all(word in line for word in words)]


def tidying() -> ScriptedModel:
    """Merges the soups 1 and 2, lets the faded one die, takes the boats out of their cluster, writes."""

    def consolidate(prompt: Prompt) -> Any:
        soups = numbers(prompt, soup(1)) + numbers(prompt, soup(2))
        merges = [{"survivor": soups[0], "absorbed": soups[1:]}] if len(soups) > 1 else []
        return {"merges": merges, "make_dead": [n for n in numbers(prompt, '"dying"') if n not in soups], "keep": []}

    def split(prompt: Prompt) -> Any:
        return {"parts": [{"name": "Two of the pots", "memories": [1, 2]}]}

    return ScriptedModel(
        classify=lambda p: {"roots": [{"number": n + 1, "root": "Private"} for n in range(len(shown_memories(p)))]},
        consolidate=consolidate,
        split=split,
        repair=lambda p: {"text": "Ben bought a lamp in Kiel."},
        diary=lambda p: {"diary": "We ate.\nWe sailed.\nWe slept.", "think_md": ["Soup.", "Lake.", "Sleep."]},
        compress=lambda p: {"summary": f"A session of {len(shown_memories(p))} things."},
    )


async def lived(home: Household) -> Mapping[str, Memory]:
    """Enough that every step of the next patrol has something to do."""
    soups = await home.store(*(soup(n) for n in range(1, 12)))
    await home.store(*(TRIP.format(n) for n in range(1, 4)), session_id="lake")
    await home.store("Dora bought plums at the market", session_id="market")
    await home.store("The accountant sent the invoice for March", session_id="office", importance=0.0501)
    await home.run_patrol(steps=["assign", "age"])
    dead, fading = await home.store("Old Tom whistled", "Old Tim hummed a tune", importance=0.0505)
    await home.run_patrol(tidying(), steps=["assign", "age", "flag", "consolidate"])
    await home.recall(dead.id, times=20)
    home.clock.advance(timedelta(days=1))
    await home.note({"action": "Ann sold the boat to Carl", "when": ["2026-02-02"], "feeling": "sad"})
    await home.note("{not a scene")
    await home.store(soup(12))
    return {"soup": soups[0], "absorbed": soups[1], "other": soups[2], "dead": dead, "fading": fading}


async def everything(home: Household) -> PatrolReport:
    report = await home.run_patrol(tidying())
    assert [step.failed for step in report.steps] == [""] * len(PATROL_STEPS)
    return report


def counts(report: PatrolReport) -> dict[str, Mapping[str, int]]:
    return {step.name: step.counts for step in report.steps}


async def run_of(home: Household, run: RunId) -> PatrolRunState:
    [found] = [one for one in await home.patrol.runs(ADA) if one.id == run]
    return found.state
