"""The order of memories that speak of the same (ruling 24): what was told later comes first.

Two that both answer a question are compared, the one that was told later with the older one:

    score = 7.3 × rarest shared word + 6.8 × cosine of the newer one
            − 1.2 × ln(1 + content words of the older one) + 2.2 × words of the question that only the newer one holds
            − 1.4 × words of the question that only the older one holds + 0.8 if the newer one tells of a change
            + 3 × its share of the older one's score if proposals join the two + 1 if it was stored as resembling it
            − 5 if the two have one form, and only the older one answers the question
            − 4 if the newer one is an event that tells of no change, the older one a fact, and nothing was proposed
            − 0.3 if its score is less than 0.8 of the older one's, and nothing was proposed: not nearly as relevant
            − 5.7

Without a cosine (it was not found by itself) the newer one has 3.1 in place of that term; where the model does not read
the question it has 5.8 if its words match, and 2.7 if they do not. Cosines are those to the question, words of the
question count by their rarity in [0, 1]. Above 0 the newer one comes first; 1 / (1 + exp(−score)) is about how often
that is right. Before an older one that was itself stored to supersede another it comes only from 1 on (ADR 104). The
weights are those of a logistic regression (ADR 52, 87), rounded, some moved since (ADR 109, 112). A question that
wishes for the past ("used to", "which attempt failed?") is left as it is, unless it asks what was before something, or
first (ADR 88).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    differ_in_value_of_one_thing,
    share_more_of_same_wording_than,
    stem_of_word_beginning,
)
from madeleine.memory.rules.storing.subjects import different_subjects_before_same_word, owners_named_only_in_first
from madeleine.memory.text.content_words import pairs_of_capitalised_words
from madeleine.memory.text.lexicon import all_words_of_lexicon_lists, lexicons_for_script_of_text
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.scripts import HAN_OR_KANA_CHAR_PATTERN

MAX_SHARED_WORD_RATIO_OF_REWORDED_CHANGE = 1 / 3
"""Share of words in the same order above which a word of the question that only the older one holds tells that the two
speak of two things ("hotfixes branch off …", "features branch off …"). Of changes that are worded otherwise it tells
nothing: they often leave unsaid what they change."""

MIN_SCORE_OF_CHANGE_OF_DECIDED_VERSION = 1.0
"""Of `newer_replaces_older_score`, where the older one was itself stored to supersede another: whoever said then what
took its place has said nothing of the newer one (ADR 104)."""
MIN_SCORE_SHARE_OF_NEAR_EQUAL = 0.8
"""Of the score of another match, from which one is nearly as relevant (ruling 24)."""
MIN_COMMON_BEGINNING_LETTERS = 4
"""Of two names of one root, and more than half of the shorter one: "Norway", "Norwegian"."""

MAX_SHARE_OF_OLDER_SCORE = 1.5
"""A newer one that matches even better tells no more of whether the two speak of the same."""

MAX_WORDS_OF_SINGLE_FACT_MEMORY = 70
"""Of a memory that tells more than one fact nothing tells which of them another one changes."""


def asks_for_past(query: AnalysedText) -> bool:
    """It asks what was, or what was first, so that the older memory may be the answer."""
    return query.matches_lexicon_pattern("asks_past")


def asks_for_what_was_before(query: AnalysedText) -> bool:
    """It asks what was before something: "Where did Ivo live before Split?", not "What do we do before a release?"."""
    return query.matches_lexicon_pattern("asks_before")


def asks_for_what_was_first(query: AnalysedText) -> bool:
    """It asks what was in the beginning: "What was the original deadline?", not "Who is the first-aider?"."""
    return query.matches_lexicon_pattern("asks_first")


def contains_word_meaning_before(statement: StatementForComparison) -> bool:
    """It says "before" itself: "approved before the meeting"."""
    return statement.analysed_text.matches_lexicon_pattern("tells_before")


def tells_what_was_first(statement: StatementForComparison) -> bool:
    """It says itself that it was the first: "In the first session …"."""
    return statement.analysed_text.matches_lexicon_pattern("tells_first")


def is_answered_only_by_older_statement(
    question: StatementForComparison, newer: StatementForComparison, older: StatementForComparison
) -> bool:
    """Whether two of one wording speak of two things, and the question names that of the older one, or what it was."""
    named = question_words_only_in_first(question, older, newer)
    if not named or not share_more_of_same_wording_than(MAX_SHARED_WORD_RATIO_OF_REWORDED_CHANGE, newer, older):
        return False
    return not differ_in_value_of_one_thing(newer, older) or any(map(older.is_possible_name, named))


def question_mentions_only_older_statement(
    question: StatementForComparison, newer: StatementForComparison, older: StatementForComparison
) -> bool:
    """Whether `is_answered_only_by_older_statement`, and names its thing by a whole word: where words are not spaced,
    two signs may be of two words and name nothing."""
    named = question_words_only_in_first(question, older, newer)
    has_whole_word = any(not HAN_OR_KANA_CHAR_PATTERN.match(word) for word in named)
    return has_whole_word and is_answered_only_by_older_statement(question, newer, older)


def question_repeats_only_older_statement(
    question: StatementForComparison, newer: StatementForComparison, older: StatementForComparison
) -> bool:
    """Whether the question is the older one word for word, and not the newer one of the same wording: "coin 0 into
    pocket 2", "coin 2 into pocket 0". Had that been a change of it, the store would have proposed it."""
    if question.words != older.words or question.words == newer.words:
        return False
    return share_more_of_same_wording_than(MAX_SHARED_WORD_RATIO_OF_REWORDED_CHANGE, newer, older)


