"""The words of a question that name something (ruling 19): what is left without the words that ask and those that join.

"Where does Tom live now?" names Tom. A lexicon's `question_words` and `function_words` are left out: where words stand
apart, whole words of the language that most of them are from; where they do not, wherever they stand. There
`function_signs` part words, `common_words` are left out as whole words, and a Korean word stands without its
`particle`. Of Japanese text what is not hiragana is kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from functools import cache
from itertools import pairwise
from math import sqrt

from madeleine.memory.text.lexicon import (
    Lexicon,
    all_words_of_lexicon_lists,
    lexicons_for_script_of_text,
    nouns_have_capitals,
    text_without_lexicon_pattern,
    words_of_lexicon_table_entry,
)
from madeleine.memory.text.scripts import (
    HAN_CHAR_PATTERN,
    HAN_RUN_PATTERN,
    HANGUL_CHAR_CLASS,
    HIRAGANA_RUN_PATTERN,
    SOUTHEAST_ASIAN_CHAR_CLASS,
    UNSPACED_SCRIPT_CHAR_PATTERN,
)
from madeleine.memory.text.terms import normalize_and_drop_apostrophes

_LETTER_OR_DIGIT_REGEX = rf"(?:[^\W_]|[{SOUTHEAST_ASIAN_CHAR_CLASS}])"
"""With the vowels that Thai puts above and below its consonants, which are no letters by themselves."""
_DATE_OR_WORD_PATTERN = re.compile(
    rf"\d{{4}}-\d{{2}}-\d{{2}}(?!\d)|{_LETTER_OR_DIGIT_REGEX}+(?:[.@]{_LETTER_OR_DIGIT_REGEX}+)*"
)
_LETTER_OR_DIGIT_RUN_PATTERN = re.compile(rf"{_LETTER_OR_DIGIT_REGEX}+")
MIN_SYLLABLES_BEFORE_PARTICLE = 2
MAX_WORDS_OF_NAME = 3
"""Of a query of so many words all may have capitals: "Nummer Paula Weiß"."""
_NAME_JOINING_MARKS = ("-", "_", ".", "/")
_HANGUL_WORD_PATTERN = re.compile(f"[{HANGUL_CHAR_CLASS}]+")
_LONE_HAN_CHAR_PATTERN = re.compile(rf"(?<!\w){HAN_CHAR_PATTERN.pattern}(?!\w)")
_APOSTROPHE_PATTERN = re.compile("['\u2018\u2019\u02bc]")
_IDENTIFIER_PATTERN = re.compile(r"(?=.*\d)(?:[a-z]+\w*\d\w*|\d+[a-z]+\d\w*|\d{6,}|\w+(?:\.\w+){2,})", re.ASCII)
_DATE_OR_NUMBER_PATTERN = re.compile(
    r"\d{1,4}\.\d{1,2}\.\d{2,4}|[a-z]+(?:\d{1,2}|(?:19|20)\d\d)|\d+(?:\.\d+)?[a-z]*(?<!\d{6})", re.ASCII
)
"""Dates with dots, a word with a number behind it ("python3"), numbers and quantities."""
_CAMEL_CASE_NAME_PATTERN = re.compile(r"\b[A-Za-z][a-z0-9]+(?:[A-Z][a-z0-9]+){2,}\b", re.ASCII)
"""Three parts and more ("parseOrderLine"): two are a brand or a surname as often, as is a run of capitals."""
_TWO_WORDS_PATTERN = re.compile(r"(?=\b([^\W\d_]+) ([^\W\d_]{2,}))")
_TICKET_KEY_PATTERN = re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b", re.ASCII)
_LEFT_OUT_LEXICON_LISTS = ("question_words", "function_words", "joining_words", "stop_words")


def content_words(question: str) -> tuple[str, ...]:
    """Lower case, each once, in order; all words of a question that names nothing."""
    text = normalize_and_drop_apostrophes(_APOSTROPHE_PATTERN.sub(" ", question)).lower()
    lexicons = lexicons_for_script_of_text(text)
    text = text_without_lexicon_pattern(text, "word_part_that_asks", lexicons)
    for lexicon in lexicons:
        if not lexicon.entries.get("spaced", True) and (phrases := _question_and_function_phrase_pattern(lexicon)):
            text = _original_if_no_words_left(phrases.sub(" ", text), text)
    # A single Han sign is a word in Japanese; in Chinese the index knows it within longer words only.
    signs = HAN_RUN_PATTERN.sub(lambda run: text_without_lexicon_pattern(run[0], "function_signs", lexicons), text)
    if parts := all_words_of_lexicon_lists(lexicons, "word_parts"):  # 会 of 年会 asks only where it stands by itself
        signs = HAN_RUN_PATTERN.sub(lambda run: " " if parts.issuperset(run[0]) else run[0], signs)
    text = _original_if_no_words_left(signs, text)
    text = _original_if_no_words_left(
        (HIRAGANA_RUN_PATTERN if HIRAGANA_RUN_PATTERN.search(text) else _LONE_HAN_CHAR_PATTERN).sub(" ", text), text
    )
    words = dict.fromkeys(_without_korean_particle(word, lexicons) for word in _DATE_OR_WORD_PATTERN.findall(text))
    spaced = [lexicon for lexicon in lexicons if lexicon.entries.get("spaced", True)]
    left_out = all_words_of_lexicon_lists(lexicons, "common_words").union(
        *map(words_that_ask_or_join, _lexicons_listing_most_words(frozenset(words), spaced))
    )
    names = _names_among_words_left_out(left_out, question, lexicons)
    return tuple(word for word in words if word not in left_out or word in names) or tuple(words)


def pairs_of_capitalised_words(text: str) -> list[tuple[str, str]]:
    """Each two words in a row that have a capital, as "Anna May"; the last one has two letters or more."""
    return [pair for pair in _TWO_WORDS_PATTERN.findall(text) if pair[0][0].isupper() and pair[1][0].isupper()]


def _names_among_words_left_out(left_out: Set[str], question: str, lexicons: Sequence[Lexicon]) -> set[str]:
    """Of words that ask or join those that are part of a name: with a capital behind another word with one, as in
    "Paula Weiß" and "Anna May"; not "Annas Name", which is a noun that asks, nor where all words have capitals."""
    if not (pairs := pairs_of_capitalised_words(question)):
        return set()
    pieces = question.split()
    if len(pieces) > MAX_WORDS_OF_NAME and not any(piece[0].islower() for piece in pieces):
        return set()
    nouns = all_words_of_lexicon_lists(tuple(lexicons), "question_nouns")
    folded = (tuple(normalize_and_drop_apostrophes(piece).lower() for piece in pair) for pair in pairs)
    return {last for first, last in folded if first not in left_out and last in left_out and last not in nouns}


def name_index_of_each_word(question: str, words: Sequence[str]) -> tuple[int, ...]:
    """For each content word the number of what it names, from 0: the words of one name ("Maria Kern", "heron-1") name
    one thing. A name is written with capitals or digits, or joined by a hyphen, a dot or a low line."""
    number_of: dict[str, int] = {}
    end, in_name, number = 0, False, -1
    text = _APOSTROPHE_PATTERN.sub(" ", question)
    for match in _LETTER_OR_DIGIT_RUN_PATTERN.finditer(text):
        word, between = normalize_and_drop_apostrophes(match[0]).lower(), text[end : match.start()]
        if word not in words:
            continue
        capital = match[0][0].isupper() or match[0][0].isdigit()
        if between not in _NAME_JOINING_MARKS and not (in_name and capital and between.strip() in ("", ".")):
            number += 1
        number_of.setdefault(word, max(number, 0))
        end, in_name = match.end(), capital
    unplaced = (at for at in range(number + 1, number + 1 + len(words)))
    return tuple(number_of[word] if word in number_of else next(unplaced) for word in words)


def probably_not_name_mask(question: str, words: Sequence[str]) -> tuple[bool, ...]:
    """Whether each content word is probably no name: written small, wherever it stands, in a question that has
    capitals. In a script without capitals nothing tells names: no word counts as one."""
    caseless = [word.lower() == word.upper() and not word.isdigit() for word in words]
    if question == question.lower():
        return tuple(caseless)
    pieces = _LETTER_OR_DIGIT_RUN_PATTERN.findall(_APOSTROPHE_PATTERN.sub(" ", question))
    others = {normalize_and_drop_apostrophes(piece).lower() for piece in pieces if not piece[0].islower()}
    small = {normalize_and_drop_apostrophes(piece).lower() for piece in pieces} - others
    return tuple(word in small or has_no_case for word, has_no_case in zip(words, caseless, strict=True))


def lexicons_of_question(question: str) -> tuple[Lexicon, ...]:
    """Of the languages of its script those that most of its words are listed in, as words that ask or join."""
    text = normalize_and_drop_apostrophes(_APOSTROPHE_PATTERN.sub(" ", question)).lower()
    return _lexicons_listing_most_words(set(_DATE_OR_WORD_PATTERN.findall(text)), lexicons_for_script_of_text(text))


def _lexicons_listing_most_words(words: Set[str], lexicons: Sequence[Lexicon]) -> tuple[Lexicon, ...]:
    """`words`: a set; of the keys of a mapping each word of the lexicon would be looked up."""
    counts = [len(words & words_that_ask_or_join(lexicon)) for lexicon in lexicons]
    most = max(counts, default=0)
    return tuple(lexicon for lexicon, count in zip(lexicons, counts, strict=True) if count == most)


def verb_or_adjective_mask(question: str, words: Sequence[str]) -> tuple[bool, ...]:
    """Whether each content word is a verb or an adjective, as far as writing tells: small, in a question that has
    capitals behind its first letter and behind each article, in a language that writes nouns with capitals. What stands
    before "is" tells which property is asked for ("Wie alt ist Torben?"), and counts as a noun."""
    rest, lexicons = question.strip()[1:], lexicons_of_question(question)
    has_capitals = nouns_have_capitals(lexicons)
    pieces = _LETTER_OR_DIGIT_RUN_PATTERN.findall(_APOSTROPHE_PATTERN.sub(" ", question))
    articles = frozenset[str]().union(
        *(words_of_lexicon_table_entry(lexicons, "retold", name) for name in ("articles", "indefinite"))
    )
    is_careless = any(piece.lower() in articles and following.islower() for piece, following in pairwise(pieces))
    if not has_capitals or rest == rest.lower() or is_careless:
        return (False,) * len(words)
    forms_of_be = words_of_lexicon_table_entry(lexicons, "perfect", "be")
    nouns = {piece for piece in pieces if not piece[0].islower()}
    nouns |= {piece for piece, following in pairwise(pieces) if following in forms_of_be}
    folded = {normalize_and_drop_apostrophes(piece).lower() for piece in nouns}
    return tuple(word.isalpha() and word != word.upper() and word not in folded for word in words)


def weight_of_each_word_from_unspaced_length(words: Sequence[str]) -> tuple[float, ...]:
    """1 where words stand apart. Where they do not, a run of signs is several words that nothing separates: the root of
    its pairs of signs, as which the index holds it."""
    return tuple(sqrt(max(1, len(UNSPACED_SCRIPT_CHAR_PATTERN.findall(word)) - 1)) for word in words)


def is_id_or_address_word(word: str) -> bool:
    """Whether a content word is the name that one thing has in a system: "qx7r2m", "10.20.4.17", "208841", an address
    of mail; no number, quantity, date or year."""
    return "@" in word or bool(_IDENTIFIER_PATTERN.fullmatch(word) and not _DATE_OR_NUMBER_PATTERN.fullmatch(word))


def identifier_mask(question: str, words: Sequence[str]) -> tuple[bool, ...]:
    """Of each content word of the question whether `is_id_or_address_word`, or names code, as it is written there."""
    in_code = {word.lower() for word in _CAMEL_CASE_NAME_PATTERN.findall(question)}
    return tuple(word in in_code or is_id_or_address_word(word) for word in words)


def opening_ticket_key(text: str) -> str:
    """The key of a ticket with which the text begins, "TRK-999"; "" for none."""
    key = _TICKET_KEY_PATTERN.match(text.lstrip())
    return key[0] if key else ""


def ticket_key_positions(question: str, words: Sequence[str]) -> list[tuple[int, ...]]:
    """Of each key of a ticket in the question ("TRK-999") the places of its parts among these content words: what has
    another number is another ticket."""
    keys = (key.lower().split("-") for key in _TICKET_KEY_PATTERN.findall(question))
    return [tuple(map(words.index, parts)) for parts in keys if all(part in words for part in parts)]


def question_without_words(question: str, words: Collection[str]) -> str:
    """The question without these of its content words."""
    return _LETTER_OR_DIGIT_RUN_PATTERN.sub(
        lambda piece: "" if normalize_and_drop_apostrophes(piece[0]).lower() in words else piece[0], question
    ).strip()


def _without_korean_particle(word: str, lexicons: Sequence[Lexicon]) -> str:
    """A Korean word as it stands without its particle; one of two syllables is seldom joined to any."""
    if not _HANGUL_WORD_PATTERN.fullmatch(word):
        return word
    bare = text_without_lexicon_pattern(word, "particle", lexicons, by="")
    return bare if len(bare) >= MIN_SYLLABLES_BEFORE_PARTICLE else word


def _original_if_no_words_left(shortened: str, text: str) -> str:
    return shortened if _DATE_OR_WORD_PATTERN.search(shortened) else text


@cache
def words_that_ask_or_join(lexicon: Lexicon) -> frozenset[str]:
    """Pieces of words with an apostrophe are words of their own here, as they are in the question."""
    return frozenset(
        piece
        for word in lexicon.words(*_LEFT_OUT_LEXICON_LISTS)
        for piece in _DATE_OR_WORD_PATTERN.findall(_APOSTROPHE_PATTERN.sub(" ", word))
    )


@cache
def _question_and_function_phrase_pattern(lexicon: Lexicon) -> re.Pattern[str] | None:
    """Longest first. A single Hangul syllable must stand alone: it is a part of many words."""
    listed = lexicon.words(*_LEFT_OUT_LEXICON_LISTS) - lexicon.words("word_parts")
    phrases = sorted(listed, key=lambda phrase: (-len(phrase), phrase))
    expressions = (
        rf"(?<!\w){phrase}(?!\w)" if re.fullmatch("[가-힣]", phrase) else re.escape(phrase) for phrase in phrases
    )
    return re.compile("|".join(expressions)) if phrases else None
