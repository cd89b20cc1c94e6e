"""spec P9, L2, rulings 2 and 8: what a recall answers, what it activates, and what it does while the model works."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import AwaitQueryVector, CandidatePool, CandidateQuery, RecallIndex
from madeleine.memory.model import Memory, MemoryId, Scope, Vector
from madeleine.memory.patrol_records import PatrolChanges
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.memory.recall.recall import MIN_OMITTED_SHARE_OF_WEAKEST_SHOWN_SCORE
from madeleine.memory.recall.selection import RecallQuery
from madeleine.memory.rules.prompting import MEMORY_BLOCK_RENDERER, render_memory_block
from tests.contracts.ledger.ledger_values import apply_changes, states
from tests.doubles import ADA, NOW, WordEmbedder, a_memory
from tests.unit.memory.recall.homes import DIM, Home, ids
from tests.waiting import DEADLOCK_S

LONG = a_memory("harbor " * 30)
"""30 tokens, 31 as a line of a prompt, and the best answer to "harbor"."""
SHORT = [
    a_memory("harbor harbor harbor cat"),
    a_memory("harbor harbor cat"),
    a_memory("harbor cat"),
    a_memory("harbor cat dog"),
]
"""The next best in this order: of 4, 3, 2 and 3 tokens, as lines of a prompt of one more."""
UNRELATED = a_memory("violin practice in winter")


class SlowEmbedder(WordEmbedder):
    """Writes down in `log` when it is asked and when it answers, which it does when it may."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(DIM)
        self.log = log
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.log.append("the model is asked")
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        self.log.append("the model answers")
        return await super().embed(texts)


