"""Which candidates match a query (rulings 8, 16 and 19): the gate of a recall.

    likeness = legible × max(centred cosine, 0) + w × share of the query's content words that the candidate holds
               − 1.6 × (share of the content words that no memory holds)²
    w = 0.4 + 0.55 × (1 − legible)

`legible` in [0, 1]: how well the model reads the query. A candidate matches from 0.35 on; where one does, those within
0.15 below it do, too. Of a long query at most eight content words are expected in one memory. Measured over twelve
languages (`make unrelated`) and LoCoMo: benchmarks/README.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool


@dataclass(frozen=True, slots=True)
class MatchThresholds:
    likeness: float = 0.35
    words: float = 0.4
    """Weight of the content words that a candidate holds …"""
    words_instead: float = 0.55
    """… and the more of it for a query that the model cannot read."""
    unknown_words: float = 1.6
    """Of the square: one unknown word of many is a synonym, one of two is what was asked for (R@10 of LoCoMo −0.2
    instead of −1.0)."""
    companions: float = 0.15
    """Likeness below the threshold that is still a match beside a better one."""
    expected_words: int = 8
    near_words: float = 0.5
    """Share of the known content words from which a memory is near to a query with unknown ones …"""
    near_known: float = 0.3
    """… of which at least this share is known."""


def likeness(
    pool: CandidatePool, centred_cosine: NDArray[np.float32], *, legible: float, thresholds: MatchThresholds
) -> NDArray[np.float32]:
    """float32, (n,). `centred_cosine`: of each candidate (`memory.vector_space`)."""
    t = thresholds
    count = len(pool.words)
    held = np.minimum(1.0, pool.holds.sum(axis=1) / max(1, min(count, t.expected_words)))
    weight = t.words + t.words_instead * (1 - legible)
    known = legible * np.maximum(centred_cosine, 0) + weight * held
    return np.asarray(known - _unknown_words_penalty(pool, t), np.float32)


def _unknown_words_penalty(pool: CandidatePool, thresholds: MatchThresholds) -> float:
    count = max(len(pool.words), 1)
    long = min(1.0, thresholds.expected_words / count)
    return thresholds.unknown_words * (long * float(pool.unknown.sum()) / count) ** 2


def matching_candidates(likeness: NDArray[np.float32], thresholds: MatchThresholds) -> NDArray[np.bool_]:
    """bool, (n,)."""
    if not (likeness >= thresholds.likeness).any():
        return np.zeros(len(likeness), np.bool_)
    return np.asarray(likeness >= thresholds.likeness - thresholds.companions, np.bool_)


def preferences_by_meaning(
    pool: CandidatePool, centred_cosine: NDArray[np.float32], *, legible: float, thresholds: MatchThresholds
) -> NDArray[np.bool_]:
    """bool, (n,). Where nothing matches a query with unknown words: how to behave is asked in words of the task, which
    no memory need hold. Of the stores of `benchmarks/small` it finds 19 of 26 preferences instead of 16; at 0.30 it
    takes an unknown attribute for one."""
    procedural = np.array([features.category == "procedural" for features in pool.features], np.bool_)
    return np.asarray(procedural & (legible * centred_cosine >= thresholds.likeness), np.bool_)


def near_candidates(
    pool: CandidatePool, likeness: NDArray[np.float32], thresholds: MatchThresholds
) -> NDArray[np.intp]:
    """Positions of the candidates that match all of a query but its unknown words (ruling 19), those first that hold
    most of what is known: they hold half of it, or would match if nothing were unknown."""
    known = ~pool.unknown
    if known.all():
        return np.zeros(0, np.intp)
    without_unknown = likeness + np.float32(_unknown_words_penalty(pool, thresholds))
    enough = known.any() and known.mean() >= thresholds.near_known
    shares = pool.holds[:, known].mean(axis=1) if enough else np.zeros(len(likeness))
    near = (shares >= thresholds.near_words) | matching_candidates(without_unknown, thresholds)
    order = np.lexsort((-without_unknown, -shares))
    return np.asarray(order[near[order]], np.intp)
