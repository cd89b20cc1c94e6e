"""spec T7, ruling 9: each prior moves a score by its weight and by nothing else.

Scores are compared before they are divided by the greatest sum there can be,
(1 + 0.15 + 0.4) × (1 + 0.4) + 0.2 + 0.2 + 0.25 + 0.2 + 0.1 + 0.1 = 3.22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool, MemoryRankingFeatures, MemoryWordingTraits
from madeleine.memory.model import Emotion, MemoryId
from madeleine.memory.rules.ranking import blended
from madeleine.memory.rules.ranking.blended import BlendedRankingWeights, word_and_meaning_scores
from madeleine.memory.rules.ranking.turns import first_name_of_actor
from tests.rows import for_each_row

WEIGHTS = BlendedRankingWeights(words=0.4)
GREATEST = 3.53
ALL = np.arange(20)
"""Positions: every candidate of a pool matches."""
PLAIN = MemoryRankingFeatures("", 0, (), (), 0, 0)


def blended_ranking_scores(*arguments: Any, **more: Any) -> NDArray[np.float32]:
    return blended.blended_ranking_scores(*arguments, **more).scores


def blended_similarity(candidates: CandidatePool, **more: float) -> NDArray[np.float32]:
    words, meaning = word_and_meaning_scores(candidates, **more)
    return words + meaning


def pool(
    cosine: Sequence[float], bm25: Sequence[float] = (), features: Sequence[MemoryRankingFeatures] | None = None
) -> CandidatePool:
    """One query term of IDF 1, so that `bm25` is what it says."""
    return CandidatePool(
        ids=tuple(MemoryId(str(i)) for i in range(len(cosine))),
        features=tuple([PLAIN] * len(cosine) if features is None else features),
        cosine=np.asarray(cosine, np.float32),
        weights=np.asarray(bm25 or [0.0] * len(cosine), np.float32).reshape(-1, 1),
        idf=np.ones(1, np.float32),
        numbers=np.zeros(1, np.bool_),
        words=(),
        holds=np.zeros((len(cosine), 0), np.bool_),
        unknown=np.zeros(0, np.bool_),
        rarity=np.zeros(0, np.float32),
    )


def score(
    features: MemoryRankingFeatures, query: str = "ramen", *, emotions: frozenset[Emotion] = frozenset()
) -> float:
    """Of a candidate with cosine 0.5 and no word of the query: f = 0.6 × 0.5 = 0.3."""
    [found] = blended_ranking_scores(
        query, pool([0.5], features=[features]), ALL[:1], dense_trust=1.0, emotions=emotions, weights=WEIGHTS
    )
    return round(float(found) * GREATEST, 6)


BASE = 0.3 + 0.25 * 0.3
"""f, and 0.25 × f for being the best of its own session."""


def test_a_plain_candidate_has_its_blend_and_that_of_its_session() -> None:
    """ruling 9"""
    assert score(PLAIN) == pytest.approx(BASE, abs=2e-6)


@for_each_row("actors", [("Hashi",), ("Ada", "hashi"), ("Hashi Tanaka",)])
def test_an_actor_whose_first_name_is_in_the_query_moves_the_score_by_its_weight(actors: tuple[str, ...]) -> None:
    """ruling 9"""
    moved = score(replace(PLAIN, actors=actors), "when did Hashi cook?")
    assert moved - score(PLAIN, "when did Hashi cook?") == pytest.approx(0.2, abs=2e-6)


def test_two_actors_in_the_query_count_once() -> None:
    """ruling 9"""
    assert score(replace(PLAIN, actors=("Hashi", "Ada")), "Hashi and Ada") - BASE == pytest.approx(0.2, abs=2e-6)


@for_each_row("actor", ["user", "User", "me", "I", "human"])
def test_what_the_user_said_moves_up_when_the_query_speaks_of_oneself(actor: str) -> None:
    """ruling 9"""
    assert score(replace(PLAIN, actors=(actor, "assistant")), "where do my keys hang") - BASE == pytest.approx(
        0.2, abs=2e-6
    )


def test_what_another_said_does_not_move_up_when_the_query_speaks_of_oneself() -> None:
    """ruling 9: the speaker is the first actor."""
    assert score(replace(PLAIN, actors=("assistant", "user")), "where do my keys hang") == pytest.approx(BASE, abs=2e-6)


def test_what_the_user_said_does_not_move_up_for_a_query_about_others() -> None:
    """ruling 9"""
    assert score(replace(PLAIN, actors=("user",)), "where do the keys hang") == pytest.approx(BASE, abs=2e-6)


@for_each_row(("words", "prior"), [(0, 0.0), (3, 0.02), (15, 0.1), (400, 0.1)])
def test_a_longer_action_moves_the_score_by_up_to_its_weight(words: int, prior: float) -> None:
    """ruling 9: 0.1 × min(words, 15) / 15."""
    assert score(replace(PLAIN, words=words)) - BASE == pytest.approx(prior, abs=2e-6)


@for_each_row(
    ("own", "asked", "prior"),
    [
        ((), ("joy",), 0.0),
        (("joy",), (), 0.0),
        (("joy",), ("joy",), 0.1),
        (("joy", "love"), ("joy",), 0.1),
        (("joy",), ("joy", "fear"), 0.05),
        (("joy", "love"), ("joy", "love", "fear"), 0.066667),
    ],
)
def test_shared_emotions_move_the_score_by_their_share(
    own: tuple[Emotion, ...], asked: tuple[Emotion, ...], prior: float
) -> None:
    """spec T7, ruling 9: up to 0.10 by the share of matching labels; the only candidate is the best."""
    assert score(replace(PLAIN, emotions=own), emotions=frozenset(asked)) - BASE == pytest.approx(prior, abs=2e-6)


@for_each_row(
    ("query", "bonuses"),
    [("ramen", [0.1, 0.05, 0.0]), ("How was the ramen?", [0.1, 0.1, 0.1]), ("Where was the ramen?", [0.0, 0.0, 0.0])],
)
def test_an_emotion_decides_between_equally_relevant_and_everywhere_if_asked_for(
    query: str, bonuses: list[float]
) -> None:
    """spec T7: f = 0.6, 0.59 and 0.54; 0.1 × max(0, 1 − (0.6 − f) / 0.02)."""
    cosines = [1.0, 0.59 / 0.6, 0.9]
    joyful = pool(cosines, features=[replace(PLAIN, emotions=("joy",))] * 3)
    with_joy = blended_ranking_scores(
        query, joyful, ALL[:3], dense_trust=1.0, emotions=frozenset({"joy"}), weights=WEIGHTS
    )
    without = blended_ranking_scores(query, joyful, ALL[:3], dense_trust=1.0, weights=WEIGHTS)
    assert ((with_joy - without) * GREATEST).tolist() == pytest.approx(bonuses, abs=2e-6)


def test_the_best_of_a_session_lifts_the_others_of_it() -> None:
    """ruling 9: f = 0.6, 0.06, 0.06; the second shares the first's session, the third is alone."""
    features = [replace(PLAIN, session_id="s"), replace(PLAIN, session_id="s"), replace(PLAIN, session_id="t")]
    scores = blended_ranking_scores(
        "ramen", pool([1.0, 0.1, 0.1], features=features), ALL[:3], dense_trust=1.0, weights=WEIGHTS
    )
    assert (scores * GREATEST).tolist() == pytest.approx([0.6 + 0.15, 0.06 + 0.15, 0.06 + 0.015])


