"""The order of memories that speak of the same (ruling 24): what was told later comes first.

What may speak of the same was found when the newer one was stored (`rules.storing.supersession`). A question that
wishes for the past ("before", "at first", "used to") is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import islice

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.storing.statements import Statement, are_of_one_form, differ_in_one_value, same_wording
from madeleine.memory.text.reading import Reading

MAX_SHARED_WORD_RATIO_OF_CHANGE = 1 / 3
"""Share of words in the same order above which a word of the question that only the older one holds tells that the two
speak of two things ("hotfixes branch off …", "features branch off …"). Of changes that are worded otherwise it tells
nothing: they often leave unsaid what they change."""

MAX_TOLD_OF_ONE_FACT = 6.6
"""Two logarithms of numbers of content words, of which the older one's weighs more: five words and nine in the words of
each other, or seven and seventeen if the newer one tells of a change (ADR 38)."""


def asks_for_past(query: Reading) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches("asks_past")


def only_older_answers_question(question: Statement, newer: Statement, older: Statement) -> bool:
    """Whether two of one wording speak of two things, and the question names that of the older one, or what it was."""
    named = named_by_one_alone(question, older, newer)
    if not named or same_wording(newer, older) <= MAX_SHARED_WORD_RATIO_OF_CHANGE:
        return False
    return not differ_in_one_value(newer, older) or any(map(older.is_name, named))


def may_both_be_true(question: Statement, newer: Statement, older: Statement) -> bool:
    """Whether two that resemble each other tell the same of two things, each of something of its own, or the question
    names what only the older one tells of. Of two worded otherwise that is a name: a change is seldom told in the words
    of what it changes."""
    named = named_by_one_alone(question, older, newer)
    if any(map(older.is_name, named)) or each_tells_of_its_own(newer, older):
        return True
    if same_wording(newer, older) <= MAX_SHARED_WORD_RATIO_OF_CHANGE:
        return False
    return are_of_one_form(newer, older) or (bool(named) and not differ_in_one_value(newer, older))


def each_tells_of_its_own(newer: Statement, older: Statement) -> bool:
    """Whether two that resemble each other hold so much that neither is likely to tell anew what the other tells: a
    fact that changes is told in few words, and what changed it in the same ones or in words of change."""
    told = 2 * math.log(1 + len(older.content)) + 1.2 * math.log(1 + len(newer.content))
    return told > MAX_TOLD_OF_ONE_FACT + 3 * same_wording(newer, older) + newer.reading.matches("change")


def named_by_one_alone(question: Statement, one: Statement, other: Statement) -> list[str]:
    """Words of the one that the question has, and the other lacks."""
    return [one.content[stem] for stem in question.content.keys() & one.content.keys() - other.content.keys()]


def order_newer_before_older(
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
