"""What the wording of a memory tells of it, beside its subject: read once, when it is indexed.

In English only; in other languages all is absent, and ranking does without. A share is `float` in [0, 1].
"""

from __future__ import annotations

import re

from madeleine.memory.candidates import WordingSignals

FIRST_PERSON_DENSITY = 0.05
"""Share of words in the first person from which a text counts as wholly told in it: one in twenty."""

_I = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|[Uu]s|[Oo]urs?)\b")
_PREFERS = re.compile(
    r"\b(?:i|we)(?:['’]d| would| do)?\s+(?:(?:really|always|usually|generally|also|still|much|strongly|just|kinda)\s+)*"
    r"(?:prefer|like|love|enjoy|hate|dislike|avoid|always|never|usually|rather)\b"
    r"|\bmy (?:favou?rite|preferences?|habit)\b",
    re.IGNORECASE,
)
_DAYS = r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTHS = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_TELLS_WHEN = re.compile(
    rf"\b(?:{_DAYS}s?|{_MONTHS}|(?:19|20)\d\d|\d{{1,2}}(?:st|nd|rd|th)"
    r"|(?i:yesterday|today|tonight|tomorrow|ago|since|weekends?"
    r"|(?:last|next|this|past|few|each|every)\s+(?:few\s+)?(?:week|month|year|night|day|morning|evening|summer|winter"
    r"|spring|autumn|fall|time)s?|(?:week|month|year|day)s?))\b"
)
_CLOSING = " \t\r\n\"'”’)]*_~"
_QUESTION_MARKS = ("?", "？", "؟")


def signals(text: str) -> WordingSignals:
    words = len(text.split())
    mine = len(_I.findall(text)) / words if words else 0.0
    return WordingSignals(
        asks=text.rstrip(_CLOSING).endswith(_QUESTION_MARKS),
        tells_when=bool(_TELLS_WHEN.search(text)),
        prefers=bool(_PREFERS.search(text)),
        first_person=min(1.0, mine / FIRST_PERSON_DENSITY),
    )
