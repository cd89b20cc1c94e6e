"""The reading of a text, which all rules share: its sentences, words, numbers, names and what its wording tells.

`AnalysedText(text)` costs nothing; each part is worked out when it is first asked for, once. What is language lies in
the lexicons (`memory.text.lexicon`), and is looked up in the languages that the text is probably in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from madeleine.memory.text.lexicon import (
    Lexicon,
    all_words_of_lexicon_lists,
    lexicons_for_script_of_text,
    load_language_neutral_pattern,
    probable_lexicons,
)
from madeleine.memory.text.normalization import digits_of_han_number
from madeleine.memory.text.sentences import split_sentences

_WORD_PATTERN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_NUMBER_IN_DIGITS_PATTERN = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_HAN_NUMBER_PATTERN = re.compile("[〇零一二两兩三四五六七八九十百千]+")
_NUMERIC_DATE_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_CHARS_BEFORE_SENTENCE_BEGINNING = frozenset('.!?:;…\n"“”„‘«([{—–-*#>|•/')
_FINAL_QUESTION_MARK_PATTERN = re.compile(r"[?？؟][^\w?？؟]*+$")
_SPEAKER_AT_LINE_BEGINNING_PATTERN = re.compile(r"[ \t>*-]*([^\W\d_]+)\**\s?[:：]")
SPEAKER_LABEL_PATTERN = re.compile(r"[^\W\d_][\w .'-]{0,30}(?:: |：)")
"""The name of who said it, before a line of a conversation."""
_INNER_CAPITAL_PATTERN = re.compile(r".+[A-Z]")
_LOWER_CAMEL_CASE_NAME_PATTERN = re.compile(r"[a-z][A-Z][a-z]+$")
_MARKDOWN_HEADING_PATTERN = re.compile(r"^\s{0,3}#{1,6}\s.*$", re.MULTILINE)
_WEB_ADDRESS_PATTERN = load_language_neutral_pattern("web_address")
FIRST_PERSON_WORD_SHARE_FOR_FULL_DEGREE = 0.05
"""Share of words in the first person from which a text counts as wholly told in it: one in twenty."""

MAX_PREFERENCE_SENTENCE_CHARS = 300
MIN_PREFERENCE_SENTENCE_SHARE = 0.25
"""Share of a text's sentences from which it is a preference, and no longer a fact or an event that tells of one."""


class WordInText(NamedTuple):
    """A run of letters, with straight apostrophes. `low`: in lower case; `stem`: `low` up to its apostrophe; `opens`:
    whether it has a capital, and a sentence, a line or a quotation begins with it."""

    text: str
    low: str
    stem: str
    start: int
    opens: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_capitalised(self) -> bool:
        return self.text[0].isupper()

    @property
    def is_in_caseless_script(self) -> bool:
        """Written in a script without capital letters."""
        return self.text.lower() == self.text.upper()


