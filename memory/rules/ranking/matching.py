"""Which candidates match a query (rulings 8, 16 and 19): the gate of a recall.

    likeness = legible × max(centred cosine, 0) + w × share of the things named that the candidate holds
               − 1.7 × (share of the things named that no memory holds × (1 − 0.9 × pull))²
    w = 0.4 + 0.55 × (1 − legible)
    pull = gain / 0.2 if gain > 0, else gain / 0.1, within [−1, 1]
    gain = centred cosine − that of the query without its unknown words

A query names things: its content words, the words of a name together ("Maria Kern", "heron-1"). Where words do not
stand apart, a long run of signs is more of the query than a short one; an unknown verb is less of it, where writing
tells it from a noun (ADR 75). `legible` in [0, 1]: how well the model reads the query. An unknown word that draws the
query towards a candidate is a synonym of what that one says, and is forgiven there: without "allergic" a question is
farther from "gets hives". One that draws it away asks for something else, and counts the more: without "breed" a
question is nearer to what is told of the cat. This is looked at where it may decide whether anything matches. Whoever
names an identifier asks for what holds it, which matches whatever else is asked. Two things that are no names and that
the candidate holds together tell what is asked, so that nothing is unknown; of one and a name there may be more to
know. Of memories in another language than the query nothing is unknown: only what they share counts. A candidate
matches from 0.35 on, among 600 memories and more, as far as the model reads the query, from 0.35 + 0.15 × (1 − share of
the things named that it holds); where one does, those that would be within 0.2 below 0.35 if nothing were unknown do,
too. Of a long query at most eight things are expected in one memory. Measured over twelve languages (`make unrelated`),
small stores (`make small`) and LoCoMo: benchmarks/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import CandidatePool
from madeleine.memory.text.content_words import (
    content_words,
    identifier_mask,
    name_index_of_each_word,
    probably_not_name_mask,
    ticket_key_positions,
    verb_or_adjective_mask,
    weight_of_each_word_from_unspaced_length,
)
from madeleine.memory.text.lexicon import nouns_have_capitals
from madeleine.memory.text.reading import AnalysedText

UNKNOWN_VERB_WEIGHT = 0.3
"""Of an unknown verb or adjective, where writing tells it from a noun, beside 1: what is done or how something is can
be told in other words, and what was never told of somebody is mostly a thing."""


@dataclass(frozen=True, slots=True)
class MatchThresholds:
    likeness: float = 0.35
    words: float = 0.4
    """Weight of the content words that a candidate holds …"""
    words_instead: float = 0.55
    """… and the more of it for a query that the model cannot read."""
    unknown_words: float = 1.7
    """Of the square: one unknown word of many is a synonym, one of two is what was asked for."""
    telling_things: int = 2
    """Things that are no names, from which unknown ones count nothing for a candidate that holds them together: what
    was never told is asked of a name. By chance a candidate seldom holds two (natural questions in Chinese, Korean and
    Japanese, `make unrelated`) …"""
    known_apart: float = 0.3
    """… and this share of it where only different memories hold them. From 0 to 0.3 nothing changes in small stores;
    of an unrelated question a large store knows most words, apart."""
    full_pull_gain: float = 0.2
    """Centred cosine added by the unknown words, from which they are synonyms and are forgiven …"""
    full_pull_loss: float = 0.1
    """… or taken by them, from which they ask for something else and count most …"""
    pull_weight: float = 0.9
    """… both by this share: a question of unknown words alone has to be a little more alike."""
    crowd: float = 0.15
    """Added to the likeness that is needed among `crowd_memories` and more, in proportion to what of the query the
    candidate does not hold. The more memories, the more alike is the best of them to any question; that it has all the
    words is no chance. Of 1,000 questions of LoCoMo, BEAM and LongMemEval (230 to 690 memories) 99 % have 0.5 and more,
    of unrelated ones 4 % have 0.35."""
    few_memories: int = 300
    """Up to which nothing is added; the largest store of `make small`."""
    crowd_memories: int = 600
    companions: float = 0.2
    """Likeness below the threshold that is still a match beside a better one."""
    applies_together: float = 0.05
    """… and below it for a preference that holds together two things of the query that are no names."""
    expected_words: int = 8
    everyday: float = 0.5
    """Rarity below which a name is of whom or what many memories are about."""
    near: float = 0.15
    """Likeness of the best candidate from which something is near at all, if unknown words are left aside …"""
    near_words: float = 0.5
    """… or the share of the known things that it holds, for a query with unknown ones …"""
    near_known: float = 0.3
    """… of which at least this share is known. Where something is near, the rest that is alike at all follows it: a
    paraphrase that shares no word is seldom the most alike …"""
    near_in_words: float = 0.7
    """… and words tell less of what is near than of what matches. From 0.5 to 0.7 the small stores' paraphrases come
    first as often as by plain cosines."""


def common_names_in_query(query: str, pool: CandidatePool, thresholds: MatchThresholds) -> frozenset[str]:
    """The content words of the query that name whom or what many of the being's memories are about. Where all nouns
    have capitals, only those of actors' names: by its capital "Termine" might be a name like "Lena"."""
    everyday = {word for word, rarity in zip(pool.words, pool.rarity, strict=True) if rarity < thresholds.everyday}
    if not everyday:
        return frozenset()
    reading = AnalysedText(query)
    names = {piece for name in reading.possible_names for piece in content_words(name.text)}
    if nouns_have_capitals(reading.lexicons):
        actors = {actor for candidate in pool.features for actor in candidate.actors}
        names &= {piece for actor in actors for piece in content_words(actor)}
    return frozenset(everyday & names)


