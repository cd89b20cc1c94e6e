"""A memory that supersedes a preference and is none, and the other way round (rulings 14, 15)."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from tests.unit.tools.conftest import Use

OLD = "Dagny asked me to keep pull requests below 400 changed lines."
NEW = "Dagny's rule on pull requests was relaxed to 600 changed lines."


@pytest.mark.parametrize(("before", "after"), [("procedural", ""), ("", "procedural"), ("procedural", "procedural")])
@pytest.mark.parametrize("question", ["Dagny's rule on pull requests", "How many lines may pull requests have?", OLD])
async def test_what_supersedes_a_preference_is_recalled(use: Use, before: str, after: str, question: str) -> None:
    """It was taken for a preference, as the superseded one had matched, and then left out as none."""
    await use("store", text="The harbour froze over")
    old = (await use("store", text=OLD, **({"category": before} if before else {})))["id"]
    new = await use("store", text=NEW, supersedes=old, **({"category": after} if after else {}))
    found = await use("recall", query=question, format="memories")
    place = "preferences" if after else "memories"
    assert [memory["id"] for memory in found.get(place, [])] == [new["id"]]
    assert "omitted" not in found


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_a_superseded_preference_is_recalled_as_of_its_time(use: Use, is_enabled: bool) -> None:
    """Not one that is disabled in the profile."""
    await use("store", text="The harbour froze over")
    day = date.today()
    old = (await use("store", text=OLD, category="procedural", when=str(day - timedelta(40))))["id"]
    if not is_enabled:
        await use("profile", action="disable", kind="preferences", name=old)
    await use("store", text=NEW, supersedes=old, category="procedural", when=str(day - timedelta(9)))
    found = await use("recall", query="pull requests", format="memories", as_of=str(day - timedelta(20)))
    assert [memory["id"] for memory in found.get("preferences", [])] == [old] * is_enabled
    assert found["memories"] == []


async def test_the_start_marks_a_preference_that_a_later_one_may_have_replaced(use: Use) -> None:
    """Both were told as rules, without a word; once decided the later one stands alone."""
    texts = (
        "Amira wants a list of changed files at the end of each task.",
        "Jonas prefers tea to coffee.",
        "Amira asks for a short summary now instead of the list of files.",
    )
    for text in texts:
        await use("store", text=text, category="procedural")
    marked = [line for line in (await use("recall"))["start"].splitlines() if line.startswith("- ")]
    assert marked == [f"- {texts[0]} (a later one may have replaced this)", f"- {texts[1]}", f"- {texts[2]}"]
    await use("store", text=texts[2], category="procedural", supersedes="m1")
    decided = [line for line in (await use("recall"))["start"].splitlines() if line.startswith("- ")]
    assert decided == [f"- {texts[1]}", f"- {texts[2]}"]
