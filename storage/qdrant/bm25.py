"""Text to BM25 terms, the same for both engines."""

from __future__ import annotations

import re
from functools import cache, lru_cache

import qdrant_edge

from madeleine.memory.text.dates import ENGLISH_MONTH_NAMES
from madeleine.memory.text.scripts import (
    HAN_AND_KANA_CHAR_CLASS,
    HAN_CHAR_PATTERN,
    HANGUL_CHAR_CLASS,
    HIRAGANA_RUN_PATTERN,
    SOUTHEAST_ASIAN_CHAR_CLASS,
)
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS, normalize_text_for_bm25
from madeleine.storage.qdrant.compounds import with_parts_of_compounds

BM25_TERMS_VERSION = 12
"""Raise it when the analysis below, `compounds` or `memory.text.terms` changes: the index is then rebuilt."""

WeightedTermIds = tuple[list[int], list[float]]
"""(term ids, their weights), of equal length; both empty for a text of stop words or signs alone."""

_HANGUL_JAMO_CHAR_CLASS = "\u1100-\u11ff"
_UNSPACED_SCRIPT_RUN_PATTERN = re.compile(
    f"[{HAN_AND_KANA_CHAR_CLASS}{_HANGUL_JAMO_CHAR_CLASS}{HANGUL_CHAR_CLASS}{SOUTHEAST_ASIAN_CHAR_CLASS}]+"
)
_LONE_HAN_CHAR_PATTERN = re.compile(
    f"(?<!{HAN_CHAR_PATTERN.pattern}){HAN_CHAR_PATTERN.pattern}(?!{HAN_CHAR_PATTERN.pattern})"
)
BIGRAM_LENGTH = 2
_LETTERS_FOR_HEX_DIGITS = "bcdfghjklmnpqrtv"
LENGTH_OF_NUMBERS_LOSING_LEADING_ZERO = 2
"""Of such the leading zero is dropped: 03 is a day or an hour, 007 and 0049 are what they are."""
_MONTH_NAME_REGEX = "|".join(rf"{name[:3]}(?:{name[3:]})?" for name in ENGLISH_MONTH_NAMES) + "|Sept"
_ISO_DATE_PATTERN = re.compile(r"(?<![\w-])(\d{4})-(0[1-9]|1[0-2])-([0-3]\d)(?![\d-])")
_DAY_WITH_MONTH_NAME_PATTERN = re.compile(
    rf"(?<!\w)([0-3]?\d)(?:st|nd|rd|th)?(?: of)? ({_MONTH_NAME_REGEX})\b"
    rf"|\b({_MONTH_NAME_REGEX})\.? ([0-3]?\d)(?:st|nd|rd|th)?(?!\w)",
    re.IGNORECASE,
)
_MONTH_MAY_OR_NAME_WILL_PATTERN = re.compile(
    r"(?:(?<=[\w,;:] )|(?<=\())(?:May|Will)\b(?! (?:I|You|We|They|The|My)\b)|\bMay(?= \d)"
)
_CODED_WORDS_FOR_MAY_AND_WILL = ("zqmay", "zqwill")
_CODED_WORD_PATTERN = re.compile(r"\bzq\w+")
_THOUSANDS_COMMA_PATTERN = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ORDINAL_NUMBER_PATTERN = re.compile(r"(?<!\w)(\d+)(?:st|nd|rd|th)(?!\w)", re.IGNORECASE)
_NUMBER_PATTERN = re.compile(r"(?<![^\W_])\d++(?![^\W\d_])")
_SEARCHABLE_STOP_WORDS = frozenset("s t d m o y don ma".split())
"""Of the stop words the pieces of contractions: with apostrophes dropped these are words of their own (vitamin D)."""

BM25_AVERAGE_DOCUMENT_WORDS = 60
BM25_AVERAGE_DOCUMENT_BIGRAMS = 150
"""Fixed, for an average that moved with the corpus would need every memory to be encoded again; 60 is as good as the
true one. Text without spaces has two and a half times as many terms for as much said (JSQuAD, nDCG@10: 92.7 at 150,
91.5 at 60)."""


