"""What every re-ranker must do. An adapter's tests inherit `RerankerContract` and give it a `reranker`."""

from __future__ import annotations

from madeleine.memory.recall.ports import Reranker

QUERY = "Where did we eat ramen?"
TEXTS = [
    "The build fails on Windows.",
    "We did eat ramen where Hashi cooks.",
    "We shared ramen.",
    "東京",
    "",
    "ramen " * 3_000,
]


class RerankerContract:
    async def test_scores_are_shares_in_the_order_of_the_texts(self, reranker: Reranker) -> None:
        scores = await reranker.scores(QUERY, TEXTS)
        assert len(scores) == len(TEXTS)
        assert all(0 <= score <= 1 for score in scores)
        assert scores[1] > scores[2] > scores[0]
        backwards = await reranker.scores(QUERY, TEXTS[::-1])
        assert [round(score, 5) for score in backwards[::-1]] == [round(score, 5) for score in scores]

    async def test_a_text_has_the_same_score_alone_and_among_many(self, reranker: Reranker) -> None:
        many = await reranker.scores(QUERY, TEXTS * 5)
        [alone] = await reranker.scores(QUERY, [TEXTS[1]])
        assert all(abs(many[place] - alone) < 1e-5 for place in range(1, len(many), len(TEXTS)))

    async def test_no_texts_have_no_scores(self, reranker: Reranker) -> None:
        assert await reranker.scores(QUERY, []) == []
