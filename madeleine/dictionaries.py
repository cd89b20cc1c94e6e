"""Which words a language has, by the word lists of `pyspellchecker`: nine languages, 20,000 to 340,000 words each."""

from __future__ import annotations

import gzip
import re
import unicodedata
import zlib
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

_DICTIONARY_ENTRY_PATTERN = re.compile(r'"([^\W\d_]+)": \d')


def is_dictionary_word(word: str, language: str) -> bool:
    """Whether it is a word of the language, in whatever case and without regard to accents; False in a language
    without a dictionary. `language`: its code, as "de". One of 10,000 other runs of letters counts, too."""
    known = _sorted_hashes_of_dictionary(language)
    value = _hash_of_word(word)
    at = int(np.searchsorted(known, np.uint32(value)))
    return at < len(known) and int(known[at]) == value


@cache
def _sorted_hashes_of_dictionary(language: str) -> NDArray[np.uint32]:
    """A megabyte, where the words would take thirty. Read once, in up to half a second."""
    packed = files("spellchecker").joinpath("resources", f"{language}.json.gz")
    if not packed.is_file():
        return np.zeros(0, np.uint32)
    words = _DICTIONARY_ENTRY_PATTERN.findall(gzip.decompress(packed.read_bytes()).decode())
    return np.unique(np.fromiter(map(_hash_of_word, words), np.uint32, len(words)))


def _hash_of_word(word: str) -> int:
    if not word.isascii():
        word = "".join(sign for sign in unicodedata.normalize("NFD", word) if not unicodedata.combining(sign))
    return zlib.crc32(word.lower().encode())
