"""What every index must do. An adapter's tests inherit `IndexContract` and give it an empty index of 8 dimensions."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from madeleine.memory.index import Index, MemoryRankingFeatures
from madeleine.memory.model import LIVING_STATUSES, BeingId, EmotionVector, MemoryId, Provenance, Scope
from madeleine.memory.text.terms import normalize_text_for_bm25
from madeleine.memory.text.written_dates import text_with_iso_dates
from tests.contracts.index_points import (
    ADA,
    BOB,
    COSINE_TOLERANCE,
    MOMENT,
    VectorQuery,
    assert_scores_are_true,
    candidates,
    expected_idf,
    index_query,
    memory_id,
    point,
    random_points,
    unit,
)


class IndexContract:
    async def test_an_upsert_is_visible_at_once_and_repeating_it_changes_nothing(self, index: Index) -> None:
        points = [point(1, "a walk to the harbor", unit(1)), point(2, "violin practice", unit(0, 1))]
        await index.upsert(points)
        once = await candidates(index, ADA, index_query("harbor", unit(1)))
        await index.upsert(points)
        again = await candidates(index, ADA, index_query("harbor", unit(1)))
        assert once.ids == again.ids == (memory_id(1), memory_id(2))
        assert again.idf.tolist() == once.idf.tolist()
        assert await index.count() == 2

    async def test_scrubbing_keeps_every_answer(self, index: Index) -> None:
        """ruling 11"""
        points = [
            point(1, "a walk to the harbor", unit(1)),
            point(2, "violin practice", unit(0, 1)),
            point(3, "harbor"),
        ]
        await index.upsert(points)
        await index.delete([memory_id(3)])
        before = await candidates(index, ADA, index_query("harbor", unit(1)))
        await index.scrub_deleted_bytes()
        after = await candidates(index, ADA, index_query("harbor", unit(1)))
        assert (after.ids, after.features, after.bm25.tolist()) == (before.ids, before.features, before.bm25.tolist())
        assert after.cosine.tolist() == pytest.approx(before.cosine.tolist(), abs=1e-6)
        assert await index.count() == 2

    async def test_the_last_of_two_points_with_one_id_counts(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1)), point(1, "violin", unit(0, 1))])
        assert (await candidates(index, ADA, index_query("harbor"))).ids == ()
        assert (await candidates(index, ADA, index_query("violin"))).ids == (memory_id(1),)
        assert await index.count() == 1

    async def test_a_deleted_memory_is_not_found_and_not_counted(self, index: Index) -> None:
        points = [point(1, "harbor", unit(1)), point(2, "harbor violin", unit(1, 1)), point(3, "orchard", unit(0, 1))]
        await index.upsert(points)
        await index.delete([memory_id(1), memory_id(77)])
        question = index_query("harbor", unit(1))
        pool = await candidates(index, ADA, question)
        assert set(pool.ids) == {memory_id(2), memory_id(3)}
        assert_scores_are_true(pool, question, points[1:])
        assert memory_id(1) not in dict(await index.nearest(ADA, unit(1), limit=5, statuses=LIVING_STATUSES))
        assert await index.count() == 2

    async def test_no_being_sees_anothers_memories(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1)), point(2, "harbor", unit(1), scope=BOB)])
        assert (await candidates(index, ADA, index_query("harbor", unit(1)))).ids == (memory_id(1),)
        assert [id for id, _ in await index.nearest(BOB, unit(1), limit=5, statuses=LIVING_STATUSES)] == [memory_id(2)]
        assert (await candidates(index, Scope(BeingId("nobody")), index_query("harbor", unit(1)))).ids == ()

    async def test_a_word_that_is_common_with_another_being_keeps_its_idf_with_me(self, index: Index) -> None:
        mine = [point(1, "harbor at dawn", unit(1)), point(2, "violin practice", unit(0, 1)), point(3, "orchard")]
        await index.upsert([*mine, *(point(n, "harbor harbor", unit(1), scope=BOB) for n in range(10, 40))])
        assert await index.idf(ADA, ["harbor"]) == pytest.approx([expected_idf("harbor", mine)], rel=1e-4)
        question = index_query("harbor violin", unit(1))
        assert_scores_are_true(await candidates(index, ADA, question), question, mine)

    async def test_idf_is_zero_for_stop_words_and_greatest_for_unknown_ones(self, index: Index) -> None:
        points = [point(1, "harbor"), point(2, "harbor violin"), point(3, "", unit(1))]
        await index.upsert(points)
        words = ["the", "harbor", "violin", "zeppelin"]
        idf = await index.idf(ADA, words)
        assert idf[0] == 0.0
        assert idf[1:] == pytest.approx([expected_idf(word, points) for word in words[1:]], rel=1e-4)
        assert idf == sorted(idf)
        assert await index.idf(ADA, []) == []

    async def test_status_and_category_are_filtered(self, index: Index) -> None:
        await index.upsert(
            [
                point(1, "harbor", unit(1)),
                point(2, "harbor", unit(1), status="dead"),
                point(3, "harbor", unit(1), status="dying", category="semantic"),
            ]
        )
        question = index_query("harbor", unit(1))
        assert set((await candidates(index, ADA, question)).ids) == {memory_id(1), memory_id(3)}
        semantic = replace(question, categories=("semantic", "social"))
        assert (await candidates(index, ADA, semantic)).ids == (memory_id(3),)
        dead = replace(question, statuses=("dead",))
        assert (await candidates(index, ADA, dead)).ids == (memory_id(2),)
        assert [id for id, _ in await index.nearest(ADA, unit(1), limit=5, statuses=("dead",))] == [memory_id(2)]
        assert await index.living_ids_sharing_most_words(ADA, "harbor", limit=5, statuses=("dead",)) == [memory_id(2)]

    async def test_memories_that_share_words_come_by_how_telling_these_are(self, index: Index) -> None:
        """spec T6: told again in a script that the model cannot read."""
        await index.upsert(
            [
                point(1, "harbor at dawn"),
                point(2, "harbor violin at dawn"),
                point(3, "orchard"),
                point(4, "harbor"),
                point(5, "harbor violin", scope=BOB),
            ]
        )
        alike = await index.living_ids_sharing_most_words(
            ADA, "violin in the harbor", limit=2, statuses=LIVING_STATUSES
        )
        assert (alike[0], len(alike)) == (memory_id(2), 2)
        assert await index.living_ids_sharing_most_words(ADA, "the", limit=2, statuses=LIVING_STATUSES) == []

    async def test_a_time_and_summarised_memories_are_filters(self, index: Index) -> None:
        """spec L3; issue 12.6: a recall could not ask for a time, nor for what a summary stands for."""
        old, new = datetime(1925, 1, 1, tzinfo=UTC), datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
        points = [
            point(1, "harbor", unit(1), happened_at=old),
            point(2, "harbor walk", unit(1), happened_at=new),
            point(3, "harbor walk again", unit(1), happened_at=new, compressed=True),
            point(4, "harbor walk at night again", unit(1), happened_at=new, compressed=True, status="dead"),
        ]
        await index.upsert(points)

        async def found(**filters: Any) -> set[str]:
            return {*(await candidates(index, ADA, replace(index_query("harbor", unit(1)), **filters))).ids}

        one, two, three = map(memory_id, (1, 2, 3))
        assert await found() == {one, two}
        assert await found(include_compressed=True) == {one, two, three}
        assert await found(since=new) == await found(since=new, until=new) == {two}
        assert await found(until=new - timedelta(seconds=1)) == {one}
        assert await found(since=datetime(2026, 1, 1, tzinfo=UTC), include_compressed=True) == {two, three}
        month = replace(points[0].memory, scene=replace(points[0].memory.scene, when=("2026-03",)))
        await index.upsert([replace(points[0], memory=month)])
        assert await found(since=new + timedelta(days=9), until=new + timedelta(days=10)) == {one}

    async def test_only_memories_with_all_the_asked_themes_are_candidates(self, index: Index) -> None:
        """spec O12: filtering by tags; in whatever letter case and form of Unicode, and as whole themes."""
        points = [
            point(1, "harbor", unit(1), themes=("Sea", "non-inferable", "Cafe\u0301")),
            point(2, "harbor", unit(1), themes=("sea", "seaside", "ＡＢ")),
            point(3, "harbor", unit(1)),
            point(4, "harbor", unit(1), scope=BOB, themes=("sea", "non-inferable")),
        ]
        await index.upsert(points)
        question = index_query("harbor", unit(1))
        for themes, numbers in (
            ("", "123"), ("SEA", "12"), ("sea,Non-Inferable", "1"), ("se", ""), ("other,sea", ""),
            ("caf\u00e9", "1"), ("ab", "2"),
        ):  # fmt: skip
            of_all = tuple(filter(None, themes.split(",")))
            pool = await candidates(index, ADA, replace(question, themes=of_all))
            assert set(pool.ids) == {memory_id(int(number)) for number in numbers}
        semantic = replace(question, themes=("sea",), categories=("semantic",))
        assert (await candidates(index, ADA, semantic)).ids == ()
        narrowed = await candidates(index, ADA, replace(question, themes=("sea",)))
        assert narrowed.idf.tolist() == pytest.approx([expected_idf("harbor", points[:3])], rel=1e-4)

    async def test_an_upsert_with_another_status_moves_the_memory_between_filters(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1), cluster="c1")])
        await index.upsert([point(1, "harbor", unit(1), status="dead", category="social")])
        assert (await candidates(index, ADA, index_query("harbor", unit(1)))).ids == ()
        dead = VectorQuery(words="harbor", vector=None, statuses=("dead",), categories=("social",))
        assert (await candidates(index, ADA, dead)).ids == (memory_id(1),)

    @pytest.mark.parametrize("seed", range(4))
    async def test_all_candidates_have_both_scores_as_the_formulas_give_them(self, index: Index, seed: int) -> None:
        points = random_points(60, seed=seed)
        await index.upsert([*points, *random_points(40, seed=seed + 100, scope=BOB, start=1000)])
        question = index_query("harbor violin harbor zeppelin orchard the", unit(1, -1, 0.5), depth=15)
        pool = await candidates(index, ADA, question)
        assert 15 <= len(pool.ids) <= 30
        assert_scores_are_true(pool, question, points)

    @pytest.mark.parametrize("seed", range(4))
    async def test_candidates_come_in_the_order_of_weighted_rrf(self, index: Index, seed: int) -> None:
        points = random_points(50, seed=seed)
        await index.upsert(points)
        question = index_query("harbor violin orchard", unit(1, -1, 0.5), depth=10)
        assert question.vector is not None
        everything = await candidates(index, ADA, replace(question, sparse_limit=50, dense_limit=50))
        dense = dict(zip(everything.ids, everything.cosine, strict=True))
        sparse = {id: score for id, score in zip(everything.ids, everything.bm25, strict=True) if score > 0}
        fused: dict[MemoryId, float] = {}
        for scores, weight in ((dense, 1.0), (sparse, 2.0)):
            for rank, id in enumerate(sorted(scores, key=lambda id: -scores[id])[:10]):
                fused[id] = fused.get(id, 0.0) + 1 / ((rank + 1) / weight + 1)
        pool = await candidates(index, ADA, question)
        assert set(pool.ids) == set(fused)
        assert [fused[id] for id in pool.ids] == pytest.approx(sorted(fused.values(), reverse=True))

    async def test_candidates_bring_the_traits_of_their_memories(self, index: Index) -> None:
        told = point(1, "harbor", unit(1))
        scene = replace(told.memory.scene, action="Ann: ate\n madeleines ", actors=("Ann", "Bo"))
        provenance = Provenance(tool="store", session_id="s7")
        felt = EmotionVector(0.5, 0, 0, 0, 0, -1)
        memory = replace(told.memory, scene=scene, provenance=provenance, emotions=("joy",), emotion=felt, turn=4)
        own_day = replace(point(3, "violin", unit(1, 2)).memory, scene=replace(scene, when=("2026-05",), actors=()))
        noted_then = replace(
            own_day, id=memory_id(4), scene=replace(own_day.scene, action="Ate"), provenance=provenance
        )
        said_then = replace(
            own_day, id=memory_id(5), scene=replace(own_day.scene, actors=("Ann",)), provenance=provenance
        )
        dated = [replace(told, memory=memory) for memory in (own_day, noted_then, said_then)]
        await index.upsert([replace(told, memory=memory), point(2, "violin", unit(1, 1)), *dated])
        pool = await candidates(index, ADA, index_query("harbor", unit(1)))
        features = dict(zip(pool.ids, pool.features, strict=True))
        assert features[memory_id(4)].session_id == "", "a note is no turn of its session"
        tells_when = {number: features.pop(memory_id(number)).signals.tells_when for number in (3, 4, 5)}
        assert tells_when == {3: True, 4: True, 5: False}
        assert features == {
            memory_id(1): MemoryRankingFeatures(
                session_id="s7", turn=4, actors=("Ann", "Bo"), emotions=("joy",), words=3, tokens=1, emotion=felt
            ),
            memory_id(2): MemoryRankingFeatures(session_id="", turn=0, actors=(), emotions=(), words=1, tokens=2),
        }

    async def test_candidates_say_which_are_versions_and_leave_out_what_was_not_known(self, index: Index) -> None:
        """ruling 14. Of a chain the ledger knows which was true when."""
        first, second, third = (point(number, "harbor", unit(1)) for number in (1, 2, 3))
        later = MOMENT + timedelta(days=9)
        old = replace(first.memory, truth="superseded", superseded_by=second.memory.id, valid_until=later)
        new = replace(second.memory, happened_at=later, valid_from=later)
        event = replace(third.memory, happened_at=later, created_at=later)
        plan = replace(point(5, "harbor", unit(1)).memory, happened_at=later)
        wrong = replace(point(4, "harbor", unit(1)).memory, truth="retracted")
        await index.upsert([replace(first, memory=memory) for memory in (old, new, event, wrong, plan)])
        question = index_query("harbor", unit(1))
        pool = await candidates(index, ADA, question)
        places = {id_: found.version for id_, found in zip(pool.ids, pool.features, strict=True)}
        assert places == {
            memory_id(1): "earlier",
            memory_id(2): "last",
            memory_id(3): "only",
            memory_id(5): "only",
        }
        past = await candidates(index, ADA, replace(question, as_of=MOMENT))
        assert set(past.ids) == {memory_id(1), memory_id(2), memory_id(5)}

    async def test_words_that_count_twice_do_so_in_the_score(self, index: Index) -> None:
        await index.upsert([point(1, "harbor"), point(2, "violin")])
        pool = await candidates(index, ADA, replace(index_query("harbor violin"), twice="violin"))
        scores = dict(zip(pool.ids, pool.bm25, strict=True))
        assert scores[memory_id(2)] == pytest.approx(2 * scores[memory_id(1)])

    async def test_a_memory_without_a_vector_is_found_by_its_words(self, index: Index) -> None:
        await index.upsert([point(1, "harbor"), point(2, "violin", unit(1))])
        pool = await candidates(index, ADA, index_query("harbor", unit(1)))
        assert set(pool.ids) == {memory_id(1), memory_id(2)}
        assert pool.cosine[pool.ids.index(memory_id(1))] == 0.0
        assert await index.count() == 2

    async def test_a_memory_without_words_is_found_by_its_vector(self, index: Index) -> None:
        points = [point(1, "the", unit(1)), point(2, "harbor", unit(0, 1)), point(3, "")]
        await index.upsert(points)
        question = index_query("harbor", unit(1))
        pool = await candidates(index, ADA, question)
        assert memory_id(1) in pool.ids
        assert_scores_are_true(pool, question, points)
        assert await index.count() == 3

    async def test_an_upsert_without_a_vector_takes_the_old_one_away(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1))])
        await index.upsert([point(1, "harbor")])
        assert await index.nearest(ADA, unit(1), limit=5, statuses=LIVING_STATUSES) == []

    async def test_a_question_without_a_vector_goes_by_words_alone(self, index: Index) -> None:
        points = random_points(30, seed=1)
        await index.upsert(points)
        pool = await candidates(index, ADA, index_query("harbor velvet"))
        assert pool.bm25.tolist() == pytest.approx(sorted(pool.bm25.tolist(), reverse=True))
        assert pool.bm25.min() > 0
        assert not pool.cosine.any()

    async def test_a_question_of_stop_words_goes_by_the_vector_alone(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1)), point(2, "violin", unit(1, 1)), point(3, "opal")])
        pool = await candidates(index, ADA, index_query("what was it?", unit(1)))
        assert pool.ids == (memory_id(1), memory_id(2))
        assert pool.cosine.tolist() == pytest.approx([1.0, math.sqrt(0.5)], abs=COSINE_TOLERANCE)
        assert pool.weights.shape == (2, 0)
        assert pool.bm25.tolist() == [0.0, 0.0]

    async def test_a_question_without_words_and_vector_finds_nothing(self, index: Index) -> None:
        await index.upsert([point(1, "harbor", unit(1))])
        pool = await candidates(index, ADA, index_query("the"))
        assert pool.ids == ()
        assert pool.bm25.shape == (0,)

    async def test_an_empty_index_answers(self, index: Index) -> None:
        assert (await candidates(index, ADA, index_query("harbor", unit(1)))).ids == ()
        assert await index.nearest(ADA, unit(1), limit=3, statuses=LIVING_STATUSES) == []
        assert await index.idf(ADA, ["harbor"]) == pytest.approx([math.log(2)])
        assert await index.count() == 0
        await index.delete([memory_id(1)])
        await index.upsert([])
        await index.delete([])
        await index.flush()

    async def test_nearest_gives_true_cosines_nearest_first(self, index: Index) -> None:
        points = random_points(40, seed=7)
        await index.upsert(points)
        target = unit(1, 2, 3)
        expected = sorted(
            ((float(p.vector @ target), p.memory.id) for p in points if p.vector is not None), reverse=True
        )
        neighbours = await index.nearest(ADA, target, limit=5, statuses=LIVING_STATUSES)
        assert [id for id, _ in neighbours] == [id for _, id in expected[:5]]
        assert [cosine for _, cosine in neighbours] == pytest.approx(
            [cosine for cosine, _ in expected[:5]], abs=COSINE_TOLERANCE
        )

    async def test_words_are_found_in_any_script_and_form(self, index: Index) -> None:
        found = {
            (text, query): await self._memories_with_words(index, text, query)
            for text, query in (
                ("東京で寿司を食べました", "寿司"),
                ("昨日、友達と公園で桜を見た。", "桜"),
                ("昨日、友達と公園で桜を見た。", "公園の桜"),
                ("나는 학교에 갔다", "학교"),
                ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
                ("Она живёт в Москве", "москве"),
                ("我们在北京看了长城", "长城"),
                ("She walked the dogs", "walking dog"),
                ("Mias Geigenstunde ist bei Frau Adler", "Geige"),
                ("Het routerwachtwoord ligt in de la van mijn bureau", "wachtwoord"),
                ("I don’t like ice", "dont ice"),
                ("The code of the shed is 4711.", "4711"),
                ("We paid 1,000 for it", "1000"),
                ("She lives on the 3rd floor", "floor 3"),
                ("地下鉄は12時に来た", "12"),
                ("Our wedding was in May", "May 2024"),
                ("I lent it to Will", "What did he lend, and was it Will?"),
                ("She takes vitamin D", "D"),
                ("We won", "Who won?"),
                ("Bob: Will came", "Was it Will?"),
                ("She came on 3 May 2026", "2026-05-03"),
                ("She came on 3 May 2026", "on may 3rd"),
                ("She came on Sept. 4", "4 September"),
                ("The train at 09:05", "9"),
                ("Agent 007", "007"),
                ("I don\u00b4t like ice", "dont ice"),
            )
        }
        assert {row: ids for row, ids in found.items() if ids != (memory_id(2),)} == {}

    @staticmethod
    async def _memories_with_words(index: Index, text: str, query: str) -> tuple[MemoryId, ...]:
        await index.upsert([point(1, "harbor violin"), point(2, normalize_text_for_bm25(text))])
        return (await candidates(index, ADA, index_query(query))).ids

    async def test_what_differs_in_a_number_alone_is_told_apart(self, index: Index) -> None:
        await index.upsert([point(number, f"The code of door {number} is {9 * number}") for number in range(1, 31)])
        assert (await candidates(index, ADA, index_query("What is the code of door 17?"))).ids[0] == memory_id(17)

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("Boarding at 12pm", "2pm"),
            ("Gate B17", "B27"),
            ("Gate B17", "7"),
            ("In the 1990s", "1980s"),
            ("The A380", "A320"),
            ("On 12 December 2026", "12 apples"),
            ("On 7 June", "7 July"),
            ("The 7th of June", "7"),
            ("Agent 007", "7"),
        ],
    )
    async def test_a_number_is_found_whole_or_not_at_all(self, index: Index, text: str, query: str) -> None:
        """A day is one with its month: the date beside every memory makes none of them one about that number."""
        await index.upsert([point(1, text)])
        assert (await candidates(index, ADA, index_query(query))).ids == ()

    async def test_the_numbers_and_days_among_the_terms_are_marked(self, index: Index) -> None:
        """Of 12, apples, May and the third of May."""
        await index.upsert([point(1, "Twelve apples")])
        found = await candidates(index, ADA, index_query("12 apples on 3 May"))
        assert (found.numbers.tolist().count(True), found.numbers.tolist().count(False)) == (2, 2)
        assert not found.numbers[found.weights[0] > 0].any()

    @pytest.mark.parametrize("query", ["May I come in?", "may", "Will you?", "I will", "will I"])
    async def test_verbs_that_are_written_like_names_are_not_looked_for(self, index: Index, query: str) -> None:
        await index.upsert([point(1, "It was in May, with Will")])
        assert (await candidates(index, ADA, index_query(query))).ids == ()

    async def test_content_words_are_held_or_unknown(self, index: Index) -> None:
        """ruling 19: of "What is Maria's blood type?" a memory holds Maria, and none the others."""
        await index.upsert([point(1, "Maria likes lanterns"), point(2, "a lantern")])
        pool = await candidates(index, ADA, index_query("What is Maria's blood group?"))
        assert pool.words == ("maria", "blood", "group")
        assert pool.unknown.tolist() == [False, True, True]
        assert pool.holds.tolist() == [[True, False, False]]
        assert pool.memories == 2

    @pytest.mark.parametrize(("day", "is_unknown"), [("26 de mayo", False), ("27 de mayo", True)])
    async def test_the_day_of_a_date_is_known_where_the_date_is(
        self, index: Index, day: str, *, is_unknown: bool
    ) -> None:
        """A day and its month are one term, so that no memory held the 26 of "26 May"."""
        await index.upsert([point(1, normalize_text_for_bm25("La cita es el 26 de mayo a las 27:00"))])
        pool = await candidates(index, ADA, index_query(text_with_iso_dates(f"¿Qué pasó el {day}?")))
        assert dict(zip(pool.words, pool.unknown.tolist(), strict=True))[day[:2]] is is_unknown

    async def test_a_month_is_found_by_its_name_alone_in_the_language_of_the_text(self, index: Index) -> None:
        await index.upsert([point(1, "tea"), point(2, normalize_text_for_bm25("La cena es el 18 de diciembre"))])
        assert (await candidates(index, ADA, index_query("¿Qué hay en diciembre?"))).ids == (memory_id(2),)

    async def test_what_is_known_of_a_run_of_han_signs_is_a_word_of_its_own(self, index: Index) -> None:
        """ruling 19: coffee, and its brand; words run together."""
        await index.upsert([point(1, "我喝咖啡不加糖"), point(2, "数据库用的是")])
        pool = await candidates(index, ADA, index_query("咖啡品牌"))
        assert (pool.words, pool.unknown.tolist(), pool.holds.tolist()) == (
            ("咖啡", "品牌"),
            [False, True],
            [[True, False]],
        )
        assert (await candidates(index, ADA, index_query("数据库咖啡"))).words == ("数据库咖啡",)

    async def test_a_date_within_a_run_of_han_signs_is_one_term(self, index: Index) -> None:
        """The pairs of its signs are no terms of the query: such a question ended with an error."""
        await index.upsert([point(1, normalize_text_for_bm25("昭和二十三年七月二十二日附内閣総理大臣書簡"))])
        pool = await candidates(index, ADA, index_query("昭和二十三年七月二十二日附内閣総理大臣宛書簡"))
        assert pool.ids == (memory_id(1),)

    async def test_cosines_to_any_vector_come_in_the_order_of_the_ids(self, index: Index) -> None:
        """ruling 16: to the mean of a language, which is no unit vector; 0 without a vector."""
        await index.upsert([point(1, "a", unit(1)), point(2, "b"), point(3, "c", unit(1, 1))])
        found = await index.cosines([memory_id(3), memory_id(2), memory_id(1)], 0.3 * unit(1))
        assert found.tolist() == pytest.approx([0.7071, 0, 1], abs=1e-3)
        assert (await index.cosines([], unit(1))).shape == (0,)

    async def test_the_nearest_piece_counts_and_the_whole_where_there_is_none(self, index: Index) -> None:
        """ADR 0064"""
        long = replace(point(1, "a", unit(1)), pieces=[unit(1, 1), unit(0, 1)])
        await index.upsert([long, point(2, "b", unit(1, 1)), point(3, "c")])

        async def nearest_pieces() -> list[float]:
            pool = await candidates(index, ADA, index_query("a b c", vector=unit(1, 1)))
            cosines = dict(
                zip(pool.ids, pool.max_piece_cosines_in_candidate_order(unit(0, 1), pool.cosine), strict=True)
            )
            return [float(cosines[memory_id(number)]) for number in (1, 2, 3)]

        assert await nearest_pieces() == pytest.approx([1, 1, 0], abs=1e-2)
        await index.upsert([point(1, "a", unit(1))])  # its text has changed
        assert await nearest_pieces() == pytest.approx([0.7071, 1, 0], abs=1e-2)

    async def test_what_was_found_and_is_written_again_is_found_as_it_is_now(self, index: Index) -> None:
        """An index may remember what it has read of a point."""
        mean, ids = 0.3 * unit(1), [memory_id(1), memory_id(2)]
        await index.upsert([point(1, "harbor", unit(1)), point(2, "harbor", unit(1))])
        before = await candidates(index, ADA, index_query("harbor violin", unit(1)))
        assert (await index.cosines(ids, mean)).tolist() == pytest.approx([1, 1])
        changed = [point(1, "violin violin", unit(0, 1), category="semantic")]
        await index.upsert(changed)
        await index.delete([memory_id(2)])
        after = await candidates(index, ADA, question := index_query("harbor violin", unit(1)))
        assert_scores_are_true(after, question, changed)
        assert (before.features[0].category, [one.category for one in after.features]) == ("episodic", ["semantic"])
        assert (await index.cosines(ids, mean)).tolist() == pytest.approx([0, 0])
