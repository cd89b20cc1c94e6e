"""Vocabulary of a language, as data: one TOML file a language in `lexicons/`, found by its name.

A file begins with a header, up to its first blank line:

    name = "English"
    letters = '[A-Za-z]'     a regular expression: a text without a match is not in this language
    unless = '[ぁ-ヿ]'        optional: nor is a text with a match of this
    spaced = true            false where words are written without spaces, or joined to particles
    passwords = "password"   words for a password, and for "is" between one and its value, each apart by `|`
    password_links = "is"
    password_adverbs = "now" optional: what may stand behind "is"
    password_prepositions = "for |d'"   optional: what begins a phrase between the two, with the space behind it
    pins = "pin"             words for a number of four to eight digits that is a secret

Below it, `nouns_capitalised` says that the language writes nouns with capitals, `compounds` that it writes two nouns as
one word, and `participle_prefix` what its participles begin with. Each line of `irregular_forms` has a word and forms
of it that no ending tells; they are of English alone, whose endings the index knows. Of a language whose stemmer leaves
"owner" as it is, `doer_endings` make of a verb a word for who does it, `deed_endings` are those of what is told of
them, and `asks_for_somebody` has the words that ask for a person. A text of words apart by white space is a word list,
`[numbers]` gives the words for each number, `[emotions]` those by which a question asks for each emotion (of a language
without spaces their beginnings), and `[patterns]` has regular expressions, one a line, each of whole words where the
language is spaced, that are matched against lower-case text with straight apostrophes. `[cased]` patterns are matched
against the text as it is written. `{part}` in a pattern stands for a line of `[parts]`. Words in `[ordinals]` count the
weeks of a month or the quarters of a year, and name the `last` of them; `{ordinal}` and `{last}` stand for these.
`[feasts]` tells of a pattern its first and last day in every year: `12-24/12-26`. `[retold]` lists what may differ when
a text is told again (`memory.text.wording`): `fillers`, `forms` and `endings` (each line interchangeable, `-` for
none), `beginnings`, `accents_tell` where an accent is part of the word, and `spaces_are_free` where words may be
joined. Only some may differ everywhere; `cases` and `case_endings` may in one word; `tenses` and `tense_endings` in
what a verb of `reporting`, in a form of the past (`reported`) and before one of the words of `clauses`, reports;
`agreement` (of verbs) and `plurals`, with `agreement_endings` and `plural_endings` and the singular first, of a subject
in general, by `indefinite` and `articles`, and `agreement` also beside one of the `collectives`. `[respelt]` has
patterns, and the spelling that replaces each; `[perfect]` has auxiliary verbs and irregular participles, each with its
preterite in singular and plural. An entry may be missing: then the language tells nothing by it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

from madeleine.memory.text.normalization import lowercase_with_straight_apostrophes

LEXICON_FOLDER = Path(__file__).parent / "lexicons"
_LANGUAGE_NEUTRAL_REGEX_BY_NAME = tomllib.loads((Path(__file__).parent / "patterns.toml").read_text("utf-8"))


def load_language_neutral_pattern(name: str, **parts: str) -> re.Pattern[str]:
    """Compile an entry of `patterns.toml`: patterns that belong to no language. `{part}` in it stands for its part."""
    expression: str = _LANGUAGE_NEUTRAL_REGEX_BY_NAME[name]
    for part, inner in parts.items():
        expression = expression.replace(f"{{{part}}}", inner)
    return re.compile(expression, re.VERBOSE)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """The vocabulary of one language. Word lists are lower case."""

    language: str
    entries: Mapping[str, Any]

    @cache  # noqa: B019  lexicons live as long as the process
    def words(self, *lists: str) -> frozenset[str]:
        """The words of these lists, or tables of words, together."""
        entries = (self.entries.get(name, "") for name in lists)
        texts = (entry if isinstance(entry, str) else " ".join(entry.values()) for entry in entries)
        return frozenset(word for text in texts for word in text.split())

    @cache  # noqa: B019
    def pattern(self, name: str, *, cased: bool = False) -> re.Pattern[str] | None:
        """Compiled from all lines of the entry; None if the language has no such entry."""
        lines = self.entries.get("cased" if cased else "patterns", {}).get(name, "")
        return self._compile_pattern_lines(lines) if lines.strip() else None

    @cache  # noqa: B019
    def pattern_without_concepts(self, name: str, *concepts: str) -> re.Pattern[str] | None:
        """Compiled from the lines of the entry but for those that begin with one of the comments `(?#concept)`."""
        lines = self.entries.get("patterns", {}).get(name, "").strip().splitlines()
        others = [line for line in lines if not line.startswith(tuple(f"(?#{concept})" for concept in concepts))]
        return self._compile_pattern_lines("\n".join(others)) if others else None

    def start_of_match_at_end(self, name: str, text: str) -> int | None:
        """Where a match of the pattern begins that reaches the end of the text."""
        matches = pattern.finditer(text) if (pattern := self.pattern(name)) else ()
        return next((match.start() for match in matches if match.end() == len(text)), None)

    def end_of_match_at_start(self, name: str, text: str) -> int | None:
        match = pattern.match(text) if (pattern := self.pattern(name)) else None
        return match.end() if match else None

    @cached_property
    def digits_by_number_word(self) -> Mapping[str, str]:
        """The digits that each word for a number stands for."""
        return {word: digits for digits, words in self.entries.get("numbers", {}).items() for word in words.split()}

    @cached_property
    def possible_numbers_by_word(self) -> Mapping[str, frozenset[str]]:
        """Those that each word for a number or for a quantity may stand for, in digits."""
        found: dict[str, frozenset[str]] = {}
        for name in ("numbers", "quantities"):
            for digits, words in self.entries.get(name, {}).items():
                found |= {word: found.get(word, frozenset()) | {digits} for word in words.split()}
        return found

    @cached_property
    def number_by_ordinal_word(self) -> Mapping[str, int]:
        """Of each word for which one of several it is; -1 for the last one."""
        ordinals = self.entries.get("ordinals", {}).items()
        return {word: -1 if name == "last" else int(name) for name, words in ordinals for word in words.split()}

    @cached_property
    def _expression_by_part(self) -> Mapping[str, str]:
        numbers = self.number_by_ordinal_word
        ordinal, last = (
            "|".join(word for word in numbers if (numbers[word] < 0) == is_last) for is_last in (False, True)
        )
        return {"ordinal": ordinal, "last": last, **self.entries.get("parts", {})}

    def _compile_pattern_lines(self, lines: str) -> re.Pattern[str]:
        for part, expression in self._expression_by_part.items():
            lines = lines.replace(f"{{{part}}}", f"(?:{expression})")
        expression = "|".join(line.strip() for line in lines.strip().splitlines())
        return re.compile(rf"(?<!\w)(?:{expression})(?!\w)" if self.entries.get("spaced", True) else expression)


@cache
def load_lexicon_headers(folder: Path = LEXICON_FOLDER) -> Mapping[str, Mapping[str, str]]:
    """The header of each language's file, without reading what is below it."""
    return {path.stem: tomllib.loads(_text_before_first_blank_line(path)) for path in sorted(folder.glob("*.toml"))}


