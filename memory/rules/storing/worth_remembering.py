"""Whether an exchange is worth remembering, by its words alone (spec H6).

Mechanical, so that a model is asked only about what may be worth it. When in doubt it is: a yes costs one question to
the model, a no loses the memory. The signs are the patterns of the lexicons, in twelve languages; of other languages
long statements, numbers, dates and names still tell.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from madeleine.memory.rules.storing.quoting import split_into_sentences_and_lines, without_recalled_text
from madeleine.memory.text.lexicon import (
    all_words_of_lexicon_lists,
    lexicons_for_script_of_text,
    load_language_neutral_pattern,
    text_without_lexicon_pattern,
)
from madeleine.memory.text.reading import AnalysedText, WordInText
from madeleine.memory.text.sentences import text_without_code_blocks

MIN_WORTHY_STATEMENT_WORDS = 6
"""Words from which a statement without any sign counts."""
MIN_WORTHY_UNSPACED_STATEMENT_CHARS = 12
"""The same for scripts without spaces."""
MAX_TEXT_CHARS_JUDGED_FOR_WORTH = 20_000
"""Characters of a text that are looked at."""
REMEMBER_REASON_BY_LEXICON_PATTERN: Mapping[str, str] = {
    "preference": "a preference",
    "decision": "a decision",
    "plan": "a plan",
    "feeling": "a feeling",
    "person_fact": "a fact about a person",
    "correction": "a correction",
    "lesson": "a lesson",
}
"""Pattern of the lexicons → reason, in the order in which a reason is given; in questions and orders they count too."""

_INLINE_CODE_PATTERN = re.compile(r"`[^`\n]{1,300}`")
_QUOTE_LINE_PATTERN = re.compile(r"^[ \t]{0,8}>.*$", re.M)
_URL_PATTERN = re.compile(r"\b(?:https?|ftp|file)://\S+|\bwww\.\S+")
_CODE_LINE_PATTERN = load_language_neutral_pattern("code_line")
_SLASH_COMMAND_PATTERN = re.compile(r"^\s*[/!][a-z][\w-]*(?:\s.*)?$", re.I)
_PATH_OR_OPTION_PATTERN = re.compile(r"(?<!\S)(?:[~.]{0,2}/\S+|\S+\.[a-z]{1,4}(?!\S)|--?[a-z]\S*)")


def should_remember(user_text: str, response_text: str) -> tuple[bool, str]:
    """(whether, why), for what a person said and what was answered. Text that they quote from memory does not count,
    nor do code and commands; of the answer, only what was done or understood for good."""
    said = text_without_code_and_quotes(user_text)
    stated = [AnalysedText(sentence) for sentence in split_into_sentences_and_lines(said)]
    for sentence in stated:
        if reason := _reason_to_remember_sentence(sentence):
            return True, reason
    open_statements = [sentence for sentence in stated if not is_small_talk(sentence.text)]
    only_orders = bool(open_statements) and all(map(_is_order_or_question, open_statements))
    if not only_orders and any(
        AnalysedText(sentence).matches_lexicon_pattern("done")
        for sentence in split_into_sentences_and_lines(text_without_code_and_quotes(response_text))
    ):
        return True, "what was done or understood"
    if any(
        not _is_order_or_question(sentence) and _is_long_or_numeric_statement(sentence) for sentence in open_statements
    ):
        return True, "a statement"
    if not (user_text + response_text).strip():
        return False, "nothing was said"
    if not said:
        return False, (
            "nothing was said but code, links or quotes" if user_text.strip() else "nobody but the assistant spoke"
        )
    if not open_statements:
        return False, "greetings, thanks, yes or no"
    return False, "orders and questions" if only_orders else "nothing that tells of anybody or anything"


def reason_to_remember_agreement(question: str, answer: str) -> str:
    """The reason why what a bare yes or no was said to is worth remembering; "" if it is not."""
    if not text_without_code_and_quotes(answer) or not is_small_talk(text_without_code_and_quotes(answer)):
        return ""
    asked = (
        sentence
        for sentence in split_into_sentences_and_lines(text_without_code_and_quotes(question))
        if _is_question_not_telling_of_oneself(AnalysedText(sentence))
    )
    return next(
        (
            reason
            for sentence in asked
            if (reason := _reason_to_remember_sentence(AnalysedText(sentence.rstrip("?？؟ "))))
        ),
        "",
    )


def text_without_code_and_quotes(text: str) -> str:
    """The text without code, links, and what is quoted, from memory or from a message."""
    text = without_recalled_text(
        unicodedata.normalize("NFKC", text[:MAX_TEXT_CHARS_JUDGED_FOR_WORTH]).replace("’", "'")
    )
    text = _QUOTE_LINE_PATTERN.sub("", text_without_code_blocks(text))
    lines = [line for line in text.splitlines() if not _CODE_LINE_PATTERN.search(line)]
    return _URL_PATTERN.sub(" ", _INLINE_CODE_PATTERN.sub(" ", "\n".join(lines))).strip()


def is_small_talk(text: str) -> bool:
    """Whether it is made of greetings, thanks, yes and no alone, in any languages; signs and emoji too."""
    lexicons = lexicons_for_script_of_text(text, mixed=True)
    known = all_words_of_lexicon_lists(lexicons, "small_talk")
    words = AnalysedText(text_without_lexicon_pattern(text, "small_talk", lexicons, by="")).words
    return all(word.low in known or ("'" in word.low and known.issuperset(word.low.split("'"))) for word in words)


def _reason_to_remember_sentence(sentence: AnalysedText) -> str:
    if _SLASH_COMMAND_PATTERN.match(sentence.text) or is_small_talk(sentence.text):
        return ""
    for sign, reason in REMEMBER_REASON_BY_LEXICON_PATTERN.items():
        if sentence.states_personal_taste if sign == "preference" else sentence.matches_lexicon_pattern(sign):
            return reason
    if sentence.mentions_date and not _is_question_not_telling_of_oneself(sentence):
        return "a date"
    return "a name" if not _is_order_or_question(sentence) and _has_name_inside_sentence(sentence) else ""


def _is_question_not_telling_of_oneself(sentence: AnalysedText) -> bool:
    """One that does not begin with what somebody tells of themselves."""
    return sentence.is_question and not sentence.matches_lexicon_pattern("oneself")


def _is_order_or_question(sentence: AnalysedText) -> bool:
    return (
        bool(_SLASH_COMMAND_PATTERN.match(sentence.text))
        or sentence.matches_lexicon_pattern("command")
        or _is_question_not_telling_of_oneself(sentence)
    )


def _is_long_or_numeric_statement(sentence: AnalysedText) -> bool:
    words = _words_without_paths_and_options(sentence)
    caseless = sum(len(word.text) for word in words if word.is_in_caseless_script)
    cased = sum(not word.is_in_caseless_script for word in words)
    return (
        cased >= MIN_WORTHY_STATEMENT_WORDS
        or caseless >= MIN_WORTHY_UNSPACED_STATEMENT_CHARS
        or (cased >= 3 and bool(sentence.numbers))
    )


def _has_name_inside_sentence(sentence: AnalysedText) -> bool:
    """A capitalised word that does not begin the sentence, in a sentence of some words."""
    cased = [word for word in _words_without_paths_and_options(sentence) if not word.is_in_caseless_script]
    return len(cased) >= 3 and any(
        word.is_capitalised and word.text[1:].islower() and not is_small_talk(word.text) for word in cased[1:]
    )


def _words_without_paths_and_options(sentence: AnalysedText) -> tuple[WordInText, ...]:
    return AnalysedText(_PATH_OR_OPTION_PATTERN.sub(" ", sentence.text)).words
