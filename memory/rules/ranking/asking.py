"""What a query asks for, beside its subject, as far as its wording tells."""

from __future__ import annotations

import re
from typing import Literal

_WORD = re.compile(r"\w+")
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "we", "us", "our", "ours", "im", "ive"})
_SAID = (
    r"(?:say|said|tell|told|suggest|suggested|recommend|recommended|mention|mentioned|propos|proposed|propose|advise"
    r"|advised|explain|explained|list|listed|describe|described|give|gave|given|provide|provided|outline|outlined)"
)
_WHAT_YOU_SAID = re.compile(
    rf"\b(?:did|have|had)\s+you\s+(?:\w+\s+){{0,2}}{_SAID}\b|\byou(?:['’]ve)?\s+(?:\w+\s+)?"
    r"(?:said|told|suggested|recommended|mentioned|proposed|advised|explained|listed|described|gave|given|provided"
    r"|outlined)\b"
)
_WHEN = re.compile(
    r"^\W{0,5}(?:(?:and|so|but|tell me|do you (?:know|remember)|remember|since|until|from)\W{1,5})?"
    r"(?:when\b|how (?:long|old)\b|(?:in|on|at|during)? ?(?:what|which) (?:date|day|week|month|year|time|season)\b)"
)
_ADVICE = re.compile(
    r"\b(?:suggest|recommend|advise|advice|tips?|ideas?|should (?:i|we)|(?:would|could|can) you|help me"
    r"|how (?:can|do|might) (?:i|we)|best way|what steps)\b"
)

_FACT = re.compile(
    r"\b(?:where|when|who|whom|whose|which|how (?:many|much|long|old|often|far|tall|big)"
    r"|what (?:is|was|were|are|date|day|week|month|year|time|name|number|kind|type|sort|brand|colou?r|percentage))\b"
)
_FEELING = re.compile(
    r"\b(?:how (?:was|were|did it go|has it been|have you been)|feel|feels|feeling|feelings|felt|mood|emotions?)\b"
)

Feeling = Literal["asked", "there", "beside"]


MOST_CHARS = 2_000
"""Of a query whose wording is read: a question is short, and what is longer quotes something."""


def read(query: str) -> str:
    """As the patterns here read it: each run of white space one space."""
    return " ".join(query[:MOST_CHARS].casefold().split())


def query_words(query: str) -> frozenset[str]:
    return frozenset(_WORD.findall(query.casefold().replace("'", "").replace("\u2019", "")))


def asks_what_you_said(query: str) -> bool:
    """It asks for what the other one, an assistant, has said: "you recommended", not "would you recommend"."""
    return bool(_WHAT_YOU_SAID.search(read(query)))


def asks_about_oneself(query: str) -> bool:
    """It speaks of "I / my / we", and not of what the other one said."""
    return bool(query_words(query) & _FIRST_PERSON) and not asks_what_you_said(query)


def asks_when(query: str) -> bool:
    """It asks for a date or a span of time."""
    return bool(_WHEN.search(read(query)))


def asks_for_advice(query: str) -> bool:
    """It asks what to do, where what somebody prefers counts; not what was advised before."""
    return bool(_ADVICE.search(read(query))) and not asks_what_you_said(query)


def feeling_in(query: str) -> Feeling:
    """What the feeling that is there has to do with the query: it asks for how something felt; it says something, and
    the feeling with it; or it asks for a fact, which is the same whatever is felt."""
    told = read(query)
    if _FEELING.search(told):
        return "asked"
    return "beside" if _FACT.search(told) else "there"