def identifier_match_mask(query: str, pool: CandidatePool) -> NDArray[np.bool_]:
    """bool, (n,): which candidates hold an identifier that the query names."""
    identifiers = np.asarray(identifier_mask(query, pool.words), np.bool_)
    return np.asarray(pool.holds[:, identifiers].any(axis=1), np.bool_)


@dataclass(frozen=True, slots=True)
class CandidateCoverageOfNamedThings:
    """What a query names. `held`: float32, (n, things), the share of each thing's words that each candidate holds.
    `unknown`: float32, (things,), the share of them that no memory holds. `nameless`: bool, (things,), no word of it is
    a name's, as far as capitals tell. `weight`: float32, (things,), 1 on average: how much of the query a thing is.
    `identified`: bool, (n,), the candidate holds an identifier that the query names."""

    held: NDArray[np.float32]
    unknown: NDArray[np.float32]
    nameless: NDArray[np.bool_]
    weight: NDArray[np.float32]
    identified: NDArray[np.bool_]

    @classmethod
    def from_query(cls, query: str, pool: CandidatePool) -> CandidateCoverageOfNamedThings:
        if not pool.words:
            held = pool.holds.astype(np.float32)
            nameless, weight = np.zeros(held.shape[1], np.bool_), np.ones(held.shape[1], np.float32)
            return cls(held, pool.unknown.astype(np.float32), nameless, weight, np.zeros(len(held), np.bool_))
        numbers = np.unique(name_index_of_each_word(query, pool.words), return_inverse=True)[1]
        shares = np.eye(numbers.max() + 1, dtype=np.float32)[numbers]
        shares /= shares.sum(axis=0)
        nameless = np.asarray(probably_not_name_mask(query, pool.words), np.float32) @ shares > 1 - 1e-3
        weight = np.asarray(weight_of_each_word_from_unspaced_length(pool.words), np.float32) @ shares
        held, unknown = pool.holds.astype(np.float32) @ shares, pool.unknown.astype(np.float32) @ shares
        for parts in ticket_key_positions(query, pool.words):
            thing = numbers[parts[-1]]  # of its number: two keys share their letters
            held[:, thing] = pool.holds[:, parts].all(axis=1)
            unknown[thing] = float(not held[:, thing].any())
        if unknown.any():
            verbs = np.asarray(verb_or_adjective_mask(query, pool.words), np.float32) @ shares
            weight *= 1 - (1 - UNKNOWN_VERB_WEIGHT) * verbs * unknown
        return cls(held, unknown, nameless, weight / weight.mean(), identifier_match_mask(query, pool))