def test_the_best_of_a_session_lifts_what_people_say_there_more() -> None:
    """0.4 × 0.6 instead of 0.25 × 0.6; without a session nobody has an advantage."""
    ann = replace(PLAIN, actors=("Ann",))
    weights = replace(WEIGHTS, next_turn_of_people=0)
    greatest = weights.greatest_possible_score_sum
    features = [replace(ann, session_id="s", turn=at) for at in (0, 1)]
    scores = blended_ranking_scores(
        "ramen", pool([1.0, 0.1], features=features), ALL[:2], dense_trust=1.0, weights=weights
    )
    assert (scores * greatest).tolist() == pytest.approx([0.6 + 0.24, 0.06 + 0.24], abs=2e-6)
    assert score(ann) == pytest.approx(BASE, abs=2e-6)


def test_memories_without_a_session_do_not_share_one() -> None:
    """ruling 9"""
    scores = blended_ranking_scores("ramen", pool([1.0, 0.1]), ALL[:2], dense_trust=1.0, weights=WEIGHTS)
    assert (scores * GREATEST).tolist() == pytest.approx([0.75, 0.075])


def test_words_have_four_tenths_of_the_blend_and_meaning_six() -> None:
    """ruling 9: 0.4 × 4/4 + 0.6 × 0.5, and 0.4 × 1/4 + 0.6 × 1."""
    found = blended_similarity(pool([0.5, 1.0], [4.0, 1.0]), dense_trust=1.0, words=0.4)
    assert found.tolist() == pytest.approx([0.7, 0.7])


