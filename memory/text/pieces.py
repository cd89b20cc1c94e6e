"""A text in pieces, each with a vector of its own: its sentences, or of a long text several together (ADR 0064)."""

from __future__ import annotations

import re

from madeleine.memory.text.sentences import split_sentences

MAX_PIECES_OF_MEDIUM_TEXT = 3
"""Of a text up to three times `MAX_TEXT_PIECE_CHARS`. Two, three, four or all sentences gain alike; of eight pieces one
is always near, so that the longest texts come first (ADR 64)."""
MAX_TEXT_PIECE_CHARS = 1_000
"""About the 256 word pieces that the default model reads of a text."""
MIN_TEXT_PIECE_WORDS = 3
_WORD_PATTERN = re.compile(r"\w+")


def split_into_text_pieces(text: str) -> list[str]:
    """The pieces, in order; none for a text of one piece, which its whole stands for."""
    least = min(MAX_TEXT_PIECE_CHARS, len(text) / MAX_PIECES_OF_MEDIUM_TEXT)
    pieces: list[str] = []
    current = ""
    for part in _sentences_cut_to_max_piece_chars(text):
        if current and len(current) + len(part) > MAX_TEXT_PIECE_CHARS:
            pieces.append(current)
            current = ""
        current += part
        if len(current) >= least and _has_enough_words(current):
            pieces.append(current)
            current = ""
    if current and pieces and not _has_enough_words(current):
        pieces[-1] += current
    elif current:
        pieces.append(current)
    return [piece.strip() for piece in pieces] if len(pieces) > 1 else []


def _sentences_cut_to_max_piece_chars(text: str) -> list[str]:
    sentences = split_sentences(text)
    return [
        sentence[start : start + MAX_TEXT_PIECE_CHARS]
        for sentence in sentences
        for start in range(0, len(sentence), MAX_TEXT_PIECE_CHARS)
    ]


def _has_enough_words(text: str) -> bool:
    return len(_WORD_PATTERN.findall(text)) >= MIN_TEXT_PIECE_WORDS
