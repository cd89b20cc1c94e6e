"""The subject of a message as tags (spec H1), texts ranked by the tags that they hold (spec H2), and hits: their
snippets, order and duplicates (spec H3, H4).

Stop words are left out; quoted, marked and capitalised words come before others, longer words before shorter ones. In
scripts without spaces, runs of Katakana and short runs of Han signs are words, longer Han runs are cut into pairs;
Hiragana (endings and particles) is skipped.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from heapq import nsmallest
from itertools import chain, islice, takewhile
from math import log2
from typing import Literal

from madeleine.memory.keyword_search import (
    HitTimeAndId,
    SearchHit,
    SearchSource,
    SearchTagFromMessage,
    Stemmer,
    TagMatchesInOneSource,
)
from madeleine.memory.text.lexicon import (
    lexicons_for_script_of_text,
    load_language_neutral_pattern,
    text_without_lexicon_pattern,
)
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.scripts import (
    HAN_AND_KANA_CHAR_CLASS,
    HAN_CHAR_CLASS,
    HANGUL_CHAR_CLASS,
    KATAKANA_CHAR_CLASS,
    SOUTHEAST_ASIAN_CHAR_CLASS,
)
from madeleine.memory.text.sentences import split_sentences
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS, normalize_and_drop_apostrophes

SPACED_SCRIPT_CHAR_CLASS = "0-9a-z_\u00df-\u00f6\u00f8-\u00ff\u0100-\u1fff\u2c00-\u2dff"
"""Inside of a character class: letters of folded words in scripts with spaces. Unspaced scripts are left out, so that a
Latin word ends where Japanese follows."""
EXACT_SEARCH_WORD_CHAR_CLASS = SPACED_SCRIPT_CHAR_CLASS.replace("_", "")
"""Of an exact search: each part of `db_orders` begins a word."""
_EXACT_SEARCH_WORD_CHAR = re.compile(f"[{EXACT_SEARCH_WORD_CHAR_CLASS}]")
MIN_PREFIX_STEM_CHARS = 5
"""Letters a stem needs so that any word beginning with it counts as a form. Shorter stems are ambiguous: `car` begins
`care`, `card` and `carry`."""
UNSPACED_SCRIPT_RUN_PATTERN = re.compile(
    f"[{HAN_CHAR_CLASS}]+|[{KATAKANA_CHAR_CLASS}]+|[{HANGUL_CHAR_CLASS}]+|[{SOUTHEAST_ASIAN_CHAR_CLASS}]+"
)
_STEM_ENDING_THAT_DOUBLES = re.compile("[aeiou][bdgklmnprt]$")


def search_tag_of_word_or_phrase(text: str, stem: Stemmer) -> SearchTagFromMessage:
    """Build the tag of a folded word or phrase, with the forms in which texts hold it."""
    if UNSPACED_SCRIPT_RUN_PATTERN.match(text):
        return SearchTagFromMessage(text, "part", (text,), text)
    if not text.isalpha():
        spaced = text.replace("_", " ")
        return SearchTagFromMessage(text, "words", tuple(dict.fromkeys((text, spaced))), _common_prefix([text, spaced]))
    stemmed = stem(text)
    base = _common_prefix([text, stemmed.removesuffix("i")])
    if len(base) >= MIN_PREFIX_STEM_CHARS + (base == text):
        return SearchTagFromMessage(text, "beginning", (base,), base)
    forms = sorted({text, *(form for form in _possible_english_forms_of_stem(stemmed) if stem(form) == stemmed)})
    return SearchTagFromMessage(text, "words", tuple(forms), _common_prefix(forms))


def _common_prefix(words: Sequence[str]) -> str:
    same = takewhile(lambda letters: len({*letters}) == 1, zip(*words, strict=False))
    return "".join(letters[0] for letters in same)


def _possible_english_forms_of_stem(stemmed: str) -> list[str]:
    """Possible English forms of a short stem; non-words among them match nothing."""
    if stemmed.endswith("i"):  # berri: berry
        root = stemmed[:-1]
        return [root + ending for ending in ("y", "ies", "ied", "ying")]
    if stemmed.endswith("e"):  # make
        root = stemmed[:-1]
        return [root + ending for ending in ("e", "es", "ed", "ing")]
    doubled = stemmed + stemmed[-1:] if _STEM_ENDING_THAT_DOUBLES.search(stemmed) else stemmed
    return [stemmed, *(stemmed + ending for ending in ("s", "es", "e")), doubled + "ed", doubled + "ing"]


def text_has_message_tag(folded: str, tag: SearchTagFromMessage) -> bool:
    """Whether a folded text holds the tag."""
    return tag.anchor in folded and _compiled_pattern(_tag_pattern(tag)).search(folded) is not None


def make_first_tag_position_finder(tags: Iterable[SearchTagFromMessage]) -> FindFirstMatchPosition:
    """Find the first of the tags in a folded text."""
    pattern = _compiled_pattern("|".join(map(_tag_pattern, tags)))

    def find_match(folded: str) -> int:
        match = pattern.search(folded)
        return match.start() if match else -1

    return find_match


def _tag_pattern(tag: SearchTagFromMessage) -> str:
    forms = "|".join(re.escape(form) for form in tag.forms)
    if tag.kind == "part":
        return forms
    end = f"(?![{SPACED_SCRIPT_CHAR_CLASS}])" if tag.kind == "words" else ""
    return f"(?<![{SPACED_SCRIPT_CHAR_CLASS}])(?:{forms}){end}"


@lru_cache(maxsize=64)
def _compiled_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


# --- the tags of a message ---

MAX_SEARCH_TAGS_FROM_MESSAGE = 8
"""Each is searched in all texts of the being: about 25 ms for 100,000 texts."""
MAX_SEARCH_TAG_CHARS = 60

_QUOTED_PHRASE = load_language_neutral_pattern("quoted_phrase")
_HASHTAG = re.compile(r"(?<![^\W_])#(\w+)")
_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_CLAUSE_END = re.compile(r"[:\n]\s")
_LINK = re.compile(r"\b\w+://\S+")
_WORD = re.compile(
    f"[^\\W{HAN_AND_KANA_CHAR_CLASS}{HANGUL_CHAR_CLASS}{SOUTHEAST_ASIAN_CHAR_CLASS}]+(?:['’\\-][^\\W{HAN_CHAR_CLASS}]+)*"
)
_POSSESSIVE = re.compile(r"['’]s?$")


def extract_search_tags_from_message(message: str) -> Iterator[str]:
    """All tags, folded, the most specific first; a tag may repeat."""
    text = _LINK.sub(" ", unicodedata.normalize("NFKC", message))
    quoted = (next(filter(None, groups)) for groups in _QUOTED_PHRASE.findall(text))
    marked = [*quoted, *_HASHTAG.findall(text), *_DATE.findall(text)]
    names: list[str] = []
    words: list[str] = []
    for position, word in _words_with_sentence_position(_DATE.sub(" ", text)):
        (names if position > 0 and word[0].isupper() and not word.isupper() else words).append(word)
    words.sort(key=len, reverse=True)
    for candidate in chain(marked, names, _words_in_unspaced_scripts(text), words):
        tag = " ".join(fold_text(candidate).split())
        if _is_specific_tag(tag):
            yield tag


def extract_most_specific_search_tags(message: str, stem: Stemmer) -> tuple[SearchTagFromMessage, ...]:
    """The `MAX_SEARCH_TAGS_FROM_MESSAGE` most specific tags; forms of one word are one tag."""
    tags: dict[tuple[str, ...], SearchTagFromMessage] = {}
    for text in extract_search_tags_from_message(message):
        tag = search_tag_of_word_or_phrase(text, stem)
        tags.setdefault(tag.forms, tag)
        if len(tags) == MAX_SEARCH_TAGS_FROM_MESSAGE:
            break
    return tuple(tags.values())


def _words_with_sentence_position(text: str) -> Iterator[tuple[int, str]]:
    """(position in its sentence, word)."""
    for sentence in (sentence for clause in _CLAUSE_END.split(text) for sentence in split_sentences(clause)):
        for position, word in enumerate(_WORD.findall(sentence)):
            yield position, _POSSESSIVE.sub("", word)


def _is_specific_tag(tag: str) -> bool:
    shortest = 3 if tag.isascii() and " " not in tag else 2
    return (
        shortest <= len(tag) <= MAX_SEARCH_TAG_CHARS and normalize_and_drop_apostrophes(tag) not in ENGLISH_STOP_WORDS
    )


def _words_in_unspaced_scripts(text: str) -> list[str]:
    words: list[str] = []
    lexicons = lexicons_for_script_of_text(text)
    for run in UNSPACED_SCRIPT_RUN_PATTERN.findall(text):
        if re.match(f"[{HAN_CHAR_CLASS}]", run):
            words += [
                word
                for part in text_without_lexicon_pattern(run, "function_signs", lexicons).split()
                for word in _split_han_run(part)
            ]
        elif re.match(f"[{HANGUL_CHAR_CLASS}]", run):
            words.append(text_without_lexicon_pattern(run, "particle", lexicons, by="") or run)
        else:
            words.append(run)
    return words


def _split_han_run(han: str) -> list[str]:
    return [han] if len(han) <= 3 else [han[at : at + 2] for at in range(len(han) - 1)]


def related_themes(
    cooccurring: Sequence[Sequence[str]], tags: Sequence[SearchTagFromMessage], *, most: int
) -> tuple[str, ...]:
    """Themes that often co-occur with a tag: on at least 2, and a quarter, of the memories with a theme that holds a
    tag, the commonest first. `cooccurring`: the themes of each of these
    memories."""
    counts: Counter[str] = Counter()
    for themes in cooccurring:
        counts.update(
            theme for theme in set(map(fold_text, themes)) if not any(text_has_message_tag(theme, tag) for tag in tags)
        )
    frequent = [theme for theme, count in counts.items() if count >= max(2, len(cooccurring) / 4)]
    return tuple(sorted(frequent, key=lambda theme: (-counts[theme], theme))[:most])


# --- ranking ---

MIN_SHARE_OF_BEST_TAG_SCORE = 0.5
"""Share of the best weight from which a text counts as near; weaker ones only fill up the limit."""

SearchedItemKey = tuple[SearchSource, str]
"""A source and an id in it."""
TagMatchSortKey = tuple[bool, float]
"""Whether a text holds a tag of the message itself (these come before texts with a related theme alone), and the sum of
the weights of its tags."""


def rarity_weights_of_tags(matches: Sequence[TagMatchesInOneSource], tags: int) -> tuple[float, ...]:
    """1 / log2(2 + n) for each tag that n texts hold, and last for the related themes: 0.63 for n = 1, 0.10 for a
    thousand."""
    counts = [0] * (tags + 1)
    for source_matches in matches:
        for mask, count in source_matches.counts.items():
            for bit in range(tags + 1):
                counts[bit] += count * (mask >> bit & 1)
    return tuple(1 / log2(2 + count) for count in counts)


def items_best_matching_tags(
    matches: Sequence[TagMatchesInOneSource], tags: int, limit: int
) -> list[tuple[SearchedItemKey, TagMatchSortKey]]:
    """The best `limit` texts, best first; the newest of equals first."""
    weights = rarity_weights_of_tags(matches, tags)
    own_tags = (1 << tags) - 1

    @cache
    def weight(mask: int) -> TagMatchSortKey:
        return bool(mask & own_tags), sum(weights[bit] for bit in range(tags + 1) if mask >> bit & 1)

    def sort_key(match: tuple[HitTimeAndId, int, SearchSource]) -> tuple[bool, float, int, str, str]:
        (at, id_), mask, source = match
        is_own, total = weight(mask)
        return not is_own, -total, -at, id_, source

    texts = ((position, mask, match.source) for match in matches for position, mask in match.newest)
    best = nsmallest(limit, texts, key=sort_key)
    return [((source, id_), weight(mask)) for (_, id_), mask, source in best]


def keep_hits_near_best_tag_match(hits: Sequence[tuple[SearchHit, TagMatchSortKey]], limit: int) -> list[SearchHit]:
    """The hits near the best one, given best first; `limit` hits where fewer are near."""
    if not hits:
        return []
    _, (best_is_own, best_weight) = hits[0]
    near = sum(
        is_own == best_is_own and weight >= MIN_SHARE_OF_BEST_TAG_SCORE * best_weight for _, (is_own, weight) in hits
    )
    return [hit for hit, _ in hits[: max(limit, near)]]


MAX_HIT_SNIPPET_CHARS = 400
"""Length of a snippet at most (spec H3)."""
SNIPPET_CHARS_BEFORE_MATCH = 100
"""Characters of a snippet before the match."""
ELLIPSIS = "…"
_MAX_CHARS_CUT_TO_WHOLE_WORD = 40
"""Characters given up at most to begin and end with a whole word."""

FindFirstMatchPosition = Callable[[str], int]
"""Position of the first match in a folded text; -1 for none."""


def make_first_match_position_finder(terms: Iterable[str]) -> FindFirstMatchPosition:
    """Find the first of the terms that begins a word, else the first of them. Not a pattern: two long terms that differ
    at their ends would be compared anew at each character."""
    folded_terms = [fold_text(term) for term in terms]

    def find_match(folded: str) -> int:
        begun = [at for term in folded_terms if (at := _first_position_where_word_begins_with_term(folded, term)) >= 0]
        return min(begun or (at for at in map(folded.find, folded_terms) if at >= 0), default=-1)

    return find_match


def folded_text_has_terms(
    folded: str, folded_terms: Sequence[str], mode: Literal["or", "and"], *, within_words: bool = True
) -> bool:
    """Whether a folded text has any of the terms, or all of them; True without terms. `within_words`: also within words
    alone."""
    if not folded_terms:
        return True
    find = str.find if within_words else _first_position_where_word_begins_with_term
    contained = (find(folded, term) >= 0 for term in folded_terms)
    return all(contained) if mode == "and" else any(contained)


def term_needs_word_beginning(folded_term: str) -> bool:
    """Whether it can stand within a word: it begins with a letter or a digit of a script with spaces."""
    return _EXACT_SEARCH_WORD_CHAR.match(folded_term) is not None


def _first_position_where_word_begins_with_term(folded: str, term: str) -> int:
    """The first place of the term at which a word begins; -1 for none."""
    at = folded.find(term)
    if not term_needs_word_beginning(term):
        return at
    while at > 0 and _EXACT_SEARCH_WORD_CHAR.match(folded, at - 1):
        at = folded.find(term, at + 1)
    return at


def excerpt_around_match(text: str, find_match: FindFirstMatchPosition) -> str:
    """Return a short text whole; of a longer one up to `MAX_HIT_SNIPPET_CHARS` characters around the match, or its
    beginning without a match. An ellipsis marks what is left out."""
    if len(text) <= MAX_HIT_SNIPPET_CHARS:
        return text
    folded = fold_text(text)
    at = _unfolded_position(text, folded, max(0, find_match(folded)))
    room = MAX_HIT_SNIPPET_CHARS - 2 * len(ELLIPSIS)
    start = max(0, min(at - SNIPPET_CHARS_BEFORE_MATCH, len(text) - room))
    if start > 0:
        start = _next_word_start(text, start, at)
    end = min(len(text), start + room)
    if end < len(text):
        end = _last_word_end(text, end, at)
    return f"{ELLIPSIS if start else ''}{text[start:end]}{ELLIPSIS if end < len(text) else ''}"


def hit_with_snippet(hit: SearchHit, find_match: FindFirstMatchPosition) -> SearchHit:
    """The snippet is of the hit's text, and of the further text that holds the match if its text does not."""
    text = hit.text
    if hit.further_texts and find_match(fold_text(text)) < 0:
        further = (part for part in hit.further_texts if find_match(fold_text(part)) >= 0)
        text = " — ".join([text, *islice(further, 1)])
    return replace(hit, snippet=excerpt_around_match(text, find_match))


