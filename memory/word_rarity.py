"""How rare words are among a being's memories, as the index counts them."""

from __future__ import annotations

from collections.abc import Mapping

from madeleine.memory.index import WordIdfSource
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.supersession import idf_without_one, rarity_of_word

_UNUSED_WORD = "qzxvjwkq"


async def rarity_of_words(
    index: WordIdfSource, scope: Scope, words: Mapping[str, str], *, without_one: bool = False
) -> dict[str, float]:
    """In [0, 1], by stem, of the words that the index has; `words` by stem. `without_one`: as if one memory fewer had
    each: so it was when the second one that has it was stored."""
    if not words:
        return {}
    # A word that no memory has is as rare as a word can be.
    *idf, greatest = await index.idf(scope, [*words.values(), _UNUSED_WORD])
    known = ((stem, value) for stem, value in zip(words, idf, strict=True) if 0 < value < greatest)
    return {
        stem: rarity_of_word(idf_without_one(value, greatest) if without_one else value, greatest)
        for stem, value in known
    }
