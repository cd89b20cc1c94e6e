"""What each part of the ranking is worth: the same pools ranked without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from madeleine.memory.candidates import CandidatePool
from madeleine.memory.model import MemoryId
from madeleine.memory.recall.recall import RecallConfig
from madeleine.memory.rules.ranking.blended import RankingWeights, blended
from madeleine.memory.rules.ranking.matching import matches

WHOLE = RankingWeights()
WITHOUT: Mapping[str, RankingWeights] = {
    "words (dense only in the blend)": replace(WHOLE, words=0.0),
    "meaning (BM25 only in the blend)": replace(WHOLE, words=1.0),
    "the next turn": replace(WHOLE, next_turn=0.0),
    "the question that it answers": replace(WHOLE, question=0.0),
    "the best of its session": replace(WHOLE, session=0.0),
    "the actor in the query": replace(WHOLE, actor=0.0),
    "the speaker": replace(WHOLE, user=0.0),
    "first person": replace(WHOLE, first_person=0.0),
    "preferences for advice": replace(WHOLE, preference=0.0),
    "a time for when": replace(WHOLE, when=0.0),
    "length": replace(WHOLE, length=0.0),
    "all priors": RankingWeights(
        next_turn=0, question=0, session=0, actor=0, user=0, first_person=0, preference=0, when=0, length=0
    ),
}


def rankings(text: str, pool: CandidatePool, *, trust: float, config: RecallConfig) -> dict[str, Sequence[MemoryId]]:
    """By what is left out: the order of the matches of the same pool."""
    matching = np.flatnonzero(matches(pool, dense_trust=trust, thresholds=config.thresholds))
    found: dict[str, Sequence[MemoryId]] = {}
    for name, weights in WITHOUT.items():
        scores = blended(text, pool, matching, dense_trust=trust, weights=weights)
        found[name] = [pool.ids[at] for at in matching[np.argsort(-scores, kind="stable")]]
    return found


def engines_order(pool: CandidatePool, *, trust: float, config: RecallConfig) -> Sequence[MemoryId]:
    """The matches as the engine's RRF has them."""
    return [pool.ids[at] for at in np.flatnonzero(matches(pool, dense_trust=trust, thresholds=config.thresholds))]