def newer_speaks_of_another_thing_than_asked(
    question: StatementForComparison, newer: StatementForComparison, older: StatementForComparison
) -> bool:
    """Whether the question names that of which the older one tells, and the newer one tells the same of something else:
    "the code of the safe", "code of the gate"; "What is the cat called?", "The dog is called Rex". "API spec" may be
    short for "OpenAPI spec", and speaks of no other."""
    named = owners_named_only_in_first(older, newer) & question.content_words_by_stem.keys()
    if named and owners_named_only_in_first(newer, older):
        return True
    if (subjects := different_subjects_before_same_word(newer, older)) is None:
        return False
    of_newer, of_older = subjects
    if of_newer in of_older or of_older in of_newer:
        return False
    asked = question.word_stems
    return stem_of_word_beginning(of_older) in asked and stem_of_word_beginning(of_newer) not in asked


def newer_names_other_bearer_of_first_name(question: str, newer: str, older: str) -> bool:
    """Whether the question names somebody of whom the older one tells, and the newer one somebody else of the same
    first name: "Paula Weiß", "Paula Wiese"."""
    if not (asked := _last_names_by_first_name(question)):
        return False
    known, others = _last_names_by_first_name(older), _last_names_by_first_name(newer)
    return any(
        names & known.get(first, set()) and others.get(first) and not names & others[first]
        for first, names in asked.items()
    )


@lru_cache(maxsize=200)
def _last_names_by_first_name(text: str) -> Mapping[str, set[str]]:
    """The words with a capital right behind each word with one that is no title. A text is compared with several."""
    names: dict[str, set[str]] = {}
    if pairs := pairs_of_capitalised_words(text):
        titles = all_words_of_lexicon_lists(lexicons_for_script_of_text(text), "titles", "not_names")
        for first, last in pairs:
            if first.lower() not in titles:
                names.setdefault(first, set()).add(last)
    return names


@dataclass(frozen=True, slots=True)
class MemoryMatchToQuestion:
    """How a memory matches the question. `cosine`: 0 where it was not found by itself. `asked_words`: the words of the
    question that it holds, with their rarity in [0, 1]. `score`: 0 where it has none."""

    statement: StatementForComparison
    cosine: float = 0.0
    asked_words: Mapping[str, float] | None = None
    score: float = 0.0

    @property
    def strength(self) -> tuple[float, float]:
        """The greater, the better it matches: by its score, of equals by its cosine."""
        return self.score, self.cosine


@dataclass(frozen=True, slots=True)
class MemoryPairRelationFlags:
    """What the store has noted of two memories. `is_event_after_fact`: the newer one tells what happened, or
    was stored without a category, the older one what holds."""

    is_proposed: bool = False
    joined_by_proposals: bool = False
    resembles: bool = False
    is_event_after_fact: bool = False


def question_words_only_in_first(
    question: StatementForComparison, one: StatementForComparison, other: StatementForComparison
) -> list[str]:
    """Words of the one that the question has, and the other lacks; if there are none, names that begin like a name of
    the question that both lack ("Norwegian" asks for Norway)."""
    asked, ones, others = (statement.content_words_by_stem for statement in (question, one, other))
    if named := [ones[stem] for stem in asked if stem in ones and stem not in others]:
        return named
    names = [
        word
        for stem, word in asked.items()
        if stem not in ones and word in question.words_capitalized_inside_sentence
        if not any(_shares_long_beginning(word_of_other, word) for word_of_other in others.values())
    ]
    if not names:
        return []
    return [
        word
        for stem, word in ones.items()
        if stem not in others and one.is_possible_name(word)
        if any(_shares_long_beginning(word, name) for name in names)
    ]


