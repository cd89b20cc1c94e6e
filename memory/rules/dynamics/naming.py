"""What a new sub-cluster is called (ruling 4): after its commonest themes, else its most telling words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from madeleine.memory.model import Memory
from madeleine.memory.text.reading import Reading
from madeleine.memory.text.terms import STOP_WORDS, normalize

MIN_WORD_CHARS = 3
NAME_PARTS = 2
MAX_NAME_CHARS = 60


def words_of(memory: Memory) -> set[str]:
    """The words of the action that could name a group, lower case; names of its actors are left out."""
    text = normalize(memory.scene.action).casefold()
    actors = {word for actor in memory.scene.actors for word in _long_words(actor.casefold())}
    return _long_words(text) - STOP_WORDS - actors


def _long_words(text: str) -> set[str]:
    return {word.low for word in Reading(text).words if len(word.low) >= MIN_WORD_CHARS}


def common_words(memories: Sequence[Memory]) -> Counter[str]:
    """Words that at least two of the memories hold, with how many do."""
    counts = Counter(word for memory in memories for word in words_of(memory))
    return Counter({word: count for word, count in counts.items() if count >= NAME_PARTS})


def cluster_name(memories: Sequence[Memory], idf: Mapping[str, float]) -> str:
    """Up to two themes that at least half of the memories share; else the two words with the greatest count × IDF;
    else the beginning of the first action. At most 60 characters."""
    themes = Counter(theme for memory in memories for theme in dict.fromkeys(memory.themes))
    common = [theme for theme, count in themes.most_common() if count * 2 >= len(memories)]
    if common:
        return " & ".join(common[:NAME_PARTS])[:MAX_NAME_CHARS]
    counts = common_words(memories)
    telling = sorted(counts, key=lambda word: (-counts[word] * idf.get(word, 0.0), word))
    if telling:
        return " & ".join(telling[:NAME_PARTS])[:MAX_NAME_CHARS]
    return " ".join(memories[0].scene.action.split())[:MAX_NAME_CHARS]
