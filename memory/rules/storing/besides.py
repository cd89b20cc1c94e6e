"""What a superseded memory said besides what has changed (ruling 14): nobody recalls it, unless it is told anew.

"Bob lives in Lyon and works at Acme", superseded by "Bob lives in Paris", also said "works at Acme". Of its clauses,
the one that shares most with the new text is what has changed; every other one that has words of its own is told.
"""

from __future__ import annotations

import re
from functools import cache

from madeleine.memory.rules.storing.supersession import VALUE_LISTS, Statement
from madeleine.memory.text.lexicon import Lexicon

MAX_BESIDES_CHARS = 300
MIN_OWN_WORDS = 2
"""Of a clause, beside numbers and days: an hour or a day alone is as often as not a part of what has changed."""
_CLAUSE_END = r"[.;!?,](?=\s|$)|[，、。；！？؛،\n]|\s[-–—]\s"


def besides_notice(old_id: str, old_text: str, new_text: str) -> str:
    """For whoever has superseded the old one; "" if it said nothing besides."""
    besides = said_besides(Statement(new_text), Statement(old_text))
    return f'{old_id} also said: "{besides}". If that still holds, store it by itself.' if besides else ""


def said_besides(new: Statement, old: Statement) -> str:
    """The clauses of the old one that the new one does not replace, joined by " … "; "" if there are none."""
    parts = _clause_end(old.reading.lexicons).split(old.reading.plain)
    clauses = {part.strip(): frozenset(Statement(part).words) for part in parts if part.strip()}
    stems = {clause: {stem for stem, word in old.content.items() if word in words} for clause, words in clauses.items()}
    stems = {clause: own for clause, own in stems.items() if own}
    if not stems:
        return ""
    replaced = max(stems, key=lambda clause: len(stems[clause] & new.content.keys()) / len(stems[clause]))
    values = frozenset(old.reading.listed(*VALUE_LISTS))
    telling = {stem for stem, word in old.content.items() if not word[0].isdigit() and word not in values}
    besides = [
        clause
        for clause, own in stems.items()
        if clause != replaced and len(own & telling - new.content.keys()) >= MIN_OWN_WORDS
    ]
    return " … ".join(besides)[:MAX_BESIDES_CHARS]


@cache
def _clause_end(lexicons: tuple[Lexicon, ...]) -> re.Pattern[str]:
    words = "|".join(sorted({word for lexicon in lexicons for word in lexicon.words("conjunctions")}))
    return re.compile(rf"{_CLAUSE_END}|(?<!\w)(?:{words})(?!\w)" if words else _CLAUSE_END, re.IGNORECASE)
