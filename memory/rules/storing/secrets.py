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
from madeleine.memory.text.lexicon import load_pattern

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_TOKEN_START = r"(?<![A-Za-z0-9])"

_FORMATS = tomllib.loads(Path(__file__).with_name("token_formats.toml").read_text("utf-8"))
SECRET_TOKEN_PATTERNS: Mapping[str, str] = {kind: "|".join(formats) for kind, formats in _FORMATS.items()}
"""Kind → pattern of tokens with an unmistakable prefix, each after a character that is neither letter nor digit."""

_PRIVATE_KEY = load_pattern("private_key")
_URL_PASSWORD = load_pattern("url_password")
_AUTHORIZATION = load_pattern("authorization")
_BEARER = load_pattern("bearer")
_NAMED_SECRET = load_pattern("named_secret")
_PASSWORD_NAMES = ("pass", "pwd", "パスワード", "密码")
_SECRET_NAMES = (*_PASSWORD_NAMES, "key", "secret", "token")
"""Every name that `_NAMED_SECRET` matches contains one of them."""
_ENDS_A_SENTENCE = ".,:;!?)]}"
_REDACTION_MARK = "[redacted: "
_PLACEHOLDER = load_pattern("secret_placeholder")
_PATH_BEGINNING = re.compile(r"[/~.]|[A-Za-z]:")
"""The beginning of a path, the value of the other `pwd` (working directory)."""
_CODE_SIGN = re.compile(r"[(){}\[\]<>|]|\w\.[A-Za-z_]|::|->")


@dataclass(frozen=True, slots=True)
class RedactedText:
    """`found`: the number of redacted secrets by kind, never their values."""

    text: str
    found: Mapping[str, int] = field(default_factory=dict)


Redact = Callable[[str], RedactedText]
"""`redact_secrets`, or `redact_nothing` where the setting turns redaction off."""


def redact_nothing(text: str) -> RedactedText:
    return RedactedText(text)


def redact_secrets(text: str) -> RedactedText:
    """Replace each secret by `[redacted: its kind]`. Idempotent."""
    found: Counter[str] = Counter()

    def mark(kind: str) -> str:
        found[kind] += 1
        return f"{_REDACTION_MARK}{kind}]"

    def token(match: re.Match[str]) -> str:
        return mark(
            next(kind for kind, group in zip(SECRET_TOKEN_PATTERNS, match.groups(), strict=True) if group is not None)
        )

    def authorization(match: re.Match[str]) -> str:
        return (
            match[1] + mark("authorization") if _has_letters_and_digits(match[2]) or len(match[2]) >= 16 else match[0]
        )

    def url(match: re.Match[str]) -> str:
        return match[1] + mark("password") if not _PLACEHOLDER.match(match[2]) else match[0]

    def bearer(match: re.Match[str]) -> str:
        return authorization(match) if _has_letters_and_digits(match[2]) else match[0]

    low = text.lower()
    if "private key-----" in low or "private key block-----" in low:
        text = _PRIVATE_KEY.sub(lambda _: mark("private key"), text)
    text = _ANY_TOKEN.sub(token, text)
    if "://" in low:
        text = _URL_PASSWORD.sub(url, text)
    if "authorization" in low or "bearer" in low:
        text = _BEARER.sub(bearer, _AUTHORIZATION.sub(authorization, text))
    if any(word in low for word in _SECRET_NAMES):
        text = _without_named_secrets(text, mark)
    return RedactedText(text, dict(found))


def _without_named_secrets(text: str, mark: Callable[[str], str]) -> str:
    parts: list[str] = []
    done = at = 0
    while match := _NAMED_SECRET.search(text, at):
        name, joint, quote, quoted, bare = match.groups()
        value = quoted if quote else bare.rstrip(_ENDS_A_SENTENCE) or bare
        at = match.end(2)
        if is_secret_value(name, joint, value, quoted=bool(quote)):
            kind = "password" if name.lower().startswith(_PASSWORD_NAMES) else "token" if "oken" in name else "secret"
            start = match.start(4 if quote else 5)
            parts += text[done:start], mark(kind)
            done = at = start + len(value)
    return "".join(parts) + text[done:]