@dataclass(frozen=True, slots=True)
class CandidateSimilarities:
    """float32, (n,) each. `penalty`: what `value` lost by unknown words. `in_words`: the part of it that is words.
    `needed`: the `value` from which the candidate matches. `holds_together`: bool, it holds as many things that are no
    names as tell what is asked (`MatchThresholds.telling_things`)."""

    value: NDArray[np.float32]
    penalty: NDArray[np.float32]
    in_words: NDArray[np.float32]
    needed: NDArray[np.float32]
    holds_together: NDArray[np.bool_]

    @property
    def values_without_penalty(self) -> NDArray[np.float32]:
        return self.value + self.penalty


@dataclass(frozen=True, slots=True, eq=False)
class RecallGateOutcome:
    """`matching` and `near`: positions of candidates, the near ones best first. `likeness`: of each candidate, None
    where a filter decides; `situation`: to what counts for a preference, None without one among the candidates."""

    matching: NDArray[np.intp]
    near: NDArray[np.intp]
    likeness: CandidateSimilarities | None = None
    situation: CandidateSimilarities | None = None


def matching_and_near_positions(
    gates: Sequence[RecallGateOutcome],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the matches, and of what is near, the nearest to the end of a message first."""
    matching, near = gates[0].matching, gates[0].near
    for of_end in gates[1:]:
        near = np.asarray([*of_end.near, *near[~np.isin(near, of_end.near)]], np.intp)
        matching = np.union1d(matching, of_end.matching)
    return matching, near[~np.isin(near, matching)]


def similarities_of_all_candidates(
    named: CandidateCoverageOfNamedThings,
    centred_cosine: NDArray[np.float32],
    *,
    legible: float,
    thresholds: MatchThresholds,
    memories: int = 0,
    without_unknown: NDArray[np.float32] | None = None,
) -> CandidateSimilarities:
    """`centred_cosine`: of each candidate (`memory.vector_space`); `memories`: how many there are to be alike;
    `without_unknown`: the cosine to the query without its unknown words, None where that was not looked at."""
    t = thresholds
    count = max(len(named.unknown), 1)
    weight = t.words + t.words_instead * (1 - legible)
    held = np.minimum(1.0, named.held @ named.weight / min(count, t.expected_words))
    in_words = weight * held
    pull = 0.0 if without_unknown is None else _pull_of_unknown_words(centred_cosine - without_unknown, t)
    unknown = min(1.0, t.expected_words / count) * float(named.unknown @ named.weight) / count
    if (named.nameless & (named.unknown <= 0.5)).sum() >= t.telling_things:
        unknown *= t.known_apart
    holds_together = ((named.held > 0.5) & named.nameless).sum(axis=1) >= t.telling_things
    is_known = holds_together | named.identified
    penalty = t.unknown_words * np.where(is_known, 0.0, unknown * (1 - t.pull_weight * pull)) ** 2
    needed = t.likeness + legible * extra_similarity_required_by_memory_total(memories, t) * (1 - held)
    value = legible * np.maximum(centred_cosine, 0) + in_words - penalty
    value = np.where(named.identified, np.maximum(value, needed), value)
    return CandidateSimilarities(
        value=np.asarray(value, np.float32),
        penalty=np.asarray(penalty, np.float32),
        in_words=np.asarray(in_words, np.float32),
        needed=np.asarray(needed, np.float32),
        holds_together=holds_together,
    )


def _pull_of_unknown_words(gain: NDArray[np.float32], thresholds: MatchThresholds) -> NDArray[np.float32]:
    """float32, (n,), in [−1, 1]: 1 where the unknown words draw the query towards a candidate, −1 where away from it.
    `gain`: the centred cosine of each that they add."""
    full_pull = np.where(gain > 0, thresholds.full_pull_gain, thresholds.full_pull_loss)
    return np.asarray(np.clip(gain / full_pull, -1, 1), np.float32)


def extra_similarity_required_by_memory_total(memories: int, thresholds: MatchThresholds) -> float:
    """Likeness that is needed in addition among so many memories: by the logarithm of their number."""
    t = thresholds
    share = log(max(memories, t.few_memories) / t.few_memories) / log(t.crowd_memories / t.few_memories)
    return t.crowd * min(1.0, share)


def matching_candidate_mask(likeness: CandidateSimilarities, thresholds: MatchThresholds) -> NDArray[np.bool_]:
    """bool, (n,). Beside a match unknown words count no more."""
    if not (likeness.value >= likeness.needed).any():
        return np.zeros(len(likeness.value), np.bool_)
    return np.asarray(likeness.values_without_penalty >= thresholds.likeness - thresholds.companions, np.bool_)


def unknown_words_may_decide(likeness: CandidateSimilarities, thresholds: MatchThresholds) -> bool:
    """Whether something would match if nothing were unknown, and nothing would if unknown words counted most.
    `likeness`: without their pull."""
    greatest_penalty = likeness.penalty * (1 + thresholds.pull_weight) ** 2
    best_value = likeness.values_without_penalty
    worst_value = best_value - greatest_penalty
    return bool((best_value >= likeness.needed).any() and not (worst_value >= likeness.needed).any())


def procedural_candidate_mask(pool: CandidatePool) -> NDArray[np.bool_]:
    return np.array([features.category == "procedural" for features in pool.features], np.bool_)


def matching_preference_mask(
    likeness: NDArray[np.float32], situation: CandidateSimilarities, thresholds: MatchThresholds
) -> NDArray[np.bool_]:
    """bool, (n,). A preference matches if it applies to the `situation`, likeness to the query without everyday names,
    or answers the query best of all. Nearly every preference names the person served: that name says nothing of which
    one applies. And how to behave is asked in words of the task, which no memory need hold: nothing is lost by unknown
    words."""
    t = thresholds
    applies = situation.values_without_penalty >= t.likeness - t.applies_together * situation.holds_together
    answers = (likeness >= t.likeness) & (likeness >= likeness.max(initial=0))
    return np.asarray(applies | answers, np.bool_)


def positions_of_near_unmatched_candidates(
    named: CandidateCoverageOfNamedThings,
    likeness: CandidateSimilarities,
    meaning: NDArray[np.float32],
    thresholds: MatchThresholds,
) -> NDArray[np.intp]:
    """Positions of the candidates that do not match and are near (ruling 19), by `meaning`, their cosine as far as it
    is legible, and words.
    There are some where one holds half of what is known, would match then, or is at least a little alike."""
    t = thresholds
    known = named.unknown <= 0.5
    enough = not known.all() and known.mean() >= t.near_known and known.any()
    shares = (
        named.held[:, known] @ named.weight[known] / named.weight[known].sum()
        if enough
        else np.zeros(len(likeness.value))
    )
    alike = likeness.values_without_penalty
    best = (shares >= t.near_words) | ((alike >= t.likeness - t.companions) & (alike >= likeness.needed).any())
    if not best.any() and alike.max(initial=0) < t.near:
        return np.zeros(0, np.intp)
    near = (best | (alike > 0)) & ~matching_candidate_mask(likeness, t)
    order = np.argsort(-(t.near_in_words * likeness.in_words + meaning), kind="stable")
    return np.asarray(order[near[order]], np.intp)