@cache
def _bm25_encoder(average_length: int = BM25_AVERAGE_DOCUMENT_WORDS) -> qdrant_edge.Bm25:
    # k and b as tuned on LoCoMo and BEAM.
    return qdrant_edge.Bm25(
        qdrant_edge.Bm25Config(
            k=0.9,
            b=0.9,
            avg_len=average_length,
            tokenizer=qdrant_edge.TokenizerType.Multilingual,
            lowercase=True,
            stopwords=qdrant_edge.StopwordsSet(custom=set(ENGLISH_STOP_WORDS - _SEARCHABLE_STOP_WORDS)),
            stemmer=qdrant_edge.SnowballParams(qdrant_edge.SnowballLanguage.English),
        )
    )


def document_term_ids_and_weights(words: str) -> WeightedTermIds:
    """Weights are BM25's term-frequency part. `words` has been through `memory.text.terms`."""
    words = with_parts_of_compounds(words)
    unspaced = sum(len(run) for run in _UNSPACED_SCRIPT_RUN_PATTERN.findall(words))
    average = BM25_AVERAGE_DOCUMENT_BIGRAMS if 2 * unspaced > len(words) else BM25_AVERAGE_DOCUMENT_WORDS
    vector = _bm25_encoder(average).embed_document(
        _encode_numbers_and_days_as_words(_UNSPACED_SCRIPT_RUN_PATTERN.sub(_coded_bigrams_for_document, words))
    )
    return vector.indices, vector.values


MAX_CHARS_OF_CACHED_QUERY_TEXT = 30


def query_term_ids(words: str) -> list[int]:
    """Each term once."""
    return (
        [*_cached_query_term_ids(words)]
        if len(words) <= MAX_CHARS_OF_CACHED_QUERY_TEXT
        else _compute_query_term_ids(words)
    )


@lru_cache(maxsize=4_000)
def _cached_query_term_ids(word: str) -> tuple[int, ...]:
    return tuple(_compute_query_term_ids(word))


def _compute_query_term_ids(words: str) -> list[int]:
    text = _UNSPACED_SCRIPT_RUN_PATTERN.sub(_coded_bigrams_for_query, normalize_text_for_bm25(words))
    return _bm25_encoder().embed_query(_encode_numbers_and_days_as_words(text)).indices


def _encode_numbers_and_days_as_words(text: str) -> str:
    """Numbers, which the tokenizer leaves out altogether, as words, and a day with its month as one: the date that
    stands beside every memory must not make it one about 12 and 7. The month May and the name Will are told from the
    verbs by their capital within a sentence."""
    text = _ISO_DATE_PATTERN.sub(_iso_date_as_day_month_name_year, text)
    text = _DAY_WITH_MONTH_NAME_PATTERN.sub(_coded_word_of_day_and_month_name, text)
    text = _MONTH_MAY_OR_NAME_WILL_PATTERN.sub(lambda name: f"zq{name.group().lower()}", text)
    return _NUMBER_PATTERN.sub(
        _coded_word_of_number, _ORDINAL_NUMBER_PATTERN.sub(r"\1", _THOUSANDS_COMMA_PATTERN.sub("", text))
    )


def _iso_date_as_day_month_name_year(date: re.Match[str]) -> str:
    year, month, day = date.groups()
    return f"{day} {ENGLISH_MONTH_NAMES[int(month) - 1]} {year}"


def _coded_word_of_day_and_month_name(match: re.Match[str]) -> str:
    day_first, month_first = match.group(1, 2), match.group(4, 3)
    day, named = day_first if day_first[0] else month_first
    month = next(name for name in ENGLISH_MONTH_NAMES if name.lower().startswith(named[:3].lower()))
    return f"zq{month.lower()}{_digits_as_letters(str(int(day)))} {'zqmay' if month == 'May' else month}"


