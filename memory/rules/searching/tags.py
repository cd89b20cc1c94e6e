"""The subject of a message as tags (spec H1).

Stop words are left out; quoted, marked and capitalised words come before others, longer words before shorter ones. In
scripts without spaces, runs of Katakana and short runs of Han signs are words, longer Han runs are cut into pairs;
Hiragana (endings and particles) is skipped.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from madeleine.memory.keyword_search import Stemmer, Tag
from madeleine.memory.rules.searching.tag_forms import HAN, HANGUL, KATAKANA, THAI, UNSPACED, holds, tag_of
from madeleine.memory.text.folding import fold
from madeleine.memory.text.lexicon import lexicons_by_script, without
from madeleine.memory.text.sentences import sentences
from madeleine.memory.text.terms import STOP_WORDS, normalize

MAX_TAGS = 8
"""Each is searched in all texts of the being: about 25 ms for 100,000 texts."""
MAX_TAG_CHARS = 60

_QUOTED = re.compile(
    r'"([^"\n]{1,60})"|“([^”\n]{1,60})”|«([^»\n]{1,60})»|„([^“”\n]{1,60})[“”]|「([^」\n]{1,60})」|『([^』\n]{1,60})』'
)
_HASHTAG = re.compile(r"(?<![^\W_])#(\w+)")
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_CLAUSE_END = re.compile(r"[:\n]\s")
_LINK = re.compile(r"\b\w+://\S+")
_WORD = re.compile(f"[^\\W{HAN}{KATAKANA}{HANGUL}{THAI}\u3041-\u309f]+(?:['’\\-][^\\W{HAN}]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")


def extract_tags(message: str) -> Iterator[str]:
    """All tags, folded, the most specific first; a tag may repeat."""
    text = _LINK.sub(" ", unicodedata.normalize("NFKC", message))
    quoted = (next(filter(None, groups)) for groups in _QUOTED.findall(text))
    marked = [*quoted, *_HASHTAG.findall(text), *_DATE.findall(text)]
    names: list[str] = []
    words: list[str] = []
    for position, word in _words(_DATE.sub(" ", text)):
        (names if position > 0 and word[0].isupper() and not word.isupper() else words).append(word)
    words.sort(key=len, reverse=True)
    for candidate in chain(marked, names, _unspaced_words(text), words):
        tag = " ".join(fold(candidate).split())
        if _is_specific(tag):
            yield tag


def tags_of(message: str, stem: Stemmer) -> tuple[Tag, ...]:
    """The `MAX_TAGS` most specific tags; forms of one word are one tag."""
    tags: dict[tuple[str, ...], Tag] = {}
    for text in extract_tags(message):
        tag = tag_of(text, stem)
        tags.setdefault(tag.forms, tag)
        if len(tags) == MAX_TAGS:
            break
    return tuple(tags.values())


def _words(text: str) -> Iterator[tuple[int, str]]:
    """(position in its sentence, word)."""
    for sentence in (sentence for clause in _CLAUSE_END.split(text) for sentence in sentences(clause)):
        for position, word in enumerate(_WORD.findall(sentence)):
            yield position, _POSSESSIVE.sub("", word)


def _is_specific(tag: str) -> bool:
    shortest = 3 if tag.isascii() and " " not in tag else 2
    return shortest <= len(tag) <= MAX_TAG_CHARS and normalize(tag) not in STOP_WORDS


def _unspaced_words(text: str) -> list[str]:
    words: list[str] = []
    lexicons = lexicons_by_script(text)
    for run in UNSPACED.findall(text):
        if re.match(f"[{HAN}]", run):
            words += [word for part in without(run, "function_signs", lexicons).split() for word in _han_words(part)]
        elif re.match(f"[{HANGUL}]", run):
            words.append(without(run, "particle", lexicons, by="") or run)
        else:
            words.append(run)
    return words


def _han_words(han: str) -> list[str]:
    return [han] if len(han) <= 3 else [han[at : at + 2] for at in range(len(han) - 1)]


def related_themes(cooccurring: Sequence[Sequence[str]], tags: Sequence[Tag], *, most: int) -> tuple[str, ...]:
    """Themes that often co-occur with a tag: on at least 2, and a quarter, of the memories with a theme that holds a
    tag, the commonest first. `cooccurring`: the themes of each of these
    memories."""
    counts: Counter[str] = Counter()
    for themes in cooccurring:
        counts.update(theme for theme in set(map(fold, themes)) if not any(holds(theme, tag) for tag in tags))
    frequent = [theme for theme, count in counts.items() if count >= max(2, len(cooccurring) / 4)]
    return tuple(sorted(frequent, key=lambda theme: (-counts[theme], theme))[:most])
