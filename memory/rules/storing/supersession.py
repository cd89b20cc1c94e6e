"""What a new memory may supersede (ruling 14): the same subject, told of otherwise. It only proposes.

    score = 10 × (cosine − others) / (1 − others) + 2.3 if the new one tells of a change
            − 3.1 × ln(1 + content words of the old one) + 2.7 × rarest shared word − 0.1

or, in a store of so many memories that they tell how rare a word is, instead of the last two terms

            + 8 × rarest shared word + 11.5 × rarest word that the new one lacks: the value that was − 12.6

`others` is the mean cosine of the other memories that are nearest to the new one: what all of a store or a language
have in common tells nothing (ruling 16). Above 0 the pair is proposed; 1 / (1 + exp(−score)) is about how often that is
right. Rarity is a word's IDF over the being's memories, in [0, 1] (`word_rarity`). Two of one wording (the phone of
one and of another) are both true as often as not: above `MAX_SAME_WORDING` a pair is proposed only if it differs in one
place, in a number, a day, a negation or an opposite. The weights are those of a logistic regression (ADR 38), rounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from madeleine.memory.text.reading import Reading
from madeleine.memory.text.scripts import HAN_AND_KANA_CHAR_CLASS

MIN_PROPOSAL_COSINE = 0.3
MAX_PROPOSAL_CANDIDATES = 3
"""Nearest memories that are compared; of the changes 90 % name the nearest, 94 % one of three."""
COMPARED_NEIGHBOURS = 6
"""Nearest memories, of which the others show how near any memory of the store lies."""
MAX_SAME_WORDING = 0.4
"""Share in [0, 1] of words in the same order."""
MAX_COMPARED_CHARS = 1_200
KNOWN_VOCABULARY_MEMORIES = 600
"""From so many memories on, how many hold a word says how rare it is."""
PRIOR_MEMORIES, PRIOR_HOLDERS = 40, 0.05
"""Of fewer it is guessed as if a word stood in one of 800 others, a guess that counts like 40 memories."""
MIN_ROOM_ABOVE_OTHERS = 0.1
"""The others may say the very same: told again after a retraction, or stored with `distinct`."""
COSINE_OF_STRANGERS = 0.3
"""In place of the mean cosine of the others in a store that has no others."""
_SIGN = f"[{HAN_AND_KANA_CHAR_CLASS}]"
_WORD = re.compile(rf"{_SIGN}|(?:(?!{_SIGN})[^\W_])+(?:[.'@/_-](?:(?!{_SIGN})[^\W_])+)*")
_CONTENT_WORD = re.compile(rf"(?=({_SIGN}{_SIGN})){_SIGN}|(?<!{_SIGN}){_SIGN}(?!{_SIGN})|(?:(?!{_SIGN})[^\W_])+(?:[.'@/_-](?:(?!{_SIGN})[^\W_])+)*")
_HAS_DIGIT = re.compile(r"\d").search
_STEM_LETTERS = 5
"""By which forms of a word are known as one in any language that is inflected at its end."""
VALUE_LISTS = ("numbers", "quantities", "amounts", "days", "months", "time_words", "negations", "opposites")
"""Of a lexicon: words that tell how many, when, or whether at all."""


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
        """The words that are no function words, in order; of signs without spaces between words, each two."""
        common = frozenset(self.reading.known_words).intersection(self.reading.listed("stop_words", "function_words"))
        words = (match[1] or match.group().removesuffix("'s") for match in _CONTENT_WORD.finditer(self.reading.low))
        return [word for word in words if word not in common and word.split("'")[0] not in common]

    def is_name(self, word: str) -> bool:
        """Whether it is written with a capital; in a script without capitals any may be one."""
        return word.upper() == word or word.capitalize() in self.text

    @cached_property
    def content(self) -> Mapping[str, str]:
        """The words that are no function words, by their stems."""
        return {_stem(word): word for word in self.content_words}


def _stem(word: str) -> str:
    return word[:_STEM_LETTERS] if word.isalpha() else word


@dataclass(frozen=True, slots=True)
class WordRarity:
    """`by_stem`: in [0, 1]. `is_known`: the being's memories are many enough to tell; else it is partly a guess."""

    by_stem: Mapping[str, float]
    is_known: bool


def word_rarity(idf: Mapping[str, float], greatest_idf: float) -> WordRarity:
    """The same in a store of five memories and of hundreds: in a small one IDF says little. `idf`: by stem;
    `greatest_idf`: of a word that no memory holds; it tells how many there are."""
    memories = math.exp(greatest_idf) / 2 - 1
    if memories >= KNOWN_VOCABULARY_MEMORIES:
        return WordRarity({stem: value / greatest_idf for stem, value in idf.items()}, is_known=True)
    return WordRarity({stem: _guessed_rarity(value, memories) for stem, value in idf.items()}, is_known=False)


