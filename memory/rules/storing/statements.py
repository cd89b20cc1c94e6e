"""A memory's text read for a comparison with another: whether both tell the same but for one value, or the same of two
things (ruling 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache

from madeleine.memory.text.lexicon import all_words_of_lexicon_lists
from madeleine.memory.text.reading import SPEAKER_LABEL_PATTERN, AnalysedText
from madeleine.memory.text.scripts import HAN_OR_KANA_CHAR_PATTERN, HANGUL_CHAR_CLASS, HIRAGANA_RUN_PATTERN

MAX_SHARED_WORD_RATIO_OF_DIFFERENT_WORDING = 0.4
"""Share in [0, 1] of words in the same order, above which two have one wording."""
MAX_READ_STATEMENT_CHARS = 1_200
MIN_SHARED_WORDS_BEFORE_NUMBER = 2
MAX_NON_VALUE_WORDS_IN_REPLACEMENT = 1
"""In the place of the value: "listens on port 8080", "listens on 8091"."""
VALUE_LEXICON_LISTS = ("numbers", "quantities", "amounts", "days", "months", "time_words", "negations", "opposites")
"""Of a lexicon: words that tell how many, when, or whether at all."""
_HAN_OR_KANA_CHAR_REGEX = HAN_OR_KANA_CHAR_PATTERN.pattern
_WORD_OR_UNSPACED_RUN_PATTERN = re.compile(
    rf"(?:(?!{_HAN_OR_KANA_CHAR_REGEX})[^\W_])+(?:[.'@/_-](?:(?!{_HAN_OR_KANA_CHAR_REGEX})[^\W_])+)*|{_HAN_OR_KANA_CHAR_REGEX}+"
)
_HANGUL_CHAR_PATTERN = re.compile(f"[{HANGUL_CHAR_CLASS}]")
_CAPITALIZED_WORD_INSIDE_SENTENCE_PATTERN = re.compile(r"(?<=[^.!?…:;\s]\s)(?=[^\W\d_a-z])\w*[^\W\d_]{2}[\w'’]*")
_QUESTION_MARK_PATTERN = re.compile("[?？؟]")
_END_OF_QUESTION_PATTERN = re.compile(r"""\w["'”’)»]?[?？؟]+["'”’)»]?(?=\s|$)""")
_DIGIT_PATTERN = re.compile(r"\d")
_AMOUNT_PATTERN = re.compile(r"\d{1,3}(?:[.,:/-]\d{1,3})?")
"""Of more digits a number is rather a name: a ticket, a year."""
_MAX_STEM_LETTERS = 5
"""By which forms of a word are known as one in any language that is inflected at its end."""
_MAX_KOREAN_STEM_SYLLABLES = 2
"""Of a Korean word, to whose end particles are joined."""


@dataclass(frozen=True)
class StatementForComparison:
    """A memory's text, read for a comparison with another."""

    text: str

    @cached_property
    def analysed_text(self) -> AnalysedText:
        return AnalysedText(self.text[:MAX_READ_STATEMENT_CHARS])

    @cached_property
    def words(self) -> list[str]:
        """Lower case, in order; a name of several parts (`storefront-web`) is one. Where words are not spaced, any two
        signs."""
        return [
            part
            for word in _WORD_OR_UNSPACED_RUN_PATTERN.findall(self.analysed_text.lowercase_text)
            for part in _word_or_sign_pairs(word)
        ]

    @cached_property
    def word_set(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def word_stems(self) -> frozenset[str]:
        """Of all its words, function words too."""
        return frozenset(map(stem_of_word_beginning, self.words))

    @cached_property
    def words_capitalized_inside_sentence(self) -> frozenset[str]:
        """In lower case, those that are written with a capital where no sentence begins."""
        return frozenset(
            word.casefold().removesuffix("'s") for word in _CAPITALIZED_WORD_INSIDE_SENTENCE_PATTERN.findall(self.text)
        )

    @cached_property
    def function_words(self) -> Set[str]:
        """ "Ben" is none, though the Italian "ben" is one."""
        reading = self.analysed_text
        common = reading.words_and_parts_before_apostrophe & all_words_of_lexicon_lists(
            reading.lexicons, "stop_words", "function_words"
        )
        return common - self.words_capitalized_inside_sentence

    def has_function_word_before(self, word: str) -> bool:
        """Before its first place."""
        at = self.words.index(word)
        return at > 0 and self.words[at - 1] in self.function_words

    @cached_property
    def content_words(self) -> list[str]:
        """The words that are no function words, in order."""
        common = self.function_words
        content = (word for word in self.words if word not in common and word.split("'")[0] not in common)
        return [word for word in content if not HIRAGANA_RUN_PATTERN.fullmatch(word)]

    @cached_property
    def numbers(self) -> list[str]:
        """The words with a digit, each once, in order."""
        return list(dict.fromkeys(filter(_DIGIT_PATTERN.search, self.words)))

    @cached_property
    def content_words_by_stem(self) -> Mapping[str, str]:
        """The content words, by their stems."""
        return {stem_of_word_beginning(word): word for word in self.content_words}

    @cached_property
    def states_change(self) -> bool:
        """Whether it has a word or phrase that tells of a change."""
        return self.analysed_text.matches_lexicon_pattern("change")

    @cached_property
    def states_correction(self) -> bool:
        """Whether it says that something was wrong from the start: it has a word for a mistake, and no other that tells
        of a change."""
        mistaken = self.analysed_text.words_matching_lexicon_pattern("corrected")
        return bool(mistaken) and self.change_words <= mistaken

    @cached_property
    def change_words(self) -> Set[str]:
        """Those that tell of a change."""
        return self.analysed_text.words_matching_lexicon_pattern("change")

    @cached_property
    def tells_change_by_verb_or_negation(self) -> bool:
        """In a verb or by a negation; not by "now" alone."""
        verbs_and_negations = {
            *self.content_words_by_stem.values(),
            *self.analysed_text.words_in_lexicon_lists("negations"),
        }
        return not verbs_and_negations.isdisjoint(self.change_words)

    @cached_property
    def is_told_in_first_person(self) -> bool:
        """Whether a word of it is "I", "we", "our" or the like."""
        return self.analysed_text.first_person_degree > 0

    @cached_property
    def speaks_to_somebody(self) -> bool:
        """Whether a sentence of it asks, or has a word like "you". The question mark of an address ends none."""
        asks = _END_OF_QUESTION_PATTERN.search(self.text) is not None
        return asks or bool(self.analysed_text.words_in_lexicon_lists("addressed"))

    @cached_property
    def speaker_label(self) -> str:
        """What stands before the first colon, if it may be a name: "Ann" of "Ann: Hello"; else ""."""
        label = SPEAKER_LABEL_PATTERN.match(self.text)
        return label[0].rstrip(": ：") if label else ""

    @cached_property
    def contains_question_mark(self) -> bool:
        return _QUESTION_MARK_PATTERN.search(self.text) is not None

    def is_possible_name(self, word: str) -> bool:
        """Whether a content word is written with a capital; in a script without capitals any may be a name."""
        return word.upper() == word or word.capitalize() in self.text


@lru_cache(maxsize=1_000)
def cached_statement_for_comparison(text: str) -> StatementForComparison:
    """The same statement for the same text: of what is often recalled it is read once."""
    return StatementForComparison(text)


def _word_or_sign_pairs(word: str) -> list[str]:
    if not HAN_OR_KANA_CHAR_PATTERN.match(word):
        return [word.removesuffix("'s")]
    return [word[at : at + 2] for at in range(max(1, len(word) - 1))]


def stem_of_word_beginning(word: str) -> str:
    """What forms of the word begin with, by a guess."""
    if _HANGUL_CHAR_PATTERN.match(word):
        return word[:_MAX_KOREAN_STEM_SYLLABLES]
    return word[:_MAX_STEM_LETTERS] if word.isalpha() else word


def count_shared_content_words(text: str, other: str) -> int:
    """In whatever form."""
    one, two = (cached_statement_for_comparison(each).content_words_by_stem for each in (text, other))
    return len(one.keys() & two.keys())


def shared_stems(new: StatementForComparison, old: StatementForComparison) -> set[str]:
    """Stems of the content words that both have, but for small numbers: two that both speak of 20 minutes and of 20
    people need have nothing in common."""
    both = new.content_words_by_stem.keys() & old.content_words_by_stem.keys()
    return {stem for stem in both if not _AMOUNT_PATTERN.fullmatch(stem)}


def share_of_same_wording(new: StatementForComparison, old: StatementForComparison) -> float:
    """The share in [0, 1] of the words that both have in the same order."""
    shared = sum(
        to - at
        for tag, at, to, _, _ in _cached_diff_opcodes_of_words(tuple(old.words), tuple(new.words))
        if tag == "equal"
    )
    total = len(old.words) + len(new.words)
    return 2.0 * shared / total if total else 1.0


def share_more_of_same_wording_than(share: float, new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether `share_of_same_wording` is greater. Most have too few words in common in any order, which is quick to
    see."""
    in_any_order = 2 * sum(map(old.word_set.__contains__, new.words))
    if in_any_order < share * (len(old.words) + len(new.words)):
        return False
    return share_of_same_wording(new, old) > share


def are_of_one_wording(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether so many words stand in the same order that both are true as often as not: the phone of one, and of
    another."""
    return share_more_of_same_wording_than(MAX_SHARED_WORD_RATIO_OF_DIFFERENT_WORDING, new, old)


@lru_cache(maxsize=100)
def _cached_diff_opcodes_of_words(
    old: tuple[str, ...], new: tuple[str, ...]
) -> Sequence[tuple[str, int, int, int, int]]:
    """Several rules look at the same two, of the new text and up to fifty others."""
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def differ_in_one_value(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether two of one wording say the same but for one value: a number, day, negation or opposite; or whether the
    new one tells what became of what it replaces ("Joachim is on call; Mira is on leave"). Questions never do."""
    if new.contains_question_mark or old.contains_question_mark or not are_of_one_wording(new, old):
        return False
    values = frozenset(
        (
            *new.analysed_text.words_in_lexicon_lists(*VALUE_LEXICON_LISTS),
            *old.analysed_text.words_in_lexicon_lists(*VALUE_LEXICON_LISTS),
        )
    )

    def is_value(word: str) -> bool:
        return word in values or _DIGIT_PATTERN.search(word) is not None

    differences = _word_differences(old.words, new.words)
    if len(differences) == 1:
        return all(is_value(word) for word in (*differences[0].gone, *differences[0].come))
    if may_state_same_of_two_things(new, old) or _have_numbers_in_other_order(new, old):
        return False
    of_content = _word_differences(old.content_words, new.content_words)
    if replaced := _replaced_content_words(of_content, old.content_words, new.content_words):
        values_of = [[is_value(word) for word in words] for words in replaced[0]]
        return all(any(found) and found.count(False) <= MAX_NON_VALUE_WORDS_IN_REPLACEMENT for found in values_of)
    return any(difference.gone and difference.come for difference in of_content)  # the new one has all of its words


def differ_in_value_of_one_thing(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether two of one wording differ in the value of one thing: in a word that is one anywhere, or in whatever words
    beside one that tells of a change."""
    return differ_in_one_value(new, old) or states_change_in_one_place(new, old)


def states_change_of_number(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether the new one tells of a change, and two of one wording begin with the same two content words or more and
    differ first in a number that is no date and no name ("room 4"), as a function word stands before it: "the nightly
    backup runs at 2:00 with restic", "the nightly backup now runs at 3:30, to spare the vacuum". What follows may be of
    one of them alone; so may one word before the number, a verb that the other has not. Without a word of change what
    follows may say of which thing the number is."""
    if not new.states_change or new.contains_question_mark or old.contains_question_mark:
        return False
    if not are_of_one_wording(new, old):
        return False
    before, after = ([word for word in one.content_words if word not in one.change_words] for one in (old, new))
    months = {*new.analysed_text.words_in_lexicon_lists("months"), *old.analysed_text.words_in_lexicon_lists("months")}
    at = new_at = same = 0
    is_skipped = False
    while at < len(before) and new_at < len(after):
        one, other = before[at], after[new_at]
        if stem_of_word_beginning(one) == stem_of_word_beginning(other):
            at, new_at, same = at + 1, new_at + 1, same + 1
            continue
        is_number, is_new_number = (_DIGIT_PATTERN.search(word) is not None for word in (one, other))
        if is_number and is_new_number:
            around = {*before[max(0, at - 1) : at + 2], *after[max(0, new_at - 1) : new_at + 2]}
            are_values = old.has_function_word_before(one) and new.has_function_word_before(other)
            return same >= MIN_SHARED_WORDS_BEFORE_NUMBER and are_values and around.isdisjoint(months)
        longer, word = (old, one) if is_new_number else (new, other)
        if is_skipped or not (is_number or is_new_number) or longer.is_possible_name(word):
            return False
        is_skipped = True
        at, new_at = at + is_new_number, new_at + is_number
    return False


def states_change_in_one_place(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether two of one wording begin with the same and differ in one place, beside words that tell of a change ("has
    been changed to", "no longer"): the value of one thing, in whatever words. Where the old one is an event of that
    kind itself, the new one is another ("stopped smoking", "stopped eating sugar")."""
    marks = new.change_words
    if not marks or new.contains_question_mark or old.contains_question_mark or not are_of_one_wording(new, old):
        return False
    if (
        not old.content_words_by_stem
        or next(iter(old.content_words_by_stem)) not in new.content_words_by_stem
        or old.tells_change_by_verb_or_negation
    ):
        return False
    for before, after in ((old.content_words, new.content_words), (old.words, new.words)):
        replaced = _replaced_content_words(_word_differences(before, after), old.content_words, new.content_words)
        if sum(not come <= marks for _, come in replaced) > 1:
            return False
    return True


def tells_same_numbers_without_change(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether the new one tells of no change, and both hold the same numbers, and any: "the phone of the office is
    0100", "the office has the phone 0100"."""
    return bool(new.numbers) and not new.states_change and {*new.numbers} == {*old.numbers}


def states_change_of_old_statement(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether the new one tells of a change in all words of the old one but values: "was moved to Friday"."""
    if new.contains_question_mark or old.contains_question_mark or not new.states_change:
        return False
    subject = _content_word_stems_without_values(old)
    return len(subject) > 1 and subject <= new.content_words_by_stem.keys()


def tells_of_other_thing_in_one_wording(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether two of one wording differ in several places, and not in values alone, and the new one tells of no change:
    "warranty on lawnmower batteries is one year", "standard warranty on lawnmowers is two years"."""
    if new.states_change or not are_of_one_wording(new, old) or not may_state_same_of_two_things(new, old):
        return False
    return not _content_word_stems_without_values(old) <= new.content_words_by_stem.keys()


def _content_word_stems_without_values(statement: StatementForComparison) -> Set[str]:
    """The stems of its content words, but for values."""
    values = frozenset(statement.analysed_text.words_in_lexicon_lists(*VALUE_LEXICON_LISTS))
    return {
        stem for stem, word in statement.content_words_by_stem.items() if not word[0].isdigit() and word not in values
    }


def may_state_same_of_two_things(new: StatementForComparison, old: StatementForComparison) -> bool:
    """Whether the two may tell the same of two things: other words in two places, or a name more between the words that
    both have."""
    before, after = old.content_words, new.content_words
    of_content, of_all = _word_differences(before, after), _word_differences(old.words, new.words)
    for one in of_content:
        if not one.is_inside or _replaced_content_words([one], before, after):
            continue
        if not set(one.gone) <= set(after) or any(map(new.is_possible_name, set(one.come) - set(before))):
            return True
    return max(len(_replaced_content_words(found, before, after)) for found in (of_content, of_all)) > 1


def _have_numbers_in_other_order(new: StatementForComparison, old: StatementForComparison) -> bool:
    """As "coin 4 into pocket 0" and "coin 0 into pocket 4"."""
    numbers, of_old = (one.numbers for one in (new, old))
    return [word for word in numbers if word in of_old] != [word for word in of_old if word in numbers]


@dataclass(frozen=True, slots=True)
class _WordDifference:
    """Words of the old one, and those of the new one in their place."""

    gone: Sequence[str]
    come: Sequence[str]
    is_inside: bool
    """Words that both have stand on both sides."""


def _word_differences(old: Sequence[str], new: Sequence[str]) -> list[_WordDifference]:
    alignment = _cached_diff_opcodes_of_words(tuple(old), tuple(new))
    return [
        _WordDifference(old[at:to], new[new_at:new_to], is_inside=0 < n < len(alignment) - 1)
        for n, (tag, at, to, new_at, new_to) in enumerate(alignment)
        if tag != "equal"
    ]


def _replaced_content_words(
    differences: Sequence[_WordDifference], old_content: Sequence[str], new_content: Sequence[str]
) -> list[tuple[Set[str], Set[str]]]:
    """Content words that are only in the old one, with those only in the new one that stand in their place."""
    lost, added = {*old_content} - {*new_content}, {*new_content} - {*old_content}
    both = [(lost.intersection(one.gone), added.intersection(one.come)) for one in differences]
    return [(gone, come) for gone, come in both if gone and come]