@dataclass(frozen=True)
class AnalysedText:
    """A text and what can be told from it. `beside`: a text in the same languages, by which they are told too."""

    text: str
    beside: str = ""

    # --- parts ------------------------------------------------------------------------------------------------

    @cached_property
    def normalized_text(self) -> str:
        """NFKC, with straight apostrophes."""
        return unicodedata.normalize("NFKC", self.text).replace("’", "'")

    @cached_property
    def lowercase_text(self) -> str:
        return self.normalized_text.lower()

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """They join back to the text."""
        return tuple(split_sentences(self.text))

    @cached_property
    def words(self) -> tuple[WordInText, ...]:
        return tuple(self._find_words())

    def _find_words(self) -> Iterator[WordInText]:
        for match in _WORD_PATTERN.finditer(self.normalized_text):
            text, start = match[0], match.start()
            low = text.casefold()
            yield WordInText(
                text,
                low,
                low.split("'", 1)[0],
                start,
                text[0].isupper() and self._is_at_sentence_or_quotation_beginning(start),
            )

    def _is_at_sentence_or_quotation_beginning(self, start: int) -> bool:
        before = self.normalized_text[max(0, start - 8) : start].rstrip(" \t_")
        return not before or before[-1] in _CHARS_BEFORE_SENTENCE_BEGINNING

    @cached_property
    def words_and_parts_before_apostrophe(self) -> frozenset[str]:
        """All words and stems, in lower case."""
        low = {word.casefold() for word in _WORD_PATTERN.findall(self.normalized_text)}
        return frozenset(low).union(word.split("'", 1)[0] for word in low if "'" in word)

    @cached_property
    def lexicons(self) -> tuple[Lexicon, ...]:
        """Lexicons of its probable languages."""
        return probable_lexicons(f"{self.text}\n{self.beside}" if self.beside else self.text)

    def words_in_lexicon_lists(self, *lists: str) -> tuple[str, ...]:
        """Its words that are in these lists of its languages, in order, in the form that is listed."""
        known = all_words_of_lexicon_lists(self.lexicons, *lists)
        return tuple(
            form for word in self.words if (form := next((f for f in (word.low, word.stem) if f in known), ""))
        )

    def begins_with_word_in_lexicon_lists(self, *lists: str) -> bool:
        """Whether its first word stands in these lists of its languages."""
        return bool(self.words) and self.words[0].stem in all_words_of_lexicon_lists(self.lexicons, *lists)

    def matches_lexicon_pattern(self, pattern: str) -> bool:
        """Whether a pattern of its languages is found in it."""
        return any(
            bool((low := lexicon.pattern(pattern)) and low.search(self.lowercase_text))
            or bool((cased := lexicon.pattern(pattern, cased=True)) and cased.search(self.normalized_text))
            for lexicon in self.lexicons
        )

    def words_matching_lexicon_pattern(self, pattern: str) -> frozenset[str]:
        """Its words, in lower case, where a pattern of its languages is found in it."""
        patterns = (lexicon.pattern(pattern) for lexicon in self.lexicons)
        parts = (match[0] for one in patterns if one for match in one.finditer(self.lowercase_text))
        return frozenset(word for part in parts for word in _WORD_PATTERN.findall(part))

    # --- numbers and dates --------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """In digits, as they stand, in order."""
        return tuple(_NUMBER_IN_DIGITS_PATTERN.findall(self.normalized_text))

    @cached_property
    def digits_of_number_words(self) -> tuple[str, ...]:
        """The digits that each word for a number stands for, in order; 0 and 1 are also articles and are left out."""
        if all(
            self.words_and_parts_before_apostrophe.isdisjoint(lexicon.digits_by_number_word)
            for lexicon in self.lexicons
        ):
            return ()
        values = (lexicon.digits_by_number_word.get(word.low, "") for word in self.words for lexicon in self.lexicons)
        return tuple(value for value in values if value not in ("", "0", "1"))

    @cached_property
    def canonical_number_texts(self) -> frozenset[str]:
        """Every number of it in digits, whether in digits or in words: 1,000 and 1.000 are 1000; 3,5 and 3.5 are one;
        a date also gives its parts."""
        parts = {part for number in self.numbers for part in re.findall(r"\d+", number)}
        values = (
            {canonical_number_text(number) for number in self.numbers}
            | parts
            | set(map(digits_of_han_number, _HAN_NUMBER_PATTERN.findall(self.normalized_text)))
        )
        for lexicon in self.lexicons:
            for word in self.words_and_parts_before_apostrophe & lexicon.possible_numbers_by_word.keys():
                values |= lexicon.possible_numbers_by_word[word]
        return frozenset(values | {value.lstrip("0") for value in values})

    @cached_property
    def mentions_number_or_date(self) -> bool:
        """It has a number, in digits of any script or in words, or a date."""
        return (
            bool(re.search(r"\d", self.text))
            or bool(self.digits_of_number_words)
            or self.matches_lexicon_pattern("number")
            or self.mentions_date
        )

    @cached_property
    def mentions_date(self) -> bool:
        """It names a day, a month or a season that a calendar has: written, weekday, "yesterday"."""
        return bool(_NUMERIC_DATE_PATTERN.search(self.text)) or self.matches_lexicon_pattern("date")

    @cached_property
    def mentions_date_or_time_span(self) -> bool:
        """It tells of a date or of a span of time: "since", "a few weeks"."""
        return self.mentions_date or self.matches_lexicon_pattern("span")

    # --- names --------------------------------------------------------------------------------------------------

    @cached_property
    def possible_names(self) -> tuple[WordInText, ...]:
        """Words with a capital that are no function words of its languages, those that open a sentence too."""
        return tuple(filter(self._is_capitalised_and_no_function_word, self.words))

    def _is_capitalised_and_no_function_word(self, word: WordInText) -> bool:
        common = all_words_of_lexicon_lists(self.lexicons, "stop_words", "function_words", "roles", "first_person")
        return word.is_capitalised and word.stem not in common and word.low.replace("'", "") not in common

    @cached_property
    def contains_recognised_name(self) -> bool:
        """It surely names a person, an organisation, a place or a product: a capital alone is not enough where a
        sentence begins, where nouns have one, or where most words are in capitals."""
        return (
            bool(_WEB_ADDRESS_PATTERN.search(self.text))
            or self.matches_lexicon_pattern("name")
            or self._has_title_before_capitalised_word
            or self._has_name_recognised_by_capitals
        )

    @cached_property
    def _has_title_before_capitalised_word(self) -> bool:
        titles = all_words_of_lexicon_lists(lexicons_for_script_of_text(self.text), "title_words")
        return any(
            word.text in titles
            and following.is_capitalised
            and self.normalized_text[word.end : following.start].strip(".") == " "
            for word, following in zip(self.words, self.words[1:], strict=False)
        )

    @cached_property
    def _has_name_recognised_by_capitals(self) -> bool:
        body = AnalysedText(_MARKDOWN_HEADING_PATTERN.sub("", self.text)) if "#" in self.text else self
        loud = sum(word.text.isupper() and len(word.text) > 1 for word in body.words) * 2 > len(body.words)
        return not loud and any(body._is_recognised_name(at) for at in range(len(body.words)))

    @cached_property
    def stems_of_recognised_names(self) -> frozenset[str]:
        """Stems of the words that are surely names, as far as capitals tell."""
        return frozenset(word.stem for at, word in enumerate(self.words) if self._is_recognised_name(at))

    @cached_property
    def name_phrase_spans(self) -> tuple[tuple[int, int], ...]:
        """Beginning and end, in `normalized_text`, of each run of words that are surely names with one space between,
        without the `'s` behind it."""
        phrases: list[tuple[int, int]] = []
        for at, word in enumerate(self.words):
            if not self._is_recognised_name(at):
                continue
            end = word.start + len(word.text.split("'s", 1)[0]) if word.low.endswith("'s") else word.end
            if phrases and self.normalized_text[phrases[-1][1] : word.start] == " ":
                phrases[-1] = (phrases[-1][0], end)
            else:
                phrases.append((word.start, end))
        return tuple(phrases)

    def _is_recognised_name(self, at: int) -> bool:
        word = self.words[at]
        if not word.is_capitalised:
            return bool(_LOWER_CAMEL_CASE_NAME_PATTERN.match(word.text))  # iPhone
        if not self._is_possible_name_not_listed_otherwise(word):
            return False
        if word.text.isupper() or _INNER_CAPITAL_PATTERN.match(word.text):
            return True  # NASA, PostgreSQL
        following = self.words[at + 1] if at + 1 < len(self.words) else None
        beside = following is not None and self.normalized_text[word.end : following.start] == " "
        pair = (
            beside
            and following is not None
            and following.is_capitalised
            and self._is_possible_name_not_listed_otherwise(following)
        )
        if word.opens:
            acts = (
                beside
                and following is not None
                and following.low in all_words_of_lexicon_lists(self.lexicons, "person_verbs")
            )
            return pair or acts or word.low.endswith("'s")
        return pair or not all(lexicon.entries.get("nouns_capitalised") for lexicon in self.lexicons)

    def _is_possible_name_not_listed_otherwise(self, word: WordInText) -> bool:
        listed_otherwise = all_words_of_lexicon_lists(self.lexicons, "not_names", "days", "months")
        return (
            len(word.text) > 1 and word.stem not in listed_otherwise and self._is_capitalised_and_no_function_word(word)
        )

    # --- what the wording tells -----------------------------------------------------------------------------------

    @cached_property
    def contains_negation(self) -> bool:
        """It has a negation."""
        return bool(self.words_in_lexicon_lists("negations")) or self.matches_lexicon_pattern("negation")

    @cached_property
    def ends_with_question_mark(self) -> bool:
        """It ends with a question mark."""
        return bool(_FINAL_QUESTION_MARK_PATTERN.search(self.text))

    @cached_property
    def is_question(self) -> bool:
        """It ends with a question mark or begins with a question word."""
        return self.ends_with_question_mark or self.matches_lexicon_pattern("question")

    @cached_property
    def first_person_degree(self) -> float:
        """In [0, 1]: how far it is told in the first person; 1 from one word in twenty."""
        listed_forms = all_words_of_lexicon_lists(self.lexicons, "first_person")
        # As listed but for a first capital: "US" is no "us".
        forms = listed_forms | {form[0].upper() + form[1:] for form in listed_forms}
        mine = sum(
            word.text.split("'", 1)[0] in forms and not self.normalized_text[word.end : word.end + 1].isdigit()
            for word in self.words
        )
        words = len(self.text.split())
        return min(1.0, mine / words / FIRST_PERSON_WORD_SHARE_FOR_FULL_DEGREE) if words else 0.0

    @cached_property
    def mentions_preference(self) -> bool:
        """The wording of a preference stands somewhere in it, in a question too."""
        return self.matches_lexicon_pattern("preference") or self.matches_lexicon_pattern("request")

    @cached_property
    def states_personal_taste(self) -> bool:
        """It says what somebody likes, wants or prefers, in the first person or about the person served (spec L1, L2);
        not in a question, and not in a line of an assistant."""
        return self.mentions_preference and any(
            sentence._matches_statement_or_request_pattern("preference")
            for sentence in self._sentences_not_by_assistant
        )

    @property
    def is_preference_text(self) -> bool:
        """It is a preference (ruling 15), and no text that only mentions one."""
        return self.standing_preference_sentence_share >= MIN_PREFERENCE_SENTENCE_SHARE

    @cached_property
    def standing_preference_sentence_share(self) -> float:
        """In [0, 1]: the share of its sentences that say how the being is to behave, or what the person it serves
        wants always (ruling 15): in the first person or about them, not in a question, not in a line of an
        assistant, and not beside much else in one long sentence."""
        sentences = [sentence for sentence in self._sentences_not_by_assistant if sentence.words]
        stated = [
            len(sentence.text) <= MAX_PREFERENCE_SENTENCE_CHARS
            and sentence._matches_statement_or_request_pattern("standing_preference")
            for sentence in sentences
        ]
        return sum(stated) / len(stated) if stated else 0.0

    @cached_property
    def _sentences_not_by_assistant(self) -> tuple[AnalysedText, ...]:
        """Its sentences, without lines that are marked as an assistant's."""
        assistants = all_words_of_lexicon_lists(lexicons_for_script_of_text(self.text, mixed=True), "assistants")
        lines = (line for line in self.text.split("\n") if not _is_line_of_any_speaker(line, assistants))
        return tuple(AnalysedText(sentence, self.text) for sentence in split_sentences("\n".join(lines)))

    def _matches_statement_or_request_pattern(self, pattern: str) -> bool:
        return self.matches_lexicon_pattern(
            "request" if self.ends_with_question_mark and not self.matches_lexicon_pattern("oneself") else pattern
        )

    @cached_property
    def letter_runs_in_caseless_scripts(self) -> tuple[str, ...]:
        """Its runs of letters of scripts without capitals, where names and negations look like other words."""
        if self.text.isascii():
            return ()
        runs = groupby(
            self.normalized_text, lambda sign: unicodedata.category(sign)[0] in "LM" and sign.lower() == sign.upper()
        )
        return tuple("".join(run) for caseless, run in runs if caseless)


def _is_line_of_any_speaker(line: str, speakers: Collection[str]) -> bool:
    speaker = _SPEAKER_AT_LINE_BEGINNING_PATTERN.match(line)
    return speaker is not None and speaker[1].lower() in speakers


def canonical_number_text(number: str) -> str:
    """1,000 and 1.000 are 1000; 3,5 and 3.5 are one number, and 7:30 is itself."""
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", number)
    return re.sub(r"[.,]", "", number) if grouped else number.replace(",", ".")
