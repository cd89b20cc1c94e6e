"""spec L2, step 4: a cross-encoder looks at the best again; without it they keep the order that they had."""

from __future__ import annotations

from madeleine.memory.recall.config import RecallConfig
from madeleine.memory.recall.selection import RecallQuery
from tests.doubles import ADA, a_memory
from tests.models import WordReranker
from tests.unit.memory.recall.homes import Home, ids

FACTS = [a_memory(f"harbor {'harbor ' * n}{name}") for n, name in ((4, "cat"), (3, "dog"), (2, "bird"), (1, "fish"))]
"""Best first to "harbor"."""
SAYS = {"cat": 0.1, "dog": 0.2, "bird": 0.9, "fish": 0.8}


async def test_the_models_scores_take_the_place_of_the_profiles(home: Home) -> None:
    """spec L2: sorted by them, descending."""
    await home.put(*FACTS)
    reranker = WordReranker(SAYS)
    found = await home.recall(reranker=reranker)(ADA, RecallQuery(text="harbor", limit=4))
    assert ids(found) == ids([FACTS[2], FACTS[3], FACTS[1], FACTS[0]])
    assert [score for _, score in found.memories] == [0.9, 0.8, 0.2, 0.1]
    assert found.notices == ()
    assert reranker.asked == [("harbor", [memory.embedded_text for memory in FACTS])]


async def test_only_the_best_are_looked_at_and_the_others_stay_behind_them(home: Home) -> None:
    await home.put(*FACTS)
    recall = home.recall(reranker=WordReranker(SAYS), config=RecallConfig(rerank=2))
    plain = await home.recall()(ADA, RecallQuery(text="harbor", limit=4))
    recalled = await recall(ADA, RecallQuery(text="harbor", limit=4))
    assert ids(recalled) == ids([FACTS[1], FACTS[0], FACTS[2], FACTS[3]])
    scores = [score for _, score in recalled.memories]
    assert scores[:2] == [0.2, 0.1]
    assert scores[2:] == [round(0.1 * score, 4) for _, score in plain.memories[2:]]


async def test_without_the_model_the_profiles_order_stands_and_the_answer_says_so(home: Home) -> None:
    """spec L2: the fallback."""
    await home.put(*FACTS)
    reranker = WordReranker(SAYS)
    reranker.available = False
    plain = await home.recall()(ADA, RecallQuery(text="harbor", limit=4))
    found = await home.recall(reranker=reranker)(ADA, RecallQuery(text="harbor", limit=4))
    assert found.memories == plain.memories
    assert ["told to be away" in notice for notice in found.notices] == [True]


async def test_a_query_without_a_match_asks_no_model(home: Home) -> None:
    """ruling 8: what matches is decided before, and a model's score makes no match."""
    await home.put(*FACTS)
    reranker = WordReranker()
    assert ids(await home.recall(reranker=reranker)(ADA, RecallQuery(text="quantum chromodynamics"))) == []
    assert reranker.asked == []


async def test_what_was_forgotten_since_it_was_indexed_is_not_shown_to_the_model(home: Home) -> None:
    await home.put(*FACTS)
    home.ledger.remove([memory.id for memory in FACTS])
    reranker = WordReranker()
    assert ids(await home.recall(reranker=reranker)(ADA, RecallQuery(text="harbor"))) == []
    assert reranker.asked == []


async def test_a_preference_that_matches_is_shown_whatever_the_model_says(home: Home) -> None:
    """spec L2, ruling 15"""
    fond = a_memory("harbor tea in small cups every single day", category="procedural")
    await home.put(*FACTS, fond)
    found = await home.recall(reranker=WordReranker(SAYS | {"tea": 0.0}))(ADA, RecallQuery(text="harbor"))
    assert ids(found) == ids([FACTS[2], FACTS[3], FACTS[1]])
    assert ids([memory for memory, _ in found.preferences]) == [fond.id]
