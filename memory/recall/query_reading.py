"""How a query is read (spec L2): embedded by the model that embeds what is stored; what it is about is the end of a
message, without names of those who act."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.embedding import Embedder
from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.index import CandidatePool, MemoryRankingFeatures, RecallIndex
from madeleine.memory.model import Vector
from madeleine.memory.rules.ranking.blended import analyse_query
from madeleine.memory.text.content_words import content_words, lexicons_of_question
from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES
from madeleine.memory.text.future_days import days_to_come_in_text
from madeleine.memory.text.lexicon import all_words_of_lexicon_lists
from madeleine.memory.text.relative_dates import Days, relative_phrase_by_day, text_with_relative_dates_resolved
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.text.written_dates import (
    english_month_by_name_in_question,
    text_with_iso_dates,
    text_without_dates,
)

END_OF_MESSAGE_SENTENCE_COUNT = 2
MIN_QUESTION_CONTENT_WORDS = 2
"""Of a question that stands for itself; one with fewer, "What can I do?", is about the sentence before it."""
MAX_CHARS_OF_SENTENCE_WITH_LEADING_CLAUSE = 300
"""A longer one is a list, or tells much besides."""
MAX_CHARS_OF_MESSAGE_WITH_DAY = 1_000
"""A longer one names days of all kinds."""
ONE_WEEK = timedelta(days=7)
NEAREST_PIECE_COSINE_WEIGHT = 0.4
"""Of the cosine that ranks: that of the nearest piece of a text; the whole has the rest. From 0.3 to 0.5 the gains on
LoCoMo, BEAM and LongMemEval differ by at most 0.3 points of nDCG@10 (ADR 64)."""
_ISO_DATE_PATTERN = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_OF_MONTH_PATTERN = re.compile(r"[0-3]?\d")
_COMMA = re.compile(r"[,،，]\s*")
_QUESTION_MARKS = ("?", "？", "؟")
_WORD = re.compile(r"[^\W_]+")
_WORD_WITH_OPTIONAL_POSSESSIVE = re.compile(r"([^\W_]+)(?:['\u2019]s\b)?")


async def try_to_embed_query(embedder: Embedder, text: str) -> tuple[Vector | None, str]:
    """Its vector, or None and why there is none."""
    try:
        return (await embedder.embed([text]))[0], ""
    except EmbeddingUnavailable as error:
        return None, str(error)


def query_text_for_word_search(text: str, today: date) -> str:
    """Dates in one form, those that are told from today as days; English names of months beside others."""
    dated = text_with_iso_dates(text_with_relative_dates_resolved(text, today))
    return " ".join((dated, *english_month_by_name_in_question(dated).values()))


def _phrase_by_word_of_search(text: str, today: date) -> dict[str, str]:
    """For each word that `query_text_for_word_search` writes for a phrase of the text that phrase."""
    months = english_month_by_name_in_question(text_with_iso_dates(text))
    return {**relative_phrase_by_day(text, today), **{month: name for name, month in months.items()}}


def content_words_with_times_joined(text: str, today: date) -> tuple[str, ...]:
    """The content words of `query_text_for_word_search`, as they are in the pool of `with_words_of_one_time_joined`."""
    phrase_of = _phrase_by_word_of_search(text, today)
    words = content_words(query_text_for_word_search(text, today))
    return tuple(dict.fromkeys(phrase_of.get(word, word) for word in words))


def with_words_of_one_time_joined(pool: CandidatePool, text: str, today: date) -> CandidatePool:
    """What `query_text_for_word_search` writes for a phrase ("last week", "März") as one word, the phrase: a candidate
    holds it that holds one of them, and it is unknown if all are. "Mai" is not unknown, for "may" is no word of the
    index."""
    if not (phrase_of := _phrase_by_word_of_search(text, today)):
        return pool
    phrases = [phrase_of.get(word, word) for word in pool.words]
    joined = list(dict.fromkeys(phrases))
    not_indexed = {phrase for word, phrase in phrase_of.items() if word.isalpha() and word not in pool.words}
    columns = [[at for at, phrase in enumerate(phrases) if phrase == one] for one in joined]
    return replace(
        pool,
        words=tuple(joined),
        holds=np.stack([pool.holds[:, at].any(axis=1) for at in columns], axis=1),
        unknown=np.array(
            [pool.unknown[at].all() and one not in not_indexed for one, at in zip(joined, columns, strict=True)],
            np.bool_,
        ),
        rarity=np.array([pool.rarity[at].max() for at in columns], np.float32),
    )


def without_unknown_words_for_times(pool: CandidatePool, text: str) -> CandidatePool:
    """The same candidates as a query has them without its words for a time that no memory holds: of a day to come
    hardly anything is known. A month and a number are words for a time beside each other."""
    lexicons = lexicons_of_question(text)
    days = all_words_of_lexicon_lists(lexicons, "days", "time_words")
    months = all_words_of_lexicon_lists(lexicons, "months").union(map(str.lower, ENGLISH_MONTH_NAMES))
    times = {word for word in pool.words if _ISO_DATE_PATTERN.fullmatch(word) or word in days}
    for pair in pairwise(pool.words):
        if any(word in months for word in pair) and any(_DAY_OF_MONTH_PATTERN.fullmatch(word) for word in pair):
            times.update(pair)
    return _without_unknown_words(pool, times)


def without_unknown_words_for_the_past(pool: CandidatePool, text: str) -> CandidatePool:
    """The same candidates as a query has them without its words for what was first, or before something, that no memory
    holds: "originally" names nothing."""
    if not pool.unknown.any():
        return pool
    query = analyse_query(text)
    return _without_unknown_words(
        pool, query.words_matching_lexicon_pattern("tells_first") | query.words_matching_lexicon_pattern("tells_before")
    )


def _without_unknown_words(pool: CandidatePool, words: Set[str]) -> CandidatePool:
    """Without these words, where no memory holds them; unchanged if the query has no others."""
    kept = [word for word, unknown in zip(pool.words, pool.unknown, strict=True) if not (unknown and word in words)]
    return pool if not kept or len(kept) == len(pool.words) else restrict_query_words_of_pool(pool, kept, pool.cosine)


@lru_cache(maxsize=16)
def closing_text_of_message(text: str) -> str:
    """What a message comes to. Of three sentences or more: its last one, if that is a question that names something,
    else the last two. Of fewer: what is asked behind a comma ("I forgot, when is the choir?"); "" if nothing is."""
    sentences = [sentence for sentence in split_sentences(text) if _WORD.search(sentence)]
    if len(sentences) <= END_OF_MESSAGE_SENTENCE_COUNT:
        return _question_behind_comma(sentences[-1]) if sentences else ""
    last = sentences[-1].strip()
    named = content_words(last)
    only_asks = " " in last and not _names_something(last)
    if len(named) >= MIN_QUESTION_CONTENT_WORDS and not only_asks and last.endswith(_QUESTION_MARKS):
        return last
    return "".join(sentences[-END_OF_MESSAGE_SENTENCE_COUNT:]).strip()


def _question_behind_comma(sentence: str) -> str:
    """The clause that asks, behind one that only leads to it and names at most one thing; "" if there is none. What
    names more tells what is asked about: "For my trip to Rome, what do I pack?"."""
    if len(sentence) > MAX_CHARS_OF_SENTENCE_WITH_LEADING_CLAUSE or not _COMMA.search(sentence):
        return ""
    patterns = [pattern for lexicon in lexicons_of_question(sentence) if (pattern := lexicon.pattern("question"))]

    def asks_for_something(clause: str) -> bool:
        return any(pattern.search(clause.lower()) for pattern in patterns) and _names_something(clause)

    for comma in _COMMA.finditer(sentence):
        if asks_for_something(asked := sentence[comma.end() :].strip()):
            led = sentence[: comma.start()].strip()
            named = len(content_words(led)) if _names_something(led) else 0
            return asked if named < MIN_QUESTION_CONTENT_WORDS and not asks_for_something(led) else ""
    return ""


def _names_something(text: str) -> bool:
    """All words are returned of a text that names nothing."""
    return len(content_words(text)) < len({*_WORD.findall(text.lower())})


@lru_cache(maxsize=16)
def days_planned_for(query: str, today: date) -> Days | None:
    """The one day or week to come that the end of a message names, whatever it asks ("May we deploy on 25 November?",
    "I could go on 3 May"): what lies on it may speak against it. None for a longer time."""
    if len(query) > MAX_CHARS_OF_MESSAGE_WITH_DAY:
        return None
    asked = closing_text_of_message(query) or query
    days = days_to_come_in_text(asked, today) or days_to_come_in_text(query, today)
    return days if days and days[1] - days[0] < ONE_WEEK else None


def query_without_names_and_dates(text: str, candidates: Sequence[MemoryRankingFeatures]) -> str:
    """The end of the message without dates and the names of actors of the candidates; "" if that is the text itself,
    or nothing. A name draws the vector of a question to all that its bearer has done."""
    actors = {word.casefold() for one in candidates for actor in one.actors for word in _WORD.findall(actor)}

    def without_name(word: re.Match[str]) -> str:
        return "" if word[1].casefold() in actors and not word[1].islower() else word[0]

    subject = " ".join(
        _WORD_WITH_OPTIONAL_POSSESSIVE.sub(
            without_name, text_without_dates(closing_text_of_message(text) or text)
        ).split()
    )
    return subject if subject != " ".join(text.split()) and _WORD.search(subject) else ""


def restrict_query_words_of_pool(
    pool: CandidatePool, words: Sequence[str], cosine: NDArray[np.float32]
) -> CandidatePool:
    """The same candidates as a query of only these of its content words has them."""
    kept = [at for at, word in enumerate(pool.words) if word in words]
    return replace(
        pool,
        words=tuple(pool.words[at] for at in kept),
        holds=pool.holds[:, kept],
        unknown=pool.unknown[kept],
        rarity=pool.rarity[kept],
        cosine=cosine,
    )


async def pool_with_subject_cosines(
    index: RecallIndex, embedder: Embedder, text: str, pool: CandidatePool, vector: Vector | None
) -> CandidatePool:
    """The pool with the cosines to the mean of the query and of what it is about (ADR 41), of whole texts and of their
    pieces (ADR 64)."""
    if vector is None:
        return pool
    whole, mean = pool.cosine, vector
    subject = query_without_names_and_dates(text, pool.features)
    if subject and (other := (await try_to_embed_query(embedder, subject))[0]) is not None:
        length = np.linalg.norm(vector + other)
        mean = np.asarray((vector + other) / length, np.float32)
        whole = (whole + await index.cosines(pool.ids, other)) / length
    weight, pieces = NEAREST_PIECE_COSINE_WEIGHT, pool.max_piece_cosines_in_candidate_order(mean, whole)
    return replace(pool, cosine=np.asarray((1 - weight) * whole + weight * pieces, np.float32))
