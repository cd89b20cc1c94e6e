"""spec T7, ruling 9: each prior moves a score by its weight and by nothing else.

Scores are compared before they are divided by the greatest sum there can be, 1 + 0.3 + 0.1 + 0.2 + 0.2 + 0.1 = 1.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Emotion, MemoryId
from memory.ports import Pool, Traits
from memory.rules.ranking import RankingWeights, asks_about_oneself, blend, blended, first_name

WEIGHTS = RankingWeights()
GREATEST = 1.9
ALL = np.arange(20)
"""Positions: every candidate of a pool matches."""
PLAIN = Traits("", 0, (), (), 0, 0)


def pool(cosine: Sequence[float], bm25: Sequence[float] = (), traits: Sequence[Traits] | None = None) -> Pool:
    """One query term of IDF 1, so that `bm25` is what it says."""
    return Pool(
        ids=tuple(MemoryId(str(i)) for i in range(len(cosine))),
        traits=tuple([PLAIN] * len(cosine) if traits is None else traits),
        cosine=np.asarray(cosine, np.float32),
        weights=np.asarray(bm25 or [0.0] * len(cosine), np.float32).reshape(-1, 1),
        idf=np.ones(1, np.float32),
    )


def score(traits: Traits, query: str = "ramen", *, emotions: frozenset[Emotion] = frozenset()) -> float:
    """Of a candidate with cosine 0.5 and no word of the query: f = 0.6 × 0.5 = 0.3."""
    [found] = blended(query, pool([0.5], traits=[traits]), ALL[:1], dense_trust=1.0, emotions=emotions, weights=WEIGHTS)
    return round(float(found) * GREATEST, 6)


BASE = 0.3 + 0.3 * 0.3
"""f, and 0.3 × f for being the best of its own session."""


def test_a_plain_candidate_has_its_blend_and_that_of_its_session() -> None:
    """ruling 9"""
    assert score(PLAIN) == pytest.approx(BASE, abs=2e-6)


@pytest.mark.parametrize("actors", [("Hashi",), ("Ada", "hashi"), ("Hashi Tanaka",)])
def test_an_actor_whose_first_name_is_in_the_query_moves_the_score_by_its_weight(actors: tuple[str, ...]) -> None:
    """ruling 9"""
    moved = score(replace(PLAIN, actors=actors), "when did Hashi cook?")
    assert moved - score(PLAIN, "when did Hashi cook?") == pytest.approx(0.1, abs=2e-6)


def test_two_actors_in_the_query_count_once() -> None:
    """ruling 9"""
    assert score(replace(PLAIN, actors=("Hashi", "Ada")), "Hashi and Ada") - BASE == pytest.approx(0.1, abs=2e-6)


@pytest.mark.parametrize("actor", ["user", "User", "me", "I", "human"])
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


@pytest.mark.parametrize(("words", "prior"), [(0, 0.0), (3, 0.04), (15, 0.2), (400, 0.2)])
def test_a_longer_action_moves_the_score_by_up_to_its_weight(words: int, prior: float) -> None:
    """ruling 9: 0.2 × min(words, 15) / 15."""
    assert score(replace(PLAIN, words=words)) - BASE == pytest.approx(prior, abs=2e-6)


@pytest.mark.parametrize(
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
    """spec T7, ruling 9: up to 0.10 by the share of matching labels."""
    assert score(replace(PLAIN, emotions=own), emotions=frozenset(asked)) - BASE == pytest.approx(prior, abs=2e-6)


def test_the_best_of_a_session_lifts_the_others_of_it() -> None:
    """ruling 9: f = 0.6, 0.06, 0.06; the second shares the first's session, the third is alone."""
    traits = [replace(PLAIN, session_id="s"), replace(PLAIN, session_id="s"), replace(PLAIN, session_id="t")]
    found = blended("ramen", pool([1.0, 0.1, 0.1], traits=traits), ALL[:3], dense_trust=1.0, weights=WEIGHTS)
    assert (found * GREATEST).tolist() == pytest.approx([0.6 + 0.18, 0.06 + 0.18, 0.06 + 0.018])


def test_memories_without_a_session_do_not_share_one() -> None:
    """ruling 9"""
    found = blended("ramen", pool([1.0, 0.1]), ALL[:2], dense_trust=1.0, weights=WEIGHTS)
    assert (found * GREATEST).tolist() == pytest.approx([0.78, 0.078])


