"""spec L2, T7, O12, ruling 15: the profile of the ranking, filters, the budget, and preferences apart."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tokenizers import Tokenizer

from madeleine.inference.default_model.english_encoder import ENGLISH_ENCODER_FILES, TOKENIZER_FILE
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import DatedAction, Emotion, MemoryId
from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.outside_memories import NonMemoryMatches
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.memory.recall.recall import RecallMemories
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.prompting import MEMORY_BLOCK_RENDERER
from madeleine.memory.rules.ranking.profiles import AllRankingProfileWeights, LinearRankingWeights, RankingProfile
from madeleine.memory.rules.storing.retelling import MemoryRetelling
from madeleine.memory.short_ids import ShortIdLedger, ShortIdTranslator
from madeleine.tools.reading import RecallArguments, make_recall_tool
from madeleine.tools.tool import ToolCallContext, ToolUseCases
from tests.doubles import ADA, BOB, NOW, WordEmbedder, a_memory
from tests.unit.memory.recall.homes import DIM, Home, ids, opened

DAY = timedelta(days=1)
FACTS = [a_memory(f"harbor {'harbor ' * n}cat") for n in (4, 3, 2, 1)]
"""Best first to "harbor"."""
FOND = a_memory("harbor tea in small cups before breakfast every day", category="procedural")
"""Matches "harbor", less than any of these."""
TERSE = a_memory("prefers short answers", category="procedural", importance=0.9)


# --- preferences apart


async def test_a_preference_that_matches_stands_apart_and_takes_no_place(home: Home) -> None:
    """ruling 15; one that does not match is not part of the recall, and nothing but what is shown is activated."""
    await home.put(*FACTS, FOND, TERSE)
    for limit in (1, 3):
        found = await home.recall()(ADA, RecallQuery(text="harbor", limit=limit))
        assert ids(found) == ids(FACTS[:limit])
        assert [(memory.id, score > 0) for memory, score in found.preferences] == [(FOND.id, True)]
        assert [activation.memory_id for _, activation in home.activations.added] == [FOND.id, *ids(found)]
        home.activations.added.clear()


async def test_a_preference_is_chosen_by_the_situation_and_not_by_whose_it_is(home: Home) -> None:
    """ruling 15: nearly every preference names the person served."""
    facts = [a_memory(f"Ada has {thing}") for thing in ("shoes", "boats", "lamps", "coats", "maps", "bells")]
    tea, listen = (
        a_memory(text, category="procedural")
        for text in ("Ada wants tea at breakfast", "When Ada feels sadness listen")
    )
    await home.put(*facts, tea, listen)

    async def preferred(text: str, *emotions: Emotion) -> list[MemoryId]:
        found = await home.recall()(ADA, RecallQuery(text=text, emotions=emotions))
        return ids([memory for memory, _ in found.preferences])

    assert await preferred("Which shoes has Ada?") == []
    assert await preferred("Breakfast for Ada, please") == [tea.id]
    assert await preferred("The house is empty") == []
    assert await preferred("The house is empty", "sadness") == [listen.id]


async def test_a_preference_that_is_disabled_is_not_recalled(home: Home) -> None:
    await home.put(FACTS[0], FOND)
    home.ledger.disabled_preferences.add(FOND.id)
    found = await home.recall()(ADA, RecallQuery(text="harbor"))
    assert (ids(found), found.preferences) == (ids(FACTS[:1]), ())


async def test_beside_a_preference_that_answers_what_matches_far_less_is_left_out(home: Home) -> None:
    """One that is not shown is no measure."""
    answering = replace(a_memory("harbor " * 5), category="procedural")
    weak = [a_memory(f"the harbor of town{n} lies far behind the old lighthouse and the hills") for n in range(4)]
    await home.put(answering, *weak)
    query = RecallQuery(text="harbor", limit=1, max_limit=10)
    assert len((await home.recall()(ADA, query)).memories) == 1
    home.ledger.disabled_preferences.add(answering.id)
    assert len((await home.recall()(ADA, query)).memories) == len(weak)


async def test_a_prompt_block_always_holds_preferences_and_counts_only_those_that_match(home: Home) -> None:
    """spec L2, ruling 15"""
    await home.put(FACTS[0], FOND, TERSE)
    found = await home.recall()(ADA, RecallQuery(text="harbor"), MEMORY_BLOCK_RENDERER)
    assert [(memory.id, score > 0) for memory, score in found.preferences] == [(FOND.id, True), (TERSE.id, False)]
    assert TERSE.scene.action in found.text
    assert [activation.memory_id for _, activation in home.activations.added] == ids([FOND, FACTS[0]])
    unrelated = await home.recall()(ADA, RecallQuery(text="quantum chromodynamics"), MEMORY_BLOCK_RENDERER)
    assert (unrelated.text, unrelated.preferences) == ("", ())


async def test_a_preference_is_found_by_meaning_where_an_unknown_word_refuses_the_rest(home: Home) -> None:
    """ruling 15: how to behave is asked in the words of the task. What is near stays near."""
    story = a_memory("a short story of the harbor")
    await home.put(*FACTS, story, FOND, TERSE)
    found = await home.recall()(ADA, RecallQuery(text="short answers zeppelin hangar airship"))
    assert (ids(found), ids([memory for memory, _ in found.preferences])) == ([], [TERSE.id])
    assert (ids(found.near), found.unknown_words) == ([story.id], ("zeppelin", "hangar", "airship"))
    assert [activation.memory_id for _, activation in home.activations.added] == [TERSE.id]


async def test_an_unrelated_query_brings_back_no_preference_either(home: Home) -> None:
    """ruling 8"""
    await home.put(*FACTS, TERSE)
    found = await home.recall()(ADA, RecallQuery(text="quantum chromodynamics lecture"))
    assert (found.memories, found.preferences, found.text, found.total_tokens) == ((), (), "", 0)
    assert home.activations.added == []


async def test_preferences_stay_away_where_they_are_not_asked_for(home: Home) -> None:
    """spec L2: memory types; P1."""
    await home.put(*FACTS, FOND, TERSE)
    recall = home.recall()
    facts = await recall(ADA, RecallQuery(text="harbor", categories=("episodic",)))
    assert (ids(facts), facts.preferences) == (ids(FACTS[:3]), ())
    preferences = await recall(ADA, RecallQuery(text="harbor", categories=("procedural",), token_budget=26))
    assert (ids(preferences), ids([memory for memory, _ in preferences.preferences])) == ([], ids([FOND, TERSE]))
    assert ids(await recall(BOB, RecallQuery(text="harbor"))) == []


@pytest.mark.parametrize(("budget", "preferred"), [(200, 1), (60, 0)])
async def test_preferences_have_a_quarter_of_the_budget_at_most(home: Home, budget: int, preferred: int) -> None:
    """ruling 15"""
    long = a_memory("harbor " + "long " * 20, category="procedural")
    await home.put(FACTS[0], long)
    found = await home.recall()(ADA, RecallQuery(text="harbor", token_budget=budget))
    assert (ids(found), len(found.preferences)) == (ids(FACTS[:1]), preferred)


async def test_a_message_of_several_sentences_is_answered_beside_preferences(home: Home) -> None:
    """What stands before its end has words that its end has not."""
    await home.put(*FACTS, FOND)
    text = "Hello Hashi, the storm was awful. I slept badly again. Which tea do I drink at the harbor?"
    found = await home.recall()(ADA, RecallQuery(text=text))
    assert [memory.id for memory, _ in found.preferences] == [FOND.id]


async def test_a_preference_that_died_or_matters_too_little_is_not_recalled(home: Home) -> None:
    await home.put(FACTS[0], replace(FOND, status="dead"), a_memory("harbor tea", category="procedural"))
    found = await home.recall(config=RecallConfig(min_importance=0.85))(ADA, RecallQuery(text="harbor"))
    assert (ids(found), found.preferences) == ([], ())
    found = await home.recall()(ADA, RecallQuery(text="harbor"))
    assert [memory.scene.action for memory, _ in found.preferences] == ["harbor tea"]


@pytest.mark.parametrize("format_", ["fragments", "memories", "prompt"])
async def test_every_format_shows_preferences_and_the_tag_of_fragments_holds_none(home: Home, format_: Any) -> None:
    """ruling 22; the block has the order of the specification's example."""
    await home.put(replace(FACTS[0], category="semantic"), FACTS[1], FOND)
    use = use_cases(home)
    run: Callable[..., Any] = make_recall_tool(random.Random(3)).run
    content = await run(ToolCallContext(ADA, use), RecallArguments(query="harbor", format=format_))
    if format_ == "prompt":
        lines = content["prompt"].splitlines()
        assert [line.split("]")[0] for line in lines[1:-1]] == ["[SEMANTIC", "[PROCEDURAL", "[EPISODIC"]
        assert [source["id"] for source in content["sources"]] == ["m1", "m3", "m2"]
    else:
        assert [preference["id"] for preference in content["preferences"]] == ["m3"]
        assert "small cups" not in str(content.get("fragments", content.get("memories")))


