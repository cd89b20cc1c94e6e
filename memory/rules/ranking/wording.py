"""What the wording of a memory and of a query tells, beside their subjects (`memory.text.reading`)."""

from __future__ import annotations

from typing import Literal

from madeleine.memory.candidates import WordingSignals
from madeleine.memory.text.reading import Reading

MAX_QUERY_CHARS = 2_000
"""Of a query whose wording is read: a question is short, and what is longer quotes something."""

WordedFeeling = Literal["asked", "there", "beside"]


def wording_signals(text: str) -> WordingSignals:
    """Of a memory's action, read once, when it is indexed."""
    reading = Reading(text)
    return WordingSignals(
        asks=reading.asks,
        tells_when=reading.tells_time,
        prefers=reading.states_preference,
        first_person=reading.first_person,
    )


def read_query(query: str) -> Reading:
    """Each run of white space is one space, as the patterns expect."""
    return Reading(" ".join(query[:MAX_QUERY_CHARS].split()))


def asks_what_you_said(query: Reading) -> bool:
    """It asks for what the other one, an assistant, has said: "you recommended", not "would you recommend"."""
    return query.matches("asks_answer")


def asks_about_oneself(query: Reading) -> bool:
    """It speaks of "I / my / we", and not of what the other one said."""
    return query.first_person > 0 and not asks_what_you_said(query)


def asks_when(query: Reading) -> bool:
    """It asks for a date or a span of time."""
    return query.matches("asks_when")


def asks_for_advice(query: Reading) -> bool:
    """It asks what to do, where what somebody prefers counts; not what was advised before."""
    return query.matches("asks_advice") and not asks_what_you_said(query)


def feeling_in(query: Reading) -> WordedFeeling:
    """What the feeling that is there has to do with the query: it asks for how something felt; it says something, and
    the feeling with it; or it asks for a fact, which is the same whatever is felt."""
    if query.matches("asks_feeling"):
        return "asked"
    return "beside" if query.matches("asks_fact") else "there"
