"""Extract entities and relations from what a memory says, by its structure and its capitals alone (spec O14)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from madeleine.memory.graph.values import (
    MAX_ENTITY_CHARS,
    MAX_RELATION_CHARS,
    EntityKind,
    EntityMention,
    MemoryWithExtractedEntities,
    RelationTriple,
    entity_key,
)
from madeleine.memory.model import Memory, TextOrDatedAction
from madeleine.memory.text.dates import parse_iso_period
from madeleine.memory.text.lexicon import all_words_of_lexicon_lists
from madeleine.memory.text.reading import SPEAKER_LABEL_PATTERN, AnalysedText, WordInText

GRAPH_EXTRACTION_VERSION = 1
"""Raise it with a change of what is extracted: all memories are then read again."""
MAX_CHARS_PER_TEXT_FOR_GRAPH_RULES = 4_000
"""Of a text; what is longer names more than can be followed."""
MAX_ENTITIES, MAX_RELATIONS = 24, 24
"""Of a memory."""
MAX_WORDS_BETWEEN_RELATED_NAMES = 5
"""Of a relation: more between two names is a story, and no relation of theirs."""
MAX_CAPITALISED_SHARE_TO_INFER_NAMES = 0.5
"""Of a text's words, and two more: where more have a capital, as in a heading, that tells no name."""
_WORDS_BETWEEN_NAMES_PATTERN = re.compile(r"(?:'s)? ([^\W\d_][\w' -]*) ")


def extract_entities_and_relations_by_rules(memory: Memory, known: Collection[str] = ()) -> MemoryWithExtractedEntities:
    """Pure. Actors, place, themes and days as the scene tells them; names as far as capitals tell (none in scripts
    without), and words with a capital that are a name elsewhere, by their keys in `known`; a relation where one to five
    words without punctuation stand between two names of one sentence, at least one of them of some content, as in "Ada
    works for Lindt" and "Ada's sister Mia"."""
    readings = _analysed_action_and_dialogue(memory)
    names = _NameFinder(memory.scene.actors, known)
    relations = dict.fromkeys(relation for reading in readings for relation in _relations_between_names(reading, names))
    found = _distinct_entities(_entity_names_with_kinds(memory, readings, names))
    return MemoryWithExtractedEntities(
        memory,
        tuple(EntityMention(memory.id, name, kind) for name, kind in found),
        tuple(RelationTriple(memory.id, *parts) for parts in tuple(relations)[:MAX_RELATIONS]),
    )


def keys_of_capitalised_words_of_memory(memory: Memory) -> set[str]:
    """Keys of the words with a capital, of which some may be known as names."""
    return {
        entity_key(word.stem)
        for reading in _analysed_action_and_dialogue(memory)
        for word in reading.words
        if word.is_capitalised
    }


def _analysed_action_and_dialogue(memory: Memory) -> list[AnalysedText]:
    """Of the texts in their plain form, so that places in it are places in its sentences. The speaker of a line is left
    out: an actor already, and the line is in their voice."""
    texts = (text[:MAX_CHARS_PER_TEXT_FOR_GRAPH_RULES] for text in (memory.scene.action, *memory.scene.dialogue))
    return [AnalysedText(SPEAKER_LABEL_PATTERN.sub("", AnalysedText(text).normalized_text, count=1)) for text in texts]


class _NamePhrase(NamedTuple):
    start: int
    end: int
    name: str


