"""Find secrets in a text and redact them.

A secret is known by its form (an issuer's prefix, a key's armour) or by its name (`password=…`), never by its
randomness: hashes, UUIDs and commit ids are as random, and worth remembering.

Time is linear in the text by construction: every repeat is bounded, or possessive with bounded ones inside, and an
unbounded one stops where the next attempt begins or ends the pattern. `test_secrets.py` checks the patterns for it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import DatedAction, Scene
from madeleine.memory.text.lexicon import load_language_neutral_pattern, load_lexicon_headers

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_TOKEN_START_REGEX = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u00[0-9A-Fa-f]{2}))"

_TOKEN_FORMATS_BY_KIND = tomllib.loads(Path(__file__).with_name("token_formats.toml").read_text("utf-8"))
SECRET_TOKEN_PATTERN_BY_KIND: Mapping[str, str] = {
    kind: re.sub(r"\s", "", "|".join(formats)) for kind, formats in _TOKEN_FORMATS_BY_KIND.items()
}
"""Kind → pattern of tokens with an unmistakable form, each behind `_TOKEN_START_REGEX`."""


def _lexicon_header_words(*entries: str, spaced: bool | None = None) -> list[str]:
    """The words of these entries of the languages that are written with spaces, or without, or of all; the longest
    first."""
    headers = (header for header in load_lexicon_headers().values() if spaced in (None, header.get("spaced", True)))
    words = (word for header in headers for entry in entries for word in header.get(entry, "").split("|") if word)
    return sorted(dict.fromkeys(words), key=len, reverse=True)


def _regex_of_lexicon_header_words(*entries: str, spaced: bool) -> str:
    return "|".join(map(re.escape, _lexicon_header_words(*entries, spaced=spaced)))


_PRIVATE_KEY_PATTERN = load_language_neutral_pattern("private_key")
_PRIVATE_KEY_END_PATTERN = load_language_neutral_pattern("private_key_end")
_PRIVATE_KEY_LINE_PATTERN = re.compile(r"[\s>#|*\"'+]*+[A-Za-z0-9+/=]{16,128}+\s*+")
_URL_PASSWORD_PATTERN = load_language_neutral_pattern("url_password")
_PASSWORD_PLACEHOLDER_PATTERN = load_language_neutral_pattern("password_placeholder")
_AUTHORIZATION_HEADER_PATTERN = load_language_neutral_pattern("authorization")
_BEARER_TOKEN_PATTERN = load_language_neutral_pattern("bearer")
_COOKIE_HEADER_PATTERN = load_language_neutral_pattern("cookies")
_COOKIE_VALUE_PATTERN = load_language_neutral_pattern("cookie_value")
_PASSWORD_IN_COMMAND_PATTERN = load_language_neutral_pattern("login_in_command")
_WORDS_FOR_PIN = frozenset(_lexicon_header_words("pins"))
_WORDS_FOR_PASSWORD = _lexicon_header_words("passwords", "pins")
NAMED_SECRET_PATTERN = load_language_neutral_pattern(
    "named_secret",
    initials="".join(sorted({word[0] for word in _WORDS_FOR_PASSWORD})),
    passwords=_regex_of_lexicon_header_words("passwords", spaced=True),
    pins=_regex_of_lexicon_header_words("pins", spaced=True),
    joined=_regex_of_lexicon_header_words("passwords", "pins", spaced=False),
    links=_regex_of_lexicon_header_words("password_links", spaced=True),
    joined_links=_regex_of_lexicon_header_words("password_links", spaced=False),
    adverbs=_regex_of_lexicon_header_words("password_adverbs", spaced=True),
    prepositions=_regex_of_lexicon_header_words("password_prepositions", spaced=True),
)
_PREPOSITIONS = tuple(_lexicon_header_words("password_prepositions"))
_AMBIGUOUS_PASSWORD_NAMES = ("pass", "pw", "psw", "passw")
"""Also words of other meanings: these need a sign before the value."""
_NON_PASSWORD_SECRET_NAME_PATTERN = re.compile(r"key$|secret|token|credential|sig|code$|^sess", re.I)
_SECRET_NAME_PARTS = (
    *("pass", "pwd", "pw", "psw", "key", "secret", "token", "credential", "sig", "code=", "sess"),
    *_WORDS_FOR_PASSWORD,
)
"""Every name that `NAMED_SECRET_PATTERN` matches contains one of them."""
_TRAILING_PUNCTUATION = ".,:;!?)]}"
_REDACTION_MARK_BEGINNING = "[redacted: "
_SECRET_PLACEHOLDER_PATTERN = load_language_neutral_pattern("secret_placeholder")
_PATH_BEGINNING_PATTERN = re.compile(r"[/~.]|[A-Za-z]:")
"""The beginning of a path, the value of the other `pwd` (working directory)."""
_CODE_SYNTAX_PATTERN = re.compile(r"[(){}\[\]<>|]|\w\.[A-Za-z_]|::|->")


@dataclass(frozen=True, slots=True)
class RedactedText:
    """`found`: the number of redacted secrets by kind, never their values."""

    text: str
    found: Mapping[str, int] = field(default_factory=dict)


RedactText = Callable[[str], RedactedText]
"""`redact_secrets`, or `redact_nothing` where the setting turns redaction off."""


def redact_nothing(text: str) -> RedactedText:
    return RedactedText(text)


def redact_secrets(text: str) -> RedactedText:
    """Replace each secret by `[redacted: its kind]`. Idempotent."""
    found: Counter[str] = Counter()

    def mark(kind: str) -> str:
        found[kind] += 1
        return f"{_REDACTION_MARK_BEGINNING}{kind}]"

    def token(match: re.Match[str]) -> str:
        groups = zip(SECRET_TOKEN_PATTERN_BY_KIND, match.groups(), strict=True)
        kind = next(kind for kind, group in groups if group is not None)
        # A name in a program may begin as a key does.
        body = match[0]
        is_name = kind == "api key" and sum(map(str.isdigit, body)) < 2 and (body.islower() or body.isupper())
        return body if is_name else mark(kind)

    def authorization(match: re.Match[str]) -> str:
        stays, scheme, value = match.groups()
        is_secret = _mixes_letters_and_digits_like_secret(value) or (scheme and len(value) >= 16)
        return stays + mark("authorization") if is_secret else match[0]

    def url(match: re.Match[str]) -> str:
        is_placeholder = _SECRET_PLACEHOLDER_PATTERN.match(match[2]) or _PASSWORD_PLACEHOLDER_PATTERN.fullmatch(
            match[2]
        )
        return match[0] if is_placeholder else match[1] + mark("password")

    def bearer(match: re.Match[str]) -> str:
        return authorization(match) if _mixes_letters_and_digits_like_secret(match[3]) else match[0]

    def command(match: re.Match[str]) -> str:
        stays, secret = (group for group in match.groups() if group is not None)
        sure = (
            match.lastindex in (4, 6)
            or _mixes_letters_and_digits_like_secret(secret)
            or (match.lastindex == 2 and "curl" in low)
        )
        return stays + mark("password") if sure and not _SECRET_PLACEHOLDER_PATTERN.match(secret) else match[0]

    def cookies(match: re.Match[str]) -> str:
        return _COOKIE_VALUE_PATTERN.sub(lambda _: mark("cookie"), match[0])

    low = text.lower()
    if "private" in low:
        text = _PRIVATE_KEY_PATTERN.sub(lambda _: mark("private key"), text)
        text = _redact_private_keys_without_beginning(text, mark)
    text = _ANY_SECRET_TOKEN_PATTERN.sub(token, text)
    if "://" in low:
        text = _URL_PASSWORD_PATTERN.sub(url, text)
    if "authorization" in low or "bearer" in low:
        text = _BEARER_TOKEN_PATTERN.sub(bearer, _AUTHORIZATION_HEADER_PATTERN.sub(authorization, text))
    if "cookie" in low:
        text = _COOKIE_HEADER_PATTERN.sub(cookies, text)
    if any(name in low for name in _SECRET_NAME_PARTS):
        text = _redact_named_secrets(text, mark)
    if "-" in low or "login" in low:
        text = _PASSWORD_IN_COMMAND_PATTERN.sub(command, text)
    return RedactedText(text, dict(found))


def _redact_private_keys_without_beginning(text: str, mark: Callable[[str], str]) -> str:
    """Without keys whose beginning is cut off: the lines of base64 before the last line of a key's armour."""
    parts: list[str] = []
    done = last_end = 0
    for end in _PRIVATE_KEY_END_PATTERN.finditer(text):
        lines = text[last_end : end.start()].splitlines(keepends=True)
        count = 0
        while count < len(lines) and _is_private_key_line(lines[-1 - count], is_last=not count):
            count += 1
        key_start = end.start() - sum(map(len, lines[len(lines) - count :]))
        if any(map(_PRIVATE_KEY_LINE_PATTERN.fullmatch, lines[len(lines) - count :])):
            parts += text[done:key_start], mark("private key")
            done = end.end()
        last_end = end.end()
    return "".join(parts) + text[done:]


