"""How much two texts resemble each other, in any language and script: by their wording, and by what they mean.

    wording(a, b) = |a ∩ b| / √(|a| |b|)        over the pieces of a and of b
    resemblance(a, b) = max(0.4 √wording(a, b) + 0.6 cosine(a, b), 0.8 cosine(a, b)),
                        for a text that the model cannot read 0.67 √wording(a, b) + 0.15
    outstanding(a, b) = 0.3 √wording(a, b) + 0.7 cosine across languages(a, b)

A piece is any run of 4 letters of a word, its beginning marked, so that forms of a word share most of theirs; function
words have none. Where words are not spaced, or joined to particles, it is any 2 signs, hiragana alone excepted, and any
Han sign. A number, in digits or in words, counts as 4. The cosine is that of the vectors without the mean of their
language (`memory.vector_space`). The weights were chosen by `make duplicates`: few sentences are linked to one about
something else, and nearly all to the one that they change or tell in other words (ADR 108). What is told in quite
other words resembles little, but far more than all else: such a one is linked by its lead, as the multilingual encoder
alone sees it, which was trained to bring paraphrases together (ADR 111).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.text.lexicon import all_words_of_lexicon_lists, lexicons_for_script_of_text
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.scripts import (
    HAN_AND_KANA_CHAR_CLASS,
    HAN_CHAR_PATTERN,
    HANGUL_CHAR_CLASS,
    HIRAGANA_RUN_PATTERN,
)

MIN_RESEMBLANCE_TO_LINK_MEMORIES = 0.5
MAX_SHORTFALL_OF_OUTSTANDING_MEMORY, MIN_LEAD_OF_OUTSTANDING_MEMORY = 0.05, 0.13
"""A memory is linked all the same if `outstanding` is at most so much less, and leads by at least so much."""
_WORD_PIECE_LETTERS, _SIGN_PIECE_LETTERS, _NUMBER_PIECES = 4, 2, 4
_COMMON_WORD_LEXICON_LISTS = ("function_words", "stop_words")
"""Lists of a lexicon."""
TextPieceHashes = NDArray[np.int64]
"""Their hashes, each once: a kilobyte or two for a text, where the strings take twenty."""
_HAN_KANA_OR_HANGUL_CHAR_PATTERN = re.compile(f"[{HAN_AND_KANA_CHAR_CLASS}{HANGUL_CHAR_CLASS}]")


def resemblances_to_texts(text: str, others: Sequence[str], cosines: Sequence[float | None]) -> list[float]:
    """The resemblance of each of the other texts to this one, in [0, 1]. `cosines`: None for unreadable texts."""
    mine = _ngram_and_number_hashes_of_text(text)
    return [
        _resemblance_from_wording_and_cosine(
            _wording_resemblance(mine, _ngram_and_number_hashes_of_text(other)), cosine
        )
        for other, cosine in zip(others, cosines, strict=True)
    ]


def index_of_most_resembling_text(
    text: str, others: Sequence[str], cosines: Sequence[float | None], *, at_least: float
) -> int | None:
    """The position of the other text that resembles this one most, the first of equals; None if none does `at_least`.

    The same as by `resemblances_to_texts`, but most texts are not read: they are compared from the greatest down that
    their resemblance can be.
    """
    mine = _ngram_and_number_hashes_of_text(text)
    best, best_score = None, at_least
    for greatest, at in _positions_by_greatest_possible_score(
        text, others, cosines, _resemblance_from_wording_and_cosine
    ):
        if greatest < best_score:
            break
        wording = _wording_resemblance(mine, _ngram_and_number_hashes_of_text(others[at]))
        score = _resemblance_from_wording_and_cosine(wording, cosines[at])
        if score > best_score or (score == best_score and (best is None or at < best)):
            best, best_score = at, score
    return best


def index_of_outstanding_text(
    text: str, others: Sequence[str], cosines: Sequence[float | None], *, at_least: float
) -> int | None:
    """The position of the other text with the greatest `outstanding`; None if it falls too far short of `at_least` or
    does not lead by enough. A text without others leads; one that the model cannot read has 0. `cosines`: across
    languages. Most texts are not read, as in `index_of_most_resembling_text`."""
    mine, least = _ngram_and_number_hashes_of_text(text), at_least - MAX_SHORTFALL_OF_OUTSTANDING_MEMORY
    best, best_score, second_score = None, 0.0, 0.0
    for greatest, at in _positions_by_greatest_possible_score(
        text, others, cosines, _outstanding_from_wording_and_cosine
    ):
        if greatest < (least if best_score < least else best_score - MIN_LEAD_OF_OUTSTANDING_MEMORY):
            break
        wording = _wording_resemblance(mine, _ngram_and_number_hashes_of_text(others[at]))
        score = _outstanding_from_wording_and_cosine(wording, cosines[at])
        if score > best_score:
            best, best_score, second_score = at, score, best_score
        else:
            second_score = max(second_score, score)
    leads = best_score - second_score >= MIN_LEAD_OF_OUTSTANDING_MEMORY
    return best if best_score >= least and leads else None


def _positions_by_greatest_possible_score(
    text: str,
    others: Sequence[str],
    cosines: Sequence[float | None],
    score: Callable[[float, float | None], float],
) -> list[tuple[float, int]]:
    """The greatest score that each other text can have, and its position; the greatest first, of equals the first. It
    is known from the words alone, without their languages. `score`: of a wording and a cosine."""
    bounds = zip(wording_resemblance_upper_bounds(text, others), cosines, strict=True)
    greatest = [(score(wording, cosine), at) for at, (wording, cosine) in enumerate(bounds)]
    return sorted(greatest, key=lambda one: (-one[0], one[1]))


def wording_resemblance_upper_bounds(text: str, others: Sequence[str]) -> list[float]:
    """What the wording of the text and each other one is at most: as if every word were shared that can be, and a
    function word were one in any language of the script."""
    return [_wording_resemblance_upper_bound(text, other) for other in others]


@lru_cache(maxsize=500)
def _wording_resemblance_upper_bound(text: str, other: str) -> float:
    mine, numbers = _text_hashes_and_number_hash_count(text)
    words = _lowercase_words_of_text(AnalysedText(other))
    shared = len(mine.intersection(_ngram_hashes_of_words(words))) + numbers
    if not shared:
        return 0.0
    surely = words - all_words_of_lexicon_lists(lexicons_for_script_of_text(other), *_COMMON_WORD_LEXICON_LISTS)
    least = len({*_ngram_hashes_of_words(surely)})
    return shared / math.sqrt(len(mine) * max(least, shared))


@lru_cache(maxsize=16)
def _text_hashes_and_number_hash_count(text: str) -> tuple[frozenset[int], int]:
    return frozenset(_ngram_and_number_hashes_of_text(text).tolist()), _NUMBER_PIECES * len(
        _numbers_except_zero_and_one(AnalysedText(text))
    )


def _resemblance_from_wording_and_cosine(wording: float, cosine: float | None) -> float:
    if cosine is None:
        return 0.67 * math.sqrt(wording) + 0.15
    return max(0.4 * math.sqrt(wording) + 0.6 * max(cosine, 0.0), 0.8 * cosine)


def _outstanding_from_wording_and_cosine(wording: float, cosine: float | None) -> float:
    """0 for a text that the model cannot read: what it means is not known."""
    return 0.0 if cosine is None else 0.3 * math.sqrt(wording) + 0.7 * max(cosine, 0.0)


def _wording_resemblance(mine: TextPieceHashes, theirs: TextPieceHashes) -> float:
    shared = len(np.intersect1d(mine, theirs, assume_unique=True))
    return shared / math.sqrt(len(mine) * len(theirs)) if shared else 0.0


@lru_cache(maxsize=2_000)
def _ngram_and_number_hashes_of_text(text: str) -> TextPieceHashes:
    reading = AnalysedText(text)
    words = _lowercase_words_of_text(reading) - all_words_of_lexicon_lists(
        reading.lexicons, *_COMMON_WORD_LEXICON_LISTS
    )
    pieces = {*_ngram_hashes_of_words(words)}
    pieces |= {
        hash(f"{number} {copy}") for number in _numbers_except_zero_and_one(reading) for copy in range(_NUMBER_PIECES)
    }
    return np.fromiter(pieces, np.int64, len(pieces))


def _lowercase_words_of_text(reading: AnalysedText) -> set[str]:
    return {*re.findall(r"\w+", reading.lowercase_text)}


def _numbers_except_zero_and_one(reading: AnalysedText) -> set[str]:
    return {*reading.canonical_number_texts, *reading.digits_of_number_words} - {"", "0", "1"}


def _ngram_hashes_of_words(words: Iterable[str]) -> Iterator[int]:
    return chain.from_iterable(map(_ngram_hashes_of_word, words))


@lru_cache(maxsize=4_000)
def _ngram_hashes_of_word(word: str) -> tuple[int, ...]:
    return tuple({hash(piece) for piece in _character_ngrams_of_word(word)})


def _character_ngrams_of_word(word: str) -> Iterator[str]:
    if not _HAN_KANA_OR_HANGUL_CHAR_PATTERN.search(word):
        yield from _ngrams_of_length(f"^{word}", _WORD_PIECE_LETTERS)
        return
    yield from HAN_CHAR_PATTERN.findall(word)
    yield from (
        pair for pair in _ngrams_of_length(word, _SIGN_PIECE_LETTERS) if not HIRAGANA_RUN_PATTERN.fullmatch(pair)
    )


def _ngrams_of_length(word: str, length: int) -> Iterator[str]:
    return (word[at : at + length] for at in range(max(1, len(word) - length + 1)))
