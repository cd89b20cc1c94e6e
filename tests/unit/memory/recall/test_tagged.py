"""Search by what a message is about (spec H1 to H4), over the real ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from madeleine.inference.stems import stem_english_word
from madeleine.memory.keyword_search import KeywordQuery, SearchHit
from madeleine.memory.model import Memory, RunId
from madeleine.memory.patrol_records import DiaryEntry, PatrolChanges
from madeleine.memory.recall.search import SearchByTagsFromMessage, SearchStoredTexts
from tests.doubles import ADA, BOB
from tests.doubles_chat import a_message
from tests.household import Household, household, new_store

HOUR = timedelta(hours=1)


@pytest.fixture
async def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Household]:
    path = new_store(tmp_path_factory.getbasetemp(), tmp_path / "memory.db")
    async with household(path, durable=False) as home:
        yield home


async def kept(home: Household, *texts: str, **fields: Any) -> list[Memory]:
    """An hour apart."""
    found = []
    for text in texts:
        home.clock.advance(HOUR)
        found += await home.store(text, **fields)
    return found


async def said(home: Household, text: str) -> None:
    home.clock.advance(HOUR)
    await home.ledger.conversations.append_messages(ADA, "s", [a_message(text, at=home.clock())], keys=[None])


async def brought(home: Household, message: str, *, limit: int = 9, include_chat: bool = False) -> list[SearchHit]:
    return [
        *await SearchByTagsFromMessage(home.ledger.search, stem_english_word)(
            ADA, message, limit=limit, include_chat=include_chat
        )
    ]


def texts(hits: list[SearchHit]) -> list[str]:
    return [hit.snippet for hit in hits]


async def test_hits_for_a_message_come_newest_first_from_memories_diary_and_chat(home: Household) -> None:
    one, two, _ = await kept(home, "Ann cooked ramen", "A noodle shop opened", "Bob slept")
    await said(home, "Those noodles!")
    entry = DiaryEntry(date="2026-02-01", text="A ramen day.", sources=(), written_at=home.clock())
    async with home.ledger.patrols.patrol_transaction(ADA) as patrol:
        await patrol.apply_changes(PatrolChanges(diary=entry), run=RunId("run"), step="diary")
    await home.note("buy ramen")
    message = "Which ramen noodles did we like?"
    found = await brought(home, message, include_chat=True)
    assert [(hit.source, hit.snippet) for hit in found] == [
        ("chat", "Those noodles!"), ("memories", two.scene.action), ("memories", one.scene.action),
        ("diary", "A ramen day."),
    ]  # fmt: skip
    assert [hit.source for hit in await brought(home, message)] == ["memories", "memories", "diary"]
    assert len(await brought(home, message, limit=2)) == 2


async def test_a_rare_word_is_found_behind_any_number_of_newer_texts_with_a_common_one(home: Household) -> None:
    """By time alone, the newest with "working" would be all."""
    await kept(home, "Zanzibar was sold out")
    await kept(home, *(f"Ann was working on page {n}" for n in range(30)))
    found = await brought(home, "Are we working on Zanzibar?", limit=3)
    assert texts(found) == ["Ann was working on page 29", "Ann was working on page 28", "Zanzibar was sold out"]


async def test_themes_that_stand_beside_a_tag_bring_what_does_not_name_it(home: Household) -> None:
    await kept(home, "Slurped noodles at midnight", themes=("Kyoto nights",))
    await kept(home, "One bowl", "Another bowl, again with egg", themes=("ramen", "Kyoto nights"))
    await kept(home, "Paid the rent", themes=("money",))
    assert texts(await brought(home, "ramen?")) == [
        "Another bowl, again with egg", "One bowl", "Slurped noodles at midnight",
    ]  # fmt: skip
    # What names it goes first where there is not room for all.
    assert "Slurped noodles at midnight" not in texts(await brought(home, "ramen?", limit=2))


async def test_the_message_itself_is_left_out_and_the_limit_filled(home: Household) -> None:
    await said(home, "We had ramen")
    await said(home, "Shall we have RAMEN  again?")
    assert texts(await brought(home, "Shall we have ramen again?", limit=1, include_chat=True)) == ["We had ramen"]


async def test_faded_and_compressed_memories_are_not_brought_up_by_themselves(home: Household) -> None:
    alive, dead, packed = await kept(home, "ramen here", "ramen there", "ramen elsewhere, packed")
    with closing(sqlite3.connect(home.path)) as connection, connection:
        connection.execute("UPDATE memories SET status = 'dead' WHERE id = ?", (dead.id,))
        connection.execute("UPDATE memories SET compressed = 1 WHERE id = ?", (packed.id,))
    assert texts(await brought(home, "ramen")) == [alive.scene.action]


async def test_nothing_is_counted_when_a_message_brings_something_to_mind(home: Household) -> None:
    """spec P11 counts searches; a context is built each turn."""
    [one] = await kept(home, "ramen here")
    assert await brought(home, "ramen")
    await home.ledger.activations.flush()
    assert (await home.now(one)).reactivation_count == 0


async def test_a_search_for_what_a_message_is_about_counts_what_it_shows(home: Household) -> None:
    [one, other] = await kept(home, "ramen here", "rain")
    search = SearchStoredTexts(
        home.ledger.search,
        home.ledger.activations,
        search_by_tags=SearchByTagsFromMessage(home.ledger.search, stem_english_word),
        now=home.clock,
    )
    page = await search.search_by_tags_of_message(ADA, "How was the ramen?", KeywordQuery(terms=()))
    await home.ledger.activations.flush()
    assert [hit.id for hit in page.hits] == [one.id]
    assert page.next_cursor == ""
    assert [(await home.now(two)).reactivation_count for two in (one, other)] == [1, 0]


@pytest.mark.parametrize("message", ["", "can you do that?", "…", "🍜", "x" * 32_000])
async def test_a_message_that_tells_of_nothing_brings_nothing(home: Household, message: str) -> None:
    await kept(home, "can you do that? … 🍜 x")
    assert await brought(home, message, include_chat=True) == []


async def test_a_snippet_shows_the_place_of_the_tag(home: Household) -> None:
    await kept(home, "rain and wind and " * 60 + "then ramens at last")
    [hit] = await brought(home, "ramen")
    assert "ramens" in hit.snippet
    assert len(hit.snippet) <= 400


async def test_another_being_s_words_and_themes_bring_nothing(home: Household) -> None:
    await kept(home, "One bowl", "Two bowls of it", themes=("ramen", "Kyoto"), scope=BOB)
    await kept(home, "A day", themes=("Kyoto",))
    assert await brought(home, "ramen", include_chat=True) == []