# --- filters


async def test_only_memories_with_all_themes_come_and_only_such_preferences(home: Home) -> None:
    """spec O12"""
    tagged = a_memory("harbor dog", themes=("Sea", "non-inferable"))
    fond = a_memory("harbor tea", category="procedural", themes=("non-inferable", "sea"))
    await home.put(*FACTS, tagged, FOND, fond)
    query = RecallQuery(text="harbor", themes=("SEA", "non-inferable"))
    only = home.recall(config=RecallConfig(themes=("non-inferable",)))
    for found in (await home.recall()(ADA, query), await only(ADA, RecallQuery(text="harbor"))):
        assert (ids(found), ids([memory for memory, _ in found.preferences])) == ([tagged.id], [fond.id])
    assert ids(await only(ADA, RecallQuery(text="harbor", themes=("land",)))) == []


async def test_less_important_memories_are_left_out_where_that_is_set(home: Home) -> None:
    """spec L2, step 3; by ruling 1 nothing is, by default."""
    faint = a_memory("harbor harbor harbor harbor harbor harbor", importance=0.1)
    await home.put(faint, *FACTS)
    assert ids(await home.recall()(ADA, RecallQuery(text="harbor", limit=2))) == ids([faint, FACTS[0]])
    strict = home.recall(config=RecallConfig(min_importance=0.2))
    assert ids(await strict(ADA, RecallQuery(text="harbor", limit=2))) == ids(FACTS[:2])


