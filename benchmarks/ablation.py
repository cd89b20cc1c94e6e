"""The value of each part of the ranking: the same candidates ranked without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.selection import RankedCandidates
from madeleine.memory.rules.ranking.blended import BlendedRankingWeights, blended_ranking_scores

COMPLETE = BlendedRankingWeights()
WITHOUT_NEXT_TURN = replace(COMPLETE, next_turn=0.0, next_turn_of_people=0.0, assistant_reply=0.0)
WITHOUT: Mapping[str, BlendedRankingWeights] = {
    "words (dense only in the blend)": replace(COMPLETE, words=0.0),
    "meaning (BM25 only in the blend)": replace(COMPLETE, words=1.0),
    "the next turn": WITHOUT_NEXT_TURN,
    "the question that it answers": replace(COMPLETE, question=0.0),
    "the best of its session": replace(COMPLETE, session=0.0, session_of_people=0.0),
    "the actor in the query": replace(COMPLETE, actor=0.0),
    "the speaker": replace(COMPLETE, user=0.0),
    "first person": replace(COMPLETE, first_person=0.0),
    "preferences for advice": replace(COMPLETE, preference=0.0),
    "a time for when": replace(COMPLETE, when=0.0),
    "length": replace(COMPLETE, length=0.0),
    "all priors": replace(
        WITHOUT_NEXT_TURN,
        question=0,
        session=0,
        session_of_people=0,
        actor=0,
        user=0,
        first_person=0,
        preference=0,
        when=0,
        length=0,
    ),
}


def rankings(text: str, ranked: RankedCandidates, *, trust: float) -> dict[str, Sequence[MemoryId]]:
    """The order of the matches without each part, by its name."""
    pool, matches = ranked.pool, set(ranked.ids)
    matching = np.asarray([at for at, id_ in enumerate(pool.ids) if id_ in matches], np.intp)
    orders: dict[str, Sequence[MemoryId]] = {}
    for name, weights in WITHOUT.items():
        scores = blended_ranking_scores(text, pool, matching, dense_trust=trust, weights=weights).scores
        orders[name] = [pool.ids[at] for at in matching[np.argsort(-scores, kind="stable")]]
    return orders


def rrf_order(ranked: RankedCandidates) -> Sequence[MemoryId]:
    """The matches in the order of reciprocal rank fusion."""
    return [id_ for id_ in ranked.pool.ids if id_ in ranked.scores]