def _guessed_rarity(idf: float, memories: float) -> float:
    holders = (memories + 1) / math.exp(idf) - 0.5
    share = (holders - 1 + PRIOR_HOLDERS) / (memories - 1 + PRIOR_MEMORIES)
    expected_holders = 1 + share * (KNOWN_VOCABULARY_MEMORIES - 1)
    all_memories = KNOWN_VOCABULARY_MEMORIES + 1
    rarity = math.log(all_memories / (expected_holders + 0.5)) / math.log(2 * all_memories)
    return min(1.0, max(0.0, rarity))


def supersession_score(
    new: Statement, old: Statement, *, cosine: float, other_cosines: Sequence[float], rarity: WordRarity
) -> float:
    """Above 0 the new one may supersede the old. `other_cosines`: of the other memories that are nearest to the new
    one. `rarity`: of the old one's words."""
    shared = [value for stem, value in rarity.by_stem.items() if stem in new.content]
    if not shared or "?" in new.text or "?" in old.text:
        return -math.inf
    if aligned_words(new, old).ratio() > MAX_SAME_WORDING:
        return -math.inf
    others = sum(other_cosines) / len(other_cosines) if other_cosines else COSINE_OF_STRANGERS
    others = max(others, COSINE_OF_STRANGERS)
    score = (
        10 * (cosine - others) / max(MIN_ROOM_ABOVE_OTHERS, 1 - others)
        + 2.3 * new.reading.matches("change")
        - 3.1 * math.log(1 + len(old.content))
    )
    if not rarity.is_known:
        return score + 2.7 * max(shared) - 0.1
    lost = max((value for stem, value in rarity.by_stem.items() if stem not in new.content), default=0.0)
    return score + 8 * max(shared) + 11.5 * lost - 12.6


def aligned_words(new: Statement, old: Statement) -> SequenceMatcher[str]:
    """Of the words of both in order, the old one first; its ratio is the share in [0, 1] that both have."""
    return SequenceMatcher(None, old.words, new.words, autojunk=False)


def differ_in_one_value(new: Statement, old: Statement) -> bool:
    """Whether two of one wording say the same but for one value: a number, day, negation or opposite; or whether the
    new one tells what became of what it leaves out ("Joachim is on call; Mira is on leave"). Questions never do."""
    if "?" in new.text or "?" in old.text or aligned_words(new, old).ratio() <= MAX_SAME_WORDING:
        return False
    values = frozenset((*new.reading.listed(*VALUE_LISTS), *old.reading.listed(*VALUE_LISTS)))

    def is_value(word: str) -> bool:
        return word in values or _HAS_DIGIT(word) is not None

    differences = _differences(old.words, new.words)
    if len(differences) == 1:
        [(lost, added, _)] = differences
        return all(map(is_value, (*lost, *added)))
    replaced, others = _replaced_and_others(new, old)
    if others or len(replaced) > 1:
        return False
    if not replaced:  # all words of the old one are in the new one
        return any(lost and added for lost, added, _ in _differences(old.content_words, new.content_words))
    [(lost, added)] = replaced
    return any(map(is_value, lost)) and any(map(is_value, added))


def are_of_one_form(new: Statement, old: Statement) -> bool:
    """Whether the two may tell the same of two things: other words in two places, or a name more between the words that
    both have."""
    replaced, others = _replaced_and_others(new, old)
    return others or len(replaced) > 1 or len(_replaced(old.words, new.words, set(old.content_words), set(new.content_words))) > 1


def _replaced(old: Sequence[str], new: Sequence[str], old_content: set[str], new_content: set[str]) -> list[tuple[list[str], list[str]]]:
    both = [([word for word in gone if word in old_content - new_content], [word for word in come if word in new_content - old_content]) for gone, come, _ in _differences(old, new)]
    return [pair for pair in both if all(pair)]


_Difference = tuple[Sequence[str], Sequence[str], bool]


def _replaced_and_others(new: Statement, old: Statement) -> tuple[list[tuple[Sequence[str], Sequence[str]]], bool]:
    """Content words of the old one that others stand for in the new one; and whether it has names besides, or lacks
    words, between words that both have."""
    replaced, others = [], False
    for gone, come, is_inside in _differences(old.content_words, new.content_words):
        lost = [word for word in gone if word not in new.content_words]
        added = [word for word in come if word not in old.content_words]
        if lost and added:
            replaced.append((lost, added))
        elif is_inside and (lost or any(map(new.is_name, added))):
            others = True
    return replaced, others


def _differences(old: Sequence[str], new: Sequence[str]) -> list[_Difference]:
    """Words of the old one, those of the new one in their place, and whether words that both have stand on both sides."""
    alignment = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        (old[at:to], new[new_at:new_to], 0 < n < len(alignment) - 1)
        for n, (tag, at, to, new_at, new_to) in enumerate(alignment)
        if tag != "equal"
    ]
