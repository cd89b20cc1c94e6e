"""The order of memories that speak of the same (ruling 24): what was told later comes first.

Two are compared by the score of `rules.storing.supersession`, with what is known of their words now: it was found when
the newer one was stored, or among the best matches of a question, which they then both answer. A question that wishes
for the past ("before", "at first", "used to") is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.storing.supersession import Statement
from madeleine.memory.text.reading import Reading

MIN_SCORE_OF_PROPOSED = 0.0
MIN_SCORE_OF_PROPOSED_THAT_SAYS_THE_SAME = -2.0
MIN_SCORE_OF_MATCHES = -1.0
"""Two of the best matches of a question have it in common; one that was only proposed may speak of another thing."""
SHARED_OF_RELATION = 1 / 5
SHARED_OF_SUBJECT = 0.34
"""Share of the older one's content words that stands in the newer one, too, from which they say the same of a subject:
if the question names a relation, and if it names no more than the subject ("Who is Emma?"), to which whatever speaks of
her is an answer (`benchmarks/small`)."""


def asks_for_past(query: Reading) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches("asks_past")


def says_it_anew(question: Statement, newer: Statement, older: Statement, *, score: float, proposed: bool) -> bool:
    """Whether the newer one is probably what is true now. `score`: of the pair as a supersession; `proposed`: when the
    newer one was stored. Else both are among the best matches."""
    if not proposed:
        return score > MIN_SCORE_OF_MATCHES
    if score > MIN_SCORE_OF_PROPOSED:
        return True
    return score > MIN_SCORE_OF_PROPOSED_THAT_SAYS_THE_SAME and say_the_same(question, newer, older)


def say_the_same(question: Statement, newer: Statement, older: Statement) -> bool:
    """Of one subject and one relation, as far as shared words tell; otherwise the newer only mentions what the older is
    about. The question names a relation if the older one alone holds some of it, or if they share more than it names
    and it names more than the older one holds."""
    asked, before, now = question.content.keys(), older.content.keys(), newer.content.keys()
    shared = before & now
    names_relation = bool(asked & before - now) or not (asked <= before or shared <= asked)
    least = SHARED_OF_RELATION if names_relation else SHARED_OF_SUBJECT
    return len(shared) >= least * len(before)


def newer_first(
    scores: Mapping[MemoryId, float], newer: Mapping[MemoryId, Sequence[MemoryId]], *, most: int
) -> dict[MemoryId, float]:
    """Scores, best first: before each of the `most` best stands what says it anew, with its score, in the order of
    `newer`, and before that what says that anew. `scores`: best first."""
    led: dict[MemoryId, float] = {}
    begun: set[MemoryId] = set()

    def put(id_: MemoryId, score: float) -> None:
        if id_ in begun:
            return
        begun.add(id_)
        for later in newer.get(id_, ()):
            put(later, score)
        led[id_] = score

    for id_ in islice(scores, most):
        put(id_, scores[id_])
    return led | {id_: score for id_, score in scores.items() if id_ not in led}
