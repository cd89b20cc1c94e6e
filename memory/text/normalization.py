"""Normal forms of a text: storable, cleaned, folded for comparison; and parts of at most a length.

Imports the standard library alone (see `memory.watch.transcripts`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

_MIN_PART_SHARE_OF_LIMIT = 0.5
"""Least length of a part as a share of the limit, wherever a line or a word ends."""


def storable_text(text: str) -> str:
    """Replace halves of surrogate pairs and drop NUL, which cannot be stored; "" if nothing visible is left."""
    clean = text.encode(errors="replace").decode().replace("\x00", "")
    return clean if any(unicodedata.category(char)[0] in "LNPS" for char in clean) else ""


def split_by_length(text: str, limit: int) -> Iterator[str]:
    """Yield the text in parts of at most `limit` characters that join back to it: cut after a line if one ends in the
    second half, else after a word, else anywhere."""
    start = 0
    while len(text) - start > limit:
        end = start + limit
        least = start + int(limit * _MIN_PART_SHARE_OF_LIMIT)
        cut = max(text.rfind("\n", least, end), 0) or max(text.rfind(" ", least, end), 0) or end - 1
        yield text[start : cut + 1]
        start = cut + 1
    yield text[start:]


_CARRIAGE_RETURN_LINE_END_PATTERN = re.compile(r"\r\n?")
_EXCESS_BLANK_LINES_PATTERN = re.compile(r"\n{3,}")


def normalize_unicode_and_whitespace(text: str) -> str:
    """NFC, line ends as \\n, at most one blank line in a row, no white space at either end. Formatting and code stay.
    Idempotent."""
    text = _CARRIAGE_RETURN_LINE_END_PATTERN.sub("\n", unicodedata.normalize("NFC", text))
    return _EXCESS_BLANK_LINES_PATTERN.sub("\n\n", text).strip()


FOLDED_FIELD_SEPARATOR = "\x1f"
"""Between fields that are searched as one, so that no term matches across two of them; kept out of what is folded."""


def fold_text(text: str) -> str:
    """NFKC of the casefolded text without accents: `Ｓtraße` and `STRASSE` are one, and so are `Café` and `cafe`."""
    if text.isascii():
        return text.lower().replace(FOLDED_FIELD_SEPARATOR, " ")
    folded = without_accents(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))
    # A lone surrogate, which a client can send as JSON, cannot be written in UTF-8 and so cannot be stored.
    return folded.replace(FOLDED_FIELD_SEPARATOR, " ").encode(errors="replace").decode()


_REMOVABLE_ACCENT_PATTERN = re.compile(
    "(?<=[A-Za-z\u00c0-\u024f\u0391-\u03c9])[\u0300-\u036f]+|(?<=[аеиоуыэюяАЕИОУЫЭЮЯ])[\u0300\u0301]+|(?<=[еЕ])\u0308"
)
"""On Latin and Greek letters; on Russian vowels the stress, and the dots of ё. Elsewhere a mark makes another letter:
й, が, and the vowels of Arabic, Hindi and Thai."""
_PLAIN_LETTERS_BY_UNDECOMPOSED_LETTER = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
    | {"ı": "i", "ß": "ss"}
)
"""Letters that Unicode does not decompose."""


def lowercase_with_straight_apostrophes(text: str) -> str:
    """As the patterns of lexicons are written."""
    return text.lower().replace("\u2019", "'")


def without_accents(text: str) -> str:
    """NFC of the text without accents."""
    if text.isascii():
        return text
    plain = _REMOVABLE_ACCENT_PATTERN.sub("", unicodedata.normalize("NFD", text)).translate(
        _PLAIN_LETTERS_BY_UNDECOMPOSED_LETTER
    )
    return unicodedata.normalize("NFC", plain)


def split_message_into_keyed_parts(text: str, key: str, limit: int) -> Iterator[tuple[str, str]]:
    """(key, part) of each part of a message that holds something visible; the first part has the message's key."""
    parts = [part for part in split_by_length(text, limit) if storable_text(part)]
    return ((f"{key}#{number}" if number else key, part) for number, part in enumerate(parts))


_DIGIT_BY_HAN_CHARACTER = dict(zip("〇零一二两兩三四五六七八九", (0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_MULTIPLIER_BY_HAN_CHARACTER = {"十": 10, "百": 100, "千": 1000}


def digits_of_han_number(run: str) -> str:
    """三 is 3, 十二 is 12, 二〇二六 is 2026."""
    if not any(sign in _MULTIPLIER_BY_HAN_CHARACTER for sign in run):
        return "".join(str(_DIGIT_BY_HAN_CHARACTER[sign]) for sign in run)
    total = digit = 0
    for sign in run:
        if sign in _MULTIPLIER_BY_HAN_CHARACTER:
            total += (digit or 1) * _MULTIPLIER_BY_HAN_CHARACTER[sign]
            digit = 0
        else:
            digit = _DIGIT_BY_HAN_CHARACTER[sign]
    return str(total + digit)
