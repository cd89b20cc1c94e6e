"""spec P9, rulings 8, 16 and 19."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.index import CandidatePool, MemoryRankingFeatures
from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.matching import (
    CandidateCoverageOfNamedThings,
    CandidateSimilarities,
    MatchThresholds,
    common_names_in_query,
    matching_candidate_mask,
    matching_preference_mask,
    positions_of_near_unmatched_candidates,
    similarities_of_all_candidates,
    unknown_words_may_decide,
)
from madeleine.memory.rules.ranking.profiles import query_word_coverage_of_candidates
from tests.rows import for_each_row

THRESHOLDS = MatchThresholds()


def pool(held: Sequence[Sequence[int]], unknown: Sequence[int] = (), idf: Sequence[float] = ()) -> CandidatePool:
    """`held`: 1 for each content word that a candidate has, each of one term. `unknown`: 1 for a word of no memory."""
    words = len(held[0]) if held else len(unknown)
    weights = np.asarray(held, np.float32).reshape(len(held), words)
    return CandidatePool(
        ids=tuple(MemoryId(str(i)) for i in range(len(held))),
        features=tuple(MemoryRankingFeatures("", 0, (), (), 0, 0) for _ in held),
        cosine=np.zeros(len(held), np.float32),
        weights=weights,
        idf=np.asarray(idf or [1.0] * words, np.float32),
        numbers=np.zeros(words, np.bool_),
        words=tuple(f"word{i}" for i in range(words)),
        holds=weights > 0,
        unknown=np.asarray(unknown or [0] * words, np.bool_),
        rarity=np.ones(words, np.float32),
    )


def found(
    candidates: CandidatePool, cosines: Sequence[float], legible: float = 1.0, without: Sequence[float] | None = None
) -> CandidateSimilarities:
    rest = None if without is None else np.asarray(without, np.float32)
    centred, named = (
        np.asarray(cosines, np.float32),
        CandidateCoverageOfNamedThings.from_query(" ".join(candidates.words), candidates),
    )
    return similarities_of_all_candidates(named, centred, legible=legible, thresholds=THRESHOLDS, without_unknown=rest)


def matched(
    candidates: CandidatePool, cosines: Sequence[float], legible: float = 1.0, without: Sequence[float] | None = None
) -> list[int]:
    return np.flatnonzero(matching_candidate_mask(found(candidates, cosines, legible, without), THRESHOLDS)).tolist()


def test_the_long_word_of_a_question_without_spaces_is_most_of_it() -> None:
    """ruling 19: of three things in a language that the model does not read, one that is a third by count."""
    words = ("国立屋内総合競技場", "作", "会社")
    assert matched(replace(pool([[1, 0, 0]]), words=words), [0.0], legible=0.0) == [0]
    assert matched(replace(pool([[0, 1, 0]]), words=words), [0.0], legible=0.0) == []


@for_each_row(
    ("question", "words", "names"),
    [
        ("How does Lena want her mails?", ("lena", "mails"), {"lena"}),
        ("Wann möchte Lena keine Termine?", ("lena", "termine"), {"lena"}),
    ],
)
def test_where_nouns_have_capitals_names_are_those_of_actors(
    question: str, words: tuple[str, ...], names: set[str]
) -> None:
    """Ruling 15: "Termine" was taken for somebody's name, and the preference about them did not apply."""
    common = replace(pool([[1, 1]]), words=words, rarity=np.full(2, 0.3, np.float32))
    [features] = common.features
    common = replace(common, features=(replace(features, actors=("Lena Weiß",)),))
    assert common_names_in_query(question, common, THRESHOLDS) == names
    assert common_names_in_query(question, replace(common, rarity=np.ones(2, np.float32)), THRESHOLDS) == set()


@for_each_row(("held", "applies"), [([1, 1, 0], True), ([1, 0, 0], False)])
def test_a_preference_that_holds_two_things_of_a_question_applies_from_a_little_less_likeness_on(
    held: list[int], applies: bool
) -> None:
    """Ruling 15, ADR 112: a seat in the train is asked for, of which aisle and direction of travel are told."""
    cosine = 0.32 - THRESHOLDS.words * sum(held) / len(held)
    words = ("seat", "train", "book")
    candidates = replace(pool([held]), words=words)
    named = CandidateCoverageOfNamedThings.from_query("Which seat shall I book in the train?", candidates)
    situation = similarities_of_all_candidates(
        named, np.full(1, cosine, np.float32), legible=1.0, thresholds=THRESHOLDS
    )
    mask = matching_preference_mask(np.zeros(1, np.float32), situation, THRESHOLDS)
    assert mask.tolist() == [applies]


def near(candidates: CandidatePool, cosines: Sequence[float] = ()) -> list[int]:
    likenesses = found(candidates, cosines or [0.0] * len(candidates.ids))
    named = CandidateCoverageOfNamedThings.from_query(" ".join(candidates.words), candidates)
    meaning = np.asarray(cosines or [0.0] * len(candidates.ids), np.float32)
    positions: list[int] = positions_of_near_unmatched_candidates(named, likenesses, meaning, THRESHOLDS).tolist()
    return positions


