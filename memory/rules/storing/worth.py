"""Whether an exchange is worth remembering, by its words alone (spec H6).

Mechanical, so that a model is asked only about what may be worth it. When in doubt it is: what a yes costs is one
question, what a no costs is gone.
"""

from __future__ import annotations

import re
import unicodedata

from madeleine.memory.rules.storing.quoting import sentences, unmarked
from madeleine.memory.rules.storing.signs_of_worth import (
    COMMAND,
    COMMAND_CASELESS,
    CONFIRMED,
    DAY,
    OF_ONESELF,
    QUESTION,
    SIGNS,
    SMALL_TALK,
    SMALL_TALK_CASELESS,
)

STATEMENT_WORDS = 6
"""Words from which a statement without any sign counts."""
STATEMENT_SIGNS = 12
"""The same for scripts without spaces."""
READ = 20_000
"""Characters of a text that are looked at."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.S)
_INLINE = re.compile(r"`[^`\n]{1,300}`")
_QUOTE_LINE = re.compile(r"^[ \t]{0,8}>.*$", re.M)
_URL = re.compile(r"\b(?:https?|ftp|file)://\S+|\bwww\.\S+")
_CODE_LINE = re.compile(
    r"^\s*(?:[$#>%]\s\S|(?:from\s+\S+\s+)?import\s|(?:async\s+)?def\s+\w+\(|class\s+\w+[:({]|(?<=\s)return\b.*|return\b.*[;()\[\]=]|"
    r"(?:const|let|var|public|private|static|func|fn|#include|package|using)\s|(?:if|for|while)\s*\(.*\)\s*\{?|"
    r"@\w+|</?\w+[^>]*>|[{}\[\]();,]+\s*$|\w[\w.\[\]\"']*\s*(?:[-+*/]?=|:=)\s*\S|(?:SELECT|INSERT|UPDATE|DELETE|CREATE)\s.*|"
    r"Traceback \(|File \"[^\"]+\", line|\w*(?:Error|Exception): )|[;{}]\s*$|^\s+at \S+\(|=>\s*\{?$"
)
_SLASH = re.compile(r"^\s*[/!][a-z][\w-]*(?:\s.*)?$", re.I)
_PATHS = re.compile(r"(?<!\S)(?:[~.]{0,2}/\S+|\S+\.[a-z]{1,4}(?!\S)|--?[a-z]\S*)")
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_MARKED_NUMBER = re.compile(r"\d")


def should_remember(user_text: str, response_text: str) -> tuple[bool, str]:
    """(whether, why), of what a person said and what was answered. What they quote from memory does not count, nor do
    code and commands; of the answer, only what was done or understood for good."""
    said = told(user_text)
    for piece in (pieces := sentences(said)):
        if reason := _sign(piece):
            return True, reason
    answered = told(response_text)
    idle = [piece for piece in pieces if not is_small_talk(piece)]
    if not _only_orders(idle) and any(CONFIRMED.search(piece) for piece in sentences(answered)):
        return True, "what was done or understood"
    for piece in idle:
        if not _is_order(piece) and _is_statement(piece):
            return True, "a statement"
    return False, _why_not(user_text, response_text, said, pieces, idle)


def agreed(question: str, answer: str) -> str:
    """What a bare yes or no was said to, if the question had something worth remembering in it; else ""."""
    if not told(answer) or not is_small_talk(told(answer)):
        return ""
    asked = (piece.rstrip("?？؟ ") for piece in sentences(told(question)) if _is_question(piece))
    return next((reason for piece in asked if (reason := _sign(piece))), "")


def told(text: str) -> str:
    """The text without code, links, and what is quoted, from memory or from a message."""
    text = unmarked(unicodedata.normalize("NFKC", text[:READ]).replace("’", "'"))
    text = _QUOTE_LINE.sub("", _FENCE.sub("\n", text))
    lines = [line for line in text.splitlines() if not _CODE_LINE.search(line)]
    return _URL.sub(" ", _INLINE.sub(" ", "\n".join(lines))).strip()


def is_small_talk(text: str) -> bool:
    """Whether it is made of greetings, thanks, yes and no alone; signs and emoji too."""
    rest = SMALL_TALK_CASELESS.sub("", text)
    return all(
        word.casefold() in SMALL_TALK or (not word.isalpha() and _parts_idle(word)) for word in _WORD.findall(rest)
    )


def _parts_idle(word: str) -> bool:
    return all(part.casefold() in SMALL_TALK for part in re.split(r"['’\-]", word))


def _sign(piece: str) -> str:
    if _SLASH.match(piece) or is_small_talk(piece):
        return ""
    for reason, sign in SIGNS.items():
        if sign.search(piece):
            return reason
    if DAY.search(piece) and (not _is_question(piece)):
        return "a date"
    if not _is_order(piece) and _has_name(piece):
        return "a name"
    return ""


def _is_question(piece: str) -> bool:
    """One that does not begin with what somebody tells of themselves."""
    return bool(QUESTION.search(piece)) and not OF_ONESELF.search(piece)


def _is_order(piece: str) -> bool:
    return bool(_SLASH.match(piece) or COMMAND.search(piece) or COMMAND_CASELESS.search(piece) or _is_question(piece))


def _only_orders(pieces: list[str]) -> bool:
    return bool(pieces) and all(_is_order(piece) for piece in pieces)


def _is_statement(piece: str) -> bool:
    words = _WORD.findall(_PATHS.sub(" ", piece))
    caseless = sum(len(word) for word in words if word.lower() == word.upper())
    cased = sum(word.lower() != word.upper() for word in words)
    return cased >= STATEMENT_WORDS or caseless >= STATEMENT_SIGNS or bool(cased >= 3 and _MARKED_NUMBER.search(piece))


def _has_name(piece: str) -> bool:
    """A capitalised word that does not begin the sentence, in a sentence of some words."""
    words = _WORD.findall(_PATHS.sub(" ", piece))
    cased = [word for word in words if word.lower() != word.upper()]
    return len(cased) >= 3 and any(
        word[0].isupper() and word[1:].islower() and word.casefold() not in SMALL_TALK for word in cased[1:]
    )


def _why_not(user_text: str, response_text: str, said: str, pieces: list[str], idle: list[str]) -> str:
    if not (user_text + response_text).strip():
        return "nothing was said"
    if not said:
        return "nothing was said but code, links or quotes" if user_text.strip() else "nobody but the assistant spoke"
    if not idle:
        return "greetings, thanks, yes or no"
    return "orders and questions" if _only_orders(idle) else "nothing that tells of anybody or anything"
