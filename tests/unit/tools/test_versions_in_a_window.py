"""With since and until the version of a fact that lies between them is shown, marked as superseded if it is (rulings 14
and 19, ADR 94)."""

from __future__ import annotations

import pytest

from tests.unit.tools.conftest import Use, recalled

TO_15 = "Oleg upgraded orders to Postgres 15"
TO_16 = "Last night Oleg upgraded orders to Postgres 16"
TO_17 = "Orders is on 17 as of last night"
JUNE = {"since": "2026-06", "until": "2026-06"}


async def upgraded(use: Use) -> tuple[str, str, str]:
    for text in ("The harbour froze over", "Tom plays the violin", "The bakery opens at seven"):
        await use("store", text=text, when="2026-06-01")
    first = (await use("store", text=TO_15, when="2026-03-02"))["id"]
    second = (await use("store", text=TO_16, when="2026-06-10", supersedes=first))["id"]
    third = (await use("store", text=TO_17, when="2026-09-15", supersedes=second))["id"]
    return first, second, third


async def versions_recalled(use: Use, query: str, **arguments: str) -> list[str]:
    return [text for text in await recalled(use, query, **arguments) if "rders" in text]


@pytest.mark.parametrize("query", ["Oleg upgraded orders to Postgres 16", "Oleg orders"])
async def test_the_version_that_lies_in_the_window_is_recalled(use: Use, query: str) -> None:
    """The current one came, dated three months later."""
    _, second, _ = await upgraded(use)
    item = (await use("recall", query=query, format="memories", **JUNE))["memories"][0]
    assert (item["id"], item["text"]) == (second, TO_16)
    assert (item["status"], item["until"]) == ("superseded", "2026-09-15")
    prompt = await use("recall", query=query, format="prompt", **JUNE)
    assert "until 2026-09-15" in prompt["prompt"]
    assert prompt["sources"][0]["status"] == "superseded"


async def test_the_latest_version_in_the_window_is_recalled(use: Use) -> None:
    """One that is superseded never stands before its successor."""
    await upgraded(use)
    question = "Oleg upgraded orders to Postgres"
    assert await versions_recalled(use, question, until="2026-06") == [TO_16]
    for window in ({"since": "2026-03"}, {"since": "2026-06", "until": "2026-09"}, {}):
        assert await versions_recalled(use, question, **window) == [TO_17]
    assert await versions_recalled(use, question, since="2026-04", until="2026-05") == []


@pytest.mark.parametrize("words", [{"query": "Postgres"}, {"query": "Oleg orders", "mode": "and"}, {}])
async def test_the_version_that_lies_in_the_window_is_searched(use: Use, words: dict[str, str]) -> None:
    """Nothing was found."""
    _, second, third = await upgraded(use)
    hits = (await use("search_memory", **words, **JUNE))["hits"]
    [hit] = [one for one in hits if one["id"] == second]
    assert (hit["text"], hit["status"], hit["until"]) == (TO_16, "superseded", "2026-09-15")
    for window in ({"since": "2026-06"}, {"since": "2026-06", "until": "2026-09"}):
        hits = (await use("search_memory", **words, **window))["hits"]
        assert [hit["id"] for hit in hits if "rders" in hit["text"]] == [third]


async def test_the_subject_of_a_message_is_searched_in_the_window(use: Use) -> None:
    _, second, _ = await upgraded(use)
    hits = (await use("search_memory", query="What about Postgres at orders?", mode="subject", **JUNE))["hits"]
    assert [(hit["id"], hit["status"]) for hit in hits] == [(second, "superseded")]
    hits = (await use("search_memory", query="Postgres 16", mode="subject", since="2026-10"))["hits"]
    assert hits == []


async def test_a_superseded_version_is_not_counted_as_recalled(use: Use) -> None:
    """Looking back wakes nothing (ruling 18)."""
    _, second, _ = await upgraded(use)
    await use("recall", query="Oleg upgraded orders", format="memories", **JUNE)
    await use("search_memory", query="Postgres", **JUNE)
    [memory] = (await use("recall_memory", ids=[second]))["memories"]
    assert memory["reactivation_count"] == 0


async def test_a_day_that_was_given_up_before_it_came_is_in_no_window(use: Use) -> None:
    """A plan that was called off, or an appointment that was moved, did not happen on its day."""
    old = (await use("store", text="Leni's dentist appointment is on 12 November", when="2098-11-12"))["id"]
    moved = "Leni's dentist appointment was moved to 3 December"
    new = (await use("store", text=moved, when="2098-12-03", supersedes=old))["id"]
    assert await recalled(use, "dentist appointment", since="2098-11", until="2098-11") == []
    assert (await use("search_memory", query="dentist", since="2098-11", until="2098-11"))["hits"] == []
    [hit] = (await use("search_memory", query="dentist", since="2098-11", until="2098-12"))["hits"]
    assert hit["id"] == new


async def test_as_of_a_day_nothing_comes_from_outside_the_window(use: Use) -> None:
    await upgraded(use)
    question = "Oleg upgraded orders to Postgres"
    assert await versions_recalled(use, question, as_of="2026-07", **JUNE) == [TO_16]
    assert await versions_recalled(use, question, as_of="2026-04", **JUNE) == []


async def test_of_two_that_were_superseded_by_one_each_is_shown_in_its_window(use: Use) -> None:
    """One is no version of the other."""
    tea = (await use("store", text="Tea is in the left cupboard", when="2026-03-02"))["id"]
    rice = (await use("store", text="Rice is in the left cupboard", when="2026-03-05"))["id"]
    both = {"text": "Tea and rice are in the pantry", "when": "2026-06-10"}
    await use("store", **both, supersedes=tea)
    await use("store", **both, supersedes=rice)
    window = {"since": "2026-03", "until": "2026-03"}
    assert sorted(await recalled(use, "Tea rice left cupboard", **window)) == [
        "Rice is in the left cupboard",
        "Tea is in the left cupboard",
    ]
    assert len((await use("search_memory", query="cupboard", **window))["hits"]) == 2


async def test_what_was_before_has_its_own_date(use: Use) -> None:
    """The date of the current version was read as that of the one before: "When did we upgrade to 16?" """
    await upgraded(use)
    question = "When did Oleg upgrade orders to Postgres 16?"
    item = (await use("recall", query=question, format="memories"))["memories"][0]
    assert (item["since"], item["before"]) == ("2026-09-15", f"2026-06-10: {TO_16}")
    prompt = (await use("recall", query=question, format="prompt"))["prompt"]
    assert f"(since 2026-09-15; before: 2026-06-10: {TO_16})" in prompt
    assert (await use("recall", query=question))["sources"][0]["before"] == f"2026-06-10: {TO_16}"
    [hit] = (await use("search_memory", query="Postgres"))["hits"]
    assert hit["before"] == f"2026-06-10: {TO_16}"


async def test_what_names_its_date_itself_has_it_once(use: Use) -> None:
    old = (await use("store", text="On 2026-06-10 the lease began", when="2026-06-10"))["id"]
    await use("store", text="The lease is over", when="2026-09-15", supersedes=old)
    [hit] = (await use("search_memory", query="over"))["hits"]
    assert hit["before"] == "On 2026-06-10 the lease began"