@for_each_row(("cosine", "matches"), [(0.351, True), (0.34, False), (-1.0, False)])
def test_a_cosine_at_the_threshold_is_a_match_without_any_word(cosine: float, matches: bool) -> None:
    """spec P9: threshold 0.35."""
    assert matched(pool([[]]), [cosine]) == ([0] if matches else [])


def test_words_that_are_held_make_up_for_a_lesser_likeness() -> None:
    """ruling 8: all words, 0.4; half of them, 0.2."""
    assert matched(pool([[1, 1]]), [0.0]) == [0]
    assert matched(pool([[1, 0]]), [0.2]) == [0]
    assert matched(pool([[1, 0]]), [0.1]) == []


def test_a_subject_that_is_known_is_no_match_for_what_was_never_told_of_it() -> None:
    """ruling 19: "What is Maria's blood type?"; one unknown word of four may be a synonym."""
    assert matched(pool([[1, 0, 0]], [0, 1, 1]), [0.5]) == []
    assert matched(pool([[1, 1, 1, 0]], [0, 0, 0, 1]), [0.2]) == [0]


def test_two_known_things_that_are_no_names_tell_what_is_asked() -> None:
    """ADR 39: "Which evening must stay free?" is answered; "What breed is Maria's dog?" asks for more of Maria."""

    def matches(question: str, *words: str) -> bool:
        candidates = replace(pool([[1, 1, 0]], [0, 0, 1]), words=words)
        named = CandidateCoverageOfNamedThings.from_query(question, candidates)
        found = similarities_of_all_candidates(named, np.full(1, 0.2, np.float32), legible=1.0, thresholds=THRESHOLDS)
        return bool(matching_candidate_mask(found, THRESHOLDS).any())

    assert matches("Which evening must stay free?", "evening", "stay", "free")
    assert not matches("What breed is Maria's dog?", "maria", "dog", "breed")
    assert not matches("what breed is maria's dog", "maria", "dog", "breed")


def test_in_a_script_without_capitals_two_things_held_together_tell_what_is_asked() -> None:
    """ruling 19: a question of natural length has words that no memory holds; one thing alone may be a name."""
    words, question = ("妈妈", "生日", "送", "比较好"), "妈妈的生日是哪天，送她什么吃的比较好？"
    unknown = [0, 0, 1, 1]

    def matches(held: Sequence[Sequence[int]]) -> bool:
        candidates = replace(pool(held, unknown), words=words)
        named = CandidateCoverageOfNamedThings.from_query(question, candidates)
        likeness = similarities_of_all_candidates(
            named, np.zeros(len(held), np.float32), legible=0.0, thresholds=THRESHOLDS
        )
        return bool(matching_candidate_mask(likeness, THRESHOLDS).any())

    assert matches([[1, 1, 0, 0]])
    assert not matches([[1, 0, 0, 0], [0, 1, 0, 0]]), "held apart"


@for_each_row(("memories", "matches"), [(40, True), (300, True), (600, False), (100_000, False)])
def test_among_many_memories_the_best_must_be_more_alike(memories: int, matches: bool) -> None:
    """rulings 8 and 16: the more there are, the more alike is the best of them to an unrelated question."""
    candidates = pool([[], []])
    named = CandidateCoverageOfNamedThings.from_query("", candidates)
    cosines = np.asarray([0.45, 0.2], np.float32)
    likeness = similarities_of_all_candidates(named, cosines, legible=1.0, thresholds=THRESHOLDS, memories=memories)
    assert matching_candidate_mask(likeness, THRESHOLDS).tolist() == [matches, matches]


def test_what_holds_all_that_is_named_matches_among_any_number() -> None:
    """ruling 16: the best of many is alike by chance, but does not hold every word of the query by chance."""
    candidates = pool([[1, 1], [1, 0]])
    named = CandidateCoverageOfNamedThings.from_query("word0 word1", candidates)
    cosines = np.asarray([0.0, 0.22], np.float32)
    likeness = similarities_of_all_candidates(named, cosines, legible=1.0, thresholds=THRESHOLDS, memories=100_000)
    assert (likeness.value >= likeness.needed).tolist() == [True, False]


def test_an_unknown_word_that_draws_to_a_memory_is_a_synonym_there() -> None:
    """ruling 19: without "allergic" the question is far from "gets hives"; "blood type" draws to nothing of Maria."""
    question = pool([[1, 0], [1, 0]], [0, 1])
    assert matched(question, [0.4, 0.3], without=[0.15, 0.3]) == [0, 1], "beside a match unknown words count no more"
    assert matched(question, [0.3, 0.3], without=[0.3, 0.3]) == []
    assert matched(pool([[0], [0]], [1]), [0.5, 0.3], without=[0.1, 0.0]) == [0, 1]
    assert matched(pool([[0]], [1]), [0.36], without=[0.0]) == [], "of unknown words alone"