def _is_private_key_line(line: str, *, is_last: bool) -> bool:
    return bool(_PRIVATE_KEY_LINE_PATTERN.fullmatch(line)) or (is_last and not line.strip(" \t>#|*\"'+"))


def _redact_named_secrets(text: str, mark: Callable[[str], str]) -> str:
    parts: list[str] = []
    done = at = 0
    while match := NAMED_SECRET_PATTERN.search(text, at):
        name, joint, quote, quoted, bare = match.groups()
        value = quoted if quote else bare.rstrip(_TRAILING_PUNCTUATION) or bare
        at = match.end(2)
        if is_value_of_named_secret(name, joint, value, quoted=bool(quote)):
            kind = _kind_of_named_secret(name, value)
            start = match.start(4 if quote else 5)
            parts += text[done:start], mark(kind)
            done = at = start + len(value)
    return "".join(parts) + text[done:]


def _kind_of_named_secret(name: str, value: str) -> str:
    if name.lower() in _WORDS_FOR_PIN and value.isdigit():
        return "pin"
    if _NON_PASSWORD_SECRET_NAME_PATTERN.search(name):
        return "token" if "oken" in name else "secret"
    return "password"


def is_secret_pin_code_behind_its_name(name: str, joint: str, value: str) -> bool:
    """Whether the digits behind a word for a PIN are one. Connectors have pins, too, and "to pin" is a verb: unless it
    is written in capitals it needs a sign, "is", or "changed to"."""
    if name.lower() not in _WORDS_FOR_PIN or not re.fullmatch("[0-9]{4,8}", value):
        return False
    link = joint.strip().lower()
    is_verb = link == "to" or (link.endswith(" to") and "change" not in link)
    return name.lower() != "pin" or name.isupper() or not (is_verb or not link)


