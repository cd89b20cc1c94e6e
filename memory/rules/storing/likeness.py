"""Whether two scenes say the same, although they are worded alike (spec T6, ruling 13).

Two sentences that differ in a digit, a name, a date or a negation lie at cosine ≥ 0.92 and mean different things.
So the facts that a vector cannot tell apart are compared as they stand, and any difference keeps both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from madeleine.memory.model import DatedAction, Memory, when_date
from madeleine.memory.text.reading import Reading
from madeleine.memory.text.terms import STOP_WORDS

MIN_SAME_SCENE_COSINE = 0.92
"""Cosine from which a scene counts as stored again (spec T6)."""
RESEMBLING_COSINE = 0.8
"""Cosine from which a scene that is no other's equal is linked to the nearest one (spec T6)."""

_LONG_SCENE_WORDS = 30
"""Words. In a longer text one word more or less hardly moves the vector, and a model reads only so far."""
_OPPOSITE_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis", "de")
FACT_LISTS = ("numbers", "quantities", "amounts", "days", "months", "time_words", "negations", "opposites", "persons")
"""Of a lexicon: the words for amounts, days, negations, opposites and persons."""


@dataclass(frozen=True, slots=True)
class TextFacts:
    """What must be equal for two scenes to be the same."""

    numbers: tuple[str, ...]
    names: frozenset[str]
    words: tuple[tuple[str, int], ...]
    """Words for amounts, days, negations, opposites and persons, with how often they stand there."""
    caseless: tuple[str, ...]
    """What stands in scripts without case, where names and negations cannot be told from other words."""


def facts(reading: Reading) -> TextFacts:
    fact_words = reading.listed(*FACT_LISTS)
    known = frozenset(fact_words)
    return TextFacts(
        numbers=tuple(sorted(reading.numbers)),
        names=frozenset(
            word.stem
            for word in reading.possible_names
            if word.stem not in known and (not word.opens or not word.text[1:].islower())
        ),
        words=tuple(sorted(Counter(fact_words).items())),
        caseless=reading.caseless_runs,
    )


def memories_tell_same_facts(new: Memory, old: Memory) -> bool:
    """False where numbers, dates, names or a negation differ, or where the new one tells something beyond the old.

    Dates, actors and settings count when both have them: a scene stored without them may be the same one, told
    shorter. A capitalised word that opens a sentence counts as a name if the other scene does not hold the word at
    all and opens with another capitalised word in its place. Neither scene may hold the opposite of a word of the
    other (encrypted, unencrypted), and of two long ones the new may hold no word that the old has not.
    """
    mine_text, their_text = (f"{memory.scene.action}\n{memory.feeling}" for memory in (new, old))
    mine, theirs = Reading(mine_text, their_text), Reading(their_text, mine_text)
    if facts(mine) != facts(theirs):
        return False
    my_words, their_words = _word_stems(mine), _word_stems(theirs)
    if (_name_stems(mine) - their_words) and (_name_stems(theirs) - my_words):
        return False
    mine_only, theirs_only = my_words - their_words, their_words - my_words
    if _has_opposite(mine_only, their_words) or _has_opposite(theirs_only, my_words):
        return False
    if len(mine.words) > _LONG_SCENE_WORDS and mine_only - STOP_WORDS:
        return False
    return not (_attributes_differ(new, old) or _tells_more(new, old))


def _word_stems(reading: Reading) -> frozenset[str]:
    return frozenset(word.stem for word in reading.words)


def _name_stems(reading: Reading) -> frozenset[str]:
    """Also at a sentence's start, where a word with a capital may be a name or not."""
    return frozenset(word.stem for word in reading.possible_names) - frozenset(reading.listed(*FACT_LISTS))


def _has_opposite(words: frozenset[str], others: frozenset[str]) -> bool:
    return any(
        word.removeprefix(prefix) in others
        for word in words
        for prefix in _OPPOSITE_PREFIXES
        if word.startswith(prefix)
    ) or any(word.endswith("less") and {word[:-4], f"{word[:-4]}ful"} & others for word in words)


def _attributes_differ(new: Memory, old: Memory) -> bool:
    pairs = (
        ({when_date(item) for item in new.scene.when}, {when_date(item) for item in old.scene.when}),
        ({actor.casefold() for actor in new.scene.actors}, {actor.casefold() for actor in old.scene.actors}),
        ({new.scene.setting.casefold()} - {""}, {old.scene.setting.casefold()} - {""}),
    )
    return any(mine and theirs and mine != theirs for mine, theirs in pairs)


def _tells_more(new: Memory, old: Memory) -> bool:
    return not (
        set(new.scene.dialogue) <= set(old.scene.dialogue)
        and set(new.scene.sensory) <= set(old.scene.sensory)
        and set(new.scene.actors) <= set(old.scene.actors)
        and set(new.emotions) <= set(old.emotions)
        and new.scene.setting in {"", old.scene.setting}
        and new.lesson in {"", old.lesson}
        and new.feeling in {"", old.feeling}
        and new.category == old.category
        and (not new.scene.when or bool(old.scene.when))
        and {item for item in new.scene.when if isinstance(item, DatedAction)} <= set(old.scene.when)
    )
