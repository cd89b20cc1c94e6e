"""What every ledger does to be searched in all its sources (spec P11, H1 to H4). Inherited beside `LedgerContract`."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.inference.stems import stem_english_word
from madeleine.memory.chat import MessageId
from madeleine.memory.keyword_search import (
    KeywordQuery,
    SearchHit,
    SearchSource,
    SearchTagFromMessage,
    TagMatchesInOneSource,
    TagSearchQuery,
)
from madeleine.memory.model import BeingId, Memory, Provenance, Scope
from madeleine.memory.patrol_records import DiaryEntry, PatrolChanges
from madeleine.memory.rules.searching import search_tag_of_word_or_phrase, text_has_message_tag
from madeleine.memory.text.normalization import fold_text
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MOMENT,
    RUN,
    SHARED,
    apply_changes,
    batch,
    ids,
    keyword_query,
    memory,
    note,
)
from tests.doubles_chat import a_message

DAY = timedelta(days=1)
SOURCES: tuple[SearchSource, ...] = ("memories", "diary", "chat", "notes")
_numbers = itertools.count(1)


async def say(ledger: AnyLedger, text: str, *, at: datetime = MOMENT, scope: Scope = ADA, **other: Any) -> str:
    id_ = MessageId(str(UUID(int=10**9 + next(_numbers))))
    message = replace(a_message(text), id=id_, at=at, **other)
    await ledger.conversations.append_messages(scope, "s", [message], keys=[None])
    return id_


async def write(ledger: AnyLedger, text: str, *of: Memory, date: str = "2025-03-01", scope: Scope = ADA) -> DiaryEntry:
    sources = tuple(one.id for one in of)
    entry = DiaryEntry(date=date, text=text, sources=sources, written_at=MOMENT + timedelta(hours=9))
    await apply_changes(ledger, PatrolChanges(diary=entry), scope)
    return entry


async def keep(ledger: AnyLedger, text: str = "tea", *, scope: Scope = ADA, **other: Any) -> Memory:
    one = memory(text, scope=scope, **other)
    await ledger.memories.commit_store_batch(scope, batch(one))
    return one


def tags(*texts: str) -> tuple[SearchTagFromMessage, ...]:
    return tuple(search_tag_of_word_or_phrase(fold_text(text), stem_english_word) for text in texts)


def tagged(*texts: str, related: tuple[str, ...] = (), newest: int = 1_000, **filters: Any) -> TagSearchQuery:
    return TagSearchQuery(tags(*texts), related, KeywordQuery(terms=(), **filters), newest)


def masks(found: list[TagMatchesInOneSource]) -> dict[str, int]:
    return {id_: mask for of_source in found for (_, id_), mask in of_source.newest}


class SearchContract:
    # --- by words

    async def test_one_search_finds_in_all_four_sources_newest_first(self, ledger: AnyLedger) -> None:
        kept = await keep(ledger, happened_at=MOMENT)
        said = await say(ledger, "More TEA?", at=MOMENT + timedelta(minutes=2))
        entry = await write(ledger, "Tea all day.")
        await ledger.context.add_note(ADA, noted := note("Buy tea", at=MOMENT + timedelta(minutes=1)))
        await keep(ledger, "milk")
        hits = await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))
        # A day stands at its beginning.
        assert [(hit.source, hit.id) for hit in hits] == [
            ("chat", said), ("notes", noted.id), ("memories", kept.id), ("diary", entry.date),
        ]  # fmt: skip
        for source in SOURCES:
            assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", sources=(source,)))) == [
                hit.id for hit in hits if hit.source == source
            ]

    async def test_in_the_diary_and_in_conversations_too_a_word_is_to_begin_with_the_term_if_so_asked(
        self, ledger: AnyLedger
    ) -> None:
        said, entry = await say(ledger, "Ask Ines!"), await write(ledger, "Ines came.")
        await say(ledger, "600 lines")
        await write(ledger, "Wrote lines.", date="2025-03-02")
        query = keyword_query("ines", within_words=False)
        assert sorted(ids(await ledger.search.newest_matching_texts(ADA, query))) == sorted([said, entry.date])
        assert len(await ledger.search.newest_matching_texts(ADA, keyword_query("ines"))) == 4

    async def test_a_message_that_is_found_says_who_said_it_when_and_where(self, ledger: AnyLedger) -> None:
        said = await say(ledger, "Gern, Straßentee!", speaker="Zoé", client="desk", stored_at=MOMENT + DAY)
        [hit] = await ledger.search.newest_matching_texts(ADA, keyword_query("STRASSENTEE"))
        assert hit == SearchHit(
            source="chat", id=said, timestamp=MOMENT, text="Gern, Straßentee!", stored_at=MOMENT + DAY,
            provenance=Provenance(tool="chat", client="desk", session_id="s"), actors=("Zoé",),
            position=(1740830400123457, said),
        )  # fmt: skip
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("zoé"))) == [said]
        await say(ledger, "nobody's tea", role="assistant")
        assert [hit.actors for hit in await ledger.search.newest_matching_texts(ADA, keyword_query("nobody"))] == [
            ("assistant",)
        ]

    async def test_a_day_that_is_found_has_the_themes_of_its_memories_the_commonest_first(
        self, ledger: AnyLedger
    ) -> None:
        one = await keep(ledger, "x", themes=("Trips", "Food"))
        two = await keep(ledger, "x", themes=("Food",))
        of_bob = await keep(ledger, "x", scope=BOB, themes=("Secret",))
        entry = await write(ledger, "Ate a Madeleine", one, two, of_bob)
        [hit] = await ledger.search.newest_matching_texts(ADA, keyword_query("madeleine"))
        start = datetime(2025, 3, 1, tzinfo=UTC)
        assert hit == SearchHit(
            source="diary", id="2025-03-01", when="2025-03-01", timestamp=start, text="Ate a Madeleine",
            stored_at=entry.written_at, provenance=Provenance(tool="diary"), themes=("Food", "Trips"),
            position=(int(start.timestamp()) * 1_000_000, "2025-03-01"),
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("filters", "expected"),
        [
            ({}, "memories diary chat notes"),
            ({"themes": ("FOOD",)}, "memories diary"),
            ({"themes": ("food", "other")}, ""),
            ({"categories": ("episodic",)}, "memories"),
            ({"categories": ("social",)}, ""),
            ({"include_dead": False}, "diary chat notes"),
            ({"since": MOMENT}, "memories chat notes"),
            ({"since": MOMENT + timedelta(microseconds=1)}, ""),
            ({"until": MOMENT - timedelta(microseconds=1)}, "diary"),
            ({"since": MOMENT - DAY, "until": MOMENT}, "memories diary chat notes"),
            ({"sources": ("diary", "chat", "diary")}, "diary chat"),
        ],
    )
    async def test_each_filter_narrows_what_has_what_it_asks_for(
        self, ledger: AnyLedger, filters: dict[str, Any], expected: str
    ) -> None:
        """The memory is dead: only memories can be."""
        kept = await keep(ledger, happened_at=MOMENT, themes=("Food",), status="dead")
        await write(ledger, "tea", kept)
        await say(ledger, "tea")
        await ledger.context.add_note(ADA, note("tea"))
        hits = await ledger.search.newest_matching_texts(ADA, keyword_query("tea", **filters))
        assert {hit.source for hit in hits} == set(expected.split())
        matched = await ledger.search.tag_matches_of_each_source(ADA, tagged("tea", **filters))
        assert {one.source for one in matched if one.newest} == set(expected.split())

    async def test_and_takes_all_terms_from_one_text(self, ledger: AnyLedger) -> None:
        both, one = await say(ledger, "tea and milk"), await say(ledger, "tea")
        await write(ledger, "Milk in tea")
        await write(ledger, "Milk", date="2025-03-02")
        hits = await ledger.search.newest_matching_texts(ADA, keyword_query("tea", "milk", mode="and"))
        assert set(ids(hits)) == {both, "2025-03-01"}
        assert one in ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", "milk")))

    async def test_a_diary_longer_than_one_reading_is_searched_to_its_first_day(self, ledger: AnyLedger) -> None:
        start = datetime(2023, 1, 1, tzinfo=UTC)
        async with ledger.patrols.patrol_transaction(ADA) as patrol:
            for day in range(430):
                date, text = (start + day * DAY).date().isoformat(), "milk" if day else "tea"
                entry = DiaryEntry(date=date, text=text, sources=(), written_at=MOMENT)
                await patrol.apply_changes(PatrolChanges(diary=entry), run=RUN, step="diary")
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))) == ["2023-01-01"]

    @given(
        written=st.lists(
            st.tuples(st.integers(0, 2), st.sampled_from(["tea", "milk", "tea milk"]), st.sampled_from(SOURCES)),
            max_size=14,
        ),
        terms=st.lists(st.sampled_from(["tea", "MILK", "x"]), max_size=2),
        every=st.booleans(),
        limit=st.integers(1, 5),
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
    async def test_pages_over_all_sources_join_without_gap_or_repeat(
        self, ledger: AnyLedger, written: list[tuple[int, str, SearchSource]], terms: list[str], every: bool, limit: int
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        texts: dict[str, tuple[datetime, str]] = {}
        for days, text, source in written:
            at = datetime(2025, 3, 1 + days, tzinfo=UTC)
            id_ = await one_of(ledger, source, text, at, scope)
            texts[id_] = (at, text)
        looked_for = [term.casefold() for term in terms]
        meets = all if every else any
        expected = sorted(
            (-at.timestamp(), id_)
            for id_, (at, text) in texts.items()
            if not terms or meets(term in text for term in looked_for)
        )
        query = keyword_query(*terms, mode="and" if every else "or", limit=limit)
        seen: list[str] = []
        while page := await ledger.search.newest_matching_texts(scope, query):
            assert len(page) == min(limit, len(expected) - len(seen))
            seen += ids(page)
            query = replace(query, after=page[-1].position)
        assert seen == [id_ for _, id_ in expected]

    @given(
        terms=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=32),
        after=st.none() | st.tuples(st.integers(), st.text(st.characters(codec="utf-8"), max_size=9)),
    )
    @settings(max_examples=30, deadline=None, suppress_health_check=SHARED)
    async def test_no_terms_and_no_position_make_a_search_fail(
        self, ledger: AnyLedger, terms: list[str], after: tuple[int, str] | None
    ) -> None:
        assert len(await ledger.search.newest_matching_texts(ADA, keyword_query(*terms, after=after))) <= 10

    # --- by tags

    async def test_a_text_is_marked_with_every_tag_that_it_holds_as_a_word(self, ledger: AnyLedger) -> None:
        both = await keep(ledger, "Running for ramen")
        theme = await keep(ledger, "x", themes=("Ramen shops",))
        part = await keep(ledger, "a brunch of ramenlike rungs")
        said = await say(ledger, "We run!")
        await write(ledger, "Runs.", theme)
        await ledger.context.add_note(ADA, noted := note("ramen"))
        assert masks(await ledger.search.tag_matches_of_each_source(ADA, tagged("run", "ramen"))) == {
            both.id: 0b11, theme.id: 0b10, said: 0b01, "2025-03-01": 0b11, noted.id: 0b10,
        }  # fmt: skip
        assert part.id not in masks(await ledger.search.tag_matches_of_each_source(ADA, tagged("run", "ramen")))

    async def test_a_related_theme_is_one_of_the_themes_and_no_word(self, ledger: AnyLedger) -> None:
        has = await keep(ledger, "x", themes=("Food", "x"))
        await keep(ledger, "food", themes=("fast food",))
        await write(ledger, "a day", has)
        query = tagged("ramen", related=("food", "drinks"))
        assert masks(await ledger.search.tag_matches_of_each_source(ADA, query)) == {has.id: 0b10, "2025-03-01": 0b10}

    async def test_of_each_mask_the_newest_come_and_the_number_of_all(self, ledger: AnyLedger) -> None:
        kept = [await keep(ledger, "ramen") for _ in range(4)]
        other = await keep(ledger, "ramen soup")
        said = [await say(ledger, "soup", at=MOMENT + n * DAY) for n in range(3)]
        of_memories, of_chat = await ledger.search.tag_matches_of_each_source(
            ADA, tagged("ramen", "soup", limit=2, sources=("memories", "chat"))
        )
        assert masks([of_memories]) == {kept[3].id: 0b01, kept[2].id: 0b01, other.id: 0b11}
        assert of_memories.counts == {0b01: 4, 0b11: 1}
        assert masks([of_chat]) == {said[2]: 0b10, said[1]: 0b10}
        assert of_chat.counts == {0b10: 3}

    async def test_no_more_than_the_newest_of_each_source_are_looked_through(self, ledger: AnyLedger) -> None:
        kept = [await keep(ledger, text) for text in ("ramen", "ramen", "soup")]
        said = [await say(ledger, text, at=MOMENT + n * DAY) for n, text in enumerate(("ramen", "ramen", "soup"))]
        for day in (1, 2, 3):
            await write(ledger, "ramen" if day < 3 else "soup", date=f"2025-03-0{day}")
        assert set(masks(await ledger.search.tag_matches_of_each_source(ADA, tagged("ramen", newest=2)))) == {
            kept[1].id,
            said[1],
            "2025-03-02",
        }

    @given(
        text=st.lists(st.sampled_from("run running rung ramen Ramen's *?[ ] _ 寿司 straße art-party é\x1f".split(" "))),
        glue=st.sampled_from([" ", "", "-", "、"]),
        wanted=st.lists(
            st.sampled_from(["run", "ramen", "寿司", "strasse", "party", "*?[", "é", "art-party"]),
            min_size=1, max_size=4, unique=True,
        ),
    )  # fmt: skip
    @settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
    async def test_the_ledger_and_the_rule_agree_on_what_a_text_holds(
        self, ledger: AnyLedger, text: list[str], glue: str, wanted: list[str]
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        said = glue.join(text) or "nothing"
        kept = await keep(ledger, said, scope=scope)
        message = await say(ledger, said, scope=scope)
        entry = await write(ledger, said, scope=scope)
        mask = sum(1 << n for n, tag in enumerate(tags(*wanted)) if text_has_message_tag(fold_text(said), tag))
        expected = dict.fromkeys((kept.id, message, entry.date), mask) if mask else {}
        assert masks(await ledger.search.tag_matches_of_each_source(scope, tagged(*wanted))) == expected

    async def test_hits_come_by_source_and_id(self, ledger: AnyLedger) -> None:
        kept, said = await keep(ledger), await say(ledger, "tea")
        entry = await write(ledger, "tea", kept)
        await ledger.context.add_note(ADA, noted := note("tea"))
        hits = await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))
        wanted: list[tuple[SearchSource, str]] = [
            ("memories", kept.id), ("chat", said), ("diary", entry.date), ("notes", noted.id),
            ("memories", said), ("notes", "unknown"), ("diary", "yesterday"),
        ]  # fmt: skip
        by_id = await ledger.search.hits_with_ids(ADA, wanted)
        assert sorted(by_id, key=lambda hit: hit.id) == sorted(hits, key=lambda hit: hit.id)
        assert await ledger.search.hits_with_ids(ADA, []) == []

    async def test_themes_that_stand_beside_a_tag_are_those_of_recent_memories(self, ledger: AnyLedger) -> None:
        await keep(ledger, "x", themes=("Ramen", "Old"), happened_at=MOMENT - DAY)
        await keep(ledger, "x", themes=("Ramen shop", "Food"))
        await keep(ledger, "ramen", themes=("Trips",))  # not among its themes
        assert await ledger.search.themes_of_each_recent_memory_with_tag(ADA, tags("ramen"), recent=2) == [
            ("Ramen shop", "Food")
        ]
        assert len(await ledger.search.themes_of_each_recent_memory_with_tag(ADA, tags("ramen", "x"), recent=9)) == 2

    # --- whose it is

    async def test_nothing_of_another_being_is_found_in_any_source(self, ledger: AnyLedger) -> None:
        kept = await keep(ledger, themes=("tea", "Secret"), scope=BOB)
        said = await say(ledger, "tea", scope=BOB)
        entry = await write(ledger, "tea", kept, scope=BOB)
        noted = note("tea", scope=BOB)
        await ledger.context.add_note(BOB, noted)
        wanted: list[tuple[SearchSource, str]] = [
            ("memories", kept.id), ("chat", said), ("diary", entry.date), ("notes", noted.id),
        ]  # fmt: skip
        assert (
            len(await ledger.search.newest_matching_texts(BOB, keyword_query("tea")))
            == len(await ledger.search.hits_with_ids(BOB, wanted))
            == 4
        )
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("tea")) == []
        assert masks(await ledger.search.tag_matches_of_each_source(ADA, tagged("tea", related=("secret",)))) == {}
        assert await ledger.search.hits_with_ids(ADA, wanted) == []
        assert await ledger.search.themes_of_each_recent_memory_with_tag(ADA, tags("tea"), recent=9) == []
        assert await ledger.search.themes_of_each_recent_memory_with_tag(BOB, tags("tea"), recent=9) == [
            ("tea", "Secret")
        ]


async def one_of(ledger: AnyLedger, source: SearchSource, text: str, at: datetime, scope: Scope) -> str:
    """Its id. A day has one entry: a second replaces the first."""
    if source == "memories":
        return (await keep(ledger, text, happened_at=at, scope=scope)).id
    if source == "chat":
        return await say(ledger, text, at=at, scope=scope)
    if source == "diary":
        return (await write(ledger, text, date=at.date().isoformat(), scope=scope)).date
    noted = note(text, at=at, scope=scope)
    await ledger.context.add_note(scope, noted)
    return noted.id
