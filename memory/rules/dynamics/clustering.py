"""Sub-clusters: their mean, their names (ruling 4) and their root (ruling 5), without a model."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import Memory
from madeleine.memory.text.content_words import content_words
from madeleine.memory.text.reading import AnalysedText

MIN_CLUSTERING_COSINE = 0.45
"""Cosine from which a memory belongs to a cluster (spec P6 ❶), and two clusters may be one (❼)."""


def unit_mean_vector(vectors: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """The unit vector of the mean of unit rows (spec P3); None for no rows or a mean of zero."""
    if len(vectors) == 0:
        return None
    mean = vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm, np.float32) if norm > 0 else None


MIN_CLUSTER_NAME_WORD_CHARS = 3
MIN_MEMORIES_SHARING_CLUSTER_NAME_WORD = 2
MAX_CLUSTER_NAME_THEMES, MAX_CLUSTER_NAME_WORDS = 2, 4
"""Of two words of a topic one is often a person's name; the others say what it is about."""
MAX_CLUSTER_NAME_CHARS = 60


def cluster_name_words_of_memory(memory: Memory) -> set[str]:
    """The words of the action that could name a group, lower case: not those that join or ask in its language, nor
    numbers, nor names of its actors."""
    actors = {word.low for actor in memory.scene.actors for word in AnalysedText(actor).words}
    words = {word for word in content_words(memory.scene.action) if len(word) >= MIN_CLUSTER_NAME_WORD_CHARS}
    return {word for word in words if not any(map(str.isdigit, word))} - actors


def counts_of_words_shared_by_memories(memories: Sequence[Memory]) -> Counter[str]:
    """Words that at least two of the memories hold, with how many do."""
    counts = Counter(word for memory in memories for word in cluster_name_words_of_memory(memory))
    return Counter({word: count for word, count in counts.items() if count >= MIN_MEMORIES_SHARING_CLUSTER_NAME_WORD})


def cluster_name_from_memories(
    memories: Sequence[Memory], idf: Mapping[str, float], taken: Collection[str] = ()
) -> str:
    """Up to two themes that at least half of the memories share; else the three words with the greatest count × IDF, as
    the memories write them; else the beginning of the first action. At most 60 characters. `taken`: names of other
    clusters, from which it differs if a word can tell them apart (rulings 4, 17)."""
    themes = Counter(theme for memory in memories for theme in dict.fromkeys(memory.themes))
    common = [theme for theme, count in themes.most_common() if count * 2 >= len(memories)][:MAX_CLUSTER_NAME_THEMES]
    counts = counts_of_words_shared_by_memories(memories)
    telling = sorted(counts, key=lambda word: (-counts[word] * idf.get(word, 0.0), word))
    forms = _word_forms_inside_sentences(memories)
    words = [max(forms[word], key=lambda form: (forms[word][form], form), default=word) for word in telling]
    if not common and not words:
        return _beginning_of_action(memories[0])
    shown, others = (common, words) if common else (words[:MAX_CLUSTER_NAME_WORDS], words[MAX_CLUSTER_NAME_WORDS:])
    names = [
        ", ".join(parts)[:MAX_CLUSTER_NAME_CHARS]
        for parts in (shown, *([*shown[: MAX_CLUSTER_NAME_WORDS - 1], word] for word in others))
    ]
    return next((name for name in names if name not in taken), names[0])


def is_cluster_name_made_of_words(name: str, memories: Iterable[Memory]) -> bool:
    """Whether `cluster_name_from_memories` may have made it of words or of an action of these memories: a name that
    somebody has given is seldom a list of such words."""
    parts = name.lower().split(", ")
    words: set[str] = set()
    for memory in memories:
        if name == _beginning_of_action(memory):
            return True
        words |= cluster_name_words_of_memory(memory)
    return len(parts) > 1 and words.issuperset(parts)


def _beginning_of_action(memory: Memory) -> str:
    return " ".join(memory.scene.action.split())[:MAX_CLUSTER_NAME_CHARS]


def _word_forms_inside_sentences(memories: Sequence[Memory]) -> defaultdict[str, Counter[str]]:
    """How often each word is written how, by its lower case: inside a sentence only names have a capital."""
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for memory in memories:
        for word in AnalysedText(memory.scene.action).words:
            if not word.opens:
                forms[word.low][word.text] += 1
    return forms


RootClusterName = Literal["Business", "Private"]
ROOT_CLUSTER_NAMES: tuple[RootClusterName, ...] = get_args(RootClusterName)
_PROTOTYPES = tomllib.loads((Path(__file__).parent / "root_prototypes.toml").read_text("utf-8"))
ROOT_CLUSTER_PROTOTYPE_TEXTS: Mapping[RootClusterName, Sequence[str]] = {
    root: _PROTOTYPES[root] for root in ROOT_CLUSTER_NAMES
}


def nearest_root_cluster(
    vector: NDArray[np.float32], prototypes: Mapping[RootClusterName, NDArray[np.float32]]
) -> RootClusterName:
    """`prototypes`: float32, (k, dim), unit rows. The root with the nearest prototypes (mean of its three best)."""

    def nearness(root: RootClusterName) -> float:
        return float(np.sort(prototypes[root] @ vector)[-3:].mean())

    return max(ROOT_CLUSTER_NAMES, key=lambda root: (nearness(root), root))