async def test_more_candidates_are_looked_at_than_are_wanted(home: Home) -> None:
    """spec L2, step 2: 4 × top_k."""
    await home.put(*(a_memory(f"harbor number {n}") for n in range(60)))
    assert len((await home.recall()(ADA, RecallQuery(text="harbor", limit=50, token_budget=10_000))).memories) == 50
    assert (
        len(
            (
                await home.recall(config=RecallConfig(sparse_limit=2, dense_limit=2)).rank(
                    ADA, RecallQuery(text="harbor")
                )
            ).ids
        )
        >= 12
    )


# --- profiles


async def ranked(
    home: Home, profile: RankingProfile, config: RecallConfig | None = None, **query: Any
) -> list[MemoryId]:
    by_call = await home.recall(config=config).rank(ADA, RecallQuery(text="harbor", ranking=profile, **query))
    config = replace(config or RecallConfig(), ranking=profile)
    by_setting = await home.recall(config=config).rank(ADA, RecallQuery(text="harbor", **query))
    assert by_call.ids == by_setting.ids
    assert by_call.scores == by_setting.scores
    assert list(by_call.scores.values()) == sorted(by_call.scores.values(), reverse=True)
    assert all(0 <= score <= 1 for score in by_call.scores.values())
    return list(by_call.ids)


async def test_rrf_keeps_the_order_of_the_pool(home: Home) -> None:
    await home.put(*FACTS)
    pool = (await home.recall().rank(ADA, RecallQuery(text="harbor"))).pool
    assert await ranked(home, "rrf") == list(pool.ids)


async def test_linear_puts_the_recent_before_the_old(home: Home) -> None:
    """spec O12: equal in relevance."""
    old, new = a_memory("harbor cat", when=("2026-01-01",)), a_memory("harbor dog", when=("2026-02-28",))
    await home.put(old, new)
    assert await ranked(home, "linear") == ids([new, old])
    weights = AllRankingProfileWeights(linear=LinearRankingWeights(minimum=0.5))
    # Both have 5 words with the date, so cosine 1 / √5 = 0.447. 36 hours: 0.7 × 0.547 + 0.3 × e^-0.36 = 0.592;
    # 59 days: 0.383.
    assert await ranked(home, "linear", RecallConfig(profiles=weights)) == [new.id]


