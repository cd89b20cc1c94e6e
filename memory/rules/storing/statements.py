"""A memory's text read for a comparison with another: whether both tell the same but for one value, or the same of two
things (ruling 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from madeleine.memory.text.reading import Reading
from madeleine.memory.text.scripts import HAN_AND_KANA_CHAR_CLASS

MAX_SAME_WORDING = 0.4
"""Share in [0, 1] of words in the same order, above which two have one wording."""
MAX_COMPARED_CHARS = 1_200
MAX_WORDS_BESIDE_A_VALUE = 1
"""In the place of the value: "listens on port 8080", "listens on 8091"."""
VALUE_LISTS = ("numbers", "quantities", "amounts", "days", "months", "time_words", "negations", "opposites")
"""Of a lexicon: words that tell how many, when, or whether at all."""
_STEM_LETTERS = 5
"""By which forms of a word are known as one in any language that is inflected at its end."""
_SIGN = f"[{HAN_AND_KANA_CHAR_CLASS}]"
_LETTERS = rf"(?:(?!{_SIGN})[^\W_])+"
_SPACED_WORD = rf"{_LETTERS}(?:[.'@/_-]{_LETTERS})*"
_WORD = re.compile(f"{_SIGN}|{_SPACED_WORD}")
_WORD_OR_SIGN_PAIR = re.compile(f"(?=({_SIGN}{_SIGN})){_SIGN}|(?<!{_SIGN}){_SIGN}(?!{_SIGN})|{_SPACED_WORD}")
_HAS_DIGIT = re.compile(r"\d").search


@dataclass(frozen=True)
class Statement:
    """A memory's text, read for a comparison with another."""

    text: str

    @cached_property
    def reading(self) -> Reading:
        return Reading(self.text[:MAX_COMPARED_CHARS])

    @cached_property
    def words(self) -> list[str]:
        """Lower case, in order; a name of several parts (`storefront-web`) is one, and so is each Chinese or Japanese
        sign."""
        return [word.removesuffix("'s") for word in _WORD.findall(self.reading.low)]

    @cached_property
    def content_words(self) -> list[str]:
        """The words that are no function words, in order; of Chinese or Japanese signs each two neighbours."""
        common = frozenset(self.reading.known_words).intersection(self.reading.listed("stop_words", "function_words"))
        found = _WORD_OR_SIGN_PAIR.finditer(self.reading.low)
        words = (match[1] or match.group().removesuffix("'s") for match in found)
        return [word for word in words if word not in common and word.split("'")[0] not in common]

    @cached_property
    def content(self) -> Mapping[str, str]:
        """The content words, by their stems."""
        return {_stem(word): word for word in self.content_words}

    def is_name(self, word: str) -> bool:
        """Whether it is written with a capital or holds no letter that could be; in a script without capitals any word
        may be a name."""
        return word.upper() == word or word.capitalize() in self.text


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS] if word.isalpha() else word


def same_wording(new: Statement, old: Statement) -> float:
    """The share in [0, 1] of the words that both have in the same order."""
    return SequenceMatcher(None, old.words, new.words, autojunk=False).ratio()


def differ_in_one_value(new: Statement, old: Statement) -> bool:
    """Whether two of one wording say the same but for one value: a number, day, negation or opposite; or whether the
    new one tells what became of what it replaces ("Joachim is on call; Mira is on leave"). Questions never do."""
    if "?" in new.text or "?" in old.text or same_wording(new, old) <= MAX_SAME_WORDING:
        return False
    values = frozenset((*new.reading.listed(*VALUE_LISTS), *old.reading.listed(*VALUE_LISTS)))

    def is_value(word: str) -> bool:
        return word in values or _HAS_DIGIT(word) is not None

    differences = _differences(old.words, new.words)
    if len(differences) == 1:
        return all(is_value(word) for word in (*differences[0].gone, *differences[0].come))
    if are_of_one_form(new, old):
        return False
    of_content = _differences(old.content_words, new.content_words)
    if replaced := _replacements(of_content, old.content_words, new.content_words):
        values_of = [[is_value(word) for word in words] for words in replaced[0]]
        return all(any(found) and found.count(False) <= MAX_WORDS_BESIDE_A_VALUE for found in values_of)
    return any(difference.gone and difference.come for difference in of_content)  # the new one has all of its words


def are_of_one_form(new: Statement, old: Statement) -> bool:
    """Whether the two may tell the same of two things: other words in two places, or a name more between the words that
    both have."""
    before, after = old.content_words, new.content_words
    of_content = _differences(before, after)
    if any(
        one.is_inside and not _replacements([one], before, after) and _adds_a_name_or_loses_a_word(one, new, old)
        for one in of_content
    ):
        return True
    of_all = _differences(old.words, new.words)
    return max(len(_replacements(found, before, after)) for found in (of_content, of_all)) > 1


@dataclass(frozen=True, slots=True)
class _Difference:
    """Words of the old one, and those of the new one in their place."""

    gone: Sequence[str]
    come: Sequence[str]
    is_inside: bool
    """Words that both have stand on both sides."""


def _differences(old: Sequence[str], new: Sequence[str]) -> list[_Difference]:
    alignment = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        _Difference(old[at:to], new[new_at:new_to], is_inside=0 < n < len(alignment) - 1)
        for n, (tag, at, to, new_at, new_to) in enumerate(alignment)
        if tag != "equal"
    ]


def _replacements(
    differences: Sequence[_Difference], old_content: Sequence[str], new_content: Sequence[str]
) -> list[tuple[Set[str], Set[str]]]:
    """Content words that are only in the old one, with those only in the new one that stand in their place."""
    lost, added = {*old_content} - {*new_content}, {*new_content} - {*old_content}
    both = [(lost.intersection(one.gone), added.intersection(one.come)) for one in differences]
    return [(gone, come) for gone, come in both if gone and come]


def _adds_a_name_or_loses_a_word(difference: _Difference, new: Statement, old: Statement) -> bool:
    return any(word not in new.content_words for word in difference.gone) or any(
        new.is_name(word) for word in difference.come if word not in old.content_words
    )
