"""Which candidates are matches at all (spec P9, ruling 8): an unrelated query must recall nothing.

A candidate *anchors* the query if its cosine reaches the threshold, or if it holds enough of the query's words.
Words are weighed by their IDF over the being's own memories; words that no memory holds count too, at the greatest
IDF, so a query about something else is never "well matched" by its one common word. Numbers and days weigh against a
match and not for it: many memories have a 12 that have nothing to do with "12 apples". What holds all that is asked
for, numbers included, is an anchor. Once a query has one it is about something that the being remembers, and
candidates that are a little weaker (*companions*) match too.

Measured over 134 encyclopaedic questions put to every store of three public sets: 97 to 98 % of them stay empty, at
0.1, 0 and 0 points of R@10 (LoCoMo, BEAM, JSQuAD). `benchmarks/README.md` has the figures and the command.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool


@dataclass(frozen=True, slots=True)
class MatchThresholds:
    cosine: float = 0.35
    """Anchors by meaning (spec P9)."""
    coverage: float = 0.2
    """Anchors by words: this share of the query's IDF, when at least `terms` words match …"""
    terms: int = 3
    coverage_of_few: float = 0.45
    """… or this share, however few words they are."""
    companion_cosine: float = 0.2
    companion_coverage: float = 0.1
    unread: float = 0.6
    """Where the model cannot read the query, all shares and counts of words are this much smaller: nothing else can
    tell what is meant, and a pair of signs is less than a word. Costs JSQuAD 0.1 points of nDCG@10 instead of 0.3."""


def word_coverage(pool: CandidatePool) -> NDArray[np.float32]:
    """float32, (n,): the share in [0, 1] of the query's IDF that each candidate holds; 0 for a query without terms."""
    return _covered(pool.weights > 0, pool.idf)


def _covered(held: NDArray[np.bool_], idf: NDArray[np.float32]) -> NDArray[np.float32]:
    total = float(idf.sum())
    if total <= 0:
        return np.zeros(len(held), np.float32)
    return np.asarray((held @ idf) / total, np.float32)


def matches(pool: CandidatePool, *, dense_trust: float, thresholds: MatchThresholds) -> NDArray[np.bool_]:
    """bool, (n,). `dense_trust` in [0, 1] scales the cosines of a query in a script that the model does not know."""
    t = thresholds
    cosine = pool.cosine * dense_trust
    need = 1 - (1 - t.unread) * (1 - dense_trust)
    held = pool.weights > 0
    words = held & ~pool.numbers
    coverage, in_all = _covered(words, pool.idf), _covered(held, pool.idf)
    by_words = (
        ((coverage >= need * t.coverage) & (words.sum(axis=1) >= round(need * t.terms)))
        | (coverage >= need * t.coverage_of_few)
        | (held.all(axis=1) & (in_all > 0))
    )
    anchors = (cosine >= t.cosine) | by_words
    if not anchors.any():
        return np.asarray(anchors, np.bool_)
    companions = (cosine >= t.companion_cosine) | (in_all >= need * t.companion_coverage)
    return np.asarray(anchors | companions, np.bool_)