async def test_associative_raises_what_matters_was_told_again_was_recalled_or_felt_alike(home: Home) -> None:
    """ruling 9: five memories equal in similarity, and one more in each of the other factors."""
    plain, matters, told, recalled, felt = (
        a_memory(f"harbor {word}", when=("2025-01-01",)) for word in ("cat", "dog", "bird", "fish", "horse")
    )
    long_ago = NOW - 400 * DAY
    everything = [
        replace(plain, created_at=long_ago),
        replace(matters, created_at=long_ago, importance=1.0),
        replace(told, created_at=long_ago),
        replace(recalled, created_at=long_ago),
        replace(felt, created_at=long_ago, emotions=("joy", "pride")),
    ]
    await home.put(*everything)
    # Long ago too, so that its recency is that of the others: 0.10 × 5 / (5 + 3) = 0.0625 more.
    again = [MemoryRetelling(memory_id=told.id, text="x", at=long_ago, tool="store")] * 5
    await home.ledger.memories.commit_store_batch(
        ADA, StoreBatch(reinforcements=tuple(again), model=home.embedder.model_name, vectors={})
    )
    home.ledger.activations.add_reactivations(ADA, [MemoryReactivation(recalled.id, 1, NOW)])
    await home.ledger.activations.flush()
    # 0.15 recency > 0.10 importance > 0.0625 reinforcement > 0.10 / 2 emotion > 0
    assert await ranked(home, "associative", emotions=("joy", "anger")) == ids([recalled, matters, told, felt, plain])


async def test_what_was_forgotten_since_it_was_indexed_has_no_place_in_a_profile(home: Home) -> None:
    await home.put(*FACTS)
    home.ledger.remove([FACTS[0].id])
    assert set(await ranked(home, "linear")) == set(ids(FACTS[1:]))
    assert set(await ranked(home, "associative")) == set(ids(FACTS[1:]))


async def test_the_default_profile_asks_the_ledger_for_what_changed_and_for_the_memories_alone(home: Home) -> None:
    """A recall is to take little longer than its embedding."""
    await home.put(*FACTS)
    asked: list[str] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return getattr(home.ledger.recall, name)

    recall = RecallMemories(cast(Any, Counting()), home.index, home.embedder, home.activations, now=lambda: NOW)
    await recall(ADA, RecallQuery(text="harbor"))
    assert asked == ["possible_newer_version_pairs", "memories_with_ids"]


# --- the budget, by the real tokenizer


class RealTokens(WordEmbedder):
    """Vectors of words, tokens of the default model."""

    def __init__(self) -> None:
        super().__init__(DIM)
        self.tokenizer = Tokenizer.from_file(str(ENGLISH_ENCODER_FILES.checked_path(TOKENIZER_FILE)))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def count(self, text: str) -> int:
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]


@pytest.fixture
async def crowd(tmp_path: Path) -> AsyncIterator[tuple[Home, RealTokens]]:
    """Memories of every kind, with signs that are written differently between tags."""
    embedder, chance = RealTokens(), random.Random(7)
    odd = (
        "<",
        "</recall>",
        "<memory>",
        "recall>",
        "港",
        "東京で",
        "a<b",
        "e\u0301",
        "\u0301x",
        "##ing",
        "🙂",
        "＜recall",
    )

    def text(most: int) -> str:
        return " ".join(chance.choice([*odd, "umbrella", "antidisestablishmentarianism", "tea"]) for _ in range(most))

    memories = [
        a_memory(
            f"harbor {text(chance.randrange(25))}",
            feeling=text(chance.randrange(4)) + chance.choice(["", "<"]),
            lesson=text(chance.randrange(6)),
            when=tuple(DatedAction("2026-01-02", text(8)) for _ in range(chance.choice([0, 0, 7]))) or ("2026-02-01",),
            category=chance.choice(["episodic", "semantic", "procedural"]),
            importance=chance.random(),
        )
        for _ in range(40)
    ]
    async with opened(tmp_path, embedder) as home:
        await home.put(*memories, *(a_memory(f"prefers {text(9)}", category="procedural") for _ in range(4)))
        yield home, embedder


