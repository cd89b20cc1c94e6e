"""What a message is about, as tags (spec H1), and when a text holds one (spec H2).

Words that tell little are left out; of the rest, what was marked or is a name goes before other words, longer words
before shorter ones. Where words are not spaced, runs of Katakana and short runs of Han signs are words, longer runs are
cut into pairs; Hiragana is endings and particles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from memory.rules.folding import fold
from memory.rules.lexicon import STOP_WORDS, normalize
from memory.tagging import Stem, Tag

MOST_TAGS = 8
"""Each is looked for in everything the being has: 10 to 15 ms for 100,000 texts."""
WORD_SIGNS = "0-9a-z_ß-öø-ÿĀ-῿Ⰰ-ⷿ"
"""Of folded words in scripts with spaces, as the inside of a character class. Unspaced scripts are not among them, so
that a Latin word ends where Japanese goes on."""
LONG_STEM = 5
"""Letters from which on whatever begins with a stem is taken for a form of the word. With fewer it is not: `car` begins
`care`, `card` and `carry`."""
LONGEST_TAG = 60
_DOUBLES = re.compile("[aeiou][bdgklmnprt]$")

_QUOTED = re.compile(r'"([^"\n]+)"|“([^”\n]+)”|«([^»\n]+)»|„([^“”\n]+)[“”]|「([^」\n]+)」|『([^』\n]+)』')
_HASHTAG = re.compile(r"(?<![^\W_])#(\w+)")
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_LINK = re.compile(r"\b\w+://\S+")
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30fe"
_HANGUL = "\uac00-\ud7a3"
_THAI = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_UNSPACED = re.compile(f"[{_HAN}]+|[{_KATAKANA}]+|[{_HANGUL}]+|[{_THAI}]+")
_WORD = re.compile(f"[^\\W{_HAN}{_KATAKANA}{_HANGUL}{_THAI}\u3041-\u309f]+(?:['’\\-][^\\W{_HAN}]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_PARTICLE = re.compile("(?:에서|에게|까지|부터|은|는|이|가|을|를|에|의|도|로|와|과)$")
"""Korean, behind a word."""
_FUNCTION_SIGNS = re.compile("[我你他她它们們的了在是这這那有和就不也都吗嗎呢吧与與很]")
"""Chinese, between words; in Japanese they are parts of words, 京都."""
_KANA = re.compile("[\u3041-\u30ff]")
_NOTHING = re.compile("(?!)")


def extract_tags(message: str) -> tuple[str, ...]:
    """All that tells anything, folded, each once, the most telling first."""
    text = _LINK.sub(" ", unicodedata.normalize("NFKC", message))
    marked = [next(filter(None, quoted)) for quoted in _QUOTED.findall(text)] + _HASHTAG.findall(text)
    marked = [one for one in marked if len(one) <= LONGEST_TAG] + _DATE.findall(text)
    names: list[str] = []
    words: list[str] = []
    for place, word in _words(_DATE.sub(" ", text)):
        (names if place > 0 and word[0].isupper() and not word.isupper() else words).append(word)
    words.sort(key=len, reverse=True)
    telling = (" ".join(fold(one).split()) for one in (*marked, *names, *_unspaced(text), *words))
    return tuple(dict.fromkeys(tag for tag in telling if tag and _tells(tag)))


def tags_of(message: str, stem: Stem) -> tuple[Tag, ...]:
    """The `MOST_TAGS` most telling ones; forms of one word are one tag."""
    found: dict[tuple[str, ...], Tag] = {}
    for text in extract_tags(message):
        tag = tag_of(text, stem)
        found.setdefault(tag.forms, tag)
        if len(found) == MOST_TAGS:
            break
    return tuple(found.values())


def _words(text: str) -> Iterable[tuple[int, str]]:
    """(its place in its sentence, the word)."""
    for sentence in re.split(r"[.!?\n:]+\s", text):
        for place, found in enumerate(_WORD.findall(sentence)):
            yield place, _POSSESSIVE.sub("", found)


def _tells(tag: str) -> bool:
    if " " in tag or not tag.isascii():
        return len(tag) > 1 and tag not in STOP_WORDS
    return len(tag) > 2 and normalize(tag) not in STOP_WORDS


def _unspaced(text: str) -> list[str]:
    found: list[str] = []
    between = _NOTHING if _KANA.search(text) else _FUNCTION_SIGNS
    for run in _UNSPACED.findall(text):
        if re.match(f"[{_HAN}]", run):
            found += [piece for part in between.split(run) for piece in _pieces(part)]
        elif re.match(f"[{_HANGUL}]", run):
            found.append(_PARTICLE.sub("", run) or run)
        else:
            found.append(run[:LONGEST_TAG])
    return found


def _pieces(han: str) -> list[str]:
    return [han] if len(han) <= 3 else [han[at : at + 2] for at in range(len(han) - 1)]


def tag_of(text: str, stem: Stem) -> Tag:
    """How a text is known to hold the tag. `text` is folded."""
    if _UNSPACED.match(text):
        return Tag(text, "part", (text,), text)
    if not text.isalpha():
        spaced = text.replace("_", " ")
        return Tag(text, "words", tuple(dict.fromkeys((text, spaced))), _beginning_of([text, spaced]))
    stemmed = stem(text)
    base = _beginning_of([text, stemmed.removesuffix("i")])
    if len(base) >= LONG_STEM + (base == text):
        return Tag(text, "beginning", (base,), base)
    forms = sorted({text, *(form for form in _forms(stemmed) if stem(form) == stemmed)})
    return Tag(text, "words", tuple(forms), _beginning_of(forms))


def _beginning_of(words: Sequence[str]) -> str:
    """What all of them begin with."""
    alike = takewhile(lambda signs: len({*signs}) == 1, zip(*words, strict=False))
    return "".join(signs[0] for signs in alike)


def _forms(stemmed: str) -> list[str]:
    """What English makes of a short stem; whatever is no word stands in no text."""
    if stemmed.endswith("i"):  # berri: berry
        root = stemmed[:-1]
        return [root + ending for ending in ("y", "ies", "ied", "ying")]
    if stemmed.endswith("e"):  # make
        root = stemmed[:-1]
        return [root + ending for ending in ("e", "es", "ed", "ing")]
    doubled = stemmed + stemmed[-1:] if _DOUBLES.search(stemmed) else stemmed
    return [stemmed, *(stemmed + ending for ending in ("s", "es", "e")), doubled + "ed", doubled + "ing"]


def holds(folded: str, tag: Tag) -> bool:
    """`folded` is what is searched of one text."""
    return pattern_of([tag]).search(folded) is not None


def pattern_of(tags: Iterable[Tag]) -> re.Pattern[str]:
    """Where a folded text holds one of them."""
    return _compiled("|".join(_pattern(tag) for tag in tags))


def _pattern(tag: Tag) -> str:
    forms = "|".join(re.escape(form) for form in tag.forms)
    if tag.kind == "part":
        return forms
    end = f"(?![{WORD_SIGNS}])" if tag.kind == "words" else ""
    return f"(?<![{WORD_SIGNS}])(?:{forms}){end}"


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


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