def test_words_have_four_tenths_of_the_blend_and_meaning_six() -> None:
    """ruling 9: 0.4 × 4/4 + 0.6 × 0.5, and 0.4 × 1/4 + 0.6 × 1."""
    found = blend(pool([0.5, 1.0], [4.0, 1.0]), dense_trust=1.0, words=0.4)
    assert found.tolist() == pytest.approx([0.7, 0.7])


def test_without_trust_in_the_vectors_words_have_the_whole_blend() -> None:
    """ruling 8: w = 1 − 0.6 × 0."""
    assert blend(pool([1.0, 0.0], [1.0, 4.0]), dense_trust=0.0, words=0.4).tolist() == pytest.approx([0.25, 1.0])


def test_half_a_trust_gives_meaning_half_of_its_share() -> None:
    """ruling 8: w = 1 − 0.6 × 0.5 = 0.7."""
    assert blend(pool([1.0], [2.0]), dense_trust=0.5, words=0.4).tolist() == pytest.approx([0.7 + 0.3])


def test_an_empty_pool_has_no_scores() -> None:
    """spec P9"""
    found = blended("ramen", pool([]), ALL[:0], dense_trust=1.0, weights=WEIGHTS)
    assert found.shape == (0,)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    "query",
    [
        "What did I say about Rome?",
        "where do my keys hang",
        "When did we meet?",
        "Which of our plans failed?",
        "I'm looking for the recipe",
        "I’ve lost the recipe",
        "Do you know what I like?",
        "Tell me about my sister",
    ],
)
def test_a_query_in_the_first_person_asks_about_oneself(query: str) -> None:
    """ruling 9: the role."""
    assert asks_about_oneself(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "Where does Hashi live?",
        "What did you suggest to me?",
        "You told me about a book, which one?",
        "What have you recommended for my back?",
        "remind me of what you just mentioned",
        "the list you gave me",
        "the miners of Wales",
        "the museum",
        "Iowa weather",
    ],
)
def test_a_query_about_others_or_about_what_you_said_does_not_ask_about_oneself(query: str) -> None:
    """ruling 9: the role."""
    assert not asks_about_oneself(query)


@pytest.mark.parametrize(
    ("actor", "name"),
    [("Hashi Tanaka", "hashi"), ("  ADA", "ada"), ("O'Neil", "o"), ("橋本", "橋本"), ("🙂", ""), ("", "")],
)
def test_the_first_name_of_an_actor_is_its_first_word(actor: str, name: str) -> None:
    """ruling 9"""
    assert first_name(actor) == name


TRAITS = st.builds(
    Traits,
    st.sampled_from(["", "s", "t"]),
    st.integers(0, 5),
    st.sampled_from([(), ("user",), ("Hashi",), ("Ada", "Hashi")]),
    st.sampled_from([(), ("joy",), ("joy", "fear")]),
    st.integers(0, 30),
    st.just(0),
)
CANDIDATES = st.lists(st.tuples(st.floats(0, 1, width=32), st.floats(0, 9, width=32), TRAITS), max_size=8)


def test_a_candidate_that_has_everything_scores_one() -> None:
    """ruling 9: best of both channels and of its session, actor and user, long, with every emotion."""
    best = Traits("s", 0, ("user", "Hashi"), ("joy",), 15, 0)
    query, joy = "did I tell Hashi", frozenset({"joy"})
    [found] = blended(query, pool([1.0], [3.0], [best]), ALL[:1], dense_trust=1.0, emotions=joy, weights=WEIGHTS)
    assert float(found) == pytest.approx(1.0)


@given(CANDIDATES, st.floats(-1, 1, width=32), st.floats(0, 1))
def test_a_score_lies_between_nought_and_one(
    candidates: list[tuple[float, float, Traits]], cosine: float, trust: float
) -> None:
    """ruling 9: negative cosines included."""
    found = blended(
        "what did I tell Hashi",
        pool([cosine for _ in candidates], [bm25 for _, bm25, _ in candidates], [traits for *_, traits in candidates]),
        ALL[: len(candidates)],
        dense_trust=trust,
        weights=WEIGHTS,
    )
    assert ((found >= 0) & (found <= 1)).all()


@given(CANDIDATES, st.permutations(range(8)), st.floats(0, 1))
def test_scores_do_not_depend_on_the_order_of_the_candidates(
    candidates: list[tuple[float, float, Traits]], order: list[int], trust: float
) -> None:
    """Fusion ignores input order (style.md)."""

    def scores(chosen: Sequence[tuple[float, float, Traits]]) -> list[float]:
        found = blended(
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