class _NameFinder:
    """The names that a text may have. A part of one actor's name stands for that actor."""

    def __init__(self, actors: Iterable[str], known: Collection[str]) -> None:
        self._actors: defaultdict[str, set[str]] = defaultdict(set)
        for actor in actors:
            for word in entity_key(actor).split():
                self._actors[word].add(actor)
        self._known = known

    def name_phrases(self, reading: AnalysedText) -> list[_NamePhrase]:
        """Runs of names with one space between, without the `'s` behind them."""
        words = reading.words
        is_name = self._which_words_are_names(reading)
        spans: list[tuple[int, int]] = []
        for at, word in enumerate(words):
            if not is_name[at]:
                continue
            end = word.start + len(word.text.split("'s", 1)[0]) if word.low.endswith("'s") else word.end
            goes_on = bool(spans) and reading.normalized_text[spans[-1][1] : word.start] == " "
            if goes_on:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((word.start, end))
        return [
            _NamePhrase(start, end, self._actor_name_or_text(reading.normalized_text[start:end]))
            for start, end in spans
        ]

    def _which_words_are_names(self, reading: AnalysedText) -> list[bool]:
        """More than the reading is sure of: a capital inside a sentence tells a name, whatever that word is in another
        language; one at its beginning does where a name follows."""
        lexicons = reading.lexicons
        empty_lists = [lexicon.words("function_words", "stop_words") for lexicon in lexicons]
        others = all_words_of_lexicon_lists(lexicons, "not_names", "days", "months", "first_person", "roles")
        openers = all_words_of_lexicon_lists(lexicons, "openers", "time_words")
        capitals_tell = not all(lexicon.entries.get("nouns_capitalised") for lexicon in lexicons)
        capitals = sum(word.is_capitalised for word in reading.words)
        capitals_tell = capitals_tell and capitals <= MAX_CAPITALISED_SHARE_TO_INFER_NAMES * len(reading.words) + 2
        sure = {at for start, end in reading.name_phrase_spans for at in range(start, end)}

        def may_be_name(word: WordInText) -> bool:
            return word.is_capitalised and len(word.text) > 1 and word.stem not in others

        def is_empty(word: WordInText) -> bool:
            return bool(empty_lists) and all(word.stem in empty for empty in empty_lists)

        words = reading.words
        names = [
            (word.start in sure and not (word.opens and word.stem in openers))
            or (word.is_capitalised and self._is_known_name_word(word))
            or (capitals_tell and not word.opens and may_be_name(word))
            for word in words
        ]
        for at in range(len(words) - 2, -1, -1):
            word = words[at]
            begins = word.opens and may_be_name(word) and not is_empty(word) and word.stem not in openers
            beside = reading.normalized_text[word.end : words[at + 1].start] == " "
            names[at] = names[at] or (begins and names[at + 1] and beside)
        return names

    def _is_known_name_word(self, word: WordInText) -> bool:
        key = entity_key(word.stem)
        return key in self._actors or key in self._known

    def _actor_name_or_text(self, text: str) -> str:
        actors = self._actors.get(entity_key(text), set())
        return next(iter(actors)) if len(actors) == 1 else text


def _entity_names_with_kinds(
    memory: Memory, readings: Sequence[AnalysedText], names: _NameFinder
) -> Iterator[tuple[str, EntityKind]]:
    scene = memory.scene
    yield from ((actor, "actor") for actor in scene.actors)
    yield from ((scene.setting, "place"),) if scene.setting else ()
    yield from ((theme, "theme") for theme in memory.themes)
    yield from ((date, "date") for item in scene.when if (date := _date_unless_span(item)))
    for reading in readings:
        yield from ((phrase.name, "name") for phrase in names.name_phrases(reading))


def _distinct_entities(named: Iterable[tuple[str, EntityKind]]) -> list[tuple[str, EntityKind]]:
    """Each entity once, as it is named first. What is too long is a sentence, and names nothing."""
    by_key: dict[str, tuple[str, EntityKind]] = {}
    for text, kind in named:
        name = " ".join(text.split())
        if 1 < len(name) <= MAX_ENTITY_CHARS:
            by_key.setdefault(entity_key(name), (name, kind))
    return list(by_key.values())[:MAX_ENTITIES]


def _date_unless_span(item: TextOrDatedAction) -> str:
    """A day, a month or a year as it is told; "" for a span, and for what is no date."""
    period = parse_iso_period(item if isinstance(item, str) else item.date)
    return period.text[:10] if period is not None and "/" not in period.text else ""


def _relations_between_names(reading: AnalysedText, names: _NameFinder) -> Iterator[tuple[str, str, str]]:
    phrases = names.name_phrases(reading)
    start = 0
    for sentence in reading.sentences:
        end = start + len(sentence)
        own = [phrase for phrase in phrases if start <= phrase.start < end]
        start = end
        if len(own) < 2 or AnalysedText(sentence).ends_with_question_mark:
            continue
        subject = ""
        for phrase, following in pairwise(own):
            between, continues = _relating_words_between_names(reading, phrase.end, following.start)
            # "Ben lives in Bern and works for Lindt": Ben does both.
            subject = subject if continues else phrase.name
            if between and subject and entity_key(subject) != entity_key(following.name):
                yield subject, between, following.name


def _relating_words_between_names(part: AnalysedText, start: int, end: int) -> tuple[str, bool]:
    """The words between two names, "" if they relate nothing; and whether they go on about the subject before."""
    between = _WORDS_BETWEEN_NAMES_PATTERN.fullmatch(part.normalized_text[start:end])
    if between is None:
        return "", False
    words = between[1].split()
    reading = AnalysedText(between[1], part.text)
    continues = words[0].casefold() in all_words_of_lexicon_lists(reading.lexicons, "conjunctions")
    text = " ".join(words[continues:])
    empty = all_words_of_lexicon_lists(reading.lexicons, "stop_words", "function_words")
    has_content = any(word.stem not in empty for word in reading.words)
    relates = (
        has_content
        and len(words) <= MAX_WORDS_BETWEEN_RELATED_NAMES
        and len(text) <= MAX_RELATION_CHARS
        and not reading.contains_negation
    )
    return (text if relates else ""), continues