def is_secret_value(name: str, joint: str, value: str, *, quoted: bool) -> bool:
    """Whether the text behind the name of a secret is its value, and not prose, code, a template or our own mark."""
    if _PLACEHOLDER.match(value) or name.lower() in value.lower() or (_CODE_SIGN.search(value) and not quoted):
        return False
    if name.lower() == "pwd" and _PATH_BEGINNING.match(value):
        return False
    if name.lower().startswith(_PASSWORD_NAMES):
        if joint.strip() == "=" and (joint == "=" or quoted):
            return len(value) >= 4 and " " not in value
        return len(value) >= 6 and " " not in value and _has_letters_and_digits(value)
    return len(value) >= 12 and " " not in value and _has_letters_and_digits(value)


def _has_letters_and_digits(value: str) -> bool:
    """Letters and digits, and not a word with a number (`8-character`, `sha-256`)."""
    if not (value.isascii() and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return not re.fullmatch(r"[0-9.]+-?[a-z]+|[a-z]+-[0-9]+", value, re.I) or len(value) >= 20


_ANY_TOKEN = re.compile(
    _TOKEN_START + "(?:" + "|".join(f"({pattern})" for pattern in SECRET_TOKEN_PATTERNS.values()) + ")"
)


def refuse_secret_argument(name: str, value: str, redact: Redact) -> None:
    """Raises `InvalidInput` if the value of this argument is a secret."""
    if kinds := redact(value).found:
        raise InvalidInput(f"{name}: looks like a secret ({', '.join(kinds)}). Nothing was stored: use another {name}.")


Record = TypeVar("Record", bound="DataclassInstance")


class CountingRedactor:
    """Redacts the texts of one use case; `found` counts the secrets that were taken out, by kind."""

    def __init__(self, redact: Redact) -> None:
        self.found: Counter[str] = Counter()
        self._redact = redact

    def text(self, text: str) -> str:
        redacted = self._redact(text)
        self.found.update(redacted.found)
        return redacted.text

    def fields(self, record: Record, *names: str) -> Record:
        """A copy of the dataclass with these fields redacted: texts and tuples of texts. None stays."""
        return replace(record, **{name: self._value(getattr(record, name)) for name in names})

    def scene(self, scene: Scene) -> Scene:
        return self.fields(scene, "action", "actors", "when", "setting", "dialogue", "sensory")

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, DatedAction):
            return self.fields(value, "date", "action")
        return None if value is None else tuple(map(self._value, value))

    def json(self, value: Any) -> Any:
        """JSON with every text redacted, names too. A text may be a secret by its name alone."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(part) for part in value]
        if isinstance(value, dict):
            return {self.text(name): self._named(name, part) for name, part in value.items()}
        return value

    def _named(self, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return self.json(value)
        before = f"{name}="
        alone, named = self._redact(value), self._redact(before + value)
        if sum(named.found.values()) <= sum(alone.found.values()) or not named.text.startswith(before):
            return self.text(value)
        self.found.update(named.found)
        return named.text.removeprefix(before)


def redact_note_content(content: str, redact: Redact) -> tuple[str, Mapping[str, int]]:
    """A note's content, unchanged if it holds no secret; JSON stays JSON."""
    redaction = CountingRedactor(redact)
    try:
        redacted = redaction.json(json.loads(content))
    except (ValueError, RecursionError):
        return redaction.text(content), redaction.found
    written = json.dumps(redacted, ensure_ascii=False) if redaction.found else content
    # Once more as it is written: of two equal names JSON keeps the last, the text both.
    return redaction.text(written), redaction.found
