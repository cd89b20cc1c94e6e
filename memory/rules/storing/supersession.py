"""What a new memory may supersede (ruling 14): the same subject, told of otherwise. It only proposes.

    score = 10 × (cosine − others) / (1 − others) + 2.3 if the new one tells of a change
            − 3.1 × ln(1 + content words of the old one) + 2.7 × rarest shared word − 0.1

or, in a store of so many memories that they tell how rare a word is, instead of the last two terms

            + 8 × rarest shared word + 11.5 × rarest word that the new one lacks: the value that was − 12.6

`others` is the mean cosine of the other memories that are nearest to the new one: what all of a store or a language
have in common tells nothing (ruling 16), nor does a date: the cosines are those of the new text alone. Small numbers
are no shared words. Above −0.75 the pair is proposed; 1 / (1 + exp(−score)) is about how often that is right. Rarity is
a word's IDF over the being's memories, in [0, 1] (`word_rarities_from_idf`). Two of one wording (the phone of one and
of another) are both true as often as not: above `MAX_SHARED_WORD_RATIO_OF_DIFFERENT_WORDING` a pair is proposed only if
it differs in one place, in a number, a day, a negation or an opposite; beside such a neighbour, a new one that tells of
no change is proposed to supersede nothing that is less near (ADR 87). The weights are those of a logistic regression
(ADR 38), rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madeleine.memory.model import Memory, first_timeline_period
from madeleine.memory.rules.dynamics.truth import start_of_truth_or_telling
from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    are_of_one_wording,
    cached_statement_for_comparison,
    differ_in_value_of_one_thing,
    shared_stems,
)
from madeleine.memory.rules.storing.subjects import (
    name_different_tickets,
    speak_of_two_things,
    tells_same_of_other_subject,
)

MIN_SUPERSESSION_PROPOSAL_COSINE = 0.3
MIN_SUPERSESSION_PROPOSAL_SCORE = -0.75
"""Of pairs with just this score a third are changes. A change that is not proposed is answered as it was (ADR 38)."""
MIN_POSSIBLE_CHANGE_SCORE = -2.0
"""Least score of a memory that tells of a change to name what it may have changed. Nothing is proposed (ADR 74)."""
MAX_POSSIBLE_CHANGES_NAMED = 3
"""Memories that one which tells of a change may have changed; whoever stores it has their texts, and chooses."""
MIN_POSSIBLE_CHANGE_NEARNESS = 0.6
"""Of `possible_change_nearness`. From 0.5 on, of 52 changes that agents told in their own words 30 name what they
changed, and 15 name other memories alone; of two other lives no right one lies below 0.6."""
MAX_NEARNESS_BY_SHARED_WORDS = 0.5
"""What words and names that both have add to `possible_change_nearness` at most."""
MAX_SUPERSESSION_CANDIDATES_COMPARED = 3
"""Nearest memories that are compared; of the changes 90 % name the nearest, 94 % one of three."""
MAX_NEIGHBOURS_READ_FOR_SUPERSESSION = 6
"""Nearest memories, of which the others show how near any memory of the store lies."""
MIN_MEMORIES_FOR_RELIABLE_IDF = 600
"""From so many memories on, how many hold a word says how rare it is."""
PRIOR_MEMORY_COUNT, PRIOR_HOLDER_COUNT = 40, 0.05
"""Of fewer it is guessed as if a word stood in one of 800 others, a guess that counts like 40 memories."""
MIN_COSINE_NORMALIZATION_RANGE = 0.1
"""The others may say the very same: told again after a retraction, or stored with `distinct`."""
MEAN_NEIGHBOUR_COSINE_FLOOR = 0.3
"""The least that the mean cosine of the others counts as, and what it is in a store that has no others."""


MIN_SHARED_WORD_RATIO_OF_SAME = 0.5
"""Of the words of the shorter one, from which two that were linked say much of the same."""


@dataclass(frozen=True, slots=True)
class WordRarities:
    """`by_stem`: in [0, 1]. `is_known`: the being's memories are many enough to tell; else it is partly a guess."""

    by_stem: Mapping[str, float]
    is_known: bool


def tells_change_without_superseded_memory(memory: Memory) -> bool:
    """Whether its text tells of a change, and nobody has said of what: what has superseded another memory has a
    `valid_from`, and is no change of a third one (ADR 74)."""
    return memory.valid_from is None and cached_statement_for_comparison(memory.scene.action).states_change


def became_true_after(memory: Memory, other: Memory) -> bool:
    """Whether what the memory says began after what the other one says. Since when something undated is true nobody
    has told: what tells of a change, and was told later, began after it, whatever its day."""
    if start_of_truth_or_telling(memory) > start_of_truth_or_telling(other):
        return not _tells_change_of_undated(other, memory)
    return _tells_change_of_undated(memory, other)


def _tells_change_of_undated(memory: Memory, other: Memory) -> bool:
    return (
        other.valid_from is None
        and first_timeline_period(other.scene.when) is None
        and first_timeline_period(memory.scene.when) is not None
        and other.created_at <= memory.created_at
        and cached_statement_for_comparison(memory.scene.action).states_change
    )


