"""Stored text as data: what it says stays, but it cannot pass for structure of an answer, a prompt or a terminal.

Every text that leaves the memory passes here: answers of tools, prompts, resources, commands and logs. The stored text
stays as it was told. All functions are idempotent, so that a text may pass twice.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

_TERMINAL_ESCAPE_SEQUENCE_PATTERN = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,64}+[ -/]{0,8}+[@-~]")
_LINE_SEPARATOR_PATTERN = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE_CHARS_PATTERN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u180e\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]"
    "|(?<=[\x21-\x7e])[\u200b-\u200d]+(?=[\x21-\x7e])|(?<=[\u061c\u200b-\u200f])[\u061c\u200b-\u200f]+"
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
"""Control signs, bidi embeddings, overrides and isolates, format signs without a glyph. Joiners and marks of direction
stay where a script or an emoji needs them: beside a letter that is not ASCII, one at a time; and so do variation
selectors."""
_UNICODE_TAG_CHARS_PATTERN = re.compile(
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f)|[\U000e0000-\U000e007f]"
)
"""Invisible copies of ASCII; in a flag of England, Scotland or Wales they are part of it."""

TAG_OPENING_SIGN_PATTERN = r"[<\uff1c\ufe64\u2039\u2329\u3008\u27e8\u276e\u02c2]"
"""A sign that can be read as the beginning of a tag, in whatever script."""
_TAG_OPENING_PATTERN = re.compile(rf"{TAG_OPENING_SIGN_PATTERN}[\W_]*+")
_TAG_CLOSING_SIGN_PATTERN = re.compile(r"[>\uff1e\ufe65\u203a\u232a\u3009\u27e9\u276f\u02c3]")
_OWN_TAG_NAMES = frozenset({"recall", "memory", "context"})
_FOREIGN_TAG_NAMES = frozenset(
    "system user assistant human developer tool tools function functions invoke parameter antml instructions thinking"
    " instruction sys inst output result results toolresult toolresults tooluse toolcall toolcalls toolresponse"
    " toolcode functionresult functionresults functioncall functioncalls systemreminder systemprompt imstart imend"
    " prompt".split()
)
"""Names of tags by which programs and language models mark who speaks, without the signs between their words."""
_LONGEST_TAG_NAME_CHARS = max(map(len, _FOREIGN_TAG_NAMES | _OWN_TAG_NAMES))
_LATIN_LETTER_BY_LOOKALIKE = str.maketrans("аеосгмуӏѕіυαεοχхтτрп", "aeocrmylsiuaeoxxttpn")
_TAG_NAME_SEARCH_CHARS = 100
"""Characters in which a tag's name and its end are looked for: as written it may hold others between its letters."""
_VERTICAL_BAR_CHAR_CLASS = r"[|\uff5c\u00a6\u2502]"
_SPECIAL_TOKEN_OPENING_SIGN_PATTERN = re.compile(
    rf"{TAG_OPENING_SIGN_PATTERN}(?=\s{{0,3}}{_VERTICAL_BAR_CHAR_CLASS}{{1,2}}\s{{0,3}}/?\w[^<>\n]{{0,60}}{_VERTICAL_BAR_CHAR_CLASS}\s{{0,3}}[>\uff1e])"
)
"""`<|im_start|>`, in whatever script its signs are."""
_BRACKET_TOKEN_OPENING_SIGN_PATTERN = re.compile(
    r"[\[\uff3b](?=\s{0,3}/?\s{0,3}(?:INST|SYS|SYSTEM|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\s{0,3}[\]\uff3d])"
)


def text_without_invisible_chars(text: str) -> str:
    """The text without control signs (but tabs and line ends), terminal sequences and signs that hide or reorder what
    stands there."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_SEPARATOR_PATTERN.sub("\n", _TERMINAL_ESCAPE_SEQUENCE_PATTERN.sub("", text))
    return _INVISIBLE_CHARS_PATTERN.sub("", _UNICODE_TAG_CHARS_PATTERN.sub(lambda match: match[1] or "", text))


def terminal_safe_line(text: object) -> str:
    """On one line, without characters that a terminal would obey."""
    # The name of a file may hold half of a surrogate pair.
    return " ".join(text_without_invisible_chars(str(text)).split()).encode(errors="replace").decode()


def escape_foreign_markup(text: str) -> str:
    """The visible text in which nothing reads as a tag, a special token or a speaker's mark of a language model: the
    first sign of each is escaped. Our own tags, which an answer may hold, stay."""
    text = text_without_invisible_chars(text)
    if "[" in text or "\uff3b" in text:
        text = _BRACKET_TOKEN_OPENING_SIGN_PATTERN.sub("&#91;", text)
    return _escape_tag_opening_signs(_SPECIAL_TOKEN_OPENING_SIGN_PATTERN.sub("&lt;", text), own=False)


def escape_all_markup(text: str) -> str:
    """The text, its lines kept, without structure and with our own tags escaped as well."""
    return _escape_tag_opening_signs(escape_foreign_markup(text), own=True)


def escape_foreign_markup_in_json(value: Any) -> Any:
    """JSON with `escape_foreign_markup` for every text, names of fields too."""
    if isinstance(value, str):
        return escape_foreign_markup(value)
    if isinstance(value, list | tuple):
        return [escape_foreign_markup_in_json(part) for part in value]
    if isinstance(value, dict):
        return {
            escape_foreign_markup_in_json(name): escape_foreign_markup_in_json(part) for name, part in value.items()
        }
    return value


def _escape_tag_opening_signs(text: str, *, own: bool) -> str:
    def escaped(match: re.Match[str]) -> str:
        following = text[match.end() : match.end() + _TAG_NAME_SEARCH_CHARS]
        names_tag = _begins_with_tag_name(following, _OWN_TAG_NAMES) if own else _begins_with_foreign_tag(following)
        return re.sub(TAG_OPENING_SIGN_PATTERN, "&lt;", match[0]) if names_tag else match[0]

    return _TAG_OPENING_PATTERN.sub(escaped, text)


def _begins_with_foreign_tag(following: str) -> bool:
    return bool(_TAG_CLOSING_SIGN_PATTERN.search(following)) and _begins_with_tag_name(following, _FOREIGN_TAG_NAMES)


def _begins_with_tag_name(text: str, names: frozenset[str]) -> bool:
    name = ""
    for sign in unicodedata.normalize("NFKD", text).casefold().translate(_LATIN_LETTER_BY_LOOKALIKE):
        if name in names and not sign.isalnum():
            return True
        if len(name) > _LONGEST_TAG_NAME_CHARS:
            return False
        name += sign if sign.isalnum() else ""
    return name in names