def is_value_of_named_secret(name: str, joint: str, value: str, *, quoted: bool) -> bool:
    """Whether the text behind the name of a secret is its value, and not prose, code, a template or our own mark."""
    if is_secret_pin_code_behind_its_name(name, joint, value):
        return True
    name, sign = name.lower(), joint.strip().lower()
    has_signs = any(char.isdigit() for char in value) and not value.replace("_", "").replace("-", "").isalnum()
    is_named_after = name in value.lower() and not (quoted and has_signs)
    if (
        " " in value
        or _SECRET_PLACEHOLDER_PATTERN.match(value)
        or is_named_after
        or (_CODE_SYNTAX_PATTERN.search(value) and not quoted)
    ):
        return False
    if _NON_PASSWORD_SECRET_NAME_PATTERN.search(name):
        return len(value) >= 12 and _mixes_letters_and_digits_like_secret(value)
    if _PASSWORD_PLACEHOLDER_PATTERN.fullmatch(value) or (name == "pwd" and _PATH_BEGINNING_PATTERN.match(value)):
        return False
    if name in _AMBIGUOUS_PASSWORD_NAMES and any(char.isalpha() for char in sign.replace("value", "")):
        return False
    if not sign and not quoted:  # "the password Chestnut#12", not "the password hash sha256"
        return len(value) >= 8 and _has_small_and_capital_letters_and_digits(value)
    is_assigned = sign in ("=", "%3d", ">") or sign.endswith("value=")
    if is_assigned and (quoted or sign != "=" or joint == "="):
        return len(value) >= 4
    if value.isdigit() and sign[-1:] in (":", "：", "=") and (len(sign) <= 2 or sign.startswith(_PREPOSITIONS)):
        return len(value) >= 6
    return len(value) >= 6 and _mixes_letters_and_digits_like_secret(value)


