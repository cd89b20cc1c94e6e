"""A diffuse impression: fragments of several memories, shuffled (spec P9, ruling 7)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory.model import Memory
from memory.ports import RandomSource

_TAG = re.compile(r"<(?=\s*/?\s*(?:recall|memory)\b)", re.IGNORECASE)


def shuffled(items: Iterable[str], chance: RandomSource) -> list[str]:
    """Fisher–Yates (Durstenfeld's form): every order is equally likely if `chance` is uniform."""
    deck = list(items)
    for last in range(len(deck) - 1, 0, -1):
        pick = chance.randrange(last + 1)
        deck[last], deck[pick] = deck[pick], deck[last]
    return deck


def quoted(text: str) -> str:
    """One line that cannot close or open the tags recalled text is delimited with."""
    return _TAG.sub("&lt;", " ".join(text.split()))


def fragments(memories: Iterable[Memory], chance: RandomSource) -> str:
    """`<recall>fragment / fragment / …</recall>`: actions and feelings, their owners' bounds blurred; "" for none."""
    deck = [part for memory in memories for part in (memory.scene.action, memory.feeling) if part]
    # Quoted again as a whole: `<` at the end of one fragment and `recall>` after it would read as a tag.
    stream = _TAG.sub("&lt;", " / ".join(quoted(part) for part in shuffled(deck, chance)))
    return f"<recall>{stream}</recall>" if deck else ""