def use_cases(home: Home) -> ToolUseCases:
    without_references = ShortIdTranslator(cast(ShortIdLedger, None))

    async def nothing_elsewhere(*_: object) -> NonMemoryMatches:
        return NonMemoryMatches()

    parts = SimpleNamespace(recall=home.recall(), audit=lambda *_, **__: None, short_ids=without_references)
    parts.find_non_memory_matches = nothing_elsewhere
    return cast(ToolUseCases, parts)


def said_in(content: dict[str, Any]) -> str:
    """All that an answer says of memories, without where they come from."""
    shown = [str(content.get("fragments", content.get("prompt", "")))]
    for one in (*content.get("preferences", ()), *content.get("memories", ())):
        shown += [one["text"], one.get("feeling", ""), one.get("lesson", ""), *one.get("timeline", [])]
    return "\n".join(shown)


@pytest.mark.parametrize("format_", ["fragments", "memories", "prompt"])
async def test_what_an_answer_says_never_has_more_tokens_than_the_budget(
    crowd: tuple[Home, RealTokens], format_: Any
) -> None:
    """spec L2, by the model's tokenizer over the real answer of the real recall, tags and separators included."""
    home, embedder = crowd
    use = use_cases(home)
    run = make_recall_tool(random.Random(3)).run
    tight = 0
    for budget in (*range(1, 60, 3), 90, 150, 400, 1500, 4000):
        for limit in (1, 3, 12):
            arguments = RecallArguments(query="harbor", limit=limit, token_budget=budget, format=format_, details=True)
            content = await run(ToolCallContext(ADA, use), arguments)
            tokens = embedder.count(said_in(content))
            assert tokens == content["total_tokens"] <= budget
            assert content["count"] <= limit
            tight += budget * 0.8 <= tokens
    assert tight > 12, "a budget that is hardly used says little about its being kept"


async def test_without_the_model_the_budget_is_kept_all_the_same(crowd: tuple[Home, RealTokens]) -> None:
    """By what was counted when the memories were stored."""
    home, embedder = crowd
    embedder.available = False
    counts = []
    for budget in (5, 40, 80, 200, 2000):
        found = await home.recall()(
            ADA, RecallQuery(text="harbor", limit=5, token_budget=budget), MEMORY_BLOCK_RENDERER
        )
        assert embedder.count(found.text) <= found.total_tokens <= budget
        counts.append(len(found.memories))
    assert (counts[0], counts[-1]) == (0, 5)
    assert counts == sorted(counts)


async def test_a_memory_says_less_in_fragments_so_more_of_them_fit(home: Home) -> None:
    """spec L2: what the chosen format really says, and no more, is counted."""
    taught = [replace(fact, lesson="word " * 10) for fact in FACTS]
    await home.put(*taught)
    use = use_cases(home)
    run: Callable[..., Any] = make_recall_tool(random.Random(3)).run
    counts = {}
    for format_ in ("fragments", "memories", "prompt"):
        arguments = RecallArguments(query="harbor", limit=4, token_budget=24, format=cast(Any, format_), details=True)
        counts[format_] = (await run(ToolCallContext(ADA, use), arguments))["count"]
    # Fragments: 2 for the tag, 6 + 5 + 4 + 3 words. A list: 16 for the first. A prompt: 2, and one more for each.
    assert counts == {"fragments": 4, "memories": 1, "prompt": 4}


async def test_what_holds_the_rest_of_a_question_is_near_and_does_not_count_as_recalled(home: Home) -> None:
    """ruling 19: three words, of which nothing knows two; where nothing is known at all, nothing is near."""
    await home.put(*FACTS, TERSE)
    found = await home.recall()(ADA, RecallQuery(text="harbor zeppelin airship"))
    assert (ids(found), found.unknown_words) == ([], ("zeppelin", "airship"))
    assert set(ids(found.near)) <= set(ids(FACTS))
    assert found.near
    assert home.activations.added == []
    assert (await home.recall()(ADA, RecallQuery(text="zeppelin hangar"))).near == ()


async def test_a_filter_is_a_match(home: Home) -> None:
    """ruling 19: the gate does not refuse what the caller names."""
    await home.put(*FACTS, TERSE)
    found = await home.recall()(ADA, RecallQuery(text="zeppelin", categories=("episodic",), limit=50))
    assert set(ids(found)) == set(ids(FACTS))
