"""Whether two scenes say the same, although they are worded alike (spec T6, ruling 13).

Two sentences that differ in a digit, a name, an opposite or in the order of two words lie at cosine ≥ 0.92 and mean
different things. So sameness is proved, word upon word; where it is not, both are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from madeleine.memory.model import DatedAction, Memory, Scene
from madeleine.memory.rules.storing.similar_wording import MIN_RESEMBLANCE_TO_LINK_MEMORIES
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.same_words import differ_only_in_case_or_punctuation
from madeleine.memory.text.wording import WordingForComparison, have_equivalent_wording

MAX_WORD_ALIGNED_TEXT_CHARS = 1_200
"""To lay two longer texts side by side, word upon word, takes a tenth of a second, and a store compares fifteen."""
FACT_LEXICON_LIST_NAMES = (
    "numbers",
    "quantities",
    "amounts",
    "days",
    "months",
    "time_words",
    "negations",
    "opposites",
    "persons",
)
"""Of a lexicon: the words for amounts, days, negations, opposites and persons."""


@dataclass(frozen=True, slots=True)
class DuplicateThresholds:
    """`same`: a cosine (spec T6), below which no scene is one told again; it must have the same words besides.
    `resembling`: a resemblance (`similar_wording`), from which a scene is linked to the most similar memory."""

    same: float = 0.8
    resembling: float = MIN_RESEMBLANCE_TO_LINK_MEMORIES


@dataclass(frozen=True, slots=True)
class FactualDetailsOfText:
    """What makes a sentence another one, however it is worded."""

    numbers: tuple[str, ...]
    names: frozenset[str]
    words: tuple[tuple[str, int], ...]
    """Words for amounts, days, negations, opposites and persons, with how often they stand there."""
    caseless: tuple[str, ...]
    """What stands in scripts without case, where names and negations cannot be told from other words."""


def extract_numbers_names_and_fact_words(reading: AnalysedText) -> FactualDetailsOfText:
    fact_words = reading.words_in_lexicon_lists(*FACT_LEXICON_LIST_NAMES)
    known = frozenset(fact_words)
    return FactualDetailsOfText(
        numbers=tuple(sorted(reading.numbers)),
        names=frozenset(
            word.stem
            for word in reading.possible_names
            if word.stem not in known and (not word.opens or not word.text[1:].islower())
        ),
        words=tuple(sorted(Counter(fact_words).items())),
        caseless=reading.letter_runs_in_caseless_scripts,
    )


def describe_difference_in_facts(text: str, other: str) -> str:
    """Why `text` cannot be another telling of `other`, in words; "" where no fact speaks against it. A fact that only
    one of them tells is no difference: a retelling may be shorter."""
    mine, theirs = AnalysedText(text, other), AnalysedText(other, text)
    kinds = {
        "number": (_numbers_without_leading_zeros(mine), _numbers_without_leading_zeros(theirs)),
        "day": (
            frozenset(mine.words_in_lexicon_lists("days", "months")),
            frozenset(theirs.words_in_lexicon_lists("days", "months")),
        ),
        "name": (mine.stems_of_recognised_names, theirs.stems_of_recognised_names),
        "value": (_opposite_words_except_weak(mine), _opposite_words_except_weak(theirs)),
    }
    for kind, (own, others) in kinds.items():
        if own - others and others - own:
            told, known = map(_up_to_three_values_as_text, (own - others, others - own))
            return f"tells another {kind} ({told}, not {known})"
    return (
        "denies what the other says, or says what it denies"
        if mine.contains_negation != theirs.contains_negation
        else ""
    )


def _opposite_words_except_weak(reading: AnalysedText) -> frozenset[str]:
    """Without those that come and go when a sentence is put in other words (up, in, over)."""
    return frozenset(reading.words_in_lexicon_lists("opposites")) - frozenset(
        reading.words_in_lexicon_lists("weak_opposites")
    )


def _numbers_without_leading_zeros(reading: AnalysedText) -> frozenset[str]:
    return frozenset(value.lstrip("0") or "0" for value in reading.canonical_number_texts)


def _up_to_three_values_as_text(values: frozenset[str]) -> str:
    return ", ".join(sorted(values)[:3])


def new_memory_tells_nothing_beyond_old(new: Memory, old: Memory) -> bool:
    """Whether reinforcing the old memory would lose nothing that the new one tells (ruling 13).

    Their texts must have the same words in the same order (`memory.text.wording`). Actors and settings count when both
    have them: a scene stored without them may be the same one, told shorter. Lines, details and a timeline that only
    the new one has are news, and so is the category procedural. Another day, lesson or feeling is not another fact:
    `rules.storing.retelling` keeps it.
    """
    return (
        (new.category == old.category or new.category != "procedural")
        and not _new_scene_adds_details(new.scene, old.scene)
        and _have_equivalent_wording_or_same_if_long(new.scene.action, old.scene.action)
    )


def _have_equivalent_wording_or_same_if_long(new: str, old: str) -> bool:
    """Of long texts every word has to be the same: in doubt both are kept."""
    is_long = max(len(new), len(old)) > MAX_WORD_ALIGNED_TEXT_CHARS
    return (not is_long or differ_only_in_case_or_punctuation(new, old)) and have_equivalent_wording(new, old)


def _new_scene_adds_details(new: Scene, old: Scene) -> bool:
    actors, known_actors = _comparison_keys_of_texts(new.actors), _comparison_keys_of_texts(old.actors)
    return not (
        actors in (set(), known_actors)
        and _comparison_keys_of_texts([new.setting]) <= _comparison_keys_of_texts([old.setting, ""])
        and _comparison_keys_of_texts(new.dialogue) <= _comparison_keys_of_texts(old.dialogue)
        and _comparison_keys_of_texts(new.sensory) <= _comparison_keys_of_texts(old.sensory)
        and {item for item in new.when if isinstance(item, DatedAction)} <= set(old.when)
    )


def _comparison_keys_of_texts(texts: Iterable[str]) -> set[str]:
    return {WordingForComparison(text).comparison_key for text in texts}