def _coded_word_of_number(number: re.Match[str]) -> str:
    digits = number.group()
    if len(digits) == LENGTH_OF_NUMBERS_LOSING_LEADING_ZERO:
        digits = str(int(digits))
    return f" zq{_digits_as_letters(digits)} "


def _digits_as_letters(digits: str) -> str:
    return "".join(_LETTERS_FOR_HEX_DIGITS[int(digit)] for digit in digits)


# Scripts that put no spaces between words are cut into pairs of signs here. The tokenizer's own word lists depend on
# the language that it guesses from the whole text: it takes a query of kanji alone for Chinese, so that 寿司 is not
# found in 東京で寿司を食べました. JSQuAD, nDCG@10: 91.1 so, 90.8 by the tokenizer's words.


def _coded_bigrams_for_document(run: re.Match[str]) -> str:
    """Every pair, and each Han sign with none beside it, which in Japanese is a word (all Han signs: 90.4)."""
    signs = run.group()
    return _encode_bigrams_as_words(
        [*_character_bigrams(signs), *(_LONE_HAN_CHAR_PATTERN.findall(signs) if len(signs) > 1 else ())]
    )


def _coded_bigrams_for_query(run: re.Match[str]) -> str:
    """Pairs, without those of hiragana alone, which are endings and particles, where there are others (+0.3 points of
    R@10 on JSQuAD); a single sign only where it stands alone."""
    pairs = _character_bigrams(run.group())
    return _encode_bigrams_as_words([pair for pair in pairs if not HIRAGANA_RUN_PATTERN.fullmatch(pair)] or pairs)


def han_bigram_term_ids(words: str) -> list[int]:
    """Of each two signs of a run of Han signs, in order."""
    pairs = _character_bigrams(normalize_text_for_bm25(words))
    return [_bm25_encoder().embed_query(_encode_bigrams_as_words([pair])).indices[0] for pair in pairs]


def number_and_day_term_ids(words: str) -> frozenset[int]:
    """The terms of a query that are numbers or days."""
    spelt = _CODED_WORD_PATTERN.findall(
        _encode_numbers_and_days_as_words(_UNSPACED_SCRIPT_RUN_PATTERN.sub(" ", normalize_text_for_bm25(words)))
    )
    number_words = [word for word in spelt if word not in _CODED_WORDS_FOR_MAY_AND_WILL]
    return frozenset(_bm25_encoder().embed_query(" ".join(number_words)).indices) if number_words else frozenset()


def term_ids_of_half_hiragana_bigrams(words: str) -> frozenset[int]:
    """The terms of a query that are half hiragana: they join a word to its particle, 都の in 京都の桜."""
    half_hiragana = [
        pair
        for run in _UNSPACED_SCRIPT_RUN_PATTERN.findall(normalize_text_for_bm25(words))
        for pair in _character_bigrams(run)
        if len(pair) == BIGRAM_LENGTH
        and bool(HIRAGANA_RUN_PATTERN.fullmatch(pair[0])) != bool(HIRAGANA_RUN_PATTERN.fullmatch(pair[1]))
    ]
    return (
        frozenset(_bm25_encoder().embed_query(_encode_bigrams_as_words(half_hiragana)).indices)
        if half_hiragana
        else frozenset()
    )


def _character_bigrams(signs: str) -> list[str]:
    return [signs[at : at + BIGRAM_LENGTH] for at in range(max(1, len(signs) - 1))]


def _encode_bigrams_as_words(pairs: list[str]) -> str:
    # Spelt in letters that neither the tokenizer splits nor the stemmer shortens.
    spelt = (
        "".join(_LETTERS_FOR_HEX_DIGITS[int(digit, 16)] for sign in pair for digit in f"{ord(sign):x}")
        for pair in pairs
    )
    return f" {' '.join(spelt)} "
