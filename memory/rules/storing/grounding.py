"""Whether a text that a model wrote rests on what it was shown: its numbers and names stand there too (spec T3)."""

from __future__ import annotations

import re
import unicodedata

from madeleine.memory.text.lexicon import load_pattern
from madeleine.memory.text.reading import Reading, number_value

_STATED_VALUE = load_pattern("stated_value")
_VERB_ENDINGS = ("ing", "ed", "ly", "ez", "iert", "ый", "но")
_WORD_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")


def ungrounded_terms(text: str, sources: str, *, orders: bool = False) -> tuple[str, ...]:
    """Names, numbers and values of the text that do not stand in the sources, nor in words; in order, each once.
    A value is what is quoted, an address, or what is said to be a password, a code, an account.

    A name is a capitalised word, at a sentence's beginning only if the sources have no such word in any form. Where
    nouns are capitalised, in German, some may be the writer's own: not if most of them are. `orders`: the text is an
    instruction, whose sentences begin with a verb.
    """
    said, shown = Reading(unicodedata.normalize("NFKC", text)), Reading(unicodedata.normalize("NFKC", sources))
    new = (*_new_numbers(said, shown), *_new_names(said, shown, orders), *_new_values(said, shown))
    return tuple(dict.fromkeys(new))


def _new_numbers(said: Reading, shown: Reading) -> list[str]:
    known = shown.number_values
    return [number for number in said.numbers if number_value(number) not in known and number.lstrip("0") not in known]


def _new_names(said: Reading, shown: Reading, orders: bool) -> list[str]:
    known = {_WORD_ENDING.sub("", word.stem) for word in shown.words}
    names = said.possible_names
    unknown = [
        word.text
        for word in names
        if not _is_known_stem(_WORD_ENDING.sub("", word.stem), known)
        and not (word.opens and (orders or word.stem.endswith(_VERB_ENDINGS)))
    ]
    own_nouns = any(one.entries.get("nouns_capitalised") for one in said.lexicons) and len(unknown) * 2 < len(names)
    return [] if own_nouns else unknown


def _is_known_stem(stem: str, known: set[str]) -> bool:
    return stem in known or any(
        len(one) >= 3
        and len(stem) >= 3
        and (stem.startswith(one) or one.startswith(stem))
        and abs(len(one) - len(stem)) <= 3
        for one in known
    )


def _new_values(said: Reading, shown: Reading) -> list[str]:
    known = _casefolded_words(shown.text)
    values = (next(filter(None, match.groups())).rstrip(".!?)") for match in _STATED_VALUE.finditer(said.text))
    return [value for value in values if not _casefolded_words(value) <= known]


def _casefolded_words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w+", text)}
