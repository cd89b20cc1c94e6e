"""What `search_memory` finds by exact words, and why (spec P11, rulings 14 and 19)."""

from __future__ import annotations

import pytest

from tests.unit.tools.conftest import Use


async def found(use: Use, query: str, **arguments: object) -> list[str]:
    return [hit["text"] for hit in (await use("search_memory", query=query, **arguments))["hits"]]


@pytest.mark.parametrize(
    ("query", "text", "within"),
    [
        ("Ines", "Ines has the keys", "The report has 600 lines"),
        ("Tom", "We met Tom's sister", "Customer of the year: Custom Metrics"),
        ("Élan", "She has élan", "The Zéélandic ferry"),
        ("том", "Наш том третий", "Автомат сломан"),
        ("16", "Room 16 is ours", "In 2016 we met"),
        ('"new moon"', "A new moon rises", "A renew moon"),
    ],
)
async def test_a_word_is_found_where_it_begins_one(use: Use, query: str, text: str, within: str) -> None:
    """Within another word it is found only where nothing else is."""
    await use("store", text=within, when="2026-02-01")
    assert await found(use, query) == [within]
    await use("store", text=text, when="2026-01-01")
    assert await found(use, query) == [text]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("京都", "昨日は東京都にいた"), ("_id", "the field user_id"), ("orders", "the host db_orders"),
        ("orders", "the host db-orders"),
        (".env", "config.env is read first"), ("후식", "오늘후식은 배"),
    ],
)  # fmt: skip
async def test_what_no_space_tells_apart_is_found_everywhere(use: Use, query: str, text: str) -> None:
    await use("store", text=text)
    await use("store", text=f"{query} alone", distinct=True)
    assert len(await found(use, query)) == 2


async def test_all_words_are_to_begin_one_where_all_are_asked_for(use: Use) -> None:
    await use("store", text="Ines counted the customers")
    await use("store", text="Ines and Tom counted the lines")
    assert await found(use, "Ines Tom", mode="and") == ["Ines and Tom counted the lines"]
    assert len(await found(use, "Ines Tom")) == 2
    assert len(await found(use, "ines ustomers", mode="and")) == 1


async def test_a_name_is_found_in_themes_and_in_what_was_said(use: Use) -> None:
    await use("store", text="The harbour froze", themes=["Ines"])
    await use("store", text="We counted the lines", actors=["Ines"], distinct=True)
    assert len(await found(use, "Ines")) == 2


async def test_a_hit_names_the_version_that_holds_the_words(use: Use) -> None:
    """Neither its text nor `before` held them, and nobody knew why it was there."""
    first = (await use("store", text="Orders runs on db-orders-1", when="2026-03-02"))["id"]
    second = (await use("store", text="Orders runs on the new cluster", when="2026-06-10", supersedes=first))["id"]
    third = (await use("store", text="Orders is hosted by Neon", when="2026-09-15", supersedes=second))["id"]
    [hit] = (await use("search_memory", query="db-orders-1"))["hits"]
    assert (hit["id"], hit["matched"]) == (third, f"{first}, 2026-03-02: Orders runs on db-orders-1")
    for query in ("Neon", "cluster", "Orders"):
        [hit] = (await use("search_memory", query=query))["hits"]
        assert "matched" not in hit


async def test_as_of_a_day_a_hit_names_the_later_version_that_holds_the_words(use: Use) -> None:
    first = (await use("store", text="Orders runs on db-orders-1", when="2026-03-02"))["id"]
    second = (await use("store", text="Orders is hosted by Neon", when="2026-06-10", supersedes=first))["id"]
    [hit] = (await use("search_memory", query="Neon", as_of="2026-04"))["hits"]
    assert (hit["id"], hit["matched"]) == (first, f"{second}, 2026-06-10: Orders is hosted by Neon")


async def test_a_long_text_is_shown_around_the_word_that_begins_with_the_query(use: Use) -> None:
    """spec H3: the first place was one within another word."""
    await use("store", text="The lines are long. " * 40 + "Ines has the keys. " + "They are long. " * 40)
    [hit] = (await use("search_memory", query="Ines"))["hits"]
    assert "Ines has the keys" in hit["text"]
