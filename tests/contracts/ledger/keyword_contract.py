"""What keyword search and browsing clusters must do, over whatever ledger."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import (
    BeingId,
    ClusterId,
    DatedAction,
    EmotionVector,
    Memory,
    MemoryId,
    MemoryStatus,
    Note,
    Provenance,
    Scene,
    Scope,
    scene_to_text,
    start_of_first_dated_timeline_entry,
)
from madeleine.memory.patrol_records import PatrolChanges
from tests.contracts.ledger.any_ledger import StoringLedger
from tests.contracts.ledger.ledger_values import (
    ADA,
    BOB,
    MOMENT,
    SHARED,
    _numbers,
    apply_changes,
    batch,
    cluster,
    ids,
    keyword_query,
    memory,
    note,
)


class KeywordContract:
    """A fixture `ledger` gives an empty one."""

    # --- search

    @pytest.mark.parametrize(
        ("written", "searched"),
        [
            ("Die Straße am Hafen", "STRASSE"),
            ("ΟΔΥΣΣΕΥΣ came home", "οδυσσευς"),
            ("Ｆｕｌｌ　ｗｉｄｔｈ", "full width"),
            ("Hashiに正式決定", "正式"),
            ("an ŒUVRE, cafe\u0301", "œuvre, café"),
            ("Café Größe, Łódź, Søren", "cafe grosse, lodz, soren"),
            ("Новогодняя ёлка", "елка"),
            ("かぎ, мой", "かぎ, мой"),
            ("100% of under_scores \\ and 'quotes\" too", "% of under_scores \\ and 'quotes\""),
        ],
    )
    async def test_a_term_is_found_whatever_its_case_and_width(
        self, ledger: StoringLedger, written: str, searched: str
    ) -> None:
        one = memory(written)
        await ledger.memories.commit_store_batch(ADA, batch(one, memory("something else")))
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query(searched))) == [one.id]

    @pytest.mark.parametrize(
        ("term", "begins", "within"),
        [
            ("ines", "an Ines, at last", "six hundred lines"),
            ("том", "третий том", "автомат"),
            ("elan", "Élan vital", "zéélandic"),
            ("16", "room 16", "in 2016"),
            ("orders", "db_orders", "reorders"),
            ("[x?*", "a [x?* sign", "nothing"),
            ("a.b", "so a.b it is", "ca.b or aXb"),
            (".env", "config.env", "dotenv"),
            ("都", "東京都に", "tokyo"),
        ],
    )
    async def test_a_term_is_found_at_the_beginning_of_words_alone_if_so_asked(
        self, ledger: StoringLedger, term: str, begins: str, within: str
    ) -> None:
        """spec P11"""
        one, other = memory(begins), memory(within)
        await ledger.memories.commit_store_batch(ADA, batch(one, other))
        await ledger.context.add_note(ADA, noted := note(begins))
        await ledger.context.add_note(ADA, note(within))
        found = await ledger.search.newest_matching_texts(
            ADA, keyword_query(term, within_words=False, sources=("memories", "notes"))
        )
        assert sorted(ids(found)) == sorted([one.id, noted.id])
        assert one.id in ids(await ledger.search.newest_matching_texts(ADA, keyword_query(term)))

    @pytest.mark.parametrize("sign", ["%", "_", "\\", "*", "?"])
    async def test_no_character_of_a_term_stands_for_others(self, ledger: StoringLedger, sign: str) -> None:
        one = memory(f"with {sign} in it")
        await ledger.memories.commit_store_batch(ADA, batch(one, memory("without in it")))
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query(sign))) == [one.id]

    async def test_every_text_of_a_memory_is_searched_and_a_theme_only_as_a_whole(self, ledger: StoringLedger) -> None:
        """spec P11; issue 12.6: actors, setting, dialogue and lessons were not."""
        scenes = [
            Scene(action="The quince tree"),
            Scene(action="x", when=(DatedAction("Day7", "bought a quince"), "Day8")),
            Scene(action="x", actors=("Ada", "Quince")),
            Scene(action="x", setting="under a quince"),
            Scene(action="x", dialogue=("No.", "A quince!")),
            Scene(action="x", sensory=("smell of quince",)),
        ]
        found = [memory(scene=scene) for scene in scenes]
        found += [memory(feeling="like a quince"), memory(lesson="Buy quinces"), memory(themes=("fruit", "Quince"))]
        in_part = memory(themes=("quince jam",))
        await ledger.memories.commit_store_batch(ADA, batch(*found, in_part))
        assert set(ids(await ledger.search.newest_matching_texts(ADA, keyword_query("quince")))) == {
            one.id for one in found
        }
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("day7"))) == [found[1].id]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("quince jam"))) == [in_part.id]

    async def test_recent_texts_are_those_of_the_being_and_folded(self, ledger: StoringLedger) -> None:
        old = memory("Old", happened_at=MOMENT - timedelta(days=9))
        await ledger.memories.commit_store_batch(ADA, batch(old, memory("Café", lesson="Thé", happened_at=MOMENT)))
        await ledger.context.add_note(ADA, note("Buy Tea"))
        texts = await ledger.search.recent_texts(ADA, ("memories", "notes", "diary", "chat"), most=1)
        assert [text.replace("\x1f", " ").split() for text in texts] == [["cafe", "[]", "the"], ["buy", "tea"]]
        assert await ledger.search.recent_texts(Scope(BeingId("bob")), ("memories",), most=9) == []

    async def test_no_term_matches_across_two_fields_or_themes(self, ledger: StoringLedger) -> None:
        await ledger.memories.commit_store_batch(ADA, batch(memory("left", feeling="right", themes=("a", "b"))))
        for term in ("left\x1fright", "leftright", "left right", "a\x1f\x1fb", "\x1f", "ab"):
            assert await ledger.search.newest_matching_texts(ADA, keyword_query(term)) == []

    async def test_or_takes_any_term_and_and_takes_all_in_any_field(self, ledger: StoringLedger) -> None:
        both = memory("tea", feeling="warm")
        one = memory("tea", feeling="cold")
        none = memory("milk")
        await ledger.memories.commit_store_batch(ADA, batch(both, one, none))
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", "warm"))) == [one.id, both.id]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", "warm", mode="and"))) == [
            both.id
        ]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query())) == [none.id, one.id, both.id]

    async def test_filters_narrow_by_theme_category_time_and_state(self, ledger: StoringLedger) -> None:
        day = timedelta(days=1)
        plain = memory("tea", happened_at=MOMENT)
        themed = memory("tea", happened_at=MOMENT - day, themes=("Food", "Trips"), category="social")
        dead = memory("tea", happened_at=MOMENT - 2 * day, status="dead")
        packed = memory("tea", happened_at=MOMENT - 3 * day, compressed=True)
        let_go = memory("tea", happened_at=MOMENT - 4 * day, status="dead", compressed=True)
        await ledger.memories.commit_store_batch(ADA, batch(plain, themed, dead, packed, let_go))

        async def found(**filters: Any) -> list[str]:
            return ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", **filters)))

        assert await found() == [plain.id, themed.id, dead.id, let_go.id]
        assert await found(include_dead=False) == [plain.id, themed.id]
        assert await found(include_compressed=True) == [plain.id, themed.id, dead.id, packed.id, let_go.id]
        assert await found(themes=("trips", "FOOD")) == [themed.id]
        assert await found(themes=("trips", "other")) == []
        assert await found(categories=("social", "semantic")) == [themed.id]
        assert await found(since=MOMENT - day, until=MOMENT) == [plain.id, themed.id]
        assert await found(until=MOMENT - timedelta(microseconds=1)) == [themed.id, dead.id, let_go.id]

    async def test_a_memory_is_found_by_every_time_that_its_dates_overlap(self, ledger: StoringLedger) -> None:
        """Issue 12: a month, a range and a day in another zone were found by their first moment alone."""

        def dated(number: int, *when: str | DatedAction) -> Memory:
            return memory(
                "tea",
                number=number,
                scene=Scene(action="tea", when=when),
                happened_at=start_of_first_dated_timeline_entry(when, MOMENT),
            )

        told = {
            "month": dated(901, "2026-03"),
            "range": dated(902, "2026-02-20/2026-03-12"),
            "evening in Lima": dated(903, "2026-03-10T22:30-05:00"),
            "several days": dated(904, "2026-03-01", "2026-03-30"),
            "absorbed": dated(905, "2026-01-05", DatedAction("2026-03-10", "coffee")),
        }
        await ledger.memories.commit_store_batch(ADA, batch(*told.values()))
        names = {one.id: name for name, one in told.items()}

        async def found(since: datetime, until: datetime) -> set[str]:
            query = keyword_query("tea", since=since, until=until)
            return {names[MemoryId(id_)] for id_ in ids(await ledger.search.newest_matching_texts(ADA, query))}

        tenth = datetime(2026, 3, 10, tzinfo=UTC)
        day = timedelta(days=1)
        assert await found(tenth, tenth + day) == {"month", "range", "evening in Lima", "several days"}
        assert await found(tenth + day, tenth + 2 * day) == {"month", "range", "evening in Lima", "several days"}
        assert await found(tenth + 6 * day, tenth + 7 * day) == {"month", "several days"}
        assert await found(tenth + 60 * day, tenth + 90 * day) == set()

    async def test_a_hit_says_what_it_found(self, ledger: StoringLedger) -> None:
        one = memory(
            scene=Scene(
                action="Drank tea", setting="Combray", dialogue=("Ah",), when=("2025-01-02",), actors=("Marcel",)
            ),
            feeling="moved", themes=("Food",), status="dying", happened_at=MOMENT,
            provenance=Provenance(tool="store", client="inspector", session_id="s1"),
        )  # fmt: skip
        aside = note("Buy tea", at=MOMENT + timedelta(hours=1))
        await ledger.memories.commit_store_batch(ADA, batch(one))
        await ledger.context.add_note(ADA, aside)
        of_note, of_memory = await ledger.search.newest_matching_texts(ADA, keyword_query("tea"))
        micros = 1740830400123457
        assert of_memory == SearchHit(
            source="memories", id=one.id, timestamp=MOMENT, text=scene_to_text(one.scene, one.feeling, dated=False),
            themes=("Food",), status="dying", position=(micros, one.id),
            stored_at=one.created_at, provenance=one.provenance, actors=("Marcel",), number=1,
            when="2025-01-02", further_texts=("Marcel",),
        )  # fmt: skip
        assert of_note == SearchHit(
            source="notes", id=aside.id, timestamp=aside.created_at, text="Buy tea",
            stored_at=aside.created_at, provenance=Provenance(tool="notes"),
            position=(micros + 3_600_000_000, aside.id),
        )  # fmt: skip

    async def test_notes_are_found_unless_the_search_is_for_memories(self, ledger: StoringLedger) -> None:
        aside = note("Buy TEA")
        taken_in = note('{"action": "tea"}', type_="scene", state="done")
        waiting = note('{"action": "tea"}', type_="scene", at=MOMENT - timedelta(hours=1))
        for one in (aside, taken_in, waiting):
            await ledger.context.add_note(ADA, one)
        await ledger.memories.commit_store_batch(ADA, batch(mem := memory("tea", themes=("x",))))
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", sources=("notes",)))) == [
            aside.id,
            waiting.id,
        ]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", sources=("memories",)))) == [
            mem.id
        ]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", themes=("x",)))) == [mem.id]
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", categories=("episodic",)))) == [
            mem.id
        ]
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("tea", sources=())) == []

    @given(
        written=st.lists(
            st.tuples(st.integers(0, 3), st.sampled_from(["tea", "milk", "tea milk"]), st.booleans()), max_size=14
        ),
        terms=st.lists(st.sampled_from(["tea", "MILK", "x"]), max_size=2),
        every=st.booleans(),
        limit=st.integers(1, 5),
    )
    @settings(max_examples=40, deadline=None, suppress_health_check=SHARED)
    async def test_pages_join_without_gap_or_repeat(
        self, ledger: StoringLedger, written: list[tuple[int, str, bool]], terms: list[str], every: bool, limit: int
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        expected: list[tuple[int, str]] = []
        for hours, text, is_note in written:
            at = MOMENT + timedelta(hours=hours)
            one = note(text, scope=scope, at=at) if is_note else memory(text, scope=scope, happened_at=at)
            if isinstance(one, Note):
                await ledger.context.add_note(scope, one)
            else:
                await ledger.memories.commit_store_batch(scope, batch(one))
            matched = [term.casefold() in text for term in terms]
            if not terms or (all(matched) if every else any(matched)):
                expected.append((-hours, one.id))
        query = keyword_query(*terms, mode="and" if every else "or", limit=limit)
        seen: list[str] = []
        while page := await ledger.search.newest_matching_texts(scope, query):
            assert len(page) <= limit
            seen += ids(page)
            query = replace(query, after=page[-1].position)
        assert seen == [id_ for _, id_ in sorted(expected)]

    # Without U+0000: `normalize_unicode_and_whitespace` takes it out before anything is stored.
    @given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30), data=st.data())
    @settings(max_examples=60, deadline=None, suppress_health_check=SHARED)
    async def test_every_part_of_what_was_written_finds_it(
        self, ledger: StoringLedger, text: str, data: st.DataObject
    ) -> None:
        scope = Scope(BeingId(f"being {next(_numbers)}"))
        one = memory(text, scope=scope)
        await ledger.memories.commit_store_batch(scope, batch(one))
        seen = unicodedata.normalize("NFKC", text).casefold()
        start = data.draw(st.integers(0, len(seen)))
        # A combining mark cut off from its letter is another text under NFKC, so parts begin and end at letters.
        part = seen[start : data.draw(st.integers(start, len(seen)))] if seen.isascii() else seen
        assert ids(await ledger.search.newest_matching_texts(scope, keyword_query(part))) == [one.id]

    async def test_a_position_beyond_every_moment_begins_or_ends_the_search(self, ledger: StoringLedger) -> None:
        one = memory("tea")
        await ledger.memories.commit_store_batch(ADA, batch(one))
        assert ids(await ledger.search.newest_matching_texts(ADA, keyword_query("tea", after=(10**30, "")))) == [one.id]
        assert await ledger.search.newest_matching_texts(ADA, keyword_query("tea", after=(-(10**30), ""))) == []

    # --- clusters

    async def test_a_cluster_s_memories_come_newest_first_a_page_at_a_time(self, ledger: StoringLedger) -> None:
        c = ClusterId("c")
        members = [
            memory(number=7000 + n, cluster_id=c, happened_at=MOMENT + timedelta(hours=n // 2), status=status)
            for n, status in enumerate[MemoryStatus](("active", "dead", "dying", "active", "dead"))
        ]
        await ledger.memories.commit_store_batch(ADA, batch(*members, memory()))
        await apply_changes(ledger, PatrolChanges(clusters=(cluster("c", "C", "c"), cluster("e", "Empty", "c"))))
        expected = sorted(members, key=lambda one: (-one.happened_at.timestamp(), one.id))
        seen: list[Memory] = []
        after: str | None = None
        while page := await ledger.recall.memories_of_cluster(ADA, c, limit=2, after=after):
            seen += page
            after = page[-1].id
        assert seen == expected
        assert await ledger.recall.memories_of_cluster(ADA, ClusterId("e"), limit=2, after=None) == []
        assert await ledger.recall.memories_of_cluster(ADA, c, limit=2, after="unknown") == []
        assert await ledger.recall.memories_of_cluster(ADA, ClusterId("none"), limit=2, after=None) is None

    async def test_summaries_count_by_status_roots_first_then_the_most_alive(self, ledger: StoringLedger) -> None:
        await apply_changes(
            ledger,
            PatrolChanges(
                clusters=(
                    cluster("p", "Private", "p", is_root=True),
                    cluster("b", "Business", "b", is_root=True),
                    cluster("s1", "Zoo", "p"),
                    cluster("s2", "Apples", "p"),
                    cluster("s3", "Trips", "p"),
                )
            ),
        )
        statuses: tuple[MemoryStatus, ...] = ("active", "active", "dying", "dead", "dead")
        await ledger.memories.commit_store_batch(
            ADA, batch(*(memory(cluster_id=ClusterId("s3"), status=status) for status in statuses))
        )
        found = await ledger.recall.clusters_with_memory_counts(ADA)
        assert [one.name for one in found] == ["Business", "Private", "Trips", "Apples", "Zoo"]
        assert [one.parent for one in found] == ["Business", "Private", "Private", "Private", "Private"]
        assert [one.is_root for one in found] == [True, True, False, False, False]
        trips = found[2]
        assert (trips.active, trips.dying, trips.dead) == (2, 1, 2)

    async def test_the_feelings_in_clusters_are_those_of_active_memories(self, ledger: StoringLedger) -> None:
        """ruling 21"""
        vector = EmotionVector(0.5, 0, 0, 0, 0, -1)
        trips, zoo = ClusterId("s3"), ClusterId("s1")
        await ledger.memories.commit_store_batch(
            ADA,
            batch(
                memory(cluster_id=trips, emotions=("joy", "relief")),
                memory(cluster_id=trips, emotion=vector),
                memory(cluster_id=zoo, emotions=("love",), emotion=vector),
                memory(cluster_id=zoo, emotions=("fear",), status="dying"),
                memory(cluster_id=zoo),
                memory(emotions=("grief",)),
            ),
        )
        found = await ledger.recall.feelings_of_clustered_memories(ADA)
        assert len(found) == 3
        assert set(found) == {(trips, ("joy", "relief"), None), (trips, (), vector), (zoo, ("love",), vector)}
        assert await ledger.recall.feelings_of_clustered_memories(BOB) == []
