"""The order of the candidates: the profile `blended`.

    f = w × bm25 / max(greatest bm25, 0.7 × dense_trust × Σ of the query's 8 greatest idf) + (1 − w) × cosine
    w = 1 − (1 − 0.3) × dense_trust
    e = f − the least f, where there are twenty candidates or more; 0 for a turn that is no candidate
    g = f + dense_trust × (0.3 × e of the next turn of its session where an assistant answers it, 0.15 × for what a
            person says whose name is known, 0.05 × otherwise
          + 0.4 × e of the turn before, where that ends with a question and another person answers it, or where the
            query asks what an assistant said, and it answers that turn)
    score = g + 0.25 × max g within the session, or 0.4 × for what a person says there to another
              + 0.2 if an actor's first name is in the query, or 0.3 if it holds an identifier that the query names
              + 0.2 if the query speaks of "I / my / we" (and not of what "you" said) and the user said it; where no
                actor is known, 0.2 × the share of it that is told in the first person
              + 0.25 if the query asks for advice, and somebody says what they prefer
              + 0.2 if the query asks when, and it tells of a day or a span of time, or, outside of a session, has a day
              + 0.1 × min(words, 15) / 15
              + 0.1 × share of the asked emotions × how far they count (spec T7, ruling 9),
    divided by the greatest sum there can be, so that it lies in [0, 1]

Emotions count in full where the query asks how something felt, not at all where it asks for a fact, and else among
candidates that are as relevant as the best: max(0, 1 − (max f − f) / 0.02). Turns count by what lifts them above the
least of many candidates: where all say nearly the same, to have a neighbour among them tells nothing. Where the model
cannot read the query f is of words alone, which a neighbour shares for its subject: then turns count by themselves.
Scores order the answers of one query; they are not comparable between queries. What each part is worth, on four public
sets: `benchmarks/README.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool, MemoryRankingFeatures, MemoryWordingTraits
from madeleine.memory.rules.feelings import mean_vector_of_emotions, similarity_of_feelings
from madeleine.memory.rules.ranking.matching import identifier_match_mask
from madeleine.memory.rules.ranking.score_parts import FloatArray, ScoredCandidates
from madeleine.memory.rules.ranking.turns import ASSISTANT_NAMES, first_name_of_actor
from madeleine.memory.text.reading import AnalysedText


@dataclass(frozen=True, slots=True)
class BlendedRankingWeights:
    words: float = 0.3
    """BM25's share of the blend; cosine has the rest."""
    assistant_reply: float = 0.3
    """Of the next turn where an assistant answers somebody: it tells what has been spoken of (ADR 113)."""
    next_turn_of_people: float = 0.15
    """Of the next turn, for what somebody says whose name is known."""
    next_turn: float = 0.05
    """Otherwise: the user of an assistant goes on, mostly with another matter, or nobody knows who speaks."""
    question: float = 0.4
    """Weight of the question that this turn answers."""
    session: float = 0.25
    session_of_people: float = 0.4
    """Instead of `session`, for a turn of neither an assistant nor its user: people tell of a matter in several turns.
    LoCoMo gains 0.4 points of nDCG@10 and 0.8 of R@10 (ADR 64)."""
    actor: float = 0.2
    identifier: float = 0.3
    user: float = 0.2
    first_person: float = 0.2
    preference: float = 0.25
    when: float = 0.2
    length: float = 0.1
    length_words: int = 15
    emotion: float = 0.1

    @property
    def greatest_possible_score_sum(self) -> float:
        next_turn = max(self.next_turn, self.next_turn_of_people, self.assistant_reply)
        turns = (1 + next_turn + self.question) * (1 + max(self.session, self.session_of_people))
        named = max(self.actor, self.identifier)
        wording = max(self.user, self.first_person) + named + self.preference + self.when
        return turns + wording + self.length + self.emotion