def test_a_memory_that_shares_one_common_word_of_many_has_little_of_it() -> None:
    """ADR 25: 1 of 8 in IDF is less than 0.7 of them, so it weighs 0.4 × 1/(0.7 × 8), not 0.4."""
    candidates = replace(pool([0.5], [1.0]), idf=np.ones(8, np.float32), weights=np.eye(1, 8, dtype=np.float32))
    found = blended_similarity(candidates, dense_trust=1.0, words=0.4)
    assert found.tolist() == pytest.approx([0.4 / 5.6 + 0.3])


def test_without_trust_in_the_vectors_words_have_the_whole_blend() -> None:
    """ruling 8: w = 1 − 0.6 × 0."""
    assert blended_similarity(pool([1.0, 0.0], [1.0, 4.0]), dense_trust=0.0, words=0.4).tolist() == pytest.approx(
        [0.25, 1.0]
    )


def test_half_a_trust_gives_meaning_half_of_its_share() -> None:
    """ruling 8: w = 1 − 0.6 × 0.5 = 0.7."""
    assert blended_similarity(pool([1.0], [2.0]), dense_trust=0.5, words=0.4).tolist() == pytest.approx([0.7 + 0.3])


def test_an_empty_pool_has_no_scores() -> None:
    """spec P9"""
    scores = blended_ranking_scores("ramen", pool([]), ALL[:0], dense_trust=1.0, weights=WEIGHTS)
    assert scores.shape == (0,)
    assert scores.dtype == np.float32


@for_each_row(
    ("actor", "name"),
    [("Hashi Tanaka", "hashi"), ("  ADA", "ada"), ("O'Neil", "o"), ("橋本", "橋本"), ("🙂", ""), ("", "")],
)
def test_the_first_name_of_an_actor_is_its_first_word(actor: str, name: str) -> None:
    """ruling 9"""
    assert first_name_of_actor(actor) == name


def talk(*turns: tuple[str, float, bool], session: str = "s") -> list[float]:
    """What is added to each turn's own score by its neighbours; (speaker, cosine, whether it asks)."""
    features = [
        replace(
            PLAIN, session_id=session, turn=at, actors=(who,) if who else (), signals=MemoryWordingTraits(asks=asks)
        )
        for at, (who, _, asks) in enumerate(turns)
    ]
    cosines = [cosine for _, cosine, _ in turns]
    none = replace(WEIGHTS, next_turn=0, next_turn_of_people=0, assistant_reply=0, question=0, session=0)
    both = [
        blended_ranking_scores(
            "ramen", pool(cosines, features=features), ALL[: len(turns)], dense_trust=1.0, weights=weights
        )
        * weights.greatest_possible_score_sum
        for weights in (replace(WEIGHTS, session=0), none)
    ]
    return [round(float(value), 6) for value in both[0] - both[1]]


@for_each_row(
    ("speaker", "next_speaker", "weight"),
    [
        ("", "", 0.05),
        ("Ann", "Bo", 0.15),
        ("Ann", "Ann", 0.15),
        ("user", "assistant", 0.3),
        ("", "assistant", 0.3),
        ("Ann", "assistant", 0.3),
        ("assistant", "assistant", 0.05),
        ("user", "Ann", 0.05),
        ("assistant", "user", 0.05),
        ("user", "user", 0.05),
    ],
)
def test_a_turn_is_worth_more_for_the_one_after_it(speaker: str, next_speaker: str, weight: float) -> None:
    """ADR 113: of f of the next turn, 0.6 × cosine; the last has none."""
    added = talk((speaker, 0.5, False), (next_speaker, 1.0, False))
    assert added == pytest.approx([weight * 0.6, 0.0], abs=2e-6)


def test_of_many_a_turn_counts_by_what_lifts_it_above_the_least() -> None:
    """f = 0.6 × cosine, 0.3 the least of twenty: 0.15 × (0.6 − 0.3) for the turn before the best, 0 for the others."""
    turns = [("Ann", 0.5, False), ("Ann", 1.0, False), *[("Ann", 0.5, False)] * 18]
    assert talk(*turns) == pytest.approx([0.045, *[0.0] * 19], abs=2e-6)


