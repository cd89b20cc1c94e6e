"""How much a text says that is worth remembering (spec L1, step 4): by signals on its surface, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from madeleine.memory.text.reading import Reading
from madeleine.memory.text.terms import STOP_WORDS, normalize

RARE_IDF = 0.8
"""Mean rarity from which the words of a text are technical; see `rarity`."""
MIN_MEMORIES_FOR_RARITY = 5.3
"""The greatest IDF, that of a word which no memory has, in a store of 100 memories: ln(1 + 100.5 / 0.5). In a smaller
one every word is rare."""
MAX_WORDS = 48
"""Of a text, looked up in the statistics."""
_CODE = re.compile(
    r"`[^`\n]+`|^[^\S\n]*(?:```|~~~)|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\w\(\)|\b\w+::\w+"
    r"|\b[A-Za-z]++\d[A-Za-z\d]*+\b|(?:^|\s)(?:[./~][\w.\-]*)?/[\w.\-]+/[\w.\-/]+|--[a-z][a-z\-]+\b|\b[A-Z]{2,}[_-][A-Z\d_-]+\b",
    re.MULTILINE,
)
"""Names in programs, commands, paths and part numbers."""


@dataclass(frozen=True, slots=True)
class SalienceSignals:
    entity: bool
    """It names a person, an organisation, a place or a product."""
    number: bool
    """It has a number or a date."""
    preference: bool
    technical: bool

    @property
    def salience(self) -> float:
        """In [0, 1]: 0.3 for an entity, 0.2 for a number or date, 0.4 for a preference, 0.1 for a technical term."""
        return min(1.0, 0.3 * self.entity + 0.2 * self.number + 0.4 * self.preference + 0.1 * self.technical)


def salience_signals(reading: Reading, *, rarity: float) -> SalienceSignals:
    """`rarity` in [0, 1]: of the words of the text among the being's memories. Takes time linear in the text."""
    return SalienceSignals(
        entity=reading.names_something,
        number=reading.tells_number,
        preference=reading.states_preference,
        technical=rarity >= RARE_IDF or bool(_CODE.search(reading.text)),
    )


def telling_words(text: str) -> list[str]:
    """The words whose rarity is the text's: without stop words, each once, the longest first, at most 48."""
    words = {word.low for word in Reading(normalize(text)).words} - STOP_WORDS
    return sorted((word for word in words if len(word) > 1), key=lambda word: (-len(word), word))[:MAX_WORDS]


def rarity(idf: Sequence[float], *, absent_term_idf: float) -> float:
    """In [0, 1]: mean IDF of the words as a share of `absent_term_idf`, the IDF of a word that no memory has. 0 for
    no words, and while there are too few memories to tell."""
    if not idf or absent_term_idf < MIN_MEMORIES_FOR_RARITY:
        return 0.0
    return min(1.0, sum(idf) / len(idf) / absent_term_idf)
