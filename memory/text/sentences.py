"""Sentence boundaries, in any language (spec L1, step 2), the best place to cut a long text, and its prose."""

from __future__ import annotations

import re
from collections.abc import Iterator

from madeleine.memory.text.lexicon import (
    Lexicon,
    all_words_of_lexicon_lists,
    lexicons_for_script_of_text,
    load_language_neutral_pattern,
    probable_lexicons,
)

_SENTENCE_END_PATTERN = load_language_neutral_pattern("sentence_end")
_LAST_WORD_PATTERN = re.compile(r"((?:\w\.)*\w+)\.?$")
_NEXT_WORD_PATTERN = re.compile(r"\W{0,3}(\w+)")
_MARKDOWN_CODE_BLOCK_PATTERN = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.S)


def text_without_code_blocks(text: str) -> str:
    """Each block between fences of Markdown, an open one to the end, is a line's end."""
    return _MARKDOWN_CODE_BLOCK_PATTERN.sub("\n", text)


def split_sentences(text: str) -> list[str]:
    """Split the text. The parts join back to it; each but the last ends with the white space behind it.

    A mark ends a sentence where white space and no small letter follow (in scripts without spaces: anywhere), except
    behind a title, an abbreviation, an initial or a day of the month (`memory.text.lexicon`: `titles`,
    `abbreviations`, `numbered`). Behind an abbreviation or an initial, a function word with a capital begins a new
    sentence.
    """
    parts = []
    start = 0
    for end in _sentence_end_positions(text):
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]] if start < len(text) else parts


def _sentence_end_positions(text: str) -> Iterator[int]:
    lexicons: tuple[Lexicon, ...] | None = None
    for match in _SENTENCE_END_PATTERN.finditer(text):
        if match["mark"] and not match["space"]:
            continue
        end = match.end()
        if end < len(text) and text[end].islower():
            continue
        if match["mark"] == "." and end < len(text):
            lexicons = lexicons_for_script_of_text(text) if lexicons is None else lexicons
            if _is_dot_within_sentence(text, match, lexicons):
                continue
        yield end


def _is_dot_within_sentence(text: str, match: re.Match[str], lexicons: tuple[Lexicon, ...]) -> bool:
    before = _LAST_WORD_PATTERN.search(text, max(0, match.start() - 12), match.start())
    if before is None:
        return False
    word = before[1].casefold()
    following = text[match.end()]
    if word in all_words_of_lexicon_lists(lexicons, "titles"):
        return True
    if word.isdigit():
        near = text[max(0, match.start() - 200) : match.end() + 200]
        ordinal = len(word) <= 2 and following.isalpha()
        return ordinal and any(lexicon.entries.get("ordinal_dot") for lexicon in probable_lexicons(near))
    if word in all_words_of_lexicon_lists(lexicons, "numbered"):
        return following.isdigit()
    initial = len(word) == 1 and before[1].isupper() and before[1] != "I"
    if not (initial or word in all_words_of_lexicon_lists(lexicons, "abbreviations")):
        return False
    next_word = _NEXT_WORD_PATTERN.match(text, match.end())
    return next_word is None or next_word[1].casefold() not in all_words_of_lexicon_lists(lexicons, "openers")


_BLANK_LINE_PATTERN = re.compile(r"\n[^\S\n]*\n\s*")
_CODE_FENCE_PATTERN = re.compile(r"^[^\S\n]*(?:`{3,}|~{3,})", re.MULTILINE)
_WHITESPACE_PATTERN = re.compile(r"\s+")
MIN_CUT_POSITION_SHARE = 0.5
"""Least length of a part as a share of the maximum: no shorter part is made for a better kind of cut."""


def best_cut_position(text: str, most: int) -> int:
    """Position in (0, most]: behind the last paragraph that ends within `most` characters and outside a code block;
    else behind a line, a sentence, a word, whichever first lies in the second half; else `most`."""
    least = int(most * MIN_CUT_POSITION_SHARE)
    head = text[:most]
    fences = [fence.start() for fence in _CODE_FENCE_PATTERN.finditer(head)]
    paragraphs = [match.end() for match in _BLANK_LINE_PATTERN.finditer(head)]
    for end in reversed(paragraphs[-200:]):
        if end <= least:
            break
        if sum(fence < end for fence in fences) % 2 == 0:
            return end
    line = head.rfind("\n") + 1
    if line > least:
        return line
    sentence = most - len(split_sentences(head)[-1])
    if sentence > least:
        return sentence
    spaces = [match.end() for match in _WHITESPACE_PATTERN.finditer(head, least)]
    return spaces[-1] if spaces else most
