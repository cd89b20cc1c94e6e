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
_COMBINING_MARK_PATTERN = re.compile("[\u0300-\u036f]+")


def is_dictionary_word(word: str, language: str) -> bool:
    """Whether it is a word of the language, in whatever case and without regard to accents; False in a language
    without a dictionary. `language`: its code, as "de". One of 10,000 other runs of letters counts, too."""
    known = _sorted_hashes_of_dictionary(language)
    value = _hash_of_word(word)
    at = int(np.searchsorted(known, np.uint32(value)))
    return at < len(known) and int(known[at]) == value


@cache
def _sorted_hashes_of_dictionary(language: str) -> NDArray[np.uint32]:
    """A megabyte, where the words would take thirty. Read once, in a quarter of a second."""
    packed = files("spellchecker").joinpath("resources", f"{language}.json.gz")
    if not packed.is_file():
        return np.zeros(0, np.uint32)
    text = _without_accents_and_case(gzip.decompress(packed.read_bytes()).decode())
    words = "\n".join(_DICTIONARY_ENTRY_PATTERN.findall(text)).encode().split(b"\n")
    return np.unique(np.fromiter(map(zlib.crc32, words), np.uint32, len(words)))


def _hash_of_word(word: str) -> int:
    return zlib.crc32(_without_accents_and_case(word).encode())


def _without_accents_and_case(text: str) -> str:
    if not text.isascii():
        text = _COMBINING_MARK_PATTERN.sub("", unicodedata.normalize("NFD", text)).replace("ß", "ss")
    return text.lower()