def _text_before_first_blank_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return "".join(iter(file.readline, "\n"))


@cache
def load_lexicon(language: str, folder: Path = LEXICON_FOLDER) -> Lexicon:
    """Read from its file at the first call."""
    return Lexicon(language, tomllib.loads((folder / f"{language}.toml").read_text("utf-8")))


def nouns_have_capitals(lexicons: Collection[Lexicon]) -> bool:
    """Whether they do in all of these languages, so that a capital tells no name. False where no language is known."""
    return bool(lexicons) and all(lexicon.entries.get("nouns_capitalised") for lexicon in lexicons)


def lexicons_for_script_of_text(
    text: str, *, mixed: bool = False, folder: Path = LEXICON_FOLDER
) -> tuple[Lexicon, ...]:
    """Lexicons of all languages that are written with letters of the text, by code. `mixed`: the text may be in several
    languages, so that no letter rules a language out."""
    letters = "Aa" * bool(_ASCII_LETTER_PATTERN.search(text)) if text.isascii() else "".join(sorted(set(text)))
    return _lexicons_with_letters(letters, mixed=mixed, folder=folder)


_ASCII_LETTER_PATTERN = re.compile("[A-Za-z]")
"""Of these every language that has one has all."""


@lru_cache(maxsize=200)
def _lexicons_with_letters(letters: str, *, mixed: bool, folder: Path) -> tuple[Lexicon, ...]:
    matched: dict[str, bool] = {}
    for header in load_lexicon_headers(folder).values():
        for expression in (header["letters"], header.get("unless", "")):
            if expression and expression not in matched:
                matched[expression] = bool(re.search(expression, letters))
    return tuple(
        load_lexicon(language, folder)
        for language, header in load_lexicon_headers(folder).items()
        if matched[header["letters"]] and (mixed or not matched.get(header.get("unless", ""), False))
    )


