"""What a new memory may supersede (ruling 14): the same subject, told of otherwise. It only proposes.

    score = 6 × cosine + 5.5 × rarest shared word + Σ over shared words (1.5 × rarity − 1.7)
            + 11 × share of the old memory's words that are shared, by rarity
            + 13 × rarest word of the old memory that the new one lacks: the value that was
            − 11 × how alike they are worded + 1 if the new one tells of a change + 1 if it is the nearest − 18.7
            − 1 if the old one is short and they share a single word, without a word of change: as often as not a name

Rarity is a word's IDF over the being's memories, in [0, 1] (`rarity_of_word`). Two that share only common words speak
of different things; two of one wording (the phone of one and of another) are both true as often as not, so above
`MAX_SAME_WORDING` nothing is proposed. The weights are those of a logistic regression over one half of the facts that
change in `benchmarks/truth`, its look-alikes, and turns of conversations; rounded. What it finds in the other half:
there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from madeleine.memory.text.reading import Reading

MIN_PROPOSAL_COSINE = 0.3
MAX_PROPOSAL_CANDIDATES = 3
"""Nearest memories that are compared; of the changes 90 % name the nearest, 94 % one of three."""
MAX_SAME_WORDING = 0.4
"""Share in [0, 1] of words in the same order."""
MAX_COMPARED_CHARS = 1_200
MAX_SHORT_TEXT_WORDS = 4
"""Words that are no function words; of a short text a single shared one is a large share, though it is a mere name."""
KNOWN_VOCABULARY_MEMORIES = 600
"""From so many memories on, how many hold a word says how rare it is."""
PRIOR_MEMORIES, PRIOR_HOLDERS = 40, 0.05
"""Of fewer it is guessed as if a word stood in one of 800 others, a guess that counts like 40 memories."""
_INTERCEPT = -18.7
"""Of the regression: the score of two that share nothing."""
_WORD = re.compile(r"[^\W_]+(?:[.'@/_-][^\W_]+)*")
_ENDINGS = ("ing", "ed", "es", "s", "ly")
_MIN_STEM_LETTERS = 4


@dataclass(frozen=True)
class Statement:
    """A memory's text, read for a comparison with another."""

    text: str

    @cached_property
    def reading(self) -> Reading:
        return Reading(self.text[:MAX_COMPARED_CHARS])

    @cached_property
    def words(self) -> list[str]:
        """Lower case, in order; a name of several parts (`storefront-web`) is one."""
        return [word.removesuffix("'s") for word in _WORD.findall(self.reading.low)]

    @cached_property
    def content(self) -> Mapping[str, str]:
        """The words that are no function words, by their stems."""
        common = frozenset(self.reading.known_words).intersection(self.reading.listed("stop_words", "function_words"))
        content = (word for word in self.words if word not in common and word.split("'")[0] not in common)
        return {_stem(word): word for word in content}


def _stem(word: str) -> str:
    ending = next((each for each in _ENDINGS if word.endswith(each)), "")
    return word.removesuffix(ending) if word.isalpha() and len(word) - len(ending) >= _MIN_STEM_LETTERS else word


def rarity_of_word(idf: float, greatest_idf: float) -> float:
    """In [0, 1], the same in a store of five memories and of hundreds: in a small one IDF says little. `greatest_idf`:
    of a word that no memory holds; it tells how many there are."""
    memories = math.exp(greatest_idf) / 2 - 1
    if memories >= KNOWN_VOCABULARY_MEMORIES:
        return idf / greatest_idf
    holders = (memories + 1) / math.exp(idf) - 0.5
    share = (holders - 1 + PRIOR_HOLDERS) / (memories - 1 + PRIOR_MEMORIES)
    expected_holders = 1 + share * (KNOWN_VOCABULARY_MEMORIES - 1)
    all_memories = KNOWN_VOCABULARY_MEMORIES + 1
    rarity = math.log(all_memories / (expected_holders + 0.5)) / math.log(2 * all_memories)
    return min(1.0, max(0.0, rarity))


def idf_without_one(idf: float, greatest_idf: float) -> float:
    """Of a word that one memory fewer would have, but one at least."""
    half_of_all = math.exp(greatest_idf) / 2  # the memories and one
    return math.log(half_of_all / (max(1.5, half_of_all / math.exp(idf) - 1)))


def could_supersede(new: Statement, old: Statement) -> bool:
    """Whether a score can tell: they share a word, neither asks, and they are not worded alike."""
    if "?" in new.text or "?" in old.text or new.content.keys().isdisjoint(old.content):
        return False
    return _same_wording(new, old) <= MAX_SAME_WORDING


def supersession_score(
    new: Statement, old: Statement, *, cosine: float, rarity: Mapping[str, float], nearest: bool
) -> float:
    """Above 0 the new one may supersede the old. `rarity`: in [0, 1], of stems of the old one; a stem that it lacks
    tells nothing."""
    known = old.content.keys() & rarity.keys()
    shared = known & new.content.keys()
    if not shared:
        return _INTERCEPT
    shared_rarity = sum(rarity[word] for word in shared)
    all_rarity = sum(rarity[word] for word in known)
    tells_change = new.reading.matches("change")
    shares_mere_name = len(shared) == 1 and len(old.content) <= MAX_SHORT_TEXT_WORDS and not tells_change
    return (
        _INTERCEPT
        + 6 * cosine
        + 5.5 * max(rarity[word] for word in shared)
        + 1.5 * shared_rarity
        - 1.7 * len(shared)
        + 11 * shared_rarity / max(0.3, all_rarity)
        + 13 * max((rarity[word] for word in known - shared), default=0.0)
        - 11 * _same_wording(new, old)
        + tells_change
        + nearest
        - shares_mere_name
    )


def _same_wording(new: Statement, old: Statement) -> float:
    return SequenceMatcher(None, old.words, new.words, autojunk=False).ratio()
