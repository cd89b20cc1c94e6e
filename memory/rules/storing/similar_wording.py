"""How much two texts are worded alike, in any language and script: beginnings of words and pairs of signs.

    similarity(a, b) = Σ idf(p)² over the pieces p in both / (‖a‖ ‖b‖)        ‖a‖ = √ Σ idf(p)² over the pieces of a
    idf(p) = ln(1 + (n − df + ½) / (df + ½))      df: how many of the n texts compared have the piece

A piece is any run of 4 letters of a word, its beginning marked, so that forms of a word share most of theirs; where
words are not spaced, or joined to particles, any 2 signs. On 156 paraphrases in twelve languages the most similar of
105 texts was the right one in 150, by the model's cosine in 128, compared outside the engine.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from madeleine.memory.text.reading import Reading

MIN_SIMILAR_WORDING = 0.1
"""Similarity from which a text is linked to the most similar one. Estimated on the same pairs outside the engine, among
15 candidates: 95 % of the paraphrases, 99 % of these to the right text; 0.15 links 90 %."""
_WORD_PIECE_LETTERS, _SIGN_PIECE_LETTERS = 4, 2
_UNSPACED = re.compile("[\u3005\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


def similar_wordings(text: str, others: Sequence[str]) -> list[float]:
    """The similarity of each of the other texts to this one, in [0, 1]."""
    mine, theirs = _pieces(text), [_pieces(other) for other in others]
    counts = Counter(piece for pieces in theirs for piece in pieces)

    by_count = [math.log(1 + (len(others) - df + 0.5) / (df + 0.5)) ** 2 for df in range(len(others) + 1)]

    def squared_idf(pieces: frozenset[str]) -> float:
        return sum(by_count[counts[one]] for one in pieces)

    length = squared_idf(mine)
    return [
        squared_idf(mine & pieces) / math.sqrt(length * squared_idf(pieces)) if mine & pieces else 0.0
        for pieces in theirs
    ]


def _pieces(text: str) -> frozenset[str]:
    pieces: set[str] = set()
    for word in re.findall(r"\w+", Reading(text).low):
        length = _SIGN_PIECE_LETTERS if not word.isascii() and _UNSPACED.search(word) else _WORD_PIECE_LETTERS
        run = word if length == _SIGN_PIECE_LETTERS else f"^{word}"
        pieces.update(run[at : at + length] for at in range(max(1, len(run) - length + 1)))
    return frozenset(pieces)
