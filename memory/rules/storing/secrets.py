"""Find secrets in a text and redact them.

A secret is known by its form (an issuer's prefix, a key's armour) or by its name (`password=…`), never by its
randomness: hashes, UUIDs and commit ids are as random, and worth remembering.

Time is linear in the text by construction: every repeat is bounded, or possessive with bounded ones inside, and an
unbounded one stops where the next attempt begins or ends the pattern. `test_secrets.py` checks the patterns for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_START = r"(?<![A-Za-z0-9])"

TOKENS: Mapping[str, str] = {
    "aws key": r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    "github token": r"(?:gh[pousr]_[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9_]{22})[A-Za-z0-9_]*+",
    "gitlab token": r"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|soat|oas|ffct)-[A-Za-z0-9_\-]{20}[A-Za-z0-9_\-]*+",
    "slack token": r"(?:xoxe\.)?(?:xox[abeoprs]|xapp)-[0-9][A-Za-z0-9\-]{9}[A-Za-z0-9\-]*+"
    r"|https://hooks\.slack\.com/services/[A-Za-z0-9/]{20}[A-Za-z0-9/]*+",
    "stripe key": r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16}[A-Za-z0-9]*+",
    "google key": r"AIza[A-Za-z0-9_\-]{35}[A-Za-z0-9_\-]*+|(?:ya29\.|GOCSPX-)[A-Za-z0-9_\-]{20}[A-Za-z0-9_\-]*+",
    "anthropic key": r"sk-ant-[A-Za-z0-9_\-]{20}[A-Za-z0-9_\-]*+",
    "openai key": r"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_\-]{20}[A-Za-z0-9_\-]*+|[A-Za-z0-9]{32}[A-Za-z0-9]*+)",
    "npm token": r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])",
    "pypi token": r"pypi-AgE[A-Za-z0-9_\-]{32}[A-Za-z0-9_\-]*+",
    # Beginning with `{"` in base64. Its parts may be empty, and an encrypted one has five.
    "json web token": r"(?<![_\-])eyJ[A-Za-z0-9_\-]{12,4096}+(?:\.[A-Za-z0-9_\-]{0,8192}+){2,4}+",
    "api key": r"(?:hf_[A-Za-z0-9]{30}|sk-or-v1-[0-9a-f]{32}|gsk_[A-Za-z0-9]{40}|xai-[A-Za-z0-9]{40}|r8_[A-Za-z0-9]{36}"
    r"|pplx-[A-Za-z0-9]{40}|lin_api_[A-Za-z0-9]{32}|ntn_[A-Za-z0-9]{40}|dop_v1_[0-9a-f]{60}|dapi[0-9a-f]{32}"
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dckr_(?:pat|oat)_[A-Za-z0-9_\-]{24}|hv[bs]\.[A-Za-z0-9_\-]{24}"
    r"|SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{40}|[0-9]{8,10}:AA[A-Za-z0-9_\-]{33}|AGE-SECRET-KEY-1[A-Z0-9]{50})"
    r"[A-Za-z0-9_\-]*+",
}
"""Kind → pattern of tokens with an unmistakable prefix, each after a character that is neither letter nor digit."""

_ARMOUR = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
PRIVATE_KEY = (
    # To its end; the body stops at the next armour, whichever. One that is cut off: as far as it looks like base64.
    rf"-----BEGIN {_ARMOUR}(?:(?:[^-]|-(?!----))*+-----END {_ARMOUR}"
    r"|(?:(?:\s|\\[nr]){0,4}+[A-Za-z0-9+/]{24,128}+)*+={0,2}+)"
)
URL_PASSWORD = r"(?<![A-Za-z0-9+.\-])([A-Za-z][A-Za-z0-9+.\-]{1,30}://[^\s/?#@:\"'<>]{0,128}:)([^\s/\"'<>]{1,128})(?=@)"
AUTHORIZATION = (
    r"(authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest|apikey)\s{1,3})"
    r"([A-Za-z0-9+/_.~=\-]{8,4096}+)"
)
BEARER = r"(?<![A-Za-z0-9])(bearer\s{1,3})([A-Za-z0-9+/_.~=\-]{16,4096}+)"
NAMED = (
    r"(pass(?:word|wd|phrase|code)|pwd|パスワード|密码"
    r"|(?:secret|private|access|account|api|auth)[_\- ]?(?:access[_\-])?key"
    r"|(?:access|auth|refresh|api|bot|client|session|id)[_\- ]?(?:token|secret)|secret|token)"
    r"(?:[0-9]{0,3}[\"'`*]{0,3})(\s{0,3}(?::=|=>|[:=：＝])\s{0,3}|\s(?:is|was|to)\s|(?:は|是))"
    r"(?:([\"'`])([^\"'`\n]{1,256})(?=[\"'`])|([!#-&(-+\--:<-_a-~]{1,256}+))"
)
"""Groups: name, the joint between name and value, the quote, the quoted value, the bare value."""

_PASSWORDS = ("pass", "pwd", "パスワード", "密码")
_NAMES = (*_PASSWORDS, "key", "secret", "token")
"""Every name that `NAMED` matches contains one of them."""
_ENDS_A_SENTENCE = ".,:;!?)]}"
_MARK = "[redacted: "
_NO_SECRET = re.compile(
    r"[$<{\[(%*]|x{4}|\.{3}|your|example|none\b|null\b|true\b|false\b|undefined\b|change[_-]?me", re.I
)
"""The beginning of a placeholder for a secret: a variable, a template, an example."""
_PATH = re.compile(r"[/~.]|[A-Za-z]:")
"""The beginning of a path, the value of the other `pwd` (working directory)."""
_CODE = re.compile(r"[(){}\[\]<>|]|\w\.[A-Za-z_]|::|->")


@dataclass(frozen=True, slots=True)
class Redacted:
    """`found`: the number of redacted secrets by kind, never their values."""

    text: str
    found: Mapping[str, int] = field(default_factory=dict)


Redact = Callable[[str], Redacted]
"""`redact_secrets`, or `without_redaction` where the setting turns redaction off."""


def without_redaction(text: str) -> Redacted:
    return Redacted(text)


def redact_secrets(text: str) -> Redacted:
    """Replace each secret by `[redacted: its kind]`. Idempotent."""
    found: Counter[str] = Counter()

    def mark(kind: str) -> str:
        found[kind] += 1
        return f"{_MARK}{kind}]"

    def token(match: re.Match[str]) -> str:
        return mark(next(kind for kind, group in zip(TOKENS, match.groups(), strict=True) if group is not None))

    def authorization(match: re.Match[str]) -> str:
        return match[1] + mark("authorization") if _mixed(match[2]) or len(match[2]) >= 16 else match[0]

    def url(match: re.Match[str]) -> str:
        return match[1] + mark("password") if not _NO_SECRET.match(match[2]) else match[0]

    def bearer(match: re.Match[str]) -> str:
        return authorization(match) if _mixed(match[2]) else match[0]

    low = text.lower()
    if "private key-----" in low or "private key block-----" in low:
        text = _PRIVATE_KEY.sub(lambda _: mark("private key"), text)
    text = _TOKENS.sub(token, text)
    if "://" in low:
        text = _URL_PASSWORD.sub(url, text)
    if "authorization" in low or "bearer" in low:
        text = _BEARER.sub(bearer, _AUTHORIZATION.sub(authorization, text))
    if any(word in low for word in _NAMES):
        text = _without_named(text, mark)
    return Redacted(text, dict(found))


def _without_named(text: str, mark: Callable[[str], str]) -> str:
    parts: list[str] = []
    done = at = 0
    while match := _NAMED.search(text, at):
        name, joint, quote, quoted, bare = match.groups()
        value = quoted if quote else bare.rstrip(_ENDS_A_SENTENCE) or bare
        at = match.end(2)
        if is_value(name, joint, value, quoted=bool(quote)):
            kind = "password" if name.lower().startswith(_PASSWORDS) else "token" if "oken" in name else "secret"
            start = match.start(4 if quote else 5)
            parts += text[done:start], mark(kind)
            done = at = start + len(value)
    return "".join(parts) + text[done:]


def is_value(name: str, joint: str, value: str, *, quoted: bool) -> bool:
    """Whether the text behind the name of a secret is its value, and not prose, code, a template or our own mark."""
    if _NO_SECRET.match(value) or name.lower() in value.lower() or (_CODE.search(value) and not quoted):
        return False
    if name.lower() == "pwd" and _PATH.match(value):
        return False
    if name.lower().startswith(_PASSWORDS):
        if joint.strip() == "=" and (joint == "=" or quoted):
            return len(value) >= 4 and " " not in value
        return len(value) >= 6 and " " not in value and _mixed(value)
    return len(value) >= 12 and " " not in value and _mixed(value)


def _mixed(value: str) -> bool:
    """Letters and digits, and not a word with a number (`8-character`, `sha-256`)."""
    if not (value.isascii() and any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
        return False
    return not re.fullmatch(r"[0-9.]+-?[a-z]+|[a-z]+-[0-9]+", value, re.I) or len(value) >= 20


_TOKENS = re.compile(_START + "(?:" + "|".join(f"({pattern})" for pattern in TOKENS.values()) + ")")
_PRIVATE_KEY = re.compile(PRIVATE_KEY)
_URL_PASSWORD = re.compile(URL_PASSWORD)
_AUTHORIZATION = re.compile(AUTHORIZATION, re.I)
_BEARER = re.compile(BEARER, re.I)
_NAMED = re.compile(NAMED, re.I)
