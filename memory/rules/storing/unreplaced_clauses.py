"""What a superseded memory said besides what has changed (ruling 14): nobody recalls it, unless it is told anew.

"Bob lives in Lyon and works at Acme", superseded by "Bob lives in Paris", also said "works at Acme". Each clause of the
new text takes the place of the one that it shares most with; every other one that has words of its own is told.
Sentences are clauses, and parts that a comma divides if each has words enough; what follows a conjunction only if it
has a verb that is known to be one, or each part tells of a number: "toner from Rau" is no clause of "Kranich orders
paper and toner from Rau", "its health check on 7011" is one of "it serves gRPC on 7010 and its health check on 7011". A
text of one clause may tell more than one fact, too, if it has many words that the new text has not. Whoever tells of a
weekday replaces what was told of one with a word in common: "so he and Maren meet on Thursdays instead" is what has
changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from madeleine.memory.rules.storing.statements import VALUE_LEXICON_LISTS, StatementForComparison
from madeleine.memory.text.lexicon import Lexicon, all_words_of_lexicon_lists
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.sentences import split_sentences

MAX_UNREPLACED_CLAUSES_CHARS = 300
MIN_UNREPLACED_CLAUSE_WORDS = 2
"""Of a clause, beside numbers and days: an hour or a day alone is as often as not a part of what has changed. Beside a
long number one is enough."""
MIN_UNREPLACED_WORDS_OF_MORE_THAN_ONE_FACT = 5
"""Of a text that is one clause. Of 494 changes of one fact (`make truth`) 10 % leave so many of the old words."""
VALUE_SIMILARITY = 0.3
"""Of two clauses that both tell a number or a weekday, beside the share of their words."""
_LONG_NUMBER_PATTERN = re.compile(r"(?<![\d-])(?!(?:19|20)\d\d(?!\d))\d{4,}(?!-)")
_CERTAIN_CLAUSE_END_PATTERN = re.compile(r"[;!?](?=\s|$)|[。；！？؛\n()（）]|\s[-–—]\s")
_COMMA_REGEX = r",(?=\s|$)|[，、،]"


def unreplaced_clauses_notice(old_id: str, old_text: str, new_text: str) -> str:
    """For whoever has superseded the old one; "" if it said nothing besides."""
    new, old = StatementForComparison(new_text), StatementForComparison(old_text)
    if besides := joined_unreplaced_clauses(new, old):
        return f'{old_id} also said: "{besides}". If that still holds, store it by itself.'
    is_one_clause = len([*_split_into_clauses(old.analysed_text)]) == 1
    unreplaced = _content_stems_without_values(old) - new.content_words_by_stem.keys()
    if is_one_clause and len(unreplaced) >= MIN_UNREPLACED_WORDS_OF_MORE_THAN_ONE_FACT:
        return f"{old_id} may have said more than this replaces: store by itself what of it still holds."
    return ""


def joined_unreplaced_clauses(new: StatementForComparison, old: StatementForComparison) -> str:
    """The clauses of the old one that the new one does not replace, joined by " … "; "" if there are none."""
    clauses = {
        clause: frozenset(StatementForComparison(clause).words) for clause in _split_into_clauses(old.analysed_text)
    }
    stems = {
        clause: {stem for stem, word in old.content_words_by_stem.items() if word in words}
        for clause, words in clauses.items()
    }
    stems = {clause: own for clause, own in stems.items() if own}
    if not stems:
        return ""

    known = frozenset[str]().union(*stems.values())
    replaced = {_most_similar_clause(stems, new.content_words_by_stem.keys(), tells_value=_tells_value(new.text))}
    for clause in _split_into_clauses(new.analysed_text):
        if known & (words := StatementForComparison(clause).content_words_by_stem.keys()):
            replaced.add(_most_similar_clause(stems, words, tells_value=_tells_value(clause)))
    telling = _content_stems_without_values(old) - new.content_words_by_stem.keys()
    is_scheduled = _names_weekday(new.analysed_text)
    besides = [
        clause
        for clause, own in stems.items()
        if clause not in replaced
        and not (is_scheduled and own & new.content_words_by_stem.keys() and _names_weekday(AnalysedText(clause)))
        and len(own & telling) >= (1 if _holds_number_lacking_in(new, clause) else MIN_UNREPLACED_CLAUSE_WORDS)
    ]
    return " … ".join(besides)[:MAX_UNREPLACED_CLAUSES_CHARS]


def _holds_number_lacking_in(new: StatementForComparison, clause: str) -> bool:
    """A long number, as of a phone or a port: nobody changes it by not telling it. A year or an hour is none."""
    numbers = _LONG_NUMBER_PATTERN.findall(clause)
    return bool(numbers) and not any(number in new.text for number in numbers)


def _content_stems_without_values(statement: StatementForComparison) -> set[str]:
    """Of its content words, without numbers, days and other values."""
    values = frozenset(statement.analysed_text.words_in_lexicon_lists(*VALUE_LEXICON_LISTS))
    return {
        stem for stem, word in statement.content_words_by_stem.items() if not word[0].isdigit() and word not in values
    }


def _most_similar_clause(stems: Mapping[str, Collection[str]], words: Collection[str], *, tells_value: bool) -> str:
    """The clause with the greatest share of its words among them, of several the longest. Not with the most: the clause
    that names the subject shares that, too, whatever is told of it. A clause of one word has a share of a half. One
    that tells a number or a weekday is more like another that does: "they can only stretch to 585,000" is of the
    budget."""

    def similarity(clause: str) -> tuple[float, int]:
        count = sum(stem in words for stem in stems[clause])
        share = count / (1 + len(stems[clause]))
        return share + (VALUE_SIMILARITY if tells_value and _tells_value(clause) else 0.0), count

    return max(stems, key=similarity)


def _tells_value(text: str) -> bool:
    return _tells_number(text) or _names_weekday(AnalysedText(text))


def _tells_number(text: str) -> bool:
    return any(map(str.isdigit, text)) or bool(AnalysedText(text).words_in_lexicon_lists("numbers"))


def _split_into_clauses(reading: AnalysedText) -> Iterator[str]:
    """In order; a part that is no clause belongs to the part before it."""
    for sentence in split_sentences(reading.normalized_text):
        for text in _CERTAIN_CLAUSE_END_PATTERN.split(sentence):
            start = 0
            for end in _possible_clause_end_pattern(reading.lexicons).finditer(text):
                parts = text[start : end.start()], text[end.end() :]
                if _are_both_parts_clauses(parts, reading, joined_by_word=end[0].isalpha()):
                    yield text[start : end.start()].strip(" .:")
                    start = end.end()
            if clause := text[start:].strip(" .:"):
                yield clause


def _are_both_parts_clauses(parts: tuple[str, str], reading: AnalysedText, *, joined_by_word: bool) -> bool:
    if all(
        _has_listed_verb(part, reading) or (not joined_by_word and _has_enough_content_words(part)) for part in parts
    ):
        return True
    return all(_has_number_after_first_word(part) and _has_enough_content_words(part) for part in parts)


def _names_weekday(text: AnalysedText) -> bool:
    """Also as "Mondays"."""
    days = all_words_of_lexicon_lists(text.lexicons, "days")
    return any(word.low in days or word.low.removesuffix("s") in days for word in text.words)


def _has_listed_verb(text: str, reading: AnalysedText) -> bool:
    verbs = all_words_of_lexicon_lists(reading.lexicons, "person_verbs")
    return any(word.low in verbs for word in AnalysedText(text).words)


def _has_number_after_first_word(text: str) -> bool:
    """Not as its first word: "9 and 12 minutes later" is one time."""
    _, _, rest = text.strip().partition(" ")
    return _tells_number(rest)


def _has_enough_content_words(text: str) -> bool:
    return len(StatementForComparison(text).content_words_by_stem) >= MIN_UNREPLACED_CLAUSE_WORDS


@cache
def _possible_clause_end_pattern(lexicons: tuple[Lexicon, ...]) -> re.Pattern[str]:
    words = "|".join(sorted({word for lexicon in lexicons for word in lexicon.words("conjunctions")}))
    return re.compile(rf"{_COMMA_REGEX}|(?<!\w)(?:{words})(?!\w)" if words else _COMMA_REGEX, re.IGNORECASE)
