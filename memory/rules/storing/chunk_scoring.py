"""Score a chunk of an ingested text and choose its category, without a model (spec L1, steps 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence

from madeleine.memory.model import Category, Vector
from madeleine.memory.text.lexicon import load_language_neutral_pattern
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS, normalize_and_drop_apostrophes
from madeleine.memory.vector_space import VectorSpace

NOVELTY_WEIGHT, SALIENCE_WEIGHT = 0.6, 0.4
MIN_STORED_CHUNK_IMPORTANCE = 0.3
"""Importance from which a chunk is stored."""
MIN_MEAN_RARITY_OF_TECHNICAL_TEXT = 0.8
"""Mean rarity from which the words of a text are technical; see `mean_word_rarity`."""
MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY = 5.3
"""The IDF of a word that no memory has, in a store of 100 memories: ln(1 + 100.5 / 0.5). In a smaller store every word
is rare."""
MAX_WORDS_PER_RARITY_SCORE = 48
"""Words of a text that are looked up in the statistics."""
MIN_CATEGORY_SENTENCE_SHARE = 0.5
"""Share of a text's sentences that decide its category."""
_CODE_NAME_OR_PATH_PATTERN = load_language_neutral_pattern("code_name")


def chunk_importance(*, novelty: float, salience: float) -> float:
    """0.6 novelty + 0.4 salience; in [0, 1] as both are."""
    return NOVELTY_WEIGHT * novelty + SALIENCE_WEIGHT * salience


def chunk_novelty_against_centroid(vector: Vector, centroid: Vector | None, space: VectorSpace) -> float:
    """In [0, 1]: 1 − legibility × cosine to `centroid`, the unit mean of the being's centred vectors; 1 without one.

    Vectors of texts that the model cannot read lie close together whatever they say: their similarity means nothing.
    """
    if centroid is None:
        return 1.0
    [centred] = space.centred_by_language(vector[None])
    return min(1.0, max(0.0, 1.0 - space.legibility_of_text_behind_vector(vector) * float(centred @ centroid)))


def chunk_salience(reading: AnalysedText, *, rarity: float) -> float:
    """In [0, 1]: 0.3 for a person, organisation, place or product, 0.2 for a number or date, 0.4 for a preference, 0.1
    for a technical term. Takes time linear in the text.

    `mean_word_rarity` in [0, 1] is that of the text's words among the being's memories.
    """
    technical = rarity >= MIN_MEAN_RARITY_OF_TECHNICAL_TEXT or bool(_CODE_NAME_OR_PATH_PATTERN.search(reading.text))
    signals = (
        reading.contains_recognised_name,
        reading.mentions_number_or_date,
        reading.states_personal_taste,
        technical,
    )
    return min(1.0, sum(weight * signal for weight, signal in zip((0.3, 0.2, 0.4, 0.1), signals, strict=True)))


def distinct_words_for_rarity_score(text: str) -> list[str]:
    """Words whose rarity is the text's: no stop words, each once, the longest first, at most 48."""
    words = {word.low for word in AnalysedText(normalize_and_drop_apostrophes(text)).words} - ENGLISH_STOP_WORDS
    return sorted((word for word in words if len(word) > 1), key=lambda word: (-len(word), word))[
        :MAX_WORDS_PER_RARITY_SCORE
    ]


def mean_word_rarity(idf: Sequence[float], *, absent_term_idf: float) -> float:
    """In [0, 1]: mean IDF of the words as a share of `absent_term_idf`, the IDF of a word that no memory has. 0 without
    words, and while there are too few memories."""
    if not idf or absent_term_idf < MIN_ABSENT_TERM_IDF_TO_SCORE_RARITY:
        return 0.0
    return min(1.0, sum(idf) / len(idf) / absent_term_idf)


def chunk_category(reading: AnalysedText) -> Category:
    """Procedural for a preference, working for the present or this session, semantic for facts of the form subject,
    predicate, object; else episodic."""
    if reading.is_preference_text:
        return "procedural"
    stated = [AnalysedText(sentence) for sentence in reading.sentences if sentence.strip()] or [reading]
    if sum(sentence.matches_lexicon_pattern("now") for sentence in stated) >= MIN_CATEGORY_SENTENCE_SHARE * len(stated):
        return "working"
    return (
        "semantic"
        if sum(map(_states_fact_not_event, stated)) >= MIN_CATEGORY_SENTENCE_SHARE * len(stated)
        else "episodic"
    )


def _states_fact_not_event(sentence: AnalysedText) -> bool:
    is_event = (
        sentence.ends_with_question_mark
        or sentence.begins_with_word_in_lexicon_lists("subjects")
        or sentence.matches_lexicon_pattern("event")
    )
    return not is_event and sentence.matches_lexicon_pattern("fact")
