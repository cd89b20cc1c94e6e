"""Which kind of memory a text becomes (spec L1, step 5)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from madeleine.memory.model import Category
from madeleine.memory.text.preference import states_preference
from madeleine.memory.text.sentences import sentences

SHARE = 0.5
"""Of the sentences, that have to be about now, or be facts, for the text to be."""

_NOW = re.compile(
    r"\b(?:right now|at the moment|just now|for now|at present|as we speak|currently"
    r"|(?:in |during )?th(?:is|e current) (?:session|conversation|chat|task|call)|today['’]s (?:session|task|goal)"
    r"|(?:i am|i['’]m|we are|we['’]re) now|now (?:i|we|let['’]?s|you)\b|next step|to ?do (?:list )?(?:now|next)"
    r"|jetzt gerade|im moment|momentan|derzeit|in dieser sitzung|in diesem gespräch|gerade dabei"
    r"|en ce moment|actuellement|dans cette session|ahora mismo|en este momento|en esta sesión|neste momento"
    r"|прямо сейчас|в данный момент)\b"
    r"|今すぐ|たった今|現在|このセッション|この会話|いま|现在|目前|此刻|本次会话|지금|현재|이 세션|ตอนนี้",
    re.IGNORECASE,
)
_FACT = re.compile(
    # A subject of up to eight words, a verb in the present, something after it.
    r"^[\s>*\-•\"“'(\d.)#|]*"
    r"(?:(?:the|a|an|my|our|your|his|her|its|their|this|that|these|those|all|every|each|most|some)\s+)?"
    r"[^\W\d_][\w'’.\-]*(?:\s+[\w'’\-]+){0,7}?\s+"
    r"(?:is|are|has|have|uses?|means?|contains?|consists?|includes?|supports?|requires?|needs?|runs?|lives?|works?"
    r"|belongs?|costs?|knows?|speaks?|owns?|makes?|provides?|returns?|stores?|serves?|lies|stands for|refers"
    r"|depends?|comes? from|begins?|ends?|opens?|closes?|equals|weighs|measures|can be|was born|was founded"
    r"|ist|sind|hat|haben|heißt|bedeutet|gehört|wohnt|arbeitet|kostet|spricht"
    r"|est|sont|a|ont|signifie|habite|travaille|coûte|es|son|tiene|tienen|significa|vive|trabaja|cuesta|é|são|tem"
    r"|è|sono|ha|hanno|является|живёт|работает)\s+\S",
    re.IGNORECASE,
)
_CASELESS_FACT = re.compile(
    "(?:は|が).{1,60}(?:です|である|だ。|います|あります)|.{1,20}是.{1,60}|.{1,20}(?:은|는).{1,60}(?:이다|입니다)"
)
_TOLD = re.compile(
    # It happened, or somebody says it of the moment.
    r"\b(?:yesterday|ago|last (?:night|week|month|year|summer|winter|spring|autumn|\w+day)|tonight|tomorrow|went|came"
    r"|told|said|met|saw|felt|gestern|hier soir|ayer|вчера)\b|昨日|先週|昨天|어제",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"^\W*(?:I|We|I['’]m|We['’]re|Ich|Wir|Je|Nous|Yo)\b")
_QUESTION = re.compile(r"[?？؟][^\w?？؟]*+$")


def route(text: str, hint: Category | None = None) -> Category:
    """The hint; else procedural for a preference, working for what is about now or this session, semantic for facts of
    the form subject, predicate, object; else episodic."""
    if hint is not None:
        return hint
    if states_preference(text):
        return "procedural"
    told = [sentence for sentence in sentences(text) if sentence.strip()] or [text]
    if _share(bool(_NOW.search(one)) for one in told) >= SHARE:
        return "working"
    if _share(_is_fact(one) for one in told) >= SHARE:
        return "semantic"
    return "episodic"


def _share(holds: Iterable[bool]) -> float:
    found = list(holds)
    return sum(found) / len(found)


def _is_fact(sentence: str) -> bool:
    if _TOLD.search(sentence) or _FIRST_PERSON.match(sentence) or _QUESTION.search(sentence):
        return False
    return bool(_FACT.match(sentence) or _CASELESS_FACT.search(sentence))