MIN_BM25_SCALE_WORD_SHARE, MAX_QUERY_TERMS_IN_BM25_SCALE = 0.7, 8
"""Of the IDF of the query's most telling terms: where the best holds less, words weigh less (ADR 25). From 0.5 to 1 it
gains in small stores and on BEAM, and costs LoCoMo at most 0.2 points."""
MIN_CANDIDATES_FOR_SCORE_BASELINE = 20
"""Candidates needed before the least f counts as a baseline; among fewer the least may be the very answer."""
MAX_SCORE_GAP_DECIDED_BY_EMOTION = 0.02
"""Distance from the best f within which a shared feeling decides between candidates (`make emotions`)."""
_WORD = re.compile(r"\w+")
_WORDS_NAMING_THE_USER = frozenset({"user", "human", "me", "i"})


def first_name_of_speaker(features: MemoryRankingFeatures) -> str:
    """The speaker's first name; "" where it is not known."""
    return first_name_of_actor(features.actors[0]) if features.actors else ""


def word_and_meaning_scores(
    pool: CandidatePool, *, dense_trust: float, words: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32, (n,) each: the parts of f above by words and by meaning. BM25 is scaled by the best of the pool, or by
    part of what a memory with all words of the query would have: one common word in a paraphrase tells little. Cosine
    is taken as it is."""
    bm25 = pool.bm25
    expected = float(np.sort(pool.idf)[-MAX_QUERY_TERMS_IN_BM25_SCALE:].sum())
    best = float(bm25.max(initial=0.0))
    share = 1 - (1 - words) * dense_trust
    scaled = bm25 / max(best, MIN_BM25_SCALE_WORD_SHARE * dense_trust * expected) if best > 0 else bm25
    return np.asarray(share * scaled, np.float32), np.asarray((1 - share) * pool.cosine, np.float32)


def score_gains_from_neighbouring_turns(
    f: FloatArray,
    features: Sequence[MemoryRankingFeatures],
    weights: BlendedRankingWeights,
    trust: float,
    *,
    of_assistant: bool = False,
) -> FloatArray:
    """float64, (n,): g - f above. `of_assistant`: the query asks what an assistant said."""
    positions = {(turn.session_id, turn.turn): n for n, turn in enumerate(features) if turn.session_id}
    baseline = max(0.0, f.min()) if len(f) >= MIN_CANDIDATES_FOR_SCORE_BASELINE else 0.0
    added, excess = np.zeros(len(f)), f - baseline
    for position, turn in enumerate(features if positions else ()):
        after = positions.get((turn.session_id, turn.turn + 1))
        before = positions.get((turn.session_id, turn.turn - 1))
        if after is not None:
            added[position] += trust * _weight_of_next_turn(turn, features[after], weights) * excess[after]
        if before is not None and (
            is_answer_to_turn_before(turn, features[before]) or (of_assistant and _is_said_by_assistant(turn))
        ):
            added[position] += trust * weights.question * excess[before]
    return added


def _is_said_by_assistant(turn: MemoryRankingFeatures) -> bool:
    return first_name_of_speaker(turn) in ASSISTANT_NAMES


def _weight_of_next_turn(
    turn: MemoryRankingFeatures, after: MemoryRankingFeatures, weights: BlendedRankingWeights
) -> float:
    if _is_said_by_assistant(after) and not _is_said_by_assistant(turn):
        return weights.assistant_reply
    return weights.next_turn_of_people if speaker_has_personal_name(turn) else weights.next_turn


def is_answer_to_turn_before(turn: MemoryRankingFeatures, before: MemoryRankingFeatures) -> bool:
    """Whether a person answers what another has asked. The user of an assistant rarely does, but goes on with their own
    matter; an assistant answers with what is known anyhow."""
    return (
        before.signals.asks
        and bool(before.actors)
        and speaker_has_personal_name(turn)
        and turn.actors[0] != before.actors[0]
    )


def session_best_score_per_candidate(g: FloatArray, features: Sequence[MemoryRankingFeatures]) -> FloatArray:
    """float64, (n,): the greatest g within the candidate's session; its own g without a session."""
    sessions = [candidate.session_id for candidate in features]
    if not any(sessions):
        return g
    best: dict[str, float] = {}
    for session, value in zip(sessions, g.tolist(), strict=True):
        best[session] = max(value, best.get(session, value))
    return np.asarray([best[session] if session else own for session, own in zip(sessions, g.tolist(), strict=True)])


def session_score_weight_of_each_candidate(
    features: Sequence[MemoryRankingFeatures], weights: BlendedRankingWeights
) -> FloatArray:
    """float64, (n,): of the best score in the session of each candidate."""
    return np.asarray(
        [
            weights.session_of_people if one.session_id and speaker_has_personal_name(one) else weights.session
            for one in features
        ]
    )


def speaker_has_personal_name(turn: MemoryRankingFeatures) -> bool:
    """Whether somebody says it who is known, and neither an assistant nor its user."""
    return first_name_of_speaker(turn) not in {"", *_WORDS_NAMING_THE_USER, *ASSISTANT_NAMES}


def matching_emotion_shares(features: Sequence[MemoryRankingFeatures], emotions: frozenset[str]) -> FloatArray:
    """float64, (n,), in [0, 1]: the share of the emotions that each candidate has (ruling 9); where its feeling was
    told by axes alone, the nearness of that to the emotions' vector (ruling 21); 0 without any."""
    asked = mean_vector_of_emotions(emotions)
    if asked is None:
        return np.zeros(len(features))
    shares = [
        similarity_of_feelings(asked, candidate.emotion)
        if candidate.emotion and not candidate.emotions
        else len(emotions.intersection(candidate.emotions)) / len(emotions)
        for candidate in features
    ]
    return np.asarray(shares, np.float64)


def emotion_match_scores_of_candidates(
    query: str, f: FloatArray, features: Sequence[MemoryRankingFeatures], emotions: frozenset[str]
) -> FloatArray:
    """float64, (n,), in [0, 1] (spec T7): the share of the emotions that each candidate has, as far as they count."""
    if not emotions or not len(f) or (feeling := role_of_feelings_in_query(analyse_query(query))) == "beside":
        return np.zeros(len(f))
    shares = matching_emotion_shares(features, emotions)
    return (
        shares if feeling == "asked" else shares * np.clip(1 - (f.max() - f) / MAX_SCORE_GAP_DECIDED_BY_EMOTION, 0, 1)
    )


TOPIC_INDEPENDENT_SCORE_PART_NAMES = ("length", "actor", "speaker", "advice", "when")
"""Parts of a score that depend on the query's wording, whatever its subject."""


def make_query_wording_scorer(
    query: str, weights: BlendedRankingWeights
) -> Callable[[MemoryRankingFeatures], tuple[float, ...]]:
    """Return the function that gives a candidate's `TOPIC_INDEPENDENT_SCORE_PART_NAMES` for this query."""
    named = frozenset(_WORD.findall(query.casefold().replace("'", "").replace("’", ""))) - _WORDS_NAMING_THE_USER
    reading = analyse_query(query)
    oneself, when, advice = asks_about_oneself(reading), asks_when(reading), asks_for_advice(reading)

    def priors(candidate: MemoryRankingFeatures) -> tuple[float, ...]:
        signals = candidate.signals
        by_oneself = preferred = 0.0
        if oneself and candidate.actors:
            by_oneself = weights.user if first_name_of_speaker(candidate) in _WORDS_NAMING_THE_USER else 0.0
        elif oneself:
            by_oneself = weights.first_person * signals.first_person
        if advice and signals.prefers and not _is_said_by_assistant(candidate):
            preferred = weights.preference
        return (
            weights.length * min(candidate.words, weights.length_words) / weights.length_words,
            weights.actor if not named.isdisjoint(map(first_name_of_actor, candidate.actors)) else 0.0,
            by_oneself,
            preferred,
            weights.when if when and signals.tells_when else 0.0,
        )

    return priors


def blended_ranking_scores(
    query: str,
    pool: CandidatePool,
    matching: NDArray[np.intp],
    *,
    dense_trust: float,
    emotions: frozenset[str] = frozenset(),
    weights: BlendedRankingWeights,
) -> ScoredCandidates:
    """The score of each matching candidate, in [0, 1], and its parts. `matching`: positions in the pool, (m,)."""
    features = [pool.features[position] for position in matching]
    words, meaning = (
        part[matching].astype(np.float64)
        for part in word_and_meaning_scores(pool, dense_trust=dense_trust, words=weights.words)
    )
    f = words + meaning
    of_assistant = asks_what_assistant_said(analyse_query(query))
    turns = score_gains_from_neighbouring_turns(f, features, weights, dense_trust, of_assistant=of_assistant)
    score_priors = make_query_wording_scorer(query, weights)
    values = chain.from_iterable(map(score_priors, features))
    priors = np.fromiter(values, np.float64, len(features) * len(TOPIC_INDEPENDENT_SCORE_PART_NAMES)).reshape(
        -1, len(TOPIC_INDEPENDENT_SCORE_PART_NAMES)
    )
    named = TOPIC_INDEPENDENT_SCORE_PART_NAMES.index("actor")
    priors[:, named] = np.maximum(priors[:, named], weights.identifier * identifier_match_mask(query, pool)[matching])
    parts = {
        "words": words,
        "meaning": meaning,
        "turns": turns,
        "session": session_score_weight_of_each_candidate(features, weights)
        * session_best_score_per_candidate(f + turns, features),
        **dict(zip(TOPIC_INDEPENDENT_SCORE_PART_NAMES, priors.T, strict=True)),
        "emotions": weights.emotion * emotion_match_scores_of_candidates(query, f, features, emotions),
    }
    return ScoredCandidates.from_score_parts(parts, greatest=weights.greatest_possible_score_sum)


MAX_ANALYSED_QUERY_CHARS = 2_000
"""Part of a query whose wording is read: a question is short, and a longer text quotes something."""

FeelingRoleInQuery = Literal["asked", "there", "beside"]


def detect_wording_signals_in_text(text: str) -> MemoryWordingTraits:
    """Read the wording of a memory's action, once, when it is indexed."""
    reading = AnalysedText(text)
    return MemoryWordingTraits(
        asks=reading.ends_with_question_mark,
        tells_when=reading.mentions_date_or_time_span,
        prefers=reading.mentions_preference,
        first_person=reading.first_person_degree,
    )


def analyse_query(query: str) -> AnalysedText:
    """Each run of white space is one space, as the patterns expect."""
    return _analyse_query_cached(" ".join(query[:MAX_ANALYSED_QUERY_CHARS].split()))


@lru_cache(maxsize=10)
def _analyse_query_cached(query: str) -> AnalysedText:
    """Several rules of one recall read it."""
    return AnalysedText(query)


def asks_what_assistant_said(query: AnalysedText) -> bool:
    """It asks for what the other one, an assistant, has said: "you recommended", not "would you recommend"."""
    return query.matches_lexicon_pattern("asks_answer")


def asks_about_oneself(query: AnalysedText) -> bool:
    """It speaks of "I / my / we", and not of what the other one said."""
    return query.first_person_degree > 0 and not asks_what_assistant_said(query)


def asks_for_everything_of_a_kind(query: AnalysedText) -> bool:
    """It asks for all there is of something: "all allergies", "which dishes"."""
    return query.matches_lexicon_pattern("asks_list")


def asks_when(query: AnalysedText) -> bool:
    """It asks for a date or a span of time."""
    return query.matches_lexicon_pattern("asks_when")


def asks_for_advice(query: AnalysedText) -> bool:
    """It asks what to do, where what somebody prefers counts; not what was advised before."""
    return query.matches_lexicon_pattern("asks_advice") and not asks_what_assistant_said(query)


def role_of_feelings_in_query(query: AnalysedText) -> FeelingRoleInQuery:
    """Role of a feeling for the query: "asked" if it asks how something felt; "beside" if it asks for a fact, which is
    the same whatever is felt; "there" otherwise."""
    if query.matches_lexicon_pattern("asks_feeling"):
        return "asked"
    return "beside" if query.matches_lexicon_pattern("asks_fact") else "there"
