"""How much two texts resemble each other, in any language and script: by their wording, and by what they mean.

    wording(a, b) = |a ∩ b| / √(|a| |b|)        over the pieces of a and of b
    resemblance(a, b) = (2 √wording(a, b) + cosine(a, b)) / 3

A piece is any run of 4 letters of a word, its beginning marked, so that forms of a word share most of theirs; function
words have none. Where words are not spaced, or joined to particles, it is any 2 signs, hiragana alone excepted, and any
Han sign. A number, in digits or in words, counts as 4. The cosine is that of the vectors without the mean of their
language (`memory.vector_space`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.text.lexicon import listed_words
from madeleine.memory.text.reading import TextReading
from madeleine.memory.text.scripts import HAN_AND_KANA_CHAR_CLASS, HAN_SIGN, HANGUL_CHAR_CLASS, HIRAGANA_RUN

ASSUMED_COSINE_OF_UNREADABLE_TEXT = 0.26
"""Taken for the cosine of a text that the model cannot read: what paraphrases of readable texts have at the least."""
MIN_RESEMBLANCE = 0.44
_WORD_PIECE_LETTERS, _SIGN_PIECE_LETTERS, _NUMBER_PIECES = 4, 2, 4
Pieces = NDArray[np.int64]
"""Their hashes, each once: a kilobyte or two for a text, where the strings take twenty."""
_UNSPACED = re.compile(f"[{HAN_AND_KANA_CHAR_CLASS}{HANGUL_CHAR_CLASS}]")


def resemblances_to_texts(text: str, others: Sequence[str], cosines: Sequence[float | None]) -> list[float]:
    """The resemblance of each of the other texts to this one, in [0, 1]. `cosines`: None for unreadable texts."""
    mine = _pieces(text)
    return [
        (
            2 * math.sqrt(_shared(mine, _pieces(other)))
            + max(ASSUMED_COSINE_OF_UNREADABLE_TEXT if cosine is None else cosine, 0.0)
        )
        / 3
        for other, cosine in zip(others, cosines, strict=True)
    ]


def _shared(mine: Pieces, theirs: Pieces) -> float:
    shared = len(np.intersect1d(mine, theirs, assume_unique=True))
    return shared / math.sqrt(len(mine) * len(theirs)) if shared else 0.0


@lru_cache(maxsize=2_000)
def _pieces(text: str) -> Pieces:
    reading = TextReading(text)
    common = listed_words(reading.lexicons, "function_words", "stop_words")
    words = {*re.findall(r"\w+", reading.lowercase_text)} - common
    numbers = {*reading.number_values, *reading.number_words} - {"", "0", "1"}
    pieces = set[int]().union(*map(_hashes_of_word, words))
    pieces |= {hash(f"{number} {copy}") for number in numbers for copy in range(_NUMBER_PIECES)}
    return np.fromiter(pieces, np.int64, len(pieces))


@lru_cache(maxsize=4_000)
def _hashes_of_word(word: str) -> tuple[int, ...]:
    return tuple({hash(piece) for piece in _pieces_of_word(word)})


def _pieces_of_word(word: str) -> Iterator[str]:
    if not _UNSPACED.search(word):
        yield from _runs(f"^{word}", _WORD_PIECE_LETTERS)
        return
    yield from HAN_SIGN.findall(word)
    yield from (pair for pair in _runs(word, _SIGN_PIECE_LETTERS) if not HIRAGANA_RUN.fullmatch(pair))


def _runs(word: str, length: int) -> Iterator[str]:
    return (word[at : at + length] for at in range(max(1, len(word) - length + 1)))
