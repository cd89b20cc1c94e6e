"""A diffuse impression: fragments of several memories, shuffled (spec P9, rulings 7 and 22)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Protocol

from madeleine.memory.model import Memory

_OPENING = re.compile(r"[<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276e\u02c2][\W_]*+")
"""A sign that can be read as the beginning of a tag, in whatever script, with all that is no letter after it."""
_SIGNS = re.compile(r"[<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276e\u02c2]")
_TAGS = ("recall", "memory", "context")
_LONGEST = max(map(len, _TAGS))
_LOOKALIKES = str.maketrans("аеосгмуӏαεοχхтτ", "aeocrmylaeoxxtt")
_NAME_WITHIN = 100
"""Signs in which a tag's name is looked for: as written it may hold others between its letters."""


def shuffled(items: Iterable[str], chance: RandomSource) -> list[str]:
    """Fisher–Yates (Durstenfeld's form): every order is equally likely if `chance` is uniform."""
    deck = list(items)
    for last in range(len(deck) - 1, 0, -1):
        pick = chance.randrange(last + 1)
        deck[last], deck[pick] = deck[pick], deck[last]
    return deck


def quoted(text: str) -> str:
    """One line that cannot close or open the tags recalled text is delimited with, however it spells them: letter case,
    spaces, invisible signs, full-width and look-alike letters aside."""
    return without_tags(" ".join(text.split()))


def without_tags(text: str) -> str:
    """It closes and opens none of them, and keeps its lines."""

    def guarded(match: re.Match[str]) -> str:
        return (
            _SIGNS.sub("&lt;", match[0]) if _names_a_tag(text[match.end() : match.end() + _NAME_WITHIN]) else match[0]
        )

    return _OPENING.sub(guarded, text)


def _names_a_tag(rest: str) -> bool:
    name = ""
    for sign in unicodedata.normalize("NFKD", rest).casefold().translate(_LOOKALIKES):
        if name in _TAGS and not sign.isalnum():
            return True
        if len(name) > _LONGEST:
            return False
        name += sign if sign.isalnum() else ""
    return name in _TAGS


def fragments(memories: Iterable[Memory], chance: RandomSource) -> str:
    """`<recall>fragment / fragment / …</recall>`: actions and feelings, their owners' bounds blurred; "" for none."""
    deck = [part for memory in memories for part in (memory.scene.action, memory.feeling) if part]
    # Quoted again as a whole: `<` at the end of one fragment and `recall>` after it would read as a tag.
    stream = without_tags(" / ".join(quoted(part) for part in shuffled(deck, chance)))
    return f"<recall>{stream}</recall>" if deck else ""


class RandomSource(Protocol):
    """`random.Random` is one."""

    def randrange(self, stop: int, /) -> int:
        """Uniform in [0, stop)."""
        ...