class RecordingIndex:
    """`RecallIndex`: says when it has looked up the words, which by its port is when it asks for the vector."""

    def __init__(self, index: RecallIndex, log: list[str]) -> None:
        self._index = index
        self._log = log
        self.wants_vector = asyncio.Event()

    async def candidates(self, scope: Scope, question: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool:
        async def to_come() -> NDArray[np.float32] | None:
            self._log.append("the words are looked up")
            self.wants_vector.set()
            return await vector()

        return await self._index.candidates(scope, question, to_come)

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        return await self._index.cosines(ids, vector)

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        return await self._index.idf(scope, words)


class AwayIndex:
    """`RecallIndex` of a server that is down."""

    async def candidates(self, scope: Scope, question: CandidateQuery, vector: AwaitQueryVector) -> CandidatePool:
        raise IndexUnavailable("the server is down")

    async def cosines(self, ids: Sequence[MemoryId], vector: Vector) -> NDArray[np.float32]:
        raise IndexUnavailable("the server is down")

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        raise IndexUnavailable("the server is down")


# --- how many


async def test_no_more_than_the_limit_are_recalled_best_first(home: Home) -> None:
    """spec P9: at most 3 by default."""
    await home.put(*SHORT, LONG, UNRELATED)
    everything = await home.recall()(ADA, RecallQuery(text="harbor", limit=50))
    assert ids(everything) == ids([LONG, *SHORT])
    scores = [score for _, score in everything.memories]
    assert scores == sorted(scores, reverse=True)
    assert ids(await home.recall()(ADA, RecallQuery(text="harbor", limit=2))) == ids([LONG, SHORT[0]])
    assert ids(await home.recall()(ADA, RecallQuery(text="harbor"))) == ids([LONG, *SHORT[:2]])


@pytest.mark.parametrize(
    ("budget", "limit", "taken"),
    [
        pytest.param(42, 3, [LONG, *SHORT[:2]], id="all fit to the token"),
        pytest.param(41, 3, [LONG, SHORT[0], SHORT[2]], id="the third is a token too long"),
        pytest.param(32, 3, SHORT[:3], id="the first is too long"),
        pytest.param(32, 1, SHORT[:1], id="the first is too long and one is asked for"),
        pytest.param(9, 3, [SHORT[0]], id="room for one"),
        pytest.param(4, 3, [], id="room for none"),
    ],
)
async def test_a_memory_too_long_for_the_budget_gives_way_to_shorter_ones(
    home: Home, budget: int, limit: int, taken: list[Memory]
) -> None:
    """spec L2: the budget is never exceeded. Here the tags have two tokens, and each line one for its category."""
    await home.put(LONG, *SHORT)
    found = await home.recall()(
        ADA, RecallQuery(text="harbor", limit=limit, token_budget=budget), MEMORY_BLOCK_RENDERER
    )
    assert ids(found) == ids(taken)
    assert found.text == render_memory_block(taken)
    words = sum(1 + len(memory.scene.action.split()) for memory in taken)
    assert found.total_tokens == words + (2 if taken else 0) <= budget
    assert found.budget_used == found.total_tokens / budget
    best = [LONG, *SHORT][:limit]
    assert ids(found.too_long) == ids([memory for memory in best if memory not in taken]), "named (ruling 19)"
    everything = (await home.recall()(ADA, RecallQuery(text="harbor", limit=50))).memories
    weakest = min((score for _, score in found.memories), default=0.0)
    left_out = [score for memory, score in everything if memory not in taken]
    assert found.omitted == sum(score >= MIN_OMITTED_SHARE_OF_WEAKEST_SHOWN_SCORE * weakest for score in left_out)
    assert found.omitted >= 1, "what is nearly as good"


async def test_a_memory_longer_than_the_budget_is_cut_and_marked_if_nothing_else_fits(home: Home) -> None:
    """ruling 19: the answer was empty, as if nothing were known."""
    text = "harbor " + "a very long story about boats " * 40
    await home.put(told := a_memory(text, lesson="Be brief."))
    found = await home.recall()(ADA, RecallQuery(text="harbor", token_budget=60), MEMORY_BLOCK_RENDERER)
    [(shown, _)] = found.memories
    assert (shown.id, found.truncated, found.too_long) == (told.id, (told.id,), ())
    assert text.startswith(shown.scene.action.removesuffix(" …"))
    assert shown.scene.action.endswith(" …")
    assert 30 < found.total_tokens <= 60


async def test_a_thin_recall_says_how_many_faded_memories_hold_its_words(home: Home) -> None:
    """ruling 19"""
    faded = a_memory("harbor lights at night", status="dead")
    absorbed = a_memory("harbor lights at dusk", status="dead", absorbed_into=faded.id)
    await home.put(faded, absorbed, UNRELATED)
    found = await home.recall()(ADA, RecallQuery(text="harbor lights"))
    assert (found.memories, found.faded) == ((), 1)
    await home.put(*SHORT)
    assert (await home.recall()(ADA, RecallQuery(text="harbor", limit=2))).faded == 0


async def test_the_index_is_not_asked_for_faded_memories_of_a_being_that_has_none(home: Home) -> None:
    log: list[str] = []
    thin = home.recall(RecordingIndex(home.index, log))
    await home.put(*SHORT)
    await thin(ADA, RecallQuery(text="quantum lecture"))
    assert len(log) == 1
    await home.put(a_memory("harbor lights at night", status="dead"))
    await thin(ADA, RecallQuery(text="quantum lecture"))
    assert len(log) == 3


# --- which


async def test_an_unrelated_query_recalls_and_activates_nothing(home: Home) -> None:
    """spec P9, ruling 8"""
    await home.put(LONG, *SHORT)
    found = await home.recall()(ADA, RecallQuery(text="quantum chromodynamics lecture"))
    assert (found.memories, found.total_tokens, found.budget_used) == ((), 0, 0.0)
    assert home.activations.added == []


async def test_only_the_asked_categories_are_recalled(home: Home) -> None:
    """spec L2"""
    fact = a_memory("harbor fact", category="semantic")
    await home.put(*SHORT, fact)
    assert ids(await home.recall()(ADA, RecallQuery(text="harbor", categories=("semantic", "social")))) == [fact.id]


async def test_what_died_since_it_was_indexed_is_not_recalled_and_others_take_its_place(home: Home) -> None:
    """spec P9: the index lags behind a patrol, the ledger does not."""
    folded = a_memory("harbor harbor harbor harbor", compressed=True)
    await home.put(LONG, folded, *SHORT)
    dead = [replace((await states(home.ledger))[one.id], status="dead") for one in (LONG, SHORT[1])]
    await apply_changes(home.ledger, PatrolChanges(states=tuple(dead)))
    found = await home.recall()(ADA, RecallQuery(text="harbor"))
    assert ids(found) == ids([SHORT[0], SHORT[2], SHORT[3]])
    assert found.total_tokens == 4 + 2 + 3
    assert [activation.memory_id for _, activation in home.activations.added] == ids(found)


async def test_without_the_model_words_alone_find_it_and_the_answer_says_why(home: Home) -> None:
    """ruling 8"""
    await home.put(SHORT[0], UNRELATED)
    assert (await home.recall()(ADA, RecallQuery(text="harbor"))).words_only_reason == ""
    home.embedder.available = False
    found = await home.recall()(ADA, RecallQuery(text="harbor"))
    assert ids(found) == [SHORT[0].id]
    assert "it was told to be away" in found.words_only_reason
    nothing = await home.recall()(ADA, RecallQuery(text="quantum chromodynamics"))
    assert nothing.memories == ()
    assert "it was told to be away" in nothing.words_only_reason


# --- activation


async def test_each_recalled_memory_is_activated_once_and_no_other(home: Home) -> None:
    """spec P9: +1 on each; what matched and was not returned is not touched."""
    await home.put(LONG, *SHORT)
    found = await home.recall()(ADA, RecallQuery(text="harbor", limit=2))
    assert home.activations.added == [(ADA, MemoryReactivation(id_, 1, NOW)) for id_ in ids(found)]
    assert len(home.activations.added) == 2


async def test_beside_a_match_what_shares_no_word_and_is_hardly_alike_is_neither_shown_nor_activated(
    home: Home,
) -> None:
    """ADR 98; a list asked for has what is told in other words."""
    harbor, tea = a_memory("the harbor of the Marseille"), a_memory("the smell of fresh tea")
    await home.put(harbor, tea)
    asked = RecallQuery(text="the harbor of the Marseille")
    found = await home.recall()(ADA, asked)
    assert [ids(found), found.near] == [[harbor.id], ()]
    assert home.activations.added == [(ADA, MemoryReactivation(harbor.id, 1, NOW))]
    all_ = await home.recall().rank(ADA, replace(asked, text="all the harbors of the Marseille"))
    assert [*all_.ids] == [harbor.id, tea.id]


async def test_ranking_alone_activates_nothing(home: Home) -> None:
    """spec P9: it is the pipeline that is measured."""
    await home.put(*SHORT)
    assert list((await home.recall().rank(ADA, RecallQuery(text="harbor"))).ids) == ids(SHORT)
    assert home.activations.added == []


# --- while the model works


async def test_the_words_are_looked_up_while_the_model_works(home: Home) -> None:
    """ruling 8: two channels, and neither waits for the other without need. The model is asked first."""
    await home.put(SHORT[0])
    log: list[str] = []
    embedder, index = SlowEmbedder(log), RecordingIndex(home.index, log)
    async with asyncio.timeout(DEADLOCK_S):
        answer = asyncio.create_task(home.recall(index, embedder)(ADA, RecallQuery(text="harbor")))
        await index.wants_vector.wait()
        assert not answer.done()
        embedder.go.set()
        assert ids(await answer) == [SHORT[0].id]
    assert log[:3] == ["the model is asked", "the words are looked up", "the model answers"]


async def test_an_index_that_fails_ends_the_embedding_and_the_caller_is_told(home: Home) -> None:
    """Every task has an owner: nobody would ever ask for this vector."""
    embedder = SlowEmbedder([])
    async with asyncio.timeout(DEADLOCK_S):
        with pytest.raises(IndexUnavailable, match="the server is down"):
            await home.recall(AwayIndex(), embedder)(ADA, RecallQuery(text="harbor"))
        await embedder.cancelled.wait()
    assert home.activations.added == []


async def test_a_caller_that_goes_away_ends_the_embedding(home: Home) -> None:
    """Every task has an owner."""
    await home.put(SHORT[0])
    embedder = SlowEmbedder([])
    index = RecordingIndex(home.index, [])
    async with asyncio.timeout(DEADLOCK_S):
        caller = asyncio.create_task(home.recall(index, embedder)(ADA, RecallQuery(text="harbor")))
        await index.wants_vector.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await embedder.cancelled.wait()
    assert home.activations.added == []


async def test_a_typing_error_is_forgiven_where_nothing_matches_and_named(home: Home) -> None:
    """ruling 19, ADR 0034"""
    await home.put(a_memory("the harbor of Marseille"), a_memory("tea in small cups"))
    asked: list[Sequence[str]] = []

    async def respell(scope: Scope, words: Sequence[str], query: str) -> Mapping[str, str]:
        assert query
        asked.append(words)
        return {word: "marseille" for word in words if word.lower() == "marsielle"}

    recall = replace(home.recall(), respell=respell)
    found = await recall(ADA, RecallQuery(text="Marsielle"))
    assert [memory.scene.action for memory, _ in found.memories] == ["the harbor of Marseille"]
    assert "'marseille' was searched instead" in found.notices[0]
    assert (await recall(ADA, RecallQuery(text="Lyonnaise"))).memories == ()
    asked.clear()
    assert (await recall(ADA, RecallQuery(text="Marseille"))).notices == ()
    assert asked == []


PROUD = a_memory("Samira passed the exam at the vocational school", emotions=("pride", "joy"))
WORRIED = a_memory("Tobias waits for the bank", emotions=("nervousness",))


@pytest.mark.parametrize("question", ["What are we proud of?", "Worauf sind wir stolz?", "何を誇りに思っていますか"])
async def test_a_question_for_a_feeling_finds_what_has_its_label(home: Home, question: str) -> None:
    """ruling 21: the text does not say it, in any language."""
    await home.put(PROUD, WORRIED, UNRELATED)
    found = await home.recall()(ADA, RecallQuery(text=question))
    assert [*ids(found), *ids(found.near)][:1] == [PROUD.id]


async def test_a_feeling_that_is_said_beside_the_question_changes_nothing(home: Home) -> None:
    """ruling 21"""
    await home.put(
        harbor := a_memory("The harbor lies behind the mill"), a_memory("The jar broke", emotions=("remorse",))
    )
    found = await home.recall()(ADA, RecallQuery(text="I am so sorry to ask you this: where is the harbor?"))
    assert ids(found)[:1] == [harbor.id]