def _shares_long_beginning(word: str, name: str) -> bool:
    letters = max(MIN_COMMON_BEGINNING_LETTERS, min(len(word), len(name)) // 2 + 1)
    return len(word) >= letters and word[:letters] == name[:letters]


def are_short_statements_without_questions(newer: StatementForComparison, older: StatementForComparison) -> bool:
    return not any(
        one.contains_question_mark or len(one.words) > MAX_WORDS_OF_SINGLE_FACT_MEMORY for one in (newer, older)
    )


def newer_replaces_older_score(
    newer: MemoryMatchToQuestion,
    older: MemoryMatchToQuestion,
    link: MemoryPairRelationFlags,
    *,
    rarest_shared_word: float,
    is_answered_only_by_older: bool,
    is_read: bool,
) -> float:
    """Above 0 the newer one probably tells what became of what the older one told. `rarest_shared_word`: its rarity, in
    [0, 1]. `is_answered_only_by_older`: what `is_answered_only_by_older_statement` says. `is_read`: by the model."""
    new, old = newer.statement, older.statement
    asked_of_new, asked_of_old = newer.asked_words or {}, older.asked_words or {}
    only_old = sum(rarity for word, rarity in asked_of_old.items() if word not in asked_of_new)
    only_new = sum(rarity for word, rarity in asked_of_new.items() if word not in asked_of_old)
    matches_by_words = bool(newer.score) or not older.score
    constant = 3.1 if is_read else 5.8 if matches_by_words else 2.7
    share_of_score = min(MAX_SHARE_OF_OLDER_SCORE, newer.score / older.score) if older.score else 1.0
    return (
        7.3 * rarest_shared_word
        + (6.8 * newer.cosine if newer.cosine else constant)
        - 1.2 * math.log(1 + len(old.content_words_by_stem))
        + 2.2 * only_new
        - 1.4 * only_old
        + 0.8 * new.states_change
        + 3 * share_of_score * link.joined_by_proposals
        + link.resembles
        - 5 * is_answered_only_by_older
        - 4 * (link.is_event_after_fact and not (new.states_change or link.joined_by_proposals))
        - 0.3 * (share_of_score < MIN_SCORE_SHARE_OF_NEAR_EQUAL and not link.joined_by_proposals)
        - 5.7
    )


def scores_with_newer_versions_before_older(
    scores: Mapping[MemoryId, float],
    newer: Mapping[MemoryId, Sequence[MemoryId]],
    *,
    max_corrected: int,
    unrelated: Collection[tuple[MemoryId, MemoryId]] = (),
) -> dict[MemoryId, float]:
    """Scores, best first: before each of the `max_corrected` best stands what says it anew, with its score, in the
    order of `newer`, and before that what says that anew. `scores`: best first. `unrelated`: (newer, older) that speak
    of two things, so that the one is not put before the other by way of a third either."""
    ordered: dict[MemoryId, float] = {}
    begun: set[MemoryId] = set()

    def put(id_: MemoryId, score: float, behind: tuple[MemoryId, ...] = ()) -> None:
        if id_ in begun or any((id_, older) in unrelated for older in behind):
            return
        begun.add(id_)
        for later in newer.get(id_, ()):
            put(later, score, (*behind, id_))
        ordered[id_] = score

    for id_ in islice(scores, max_corrected):
        put(id_, scores[id_])
    return ordered | {id_: score for id_, score in scores.items() if id_ not in ordered}


def scores_with_passages_before_summaries(
    scores: Mapping[MemoryId, float], passages: Mapping[MemoryId, Collection[MemoryId]]
) -> dict[MemoryId, float]:
    """`scores`, best first: of a summary and the best of its passages, if that is nearly as relevant, the passage
    stands first, for it holds word for word what the summary tells in short. They change places. `passages`: by
    summary."""
    ids, values = list(scores), list(scores.values())
    for summary, its_passages in passages.items():
        place = ids.index(summary)
        best = next((at for at, id_ in enumerate(ids) if id_ in its_passages), place)
        if best > place and values[best] >= MIN_SCORE_SHARE_OF_NEAR_EQUAL * values[place]:
            ids[place], ids[best] = ids[best], ids[place]
    return dict(zip(ids, values, strict=True))