def _unfolded_position(text: str, folded: str, at: int) -> int:
    """Position in `text` of the character at `at` in its folded form, where `ß` takes two and an accent none."""
    if len(folded) == len(text):
        return at
    return bisect_right(range(1, len(text)), at, key=lambda end: len(fold_text(text[:end])))


def _next_word_start(text: str, start: int, at: int) -> int:
    spaces = (
        position for position in range(start, min(at, start + _MAX_CHARS_CUT_TO_WHOLE_WORD)) if text[position].isspace()
    )
    return next(spaces, start - 1) + 1


def _last_word_end(text: str, end: int, at: int) -> int:
    slack = range(end, max(at + 1, end - _MAX_CHARS_CUT_TO_WHOLE_WORD), -1)
    return next((position for position in slack if text[position].isspace()), end)


SNIPPET_CHARS_COMPARED_FOR_DUPLICATES = 100
"""Beginning of the snippet that tells two hits apart."""


def deduplicated_hits(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Keep the first of the hits with the same source, id and beginning of the snippet, in the given order."""
    unique: dict[tuple[str, str, str], SearchHit] = {}
    for hit in hits:
        unique.setdefault((hit.source, hit.id, hit.snippet[:SNIPPET_CHARS_COMPARED_FOR_DUPLICATES]), hit)
    return list(unique.values())


def sort_hits_newest_first(hits: Iterable[SearchHit]) -> list[SearchHit]:
    """Sort by time, equal times by id."""
    return sorted(hits, key=lambda hit: (-hit.position[0], hit.position[1]))
