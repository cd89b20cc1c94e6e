"""The parts of joined words, which BM25 compares beside the whole: of "Geigenstunde" geigen, geige and stunde.

German and Dutch write two nouns as one word, so that "Geige" would not find it. A memory has the two parts of such a
word beside it if both are in the dictionary of the language; which languages join words, and with what between them,
their lexicons tell. Of a query nothing is taken apart, for that is less than what was asked: "Blutgruppe" is no
"Gruppe" (ADR 101).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from madeleine.dictionaries import is_dictionary_word
from madeleine.memory.text.lexicon import Lexicon, probable_lexicons

MIN_COMPOUND_CHARS = 8
MIN_PART_CHARS = 4
_LONG_WORD_PATTERN = re.compile(rf"[^\W\d_]{{{MIN_COMPOUND_CHARS},}}")


def with_parts_of_compounds(words: str) -> str:
    """The text with the parts of its joined words behind it, each once. `words`: without accents."""
    lexicons = probable_lexicons(words)
    if not all(lexicon.entries.get("compounds") for lexicon in lexicons):
        return words
    long = dict.fromkeys(_LONG_WORD_PATTERN.findall(words))
    parts = (part for word in long for lexicon in lexicons for part in _parts_of_compound(word, lexicon))
    return " ".join((words, *dict.fromkeys(parts)))


@lru_cache(maxsize=4_000)
def _parts_of_compound(word: str, lexicon: Lexicon) -> tuple[str, ...]:
    """The two words that it joins, as they stand there and as they stand alone; the most even division that there is.
    An s that may join them or begin the last word begins it: "Hauptstraße". None of a plain word, nor of one without a
    capital where nouns have one."""
    if lexicon.entries.get("nouns_capitalised") and not word.istitle():
        return ()
    low, language = word.lower(), lexicon.language
    links, endings = (lexicon.entries[name].split() for name in ("compound_links", "compound_endings"))
    parts: dict[int, tuple[str, ...]] = {}
    for at in range(MIN_PART_CHARS, len(low) - MIN_PART_CHARS + 1):
        first, last = _dictionary_forms(low[:at], links, language), _dictionary_forms(low[at:], endings, language)
        if first and last and not (low[at - 1] == "s" and at - 1 in parts):
            parts[at] = (*first, *last)
    return parts[max(parts, key=lambda at: min(at, len(low) - at))] if parts else ()


def _dictionary_forms(part: str, endings: Iterable[str], language: str) -> list[str]:
    """The part, and the part without each of the endings, as far as they are words."""
    forms = dict.fromkeys((part, *(part.removesuffix(ending) for ending in endings)))
    return [form for form in forms if len(form) >= MIN_PART_CHARS and is_dictionary_word(form, language)]
