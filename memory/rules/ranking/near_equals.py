"""The order of memories that are nearly as relevant and speak of the same (ruling 24): the newer comes first.

What may speak of the same was found when the newer one was stored (`rules.storing.supersession`); of those pairs, only
the ones that say the same of it are reordered. A question that wishes for the past ("before", "at first", "used to") is
left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.storing.supersession import Statement
from madeleine.memory.text.reading import Reading

NEAR_EQUAL_SHARE = 0.5
"""Share of the older one's score from which the newer one is moved before it. Blended scores of two wordings of one
fact lie far apart: at 0.8 of the score a quarter fewer of the changed facts come first (`benchmarks/truth`)."""
MAX_REORDERED = 40
"""Best candidates among which an order is changed."""
SHARED_OF_RELATION = 1 / 5
SHARED_OF_SUBJECT = 0.34
"""Share of the older one's content words that stands in the newer one, too, from which they say the same of a subject:
if the question names a relation, and if it names no more than the subject ("Who is Emma?"), to which whatever speaks of
her is an answer. Without them a newer memory that only mentions a subject goes before the older one that answers
(`benchmarks/small`); a greater share of a relation leaves more changed facts behind (`benchmarks/truth`)."""


def asks_for_past(query: Reading) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches("asks_past")


def say_the_same(
    question: Statement,
    newer: Statement,
    older: Statement,
    newer_holds: NDArray[np.bool_],
    older_holds: NDArray[np.bool_],
) -> bool:
    """Of one subject and one relation, as far as shared words tell; otherwise the newer only mentions what the older is
    about. `…_holds`: (words,), those of the question, as the index finds them. The question names a relation if the
    older one holds more of it, or if they share more than it names and do not hold all of it."""
    before = older.content.keys()
    shared = before & newer.content.keys()
    only_in_older = bool((older_holds & ~newer_holds).any())
    names_relation = only_in_older or not (older_holds.all() or shared <= question.content.keys())
    least = SHARED_OF_RELATION if names_relation else SHARED_OF_SUBJECT
    return len(shared) >= least * len(before)


def newer_first(scores: Mapping[MemoryId, float], older: Mapping[MemoryId, MemoryId]) -> dict[MemoryId, float]:
    """Scores, best first: each newer memory that is nearly as relevant as the older one stands just before it, with its
    score. `scores`: best first. `older`: what a newer memory says anew (`say_the_same`); chains of them count."""
    raised = dict(scores)
    reordered = frozenset(list(scores)[:MAX_REORDERED])
    depth = {id_: _versions_before(id_, older) for id_ in older}
    for newer in sorted((id_ for id_ in older if id_ in reordered), key=depth.__getitem__):  # the oldest first
        before = older[newer]
        if (
            before in reordered
            and raised[newer] < raised[before]
            and (scores[newer] >= NEAR_EQUAL_SHARE * scores[before])
        ):
            raised[newer] = raised[before]
    if raised == scores:
        return raised
    order = sorted(raised, key=lambda id_: (-raised[id_], -depth.get(id_, 0)))  # stable
    return {id_: raised[id_] for id_ in order}


def _versions_before(id_: MemoryId, older: Mapping[MemoryId, MemoryId]) -> int:
    """How many memories lie before it; each was stored before the next, so there is no circle."""
    count = 0
    while id_ in older:
        id_, count = older[id_], count + 1
    return count