def test_among_many_similar_candidates_a_neighbour_does_not_outrank_the_answer() -> None:
    """The first is asked for, but its next turn is no candidate, as those of all others are."""
    features = [replace(PLAIN, session_id="s", turn=turn) for turn in (0, *range(7, 27))]
    cosines = [1.0, *[0.95, 0.9] * 10]
    scores = blended_ranking_scores(
        "ramen", pool(cosines, features=features), ALL[:21], dense_trust=1.0, weights=WEIGHTS
    )
    assert scores.argmax() == 0


@for_each_row("others", [0, 5, 40])
def test_an_answer_comes_before_the_question_that_it_answers(others: int) -> None:
    """However many other candidates there are: f = 0.6 and 0.54, of the others 0.18."""
    asked = replace(PLAIN, session_id="s", turn=0, actors=("Ann",), signals=MemoryWordingTraits(asks=True))
    answered = replace(PLAIN, session_id="s", turn=1, actors=("Bo",))
    scores = blended_ranking_scores(
        "ramen",
        pool([1.0, 0.9, *[0.3] * others], features=[asked, answered, *[PLAIN] * others]),
        ALL[: 2 + others],
        dense_trust=1.0,
        weights=WEIGHTS,
    )
    assert scores.argmax() == 1


def test_turns_of_no_session_are_no_neighbours() -> None:
    assert talk(("", 0.5, False), ("", 1.0, False), session="") == [0.0, 0.0]


def test_only_the_very_next_turn_counts() -> None:
    features = [replace(PLAIN, session_id="s", turn=0), replace(PLAIN, session_id="s", turn=2)]
    weights = replace(WEIGHTS, session=0)
    scores = blended_ranking_scores(
        "ramen", pool([0.5, 1.0], features=features), ALL[:2], dense_trust=1.0, weights=weights
    )
    assert (scores * weights.greatest_possible_score_sum).tolist() == pytest.approx([0.3, 0.6])


@for_each_row(
    ("asker", "answerer", "asks", "added"),
    [
        ("Ann", "Bo", True, 0.24),
        ("Ann", "Bo", False, 0.0),
        ("Ann", "Ann", True, 0.0),
        ("user", "assistant", True, 0.0),
        ("assistant", "user", True, 0.0),
        ("assistant", "Bo", True, 0.24),
        ("", "Bo", True, 0.0),
        ("Ann", "", True, 0.0),
    ],
)
def test_what_a_person_answers_is_about_what_was_asked(asker: str, answerer: str, asks: bool, added: float) -> None:
    """0.4 × f of the question, 0.6 × 1."""
    assert talk((asker, 1.0, asks), (answerer, 0.0, False))[1] == pytest.approx(added, abs=2e-6)


@for_each_row(
    ("query", "speaker", "added"),
    [
        ("What did you recommend for ramen?", "assistant", 0.24),
        ("What did you recommend for ramen?", "user", 0.0),
        ("Which ramen is the best?", "assistant", 0.0),
    ],
)
def test_what_an_assistant_said_is_about_the_turn_before_it(query: str, speaker: str, added: float) -> None:
    """0.4 × f of that turn, 0.6 × 1, where it is asked for: a long answer says little of its question."""
    features = [
        replace(PLAIN, session_id="s", turn=0, actors=("user",)),
        replace(PLAIN, session_id="s", turn=1, actors=(speaker,)),
    ]
    weights = replace(WEIGHTS, session=0, user=0)
    scores = blended_ranking_scores(
        query, pool([1.0, 0.0], features=features), ALL[:2], dense_trust=1.0, weights=weights
    )
    assert float(scores[1]) * weights.greatest_possible_score_sum == pytest.approx(added, abs=2e-6)


def test_without_trust_in_the_vectors_turns_count_by_themselves() -> None:
    features = [replace(PLAIN, session_id="s", turn=at) for at in range(2)]
    weights = replace(WEIGHTS, session=0)
    scores = blended_ranking_scores(
        "梅雨", pool([0, 0], [1.0, 2.0], features), ALL[:2], dense_trust=0.0, weights=weights
    )
    assert (scores * weights.greatest_possible_score_sum).tolist() == pytest.approx([0.5, 1.0])