def says_much_of_same(memory: Memory, other: Memory) -> bool:
    """Whether one holds at least half of the other's words, and they do not tell two values in one wording, as the
    phones of two people: what made the one untrue has probably made the other untrue, too."""
    mine, theirs = (cached_statement_for_comparison(one.scene.action) for one in (memory, other))
    fewest = min(len(mine.content_words_by_stem), len(theirs.content_words_by_stem))
    shared = len(shared_stems(mine, theirs))
    return shared >= max(2, MIN_SHARED_WORD_RATIO_OF_SAME * fewest) and not differ_in_value_of_one_thing(mine, theirs)


def word_rarities_from_idf(idf: Mapping[str, float], greatest_idf: float) -> WordRarities:
    """The same in a store of five memories and of hundreds: in a small one IDF says little. `idf`: by stem;
    `greatest_idf`: of a word that no memory holds; it tells how many there are."""
    memories = math.exp(greatest_idf) / 2 - 1
    if memories >= MIN_MEMORIES_FOR_RELIABLE_IDF:
        return WordRarities({stem: value / greatest_idf for stem, value in idf.items()}, is_known=True)
    return WordRarities(
        {stem: _estimated_rarity_in_small_store(value, memories) for stem, value in idf.items()}, is_known=False
    )


def idf_from_memory_count(memories: int, greatest_idf: float) -> float:
    """IDF of a word that so many memories hold; `greatest_idf`: of one that none holds."""
    return greatest_idf - math.log(2 * memories + 1)


def _estimated_rarity_in_small_store(idf: float, memories: float) -> float:
    holders = (memories + 1) / math.exp(idf) - 0.5
    share = (holders - 1 + PRIOR_HOLDER_COUNT) / (memories - 1 + PRIOR_MEMORY_COUNT)
    expected_holders = 1 + share * (MIN_MEMORIES_FOR_RELIABLE_IDF - 1)
    all_memories = MIN_MEMORIES_FOR_RELIABLE_IDF + 1
    rarity = math.log(all_memories / (expected_holders + 0.5)) / math.log(2 * all_memories)
    return min(1.0, max(0.0, rarity))


def possible_change_nearness(
    new: StatementForComparison, old: StatementForComparison, *, cosine: float, rarity: WordRarities
) -> float:
    """How near an old memory is to one that tells of a change, in whatever words or language: cosine, a quarter of the
    rarity of the rarest word that both have, and of the rarest name. `rarity`: of the old one's words."""
    shared = shared_stems(new, old)
    rarities = {stem: value for stem, value in rarity.by_stem.items() if stem in shared}
    names = [value for stem, value in rarities.items() if _is_name_in_both(stem, new, old)]
    return cosine + (max(rarities.values(), default=0.0) + max(names, default=0.0)) / 4


def _is_name_in_both(stem: str, new: StatementForComparison, old: StatementForComparison) -> bool:
    return all(one.is_possible_name(one.content_words_by_stem[stem]) for one in (new, old))


def can_have_supersession_score(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether the two can have a score at all: two of one wording, and questions, have none."""
    return not new.contains_question_mark and not old.contains_question_mark and not are_of_one_wording(new, old)


def are_of_two_things(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether neither can take the other's place, however alike they are: they tell of two things, or, without a word
    of change, the same of two subjects (ADR 104). Takes longer than to compare the two."""
    if speak_of_two_things(new, old):
        return True
    return not new.states_change and (name_different_tickets(new, old) or tells_same_of_other_subject(new, old))


def supersession_score(
    new: StatementForComparison,
    old: StatementForComparison,
    *,
    cosine: float,
    other_cosines: Sequence[float],
    rarity: WordRarities,
) -> float:
    """Above `MIN_SUPERSESSION_PROPOSAL_SCORE` the new one may supersede the old. `other_cosines`: of the other memories
    that are nearest to the new one. `rarity`: of the old one's words."""
    stems = shared_stems(new, old)
    shared = [value for stem, value in rarity.by_stem.items() if stem in stems]
    if not shared or not can_have_supersession_score(new, old):
        return -math.inf
    others = max(MEAN_NEIGHBOUR_COSINE_FLOOR, sum(other_cosines) / max(1, len(other_cosines)))
    score = (
        10 * (cosine - others) / max(MIN_COSINE_NORMALIZATION_RANGE, 1 - others)
        + 2.3 * new.states_change
        - 3.1 * math.log(1 + len(old.content_words_by_stem))
    )
    if rarity.is_known:
        lost = (value for stem, value in rarity.by_stem.items() if stem not in new.content_words_by_stem)
        score += 8 * max(shared) + 11.5 * max(lost, default=0.0) - 12.6
    else:
        score += 2.7 * max(shared) - 0.1
    return -math.inf if score > MIN_POSSIBLE_CHANGE_SCORE and are_of_two_things(new, old) else score