def _has_small_and_capital_letters_and_digits(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.islower, value)) and any(map(str.isupper, value))


def _mixes_letters_and_digits_like_secret(value: str) -> bool:
    """Letters and digits, and not a word with a number (`8-character`, `sha-256`)."""
    if not (max(value, default="") < "\u0250" and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return not re.fullmatch(r"[0-9.]+-?[a-z]+|[a-z]+-[0-9]+", value, re.I) or len(value) >= 20


_ANY_SECRET_TOKEN_PATTERN = re.compile(
    _TOKEN_START_REGEX + "(?:" + "|".join(f"({pattern})" for pattern in SECRET_TOKEN_PATTERN_BY_KIND.values()) + ")"
)


def refuse_value_that_is_secret(name: str, value: str, redact: RedactText) -> None:
    """Raises `InvalidInput` if the value of this argument is a secret."""
    if kinds := redact(value).found:
        raise InvalidInput(f"{name}: looks like a secret ({', '.join(kinds)}). Nothing was stored: use another {name}.")


RecordT = TypeVar("RecordT", bound="DataclassInstance")


class CountingRedactor:
    """Redacts the texts of one use case; `found` counts the secrets that were taken out, by kind."""

    def __init__(self, redact: RedactText) -> None:
        self.found: Counter[str] = Counter()
        self._redact = redact

    def redact_text(self, text: str) -> str:
        redacted = self._redact(text)
        self.found.update(redacted.found)
        return redacted.text

    def redact_fields(self, record: RecordT, *names: str) -> RecordT:
        """A copy of the dataclass with these fields redacted: texts and tuples of texts. None stays."""
        return replace(record, **{name: self._redact_field_value(getattr(record, name)) for name in names})

    def redact_scene(self, scene: Scene) -> Scene:
        return self.redact_fields(scene, "action", "actors", "when", "setting", "dialogue", "sensory")

    def _redact_field_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, DatedAction):
            return self.redact_fields(value, "date", "action")
        return None if value is None else tuple(map(self._redact_field_value, value))

    def redact_json(self, value: Any) -> Any:
        """JSON with every text redacted, names too. A text may be a secret by its name alone."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self.redact_json(part) for part in value]
        if isinstance(value, dict):
            return {self.redact_text(name): self._redact_named_json_value(name, part) for name, part in value.items()}
        return value

    def _redact_named_json_value(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return self.redact_json(value)
        before = f"{name}="
        alone, named = self._redact(value), self._redact(before + value)
        if sum(named.found.values()) <= sum(alone.found.values()) or not named.text.startswith(before):
            return self.redact_text(value)
        self.found.update(named.found)
        return named.text.removeprefix(before)


def redact_note_content(content: str, redact: RedactText) -> tuple[str, Mapping[str, int]]:
    """A note's content, unchanged if it holds no secret; JSON stays JSON."""
    redaction = CountingRedactor(redact)
    try:
        redacted = redaction.redact_json(json.loads(content))
    except (ValueError, RecursionError):
        return redaction.redact_text(content), redaction.found
    written = json.dumps(redacted, ensure_ascii=False) if redaction.found else content
    # Once more as it is written: of two equal names JSON keeps the last, the text both.
    return redaction.redact_text(written), redaction.found
