"""Whether two scenes say the same, although they are worded alike (spec T6, ruling 13).

Two sentences that differ in a digit, a name, a date or a negation lie at cosine ≥ 0.92 and mean different things.
So the facts that a vector cannot tell apart are compared as they stand, and any difference keeps both.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from madeleine.memory.model import DatedAction, Memory, when_date
from madeleine.memory.text.terms import STOP_WORDS

SAME = 0.92
"""Cosine from which a scene counts as stored again (spec T6)."""
RESEMBLES = 0.8
"""Cosine from which a scene that is no other's equal is linked to the nearest one (spec T6)."""

_NUMBER = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_SENTENCE_OPENERS = frozenset('.!?:;\n"\u201c\u2018([—–-')
_LONG = 30
"""Words. In a longer text one word more or less hardly moves the vector, and a model reads only so far."""
_OPPOSITE_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis", "de")

_NUMBER_WORDS = frozenset(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion first
    second third fourth fifth sixth seventh eighth ninth tenth once twice half quarter dozen couple single double
    none both several many few more less fewer increase decrease increased decreased before after first last
    """.split()
)
_DATE_WORDS = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december today tomorrow yesterday tonight morning afternoon evening night noon midnight
    week month year weekend spring summer autumn fall winter daily weekly monthly yearly next
    """.split()
)
_NEGATIONS = frozenset(
    """
    no not never none nobody nothing neither nor without cannot hardly barely scarcely stop stopped quit refuse refused
    refuses deny denied denies decline declined declines reject rejected rejects cancel cancelled canceled fail failed
    unable lack lacks lacked against except unless hate hates hated dislike dislikes disliked nicht kein keine nie
    """.split()
)
_ANTONYMS = frozenset(
    """
    accept accepted accepts like likes liked love loves loved start started begin began agree agreed agrees disagree
    disagreed disagrees always sometimes often rarely seldom yes true false win won wins lose lost loses up down in out
    on off open opened close closed left right early late earlier later better worse good bad happy sad won buy bought
    sell sold give gave take took come came go went arrive arrived leave leaves borrow borrowed lend lent hot cold new
    old high low higher lower big small large long short on over under mother father brother sister son daughter wife
    manual manually automatic automatically public private alive dead passed postponed successful gone growing
    husband he she his her him hers i you we they my your our their me us them
    """.split()
)
_TELLING = _NUMBER_WORDS | _DATE_WORDS | _NEGATIONS | _ANTONYMS


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be equal for two scenes to be the same."""

    numbers: tuple[str, ...]
    names: frozenset[str]
    telling: tuple[tuple[str, int], ...]
    """Words for amounts, days, negations and opposites, with how often they stand there."""
    negated: int
    """Words in -n't."""
    caseless: tuple[str, ...]
    """What stands in scripts without case, where names and negations cannot be told from other words."""


def facts(text: str) -> Facts:
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    names: set[str] = set()
    telling: Counter[str] = Counter()
    negated = 0
    for found in _WORD.finditer(text):
        word = found.group()
        low = word.casefold()
        stem = low.split("'")[0]
        negated += low.endswith("n't") or low in {"dont", "cant", "wont", "isnt", "didnt", "doesnt"}
        if low in _TELLING or stem in _TELLING:
            telling[low if low in _TELLING else stem] += 1
        elif word[0].isupper() and stem not in STOP_WORDS:
            before = text[max(0, found.start() - 8) : found.start()].rstrip(" \t")
            if (before and before[-1] not in _SENTENCE_OPENERS) or not word[1:].islower():
                names.add(stem)
    return Facts(
        numbers=tuple(sorted(_NUMBER.findall(text))),
        names=frozenset(names),
        telling=tuple(sorted(telling.items())),
        negated=negated,
        caseless=_caseless(text),
    )


def _caseless(text: str) -> tuple[str, ...]:
    if text.isascii():
        return ()
    runs = groupby(text, lambda sign: unicodedata.category(sign)[0] in "LM" and sign.lower() == sign.upper())
    return tuple("".join(run) for caseless, run in runs if caseless)


def _starting_names(text: str) -> frozenset[str]:
    """Capitalised words anywhere: at a sentence's start one may be a name or not."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    return frozenset(word.split("'")[0].casefold() for word in words if word[0].isupper()) - STOP_WORDS - _TELLING


def _words(text: str) -> frozenset[str]:
    return frozenset(w.casefold().split("'")[0] for w in _WORD.findall(unicodedata.normalize("NFKC", text)))


def same_facts(new: Memory, old: Memory) -> bool:
    """False where numbers, dates, names or a negation differ, or where the new one tells something beyond the old.

    Dates, actors and settings count when both have them: a scene stored without them may be the same one, told
    shorter. A capitalised word that opens a sentence counts as a name if the other scene does not hold the word at
    all and opens with another capitalised word in its place. Neither scene may hold the opposite of a word of the
    other (encrypted, unencrypted), and of two long ones the new may hold no word that the old has not.
    """
    mine, theirs = _told(new), _told(old)
    if facts(mine) != facts(theirs):
        return False
    if (_starting_names(mine) - _words(theirs)) and (_starting_names(theirs) - _words(mine)):
        return False
    mine_only, theirs_only = _words(mine) - _words(theirs), _words(theirs) - _words(mine)
    if _opposed(mine_only, _words(theirs)) or _opposed(theirs_only, _words(mine)):
        return False
    if len(_WORD.findall(mine)) > _LONG and mine_only - STOP_WORDS:
        return False
    return not (_differ(new, old) or _tells_more(new, old))


def _opposed(words: frozenset[str], others: frozenset[str]) -> bool:
    return any(
        word.removeprefix(prefix) in others
        for word in words
        for prefix in _OPPOSITE_PREFIXES
        if word.startswith(prefix)
    ) or any(word.endswith("less") and {word[:-4], f"{word[:-4]}ful"} & others for word in words)


def _told(memory: Memory) -> str:
    return f"{memory.scene.action}\n{memory.feeling}"


def _differ(new: Memory, old: Memory) -> bool:
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