@for_each_row(
    ("query", "features", "moved"),
    [
        ("where are my keys", replace(PLAIN, signals=MemoryWordingTraits(first_person=0.6)), 0.12),
        ("where are the keys", replace(PLAIN, signals=MemoryWordingTraits(first_person=0.6)), 0.0),
        ("where are my keys", replace(PLAIN, actors=("Ann",), signals=MemoryWordingTraits(first_person=0.6)), 0.0),
        ("any tips for Rome?", replace(PLAIN, signals=MemoryWordingTraits(prefers=True)), 0.25),
        ("any tips for Rome?", replace(PLAIN, actors=("assistant",), signals=MemoryWordingTraits(prefers=True)), 0.0),
        ("where is Rome?", replace(PLAIN, signals=MemoryWordingTraits(prefers=True)), 0.0),
        ("when was Rome built?", replace(PLAIN, signals=MemoryWordingTraits(tells_when=True)), 0.2),
        ("was Rome built?", replace(PLAIN, signals=MemoryWordingTraits(tells_when=True)), 0.0),
    ],
)
def test_the_wording_moves_the_score_where_it_is_asked_for(
    query: str, features: MemoryRankingFeatures, moved: float
) -> None:
    assert score(features, query) - BASE == pytest.approx(moved, abs=2e-6)


TRAITS = st.builds(
    MemoryRankingFeatures,
    st.sampled_from(["", "s", "t"]),
    st.just(0),
    st.sampled_from([(), ("user",), ("Hashi",), ("Ada", "Hashi")]),
    st.sampled_from([(), ("joy",), ("joy", "fear")]),
    st.integers(0, 30),
    st.just(0),
    st.builds(MemoryWordingTraits, st.booleans(), st.booleans(), st.booleans(), st.floats(0, 1)),
)
CANDIDATES = st.lists(st.tuples(st.floats(0, 1, width=32), st.floats(0, 9, width=32), TRAITS), max_size=8).map(
    lambda found: [(c, b, replace(features, turn=at)) for at, (c, b, features) in enumerate(found)]
)


def test_a_candidate_that_has_all_that_goes_together_is_near_one() -> None:
    """Best of both channels and of its session, followed by as good a one of the assistant, of the user and with the
    actor, long, with every emotion, a preference and a time: (1.3 × 1.25 + 1.05) / 3.53. The user does not answer
    questions."""
    signs = MemoryWordingTraits(prefers=True, tells_when=True)
    best = MemoryRankingFeatures("s", 0, ("user", "Hashi"), ("joy",), 15, 0, signs)
    after = MemoryRankingFeatures("s", 1, ("assistant",), (), 0, 0)
    query, joy = "when should I call Hashi, and how was it?", frozenset({"joy"})
    scores = blended_ranking_scores(
        query, pool([1, 1], [3, 3], [best, after]), ALL[:2], dense_trust=1.0, emotions=joy, weights=WEIGHTS
    )
    assert float(scores[0]) == pytest.approx(2.675 / 3.53)


@given(CANDIDATES, st.floats(-1, 1, width=32), st.floats(0, 1))
def test_a_score_lies_between_nought_and_one(
    candidates: list[tuple[float, float, MemoryRankingFeatures]], cosine: float, trust: float
) -> None:
    """ruling 9: negative cosines included."""
    scores = blended_ranking_scores(
        "what did I tell Hashi",
        pool(
            [cosine for _ in candidates], [bm25 for _, bm25, _ in candidates], [features for *_, features in candidates]
        ),
        ALL[: len(candidates)],
        dense_trust=trust,
        weights=WEIGHTS,
    )
    assert ((scores >= 0) & (scores <= 1)).all()


@given(CANDIDATES, st.permutations(range(8)), st.floats(0, 1))
def test_scores_do_not_depend_on_the_order_of_the_candidates(
    candidates: list[tuple[float, float, MemoryRankingFeatures]], order: list[int], trust: float
) -> None:
    """Fusion ignores input order (style.md)."""

    def scores(chosen: Sequence[tuple[float, float, MemoryRankingFeatures]]) -> list[float]:
        found = blended_ranking_scores(
            "what did I tell Hashi",
            pool([c for c, _, _ in chosen], [b for _, b, _ in chosen], [t for _, _, t in chosen]),
            ALL[: len(chosen)],
            dense_trust=trust,
            emotions=frozenset({"joy"}),
            weights=WEIGHTS,
        )
        return [float(value) for value in found]

    places = [i for i in order if i < len(candidates)]
    straight = scores(candidates)
    assert scores([candidates[i] for i in places]) == pytest.approx([straight[i] for i in places], abs=2e-6)
