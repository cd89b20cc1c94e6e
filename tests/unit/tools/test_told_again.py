"""A text that is told again though it is not true any more, or was absorbed, by the tools alone (rulings 13, 14)."""

from __future__ import annotations

import pytest

from madeleine.server.wiring.open_memory import OpenedMemoryStore
from tests.unit.tools.conftest import Use, recalled

THURSDAY = "Leni takes piano lessons with Frau Petrowa every Thursday at 17:00."
MONDAY = "Leni's piano lesson with Frau Petrowa is on Monday at 16:30 now."
TUESDAY = "Leni's piano lesson with Frau Petrowa has been put on Tuesday."
QUESTION = "When is Leni's piano lesson?"


async def begun(use: Use) -> None:
    for text in ("The harbour froze over", "Tom plays the violin on Sundays", "The bakery opens at seven"):
        await use("store", text=text)


@pytest.mark.parametrize("versions", [[MONDAY], [MONDAY, TUESDAY]])
@pytest.mark.parametrize("when", ["", "2026-11"])
async def test_what_was_superseded_is_stored_again_behind_what_is_true(
    use: Use, versions: list[str], when: str
) -> None:
    """It became current without a word, and stood first."""
    await begun(use)
    before = old = (await use("store", text=THURSDAY))["id"]
    for text in versions:
        before = (await use("store", text=text, supersedes=before))["id"]
    again = await use("store", text=THURSDAY, **({"when": when} if when else {}))
    assert again["status"] == "stored"
    assert "may_supersede" not in again
    assert "resembles" not in again
    assert again["notice"].startswith(f"{old} said this until ")
    assert f"{before} is true instead and still comes first: {versions[-1]!r}" in again["notice"]
    assert f"supersedes: {before}" in again["notice"]
    for question in (QUESTION, THURSDAY):
        assert (await recalled(use, question))[0] == versions[-1]
    assert THURSDAY in await recalled(use, THURSDAY), "nothing is lost"
    decided = await use("store", text=THURSDAY, supersedes=before)
    assert (decided["id"], decided["superseded"]["id"]) == (again["id"], before)
    assert await recalled(use, QUESTION) == [THURSDAY]


async def test_what_was_retracted_is_stored_again_with_the_reason_named(use: Use) -> None:
    await begun(use)
    old = (await use("store", text="Nils has two brothers."))["id"]
    await use("update_memory", id=old, retracted="They are his cousins.")
    again = await use("store", text="Nils has two brothers.")
    assert again["status"] == "stored"
    assert f"{old} said this and was retracted: 'They are his cousins.'" in again["notice"]
    assert f"update_memory({again['id']}, retracted)" in again["notice"]


async def test_what_was_absorbed_reinforces_its_survivor(use: Use, memory: OpenedMemoryStore) -> None:
    """It was stored as a new memory that may supersede its survivor."""
    await begun(use)
    kept = (await use("store", text="Erik, the brother of Jonas, is allergic to penicillin.", distinct=True))["id"]
    absorbed_text = "Erik is the brother of Jonas and allergic to penicillin."
    absorbed = (await use("store", text=absorbed_text, distinct=True))["id"]
    pending = (await use("run_patrol"))["pending"]
    offer = next((one for one in pending if one["kind"] == "consolidate"), None)
    if offer is None:
        pytest.skip("no cluster")
    await use("run_patrol", decisions=[{"offer": offer["offer"], "merges": [[kept, absorbed]]}])
    again = await use("store", text=absorbed_text)
    assert (again["id"], again["status"]) == (kept, "reinforced")


@pytest.mark.parametrize("format_", ["memories", "fragments"])
async def test_two_of_which_one_may_supersede_the_other_are_marked_where_both_are_shown(use: Use, format_: str) -> None:
    """ruling 14: nobody has decided yet, so the answer holds both, and says so."""
    await begun(use)
    old = (await use("store", text="The code of the parking garage is 4471"))["id"]
    new = await use("store", text="The code of the parking garage is 8820 now")
    assert new["may_supersede"][0]["id"] == old
    answer = await use("recall", query="What is the code of the parking garage?", format=format_)
    shown = [*(answer.get("memories") or answer["sources"]), *answer.get("near", [])]
    assert {item["id"]: item["may_supersede"] for item in shown if "may_supersede" in item} == {new["id"]: old}
    assert old in [item["id"] for item in shown]
    await use("store", text="The code of the parking garage is 8820 now", supersedes=old)
    answer = await use("recall", query="What is the code of the parking garage?", format=format_)
    assert not any("may_supersede" in item for item in (answer.get("memories") or answer["sources"]))
