"""What a sub-cluster is called, without a model: by what its memories share and others do not (rulings 4 and 17)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from math import log

from madeleine.memory.model import Memory
from madeleine.memory.text.content_words import content_words
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import text_without_code_blocks

MIN_CLUSTER_NAME_WORD_CHARS = 3
MIN_MEMORIES_SHARING_CLUSTER_NAME_WORD = 2
MAX_CLUSTER_NAME_THEMES, MAX_CLUSTER_NAME_PHRASES = 2, 4
"""Of two words of a topic one is often a person's name; the others say what it is about."""
MAX_CLUSTER_NAME_CHARS = 60
MAX_DIFFERENT_ENDING_CHARS = 3
"""Behind the same beginning, of two forms of a word ("hike", "hiking")."""
SEPARATORS_WITHIN_PHRASE = " ", "-"


def cluster_name_words_of_memory(memory: Memory) -> set[str]:
    """The words of the action that could name a group, lower case: not those that join or ask in its language, nor
    numbers, nor names of its actors."""
    actors = _words_in_actor_names([memory])
    words = {
        word for word in content_words(_action_without_code_blocks(memory)) if len(word) >= MIN_CLUSTER_NAME_WORD_CHARS
    }
    return {word for word in words if not any(map(str.isdigit, word))} - actors


def _action_without_code_blocks(memory: Memory) -> str:
    """The action without its blocks of code, if anything is left: "href" and "charset" are in every page."""
    return text_without_code_blocks(memory.scene.action).strip() or memory.scene.action


def _words_in_actor_names(memories: Iterable[Memory]) -> set[str]:
    actors = {actor for memory in memories for actor in memory.scene.actors}
    return {word.low for actor in actors for word in AnalysedText(actor).words}


def memory_counts_of_cluster_name_words(memories: Sequence[Memory]) -> Counter[str]:
    """Words that at least two of the memories hold, with how many do; not the names of those who act in them: they
    address each other, whatever they talk about."""
    counts = Counter(word for memory in memories for word in cluster_name_words_of_memory(memory))
    for word in _words_in_actor_names(memories):
        del counts[word]
    return Counter({word: count for word, count in counts.items() if count >= MIN_MEMORIES_SHARING_CLUSTER_NAME_WORD})


def cluster_name_from_memories(
    memories: Sequence[Memory], idf: Mapping[str, float], taken: Collection[str] = ()
) -> str:
    """Up to two themes that at least half of the memories share; else up to four words or phrases that tell most, as
    the memories write them; else the beginning of the first action. At most 60 characters. `idf`: of each word, as the
    index knows it, among all memories of the being. `taken`: names of other clusters, from which it differs if a phrase
    can tell them apart."""
    themes = Counter(theme for memory in memories for theme in dict.fromkeys(memory.themes))
    common = [theme for theme, count in themes.most_common() if count * 2 >= len(memories)][:MAX_CLUSTER_NAME_THEMES]
    phrases = _most_telling_phrases(memories, idf)
    if not common and not phrases:
        return _beginning_of_action(memories[0])
    shown = common or phrases[:MAX_CLUSTER_NAME_PHRASES]
    others = (phrase for phrase in phrases if phrase not in shown)
    names = map(
        _join_phrases_to_fit_name, (shown, *([*shown[: MAX_CLUSTER_NAME_PHRASES - 1], phrase] for phrase in others))
    )
    return next((name for name in names if name not in taken), _join_phrases_to_fit_name(shown))


def _beginning_of_action(memory: Memory) -> str:
    return " ".join(memory.scene.action.split())[:MAX_CLUSTER_NAME_CHARS]


def _join_phrases_to_fit_name(phrases: Sequence[str]) -> str:
    """The first, or its beginning, and each of the others that still fits."""
    name = phrases[0][:MAX_CLUSTER_NAME_CHARS]
    for phrase in phrases[1:]:
        if len(longer := f"{name}, {phrase}") <= MAX_CLUSTER_NAME_CHARS:
            name = longer
    return name


def _most_telling_phrases(memories: Sequence[Memory], idf: Mapping[str, float]) -> list[str]:
    """The naming words, the most telling first, one form of each; with the word beside it where at least half of those
    that hold it hold both: every conversation states, but few have a personal statement.

    How much a word tells is its part of the relative entropy of the cluster to all memories (Kullback and Leibler
    1951): how many of its memories hold it, times the logarithm of how much more often it is here than anywhere. A rare
    word that few of them hold tells little of what the others are about."""
    counts = memory_counts_of_cluster_name_words(memories)

    def telling(word: str) -> float:
        return counts[word] * (idf.get(word, 0.0) + log(counts[word] / len(memories)))

    forms = _WrittenFormCounts()
    for memory in memories:
        forms.count_forms_in_memory(memory, counts)
    phrases: list[str] = []
    named: set[str] = set()
    for word in sorted(counts, key=lambda word: (-telling(word), word)):
        if any(_are_forms_of_one_word(word, other) for other in named):
            continue
        words = forms.commonest_pair_with_word(
            word, max(MIN_MEMORIES_SHARING_CLUSTER_NAME_WORD, counts[word] / 2), named
        )
        phrases.append(forms.commonest_form(words))
        named.update(words)
    return phrases


def _are_forms_of_one_word(first: str, second: str) -> bool:
    shared = sum(1 for _ in takewhile(lambda letters: letters[0] == letters[1], zip(first, second, strict=False)))
    return shared >= MIN_CLUSTER_NAME_WORD_CHARS and max(len(first), len(second)) - shared <= MAX_DIFFERENT_ENDING_CHARS


@dataclass
class _WrittenFormCounts:
    """How words, and two that stand side by side, are written inside a sentence, where only names have a capital; by
    their lower case, with the memories that write them so."""

    counts: defaultdict[tuple[str, ...], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    pairs_of_word: defaultdict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))

    def count_forms_in_memory(self, memory: Memory, naming: Collection[str]) -> None:
        text = AnalysedText(_action_without_code_blocks(memory))
        words = [word for word in text.words if word.low in naming]
        forms: set[tuple[tuple[str, ...], str]] = {((word.low,), word.text) for word in words if not word.opens}
        for first, second in pairwise(words):
            between = text.normalized_text[first.end : second.start]
            if between in SEPARATORS_WITHIN_PHRASE and first.low != second.low:
                pair = (first.low, second.low)
                first_form = first.low if first.opens else first.text
                forms.add((pair, f"{first_form}{between}{second.text}"))
                for low in pair:
                    self.pairs_of_word[low].add(pair)
        for lows, form in forms:
            self.counts[lows][form] += 1

    def commonest_pair_with_word(self, word: str, fewest: float, named: Collection[str]) -> tuple[str, ...]:
        """The pair that most memories write, if so many do and neither word is named already; else the word alone."""
        pairs = (pair for pair in self.pairs_of_word[word] if not any(low in named for low in pair))
        counted = [(count, pair) for pair in pairs if (count := self.counts[pair].total()) >= fewest]
        return max(counted)[1] if counted else (word,)

    def commonest_form(self, words: tuple[str, ...]) -> str:
        forms = self.counts[words]
        return max(forms, key=lambda form: (forms[form], form), default=" ".join(words))