def test_an_unknown_word_that_draws_away_from_a_memory_asks_for_something_else() -> None:
    """ruling 19: "What breed is our cat Mimi?": nearer without "breed", though two of three things are held."""
    question = pool([[1, 1, 0]], [0, 0, 1])
    assert matched(question, [0.3]) == [0]
    assert matched(question, [0.3], without=[0.3]) == [0]
    assert matched(question, [0.3], without=[0.4]) == []
    assert matched(question, [0.8], without=[0.9]) == [0], "it is the answer, whatever the word"


@for_each_row(("cosine", "may_decide"), [(0.05, False), (0.3, True), (0.95, False)])
def test_unknown_words_are_looked_at_only_where_they_may_decide(cosine: float, may_decide: bool) -> None:
    """ruling 19: not where nothing would match anyway, or all the same: it takes a second embedding."""
    likenesses = found(pool([[1, 0, 0]], [0, 1, 0]), [cosine])
    assert unknown_words_may_decide(likenesses, THRESHOLDS) == may_decide


def test_the_words_of_a_name_are_one_thing() -> None:
    """ruling 19: of "Maria Kern" and "birthplace" half is unknown, not a third."""
    maria = pool([[1, 1, 0]], [0, 0, 1])
    named = (
        CandidateCoverageOfNamedThings.from_query("What is word0 word1's word2?", maria),
        CandidateCoverageOfNamedThings.from_query("Of Word0 Word1 the word2?", maria),
    )
    assert [things.unknown.tolist() for things in named] == [[0, 0, 1], [0, 1]]
    assert named[1].held.tolist() == [[1, 0]]


def test_candidates_little_below_a_match_match_too_and_not_without_it() -> None:
    """ruling 19: within 0.2; the others are not shown as recalled."""
    candidates = pool([[], [], []])
    assert matched(candidates, [0.5, 0.16, 0.14]) == [0, 1]
    assert matched(candidates, [0.34, 0.16, 0.14]) == []


def test_of_a_long_query_a_few_words_are_enough() -> None:
    """ruling 8: a message of 32 words of which 8 are held; and unknown words among so many tell little."""
    candidates = pool([[1] * 8 + [0] * 24], [0] * 20 + [1] * 12)
    assert matched(candidates, [0.0]) == [0]


def test_what_the_model_cannot_read_matches_by_its_words_alone() -> None:
    """ruling 16: such vectors mean nothing."""
    candidates = pool([[1, 0], [1, 1]])
    assert matched(candidates, [0.9, 0.0], legible=0.0) == [0, 1]
    assert matched(pool([[0, 0]]), [0.99], legible=0.0) == []


def test_near_is_what_holds_the_rest_of_a_query_with_an_unknown_word() -> None:
    """ruling 19: "PR size": the memory about the PR, and nothing for a query of unknown words alone."""
    assert near(pool([[0, 0], [1, 0]], [0, 1])) == [1]
    assert near(pool([[0, 0], [0, 0]], [1, 1])) == []
    assert near(pool([[1, 0, 0], [0, 1, 0]], [0, 0, 0])) == [], "a third of what is known"
    assert near(pool([[0, 0], [0, 0]], [1, 1]), [0.4, -0.1]) == [0], "it would match if nothing were unknown"
    assert near(pool([[], [], []]), [0.1, 0.21, -0.1]) == [1, 0], "nearly alike, and what is alike at all behind it"
    assert near(pool([[], [], []]), [0.1, 0.14, -0.1]) == []


def test_an_empty_pool_has_no_match() -> None:
    """spec P9: no match gives an empty result."""
    assert matched(pool([]), []) == []
    assert near(pool([], [1, 0])) == []


def test_coverage_is_the_share_of_the_idf_that_is_held() -> None:
    """ruling 8: (1 + 3) / 8, (4) / 8, nothing."""
    found = query_word_coverage_of_candidates(pool([[1, 1, 0], [0, 0, 1], [0, 0, 0]], idf=[1, 3, 4]))
    assert found.tolist() == [0.5, 0.5, 0.0]
    assert query_word_coverage_of_candidates(pool([[], []])).tolist() == [0.0, 0.0]


@given(
    st.lists(st.tuples(st.floats(-1, 1, width=32), st.integers(0, 1), st.integers(0, 1)), max_size=8),
    st.permutations(range(8)),
)
def test_whether_a_candidate_matches_does_not_depend_on_its_place(
    candidates: list[tuple[float, int, int]], places: list[int]
) -> None:
    """ruling 8"""
    order = [place for place in places if place < len(candidates)]
    moved = [candidates[i] for i in order]
    found = matched(pool([list(c[1:]) for c in candidates]), [c[0] for c in candidates])
    again = matched(pool([list(c[1:]) for c in moved]), [c[0] for c in moved])
    assert {order[i] for i in again} == set(found)
