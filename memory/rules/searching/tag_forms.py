"""Match tags in texts (spec H2): as a word in any of its forms, not as a part of another word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from madeleine.memory.keyword_search import Stemmer, Tag
from madeleine.memory.rules.searching.excerpt import MatchFinder

WORD_SIGNS = "0-9a-z_\u00df-\u00f6\u00f8-\u00ff\u0100-\u1fff\u2c00-\u2dff"
"""Inside of a character class: letters of folded words in scripts with spaces. Unspaced scripts are left out, so that a
Latin word ends where Japanese follows."""
LONG_STEM = 5
"""Letters a stem needs so that any word beginning with it counts as a form. Shorter stems are ambiguous: `car` begins
`care`, `card` and `carry`."""
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30fe"
HANGUL = "\uac00-\ud7a3"
THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
UNSPACED = re.compile(f"[{HAN}]+|[{KATAKANA}]+|[{HANGUL}]+|[{THAI}]+")
_DOUBLES = re.compile("[aeiou][bdgklmnprt]$")


def tag_of(text: str, stem: Stemmer) -> Tag:
    """Build the tag of a folded word or phrase, with the forms in which texts hold it."""
    if UNSPACED.match(text):
        return Tag(text, "part", (text,), text)
    if not text.isalpha():
        spaced = text.replace("_", " ")
        return Tag(text, "words", tuple(dict.fromkeys((text, spaced))), _common_prefix([text, spaced]))
    stemmed = stem(text)
    base = _common_prefix([text, stemmed.removesuffix("i")])
    if len(base) >= LONG_STEM + (base == text):
        return Tag(text, "beginning", (base,), base)
    forms = sorted({text, *(form for form in _forms(stemmed) if stem(form) == stemmed)})
    return Tag(text, "words", tuple(forms), _common_prefix(forms))


def _common_prefix(words: Sequence[str]) -> str:
    same = takewhile(lambda letters: len({*letters}) == 1, zip(*words, strict=False))
    return "".join(letters[0] for letters in same)


def _forms(stemmed: str) -> list[str]:
    """Possible English forms of a short stem; non-words among them match nothing."""
    if stemmed.endswith("i"):  # berri: berry
        root = stemmed[:-1]
        return [root + ending for ending in ("y", "ies", "ied", "ying")]
    if stemmed.endswith("e"):  # make
        root = stemmed[:-1]
        return [root + ending for ending in ("e", "es", "ed", "ing")]
    doubled = stemmed + stemmed[-1:] if _DOUBLES.search(stemmed) else stemmed
    return [stemmed, *(stemmed + ending for ending in ("s", "es", "e")), doubled + "ed", doubled + "ing"]


def holds(folded: str, tag: Tag) -> bool:
    """Whether a folded text holds the tag."""
    return tag.anchor in folded and _compiled(_pattern(tag)).search(folded) is not None


def match_finder(tags: Iterable[Tag]) -> MatchFinder:
    """Find the first of the tags in a folded text."""
    pattern = _compiled("|".join(map(_pattern, tags)))

    def find_match(folded: str) -> int:
        match = pattern.search(folded)
        return match.start() if match else -1

    return find_match


def _pattern(tag: Tag) -> str:
    forms = "|".join(re.escape(form) for form in tag.forms)
    if tag.kind == "part":
        return forms
    end = f"(?![{WORD_SIGNS}])" if tag.kind == "words" else ""
    return f"(?<![{WORD_SIGNS}])(?:{forms}){end}"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
