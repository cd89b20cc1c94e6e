"""How a text is known to hold a tag (spec H2): as a word, in any form of it, not as a part of another word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from madeleine.memory.keyword_search import Stemmer, Tag
from madeleine.memory.rules.searching.excerpt import Place

WORD_SIGNS = "0-9a-z_\u00df-\u00f6\u00f8-\u00ff\u0100-\u1fff\u2c00-\u2dff"
"""Of folded words in scripts with spaces, as the inside of a character class. Unspaced scripts are not among them, so
that a Latin word ends where Japanese goes on."""
LONG_STEM = 5
"""Letters from which on whatever begins with a stem is taken for a form of the word. With fewer it is not: `car` begins
`care`, `card` and `carry`."""
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30fe"
HANGUL = "\uac00-\ud7a3"
THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSPACED = re.compile(f"[{HAN}]+|[{KATAKANA}]+|[{HANGUL}]+|[{THAI}]+")
_DOUBLES = re.compile("[aeiou][bdgklmnprt]$")


def tag_of(text: str, stem: Stemmer) -> Tag:
    """How a text is known to hold the tag. `text` is folded."""
    if UNSPACED.match(text):
        return Tag(text, "part", (text,), text)
    if not text.isalpha():
        spaced = text.replace("_", " ")
        return Tag(text, "words", tuple(dict.fromkeys((text, spaced))), _beginning_of([text, spaced]))
    stemmed = stem(text)
    base = _beginning_of([text, stemmed.removesuffix("i")])
    if len(base) >= LONG_STEM + (base == text):
        return Tag(text, "beginning", (base,), base)
    forms = sorted({text, *(form for form in _forms(stemmed) if stem(form) == stemmed)})
    return Tag(text, "words", tuple(forms), _beginning_of(forms))


def _beginning_of(words: Sequence[str]) -> str:
    """What all of them begin with."""
    alike = takewhile(lambda signs: len({*signs}) == 1, zip(*words, strict=False))
    return "".join(signs[0] for signs in alike)


def _forms(stemmed: str) -> list[str]:
    """What English makes of a short stem; whatever is no word stands in no text."""
    if stemmed.endswith("i"):  # berri: berry
        root = stemmed[:-1]
        return [root + ending for ending in ("y", "ies", "ied", "ying")]
    if stemmed.endswith("e"):  # make
        root = stemmed[:-1]
        return [root + ending for ending in ("e", "es", "ed", "ing")]
    doubled = stemmed + stemmed[-1:] if _DOUBLES.search(stemmed) else stemmed
    return [stemmed, *(stemmed + ending for ending in ("s", "es", "e")), doubled + "ed", doubled + "ing"]


def holds(folded: str, tag: Tag) -> bool:
    """`folded` is what is searched of one text."""
    return tag.anchor in folded and _compiled(_pattern(tag)).search(folded) is not None


def place_of(tags: Iterable[Tag]) -> Place:
    """Where a folded text holds the first of them."""
    pattern = _compiled("|".join(map(_pattern, tags)))

    def place(folded: str) -> int:
        found = pattern.search(folded)
        return found.start() if found else -1

    return place


def _pattern(tag: Tag) -> str:
    forms = "|".join(re.escape(form) for form in tag.forms)
    if tag.kind == "part":
        return forms
    end = f"(?![{WORD_SIGNS}])" if tag.kind == "words" else ""
    return f"(?<![{WORD_SIGNS}])(?:{forms}){end}"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
