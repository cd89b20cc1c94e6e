"""What a message is about, as tags (spec H1).

Words that tell little are left out; of the rest, what was marked or is a name goes before other words, longer words
before shorter ones. Where words are not spaced, runs of Katakana and short runs of Han signs are words, longer runs are
cut into pairs; Hiragana is endings and particles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain

from madeleine.memory.keyword_search import Stemmer, Tag
from madeleine.memory.rules.searching.tag_forms import HAN, HANGUL, KATAKANA, THAI, UNSPACED, holds, tag_of
from madeleine.memory.text.folding import fold
from madeleine.memory.text.terms import STOP_WORDS, normalize

MOST_TAGS = 8
"""Each is looked for in everything the being has: about 25 ms for 100,000 texts."""
LONGEST_TAG = 60

_QUOTED = re.compile(
    r'"([^"\n]{1,60})"|“([^”\n]{1,60})”|«([^»\n]{1,60})»|„([^“”\n]{1,60})[“”]|「([^」\n]{1,60})」|『([^』\n]{1,60})』'
)
_HASHTAG = re.compile(r"(?<![^\W_])#(\w+)")
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_SENTENCE_END = re.compile(r"[.!?:\n]\s")
_LINK = re.compile(r"\b\w+://\S+")
_WORD = re.compile(f"[^\\W{HAN}{KATAKANA}{HANGUL}{THAI}\u3041-\u309f]+(?:['’\\-][^\\W{HAN}]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_PARTICLE = re.compile("(?:에서|에게|까지|부터|은|는|이|가|을|를|에|의|도|로|와|과)$")
"""Korean, behind a word."""
_FUNCTION_SIGNS = re.compile("[我你他她它们們的了在是这這那有和就不也都吗嗎呢吧与與很]")
"""Chinese, between words; in Japanese they are parts of words, 京都."""
_KANA = re.compile("[\u3041-\u30ff]")
_NOTHING = re.compile("(?!)")


def extract_tags(message: str) -> Iterator[str]:
    """All that tells anything, folded, the most telling first; one may come more than once."""
    text = _LINK.sub(" ", unicodedata.normalize("NFKC", message))
    quoted = (next(filter(None, groups)) for groups in _QUOTED.findall(text))
    marked = [*quoted, *_HASHTAG.findall(text), *_DATE.findall(text)]
    names: list[str] = []
    words: list[str] = []
    for place, word in _words(_DATE.sub(" ", text)):
        (names if place > 0 and word[0].isupper() and not word.isupper() else words).append(word)
    words.sort(key=len, reverse=True)
    for found in chain(marked, names, _unspaced(text), words):
        tag = " ".join(fold(found).split())
        if _tells(tag):
            yield tag


def tags_of(message: str, stem: Stemmer) -> tuple[Tag, ...]:
    """The `MOST_TAGS` most telling ones; forms of one word are one tag."""
    found: dict[tuple[str, ...], Tag] = {}
    for text in extract_tags(message):
        tag = tag_of(text, stem)
        found.setdefault(tag.forms, tag)
        if len(found) == MOST_TAGS:
            break
    return tuple(found.values())


def _words(text: str) -> Iterator[tuple[int, str]]:
    """(its place in its sentence, the word)."""
    for sentence in _SENTENCE_END.split(text):
        for place, found in enumerate(_WORD.findall(sentence)):
            yield place, _POSSESSIVE.sub("", found)


def _tells(tag: str) -> bool:
    shortest = 3 if tag.isascii() and " " not in tag else 2
    return shortest <= len(tag) <= LONGEST_TAG and normalize(tag) not in STOP_WORDS


def _unspaced(text: str) -> list[str]:
    found: list[str] = []
    between = _NOTHING if _KANA.search(text) else _FUNCTION_SIGNS
    for run in UNSPACED.findall(text):
        if re.match(f"[{HAN}]", run):
            found += [piece for part in between.split(run) for piece in _pieces(part)]
        elif re.match(f"[{HANGUL}]", run):
            found.append(_PARTICLE.sub("", run) or run)
        else:
            found.append(run)
    return found


def _pieces(han: str) -> list[str]:
    return [han] if len(han) <= 3 else [han[at : at + 2] for at in range(len(han) - 1)]


def related_themes(beside: Sequence[Sequence[str]], tags: Sequence[Tag], *, most: int) -> tuple[str, ...]:
    """Themes that often stand together with a tag: on at least 2 memories, and on a quarter of those that have a theme
    which holds a tag; the commonest first. `beside`: the themes of these."""
    numbers: dict[str, int] = {}
    for themes in beside:
        for theme in {fold(one) for one in themes}:
            if not any(holds(theme, tag) for tag in tags):
                numbers[theme] = numbers.get(theme, 0) + 1
    often = [theme for theme, number in numbers.items() if number >= max(2, len(beside) / 4)]
    return tuple(sorted(often, key=lambda theme: (-numbers[theme], theme))[:most])
