"""Which scripts a model can read. A model's vectors of text in a script that it never saw are noise."""

from __future__ import annotations

import unicodedata


def is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith(("LATIN", "FULLWIDTH LATIN", "MODIFIER LETTER"))


def latin_share(text: str) -> float:
    """Share in [0, 1] of the letters that are Latin; 1 for text without letters."""
    if text.isascii():
        return 1.0
    letters = [character for character in text if character.isalpha()]
    return sum(map(is_latin, letters)) / len(letters) if letters else 1.0