@lru_cache(maxsize=1_000)
def all_words_of_lexicon_lists(lexicons: tuple[Lexicon, ...], *lists: str) -> frozenset[str]:
    """The words of these lists of all these lexicons."""
    return frozenset[str]().union(*(language.words(*lists) for language in lexicons))


@lru_cache(maxsize=1_000)
def words_of_lexicon_table_entry(lexicons: tuple[Lexicon, ...], table: str, entry: str) -> frozenset[str]:
    """The words of this entry of this table of all these lexicons."""
    return frozenset(word for lexicon in lexicons for word in lexicon.entries.get(table, {}).get(entry, "").split())


def text_without_lexicon_pattern(text: str, pattern: str, lexicons: Iterable[Lexicon], *, by: str = " ") -> str:
    """The text with every match of the pattern of these lexicons replaced by `by`."""
    for expression in (language.pattern(pattern) for language in lexicons):
        text = expression.sub(by, text) if expression else text
    return text


# --- the language of a text -----------------------------------------------------------------------------------------

_WORD_UP_TO_APOSTROPHE_PATTERN = re.compile(r"(?<!['’])[^\W\d_]+(?:['’](?=\w))?")
"""A word up to its apostrophe, which stays: `l'` of French, but nothing of what English joins to a word."""
MIN_FUNCTION_WORDS_TELLING_LANGUAGE = 2
"""Different function words that tell a language; one alone is often one of another language, too."""
MIN_FUNCTION_WORDS_OF_ONE_LANGUAGE_ALONE = 3
"""Different function words of one language alone, from which a part of the text is in it."""


@lru_cache(maxsize=100)
def probable_lexicons(text: str) -> tuple[Lexicon, ...]:
    """The languages that the text is probably in, told by script and then by function words: of each script those with
    at least half as many as the best, or with three that no other language has; all of the script where there are
    none."""
    scripts: dict[str, list[Lexicon]] = {}
    for language in lexicons_for_script_of_text(text):
        scripts.setdefault(language.entries["letters"], []).append(language)
    ambiguous = any(len(group) > 1 for group in scripts.values())
    words = (
        Counter(_WORD_UP_TO_APOSTROPHE_PATTERN.findall(lowercase_with_straight_apostrophes(text)))
        if ambiguous
        else Counter()
    )
    return tuple(language for group in scripts.values() for language in _most_probable_lexicons(tuple(group), words))


def _most_probable_lexicons(group: tuple[Lexicon, ...], words: Mapping[str, int]) -> tuple[Lexicon, ...]:
    if len(group) == 1:
        return group
    known = _lexicons_by_function_word(group)
    scores = dict.fromkeys(group, 0.0)
    own = dict.fromkeys(group, 0)
    evidence = 0
    for word, count in words.items():
        languages = known.get(word) or known.get(word.rstrip("'")) or ()
        evidence += bool(languages)
        for language in languages:
            scores[language] += count / len(languages)
            own[language] += len(languages) == 1
    best = max(scores.values())
    if evidence < MIN_FUNCTION_WORDS_TELLING_LANGUAGE:
        return group
    return tuple(
        language
        for language in group
        if scores[language] * 2 >= best or own[language] >= MIN_FUNCTION_WORDS_OF_ONE_LANGUAGE_ALONE
    )


@cache
def _lexicons_by_function_word(group: tuple[Lexicon, ...]) -> Mapping[str, tuple[Lexicon, ...]]:
    """The languages of the group that have each function word."""
    words = all_words_of_lexicon_lists(group, "function_words")
    return {word: tuple(each for each in group if word in each.words("function_words")) for word in words}
