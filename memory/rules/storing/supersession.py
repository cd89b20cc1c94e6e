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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from madeleine.memory.text.reading import Reading
from madeleine.memory.text.scripts import HAN_OR_KANA_SIGN, HANGUL_CHAR_CLASS, HIRAGANA_RUN

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
_UNSPACED_SIGN = HAN_OR_KANA_SIGN.pattern
_WORD = re.compile(rf"(?:(?!{_UNSPACED_SIGN})[^\W_])+(?:[.'@/_-](?:(?!{_UNSPACED_SIGN})[^\W_])+)*|{_UNSPACED_SIGN}+")
_HANGUL = re.compile(f"[{HANGUL_CHAR_CLASS}]")
_QUESTION_MARK = re.compile("[?？؟]")
_STEM_LETTERS = 5
"""By which forms of a word are known as one in any language that is inflected at its end."""
_STEM_SYLLABLES = 2
"""Of a Korean word, to whose end particles are joined."""
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
        """Lower case, in order; a name of several parts (`storefront-web`) is one. Where words are not spaced, any two
        signs."""
        return [part for word in _WORD.findall(self.reading.low) for part in _parts(word)]

    @cached_property
    def content(self) -> Mapping[str, str]:
        """The words that are no function words, by their stems."""
        common = frozenset(self.reading.known_words).intersection(self.reading.listed("stop_words", "function_words"))
        content = (word for word in self.words if word not in common and word.split("'")[0] not in common)
        return {_stem(word): word for word in content if not HIRAGANA_RUN.fullmatch(word)}

    @cached_property
    def asks(self) -> bool:
        return _QUESTION_MARK.search(self.text) is not None


def _parts(word: str) -> list[str]:
    if not HAN_OR_KANA_SIGN.match(word):
        return [word.removesuffix("'s")]
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def _stem(word: str) -> str:
    if _HANGUL.match(word):
        return word[:_STEM_SYLLABLES]
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
    if not shared or new.asks or old.asks:
        return -math.inf
    if aligned_words(new, old).ratio() > MAX_SAME_WORDING:
        return -math.inf
    others = sum(other_cosines) / len(other_cosines) if other_cosines else COSINE_OF_STRANGERS
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
    """Whether all words are the same, in order, but for one number, day, negation or opposite. Questions never do."""
    wordings = aligned_words(new, old)
    if new.asks or old.asks or wordings.ratio() <= MAX_SAME_WORDING:
        return False
    differences = [(at, to, new_at, new_to) for tag, at, to, new_at, new_to in wordings.get_opcodes() if tag != "equal"]
    if len(differences) != 1:
        return False
    [(at, to, new_at, new_to)] = differences
    values = frozenset((*new.reading.listed(*VALUE_LISTS), *old.reading.listed(*VALUE_LISTS)))
    return all(word in values or word[0].isdigit() for word in (*old.words[at:to], *new.words[new_at:new_to]))
