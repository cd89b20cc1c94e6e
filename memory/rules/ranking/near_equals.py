"""The order of memories that speak of the same (ruling 24): what was told later comes first.

What may speak of the same was found when the newer one was stored (`rules.storing.supersession`). A question that
wishes for the past ("before", "at first", "used to") is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.storing.supersession import Statement, aligned_words, are_of_one_form
from madeleine.memory.text.reading import Reading

MAX_SAME_WORDING_OF_CHANGE = 1 / 3
"""Share of words in the same order above which a word of the question that only the older one holds tells that the two
speak of two things ("hotfixes branch off …", "features branch off …"). Of changes that are worded otherwise it tells
nothing: they often leave unsaid what they change."""


def asks_for_past(query: Reading) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches("asks_past")


def older_alone_answers(question: Statement, newer: Statement, older: Statement) -> bool:
    """Whether two of one form speak of two things, and the question names that of the older one; or the value that was."""
    named = question.content.keys() & older.content.keys() - newer.content.keys()
    if not named or aligned_words(newer, older).ratio() <= MAX_SAME_WORDING_OF_CHANGE:
        return False
    return are_of_one_form(newer, older) or any(older.is_name(older.content[stem]) for stem in named)


def newer_is_another_matter(question: Statement, newer: Statement, older: Statement) -> bool:
    """Whether two that resemble each other, and both match, may both be true: they have one form, or the question holds
    a name or value that only the older one has."""
    named = question.content.keys() & older.content.keys() - newer.content.keys()
    of_one_wording = aligned_words(newer, older).ratio() > MAX_SAME_WORDING_OF_CHANGE
    return (of_one_wording and are_of_one_form(newer, older)) or any(
        older.is_name(older.content[stem]) for stem in named
    )


def newer_first(
    scores: Mapping[MemoryId, float], newer: Mapping[MemoryId, Sequence[MemoryId]], *, max_corrected: int
) -> dict[MemoryId, float]:
    """Scores, best first: before each of the `max_corrected` best stands what says it anew, with its score, in the
    order of `newer`, and before that what says that anew. `scores`: best first."""
    ordered: dict[MemoryId, float] = {}
    begun: set[MemoryId] = set()

    def put(id_: MemoryId, score: float) -> None:
        if id_ in begun:
            return
        begun.add(id_)
        for later in newer.get(id_, ()):
            put(later, score)
        ordered[id_] = score

    for id_ in islice(scores, max_corrected):
        put(id_, scores[id_])
    return ordered | {id_: score for id_, score in scores.items() if id_ not in ordered}
