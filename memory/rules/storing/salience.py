"""How much a text says that is worth remembering (spec L1, step 4): by signals on its surface, without a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from madeleine.memory.text.preference import states_preference
from madeleine.memory.text.terms import STOP_WORDS, normalize

ENTITY, NUMBER, PREFERENCE, TECHNICAL = 0.3, 0.2, 0.4, 0.1

RARE = 0.8
"""Mean rarity from which the words of a text are technical; see `rarity`."""
STATISTICS_FROM = 5.3
"""The greatest IDF, that of a word which no memory has, in a store of 100 memories: ln(1 + 100.5 / 0.5). In a smaller
one every word is rare."""


@dataclass(frozen=True, slots=True)
class SalienceSignals:
    entity: bool
    """It names a person, an organisation, a place or a product."""
    number: bool
    """It has a number or a date."""
    preference: bool
    technical: bool

    @property
    def salience(self) -> float:
        """In [0, 1]: 0.3 for an entity, 0.2 for a number or date, 0.4 for a preference, 0.1 for a technical term."""
        return min(
            1.0,
            ENTITY * self.entity + NUMBER * self.number + PREFERENCE * self.preference + TECHNICAL * self.technical,
        )


def signals(text: str, *, rarity: float) -> SalienceSignals:
    """`rarity` in [0, 1], of the words of the text in the being's memories. It takes time in proportion to the text."""
    return SalienceSignals(
        entity=names_something(text),
        number=tells_number(text),
        preference=states_preference(text),
        technical=rarity >= RARE or bool(_CODE.search(text)),
    )


# --- names ------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")
_OPENERS = frozenset('.!?:;…\n"“”‘([{—–-*#>|•/')
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s.*$", re.MULTILINE)
_NOT_NAMES = frozenset(
    """
    i i'm i'd i've i'll ok am pm tv cd dvd faq todo note tip warning error mr mrs ms dr sir madam dear hi hello thanks
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni
    juli oktober dezember
    der die das den dem des ein eine einen einem einer kein keine mein meine dein sein ihr ihre unser im am auf aus bei
    mit nach von vom zu zum zur wenn als dann aber und wir ich er sie es man dieser diese dieses jeder jede alle herr
    frau
    """.split()
)
_OF_PERSONS = frozenset(
    """
    said says told asked wants likes loves hates prefers lives works met called wrote thinks believes knows moved
    invited married visited joined bought sold runs owns teaches studies
    """.split()
)
_TITLES = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Herr|Frau|Hr|Fr|Mme|Mlle|Sr|Sra|Don|Doña|Señor|Señora|St|President|Queen|King)\.?\s+"
    r"[A-ZÀ-ÖØ-ÞА-Я]"
)
_GERMAN = re.compile(r"\b(?:der|die|das|und|ist|nicht|ein|eine|mit|auf|ich|wir|für|dem|den)\b")
_HANDLE = re.compile(
    # Of an address and of a host only the end that tells: from their beginning, each part would be read to the end.
    r"(?<!\w)@\w{2,}|\w[.+\-]*@[\w\-]+\.\w{2,}|\bhttps?://\w|\w-*[\w\-]\.(?:com|org|net|io|dev|de|jp)\b"
)
_CASELESS = re.compile(
    # Japanese: a name with its honorific; katakana, which spells names from abroad; what ends as places and firms do.
    "[\\u3400-\\u9fff\\u3040-\\u30ff]{1,8}(?:さん|さま|様|氏|くん|君|ちゃん|先生|社長|部長)"
    "|[\\u30a1-\\u30fa\\u30fc]{2,}・[\\u30a1-\\u30fa\\u30fc]{2,}|[\\u30a1-\\u30fa\\u30fc]{4,}"
    "|[\\u3400-\\u9fff]{1,6}(?:株式会社|会社|大学|銀行|駅|県|都|府|市|区|町|村|寺|神社|公司|集团|省|先生|女士|小姐)"
    # Korean, Thai, Hindi, Arabic, Hebrew: a title or what follows a name.
    "|[\\uac00-\\ud7a3]{2,4}\\s?(?:씨|님|선생|대학교|회사|시에|구에)"
    '|(?:คุณ|นาย|นาง|บริษัท|จังหวัด)[\\u0e00-\\u0eff]|श्री|(?:\\u0627\\u0644\\u0633\\u064a\\u062f|دكتور|شركة|مدينة)\\s|(?:מר|גברת|ד"ר)\\s'
    # A Latin word amid a script without case is nearly always a name.
    "|[\\u3040-\\u30ff\\u3400-\\u9fff\\uac00-\\ud7a3\\u0e00-\\u0e7f]\\s?[A-Za-z][A-Za-z0-9]+"
)


def names_something(text: str) -> bool:
    text = _HEADING.sub("", text)
    if _HANDLE.search(text) or _TITLES.search(text) or (not text.isascii() and _CASELESS.search(text)):
        return True
    words = list(_WORD.finditer(text))
    loud = sum(word[0].isupper() and len(word[0]) > 1 for word in words) * 2 > len(words)
    german = len(_GERMAN.findall(text)) * 8 > len(words)  # its nouns have capitals, too
    return any(_is_name(text, words, position, loud=loud, german=german) for position in range(len(words)))


def _is_name(text: str, words: Sequence[re.Match[str]], position: int, *, loud: bool, german: bool) -> bool:
    word = words[position][0]
    if not word[0].isupper():
        return bool(re.match(r"[a-z][A-Z][a-z]+$", word))  # iPhone
    low = word.casefold().replace("’", "'")
    if len(word) < 2 or low in _NOT_NAMES or normalize(low) in STOP_WORDS or low.split("'")[0] in STOP_WORDS:
        return False
    if not loud and (word.isupper() or re.search(r"[a-z][A-Z]", word)):
        return True  # NASA, PostgreSQL
    if loud:
        return False
    following = words[position + 1] if position + 1 < len(words) else None
    beside = following is not None and text[words[position].end() : following.start()] == " "
    pair = (
        beside and following is not None and following[0][0].isupper() and len(following[0]) > 1
        and following[0].casefold() not in _NOT_NAMES and normalize(following[0]).casefold() not in STOP_WORDS
    )  # fmt: skip
    if _opens(text, words[position].start()):
        acts = beside and following is not None and following[0] in _OF_PERSONS
        return pair or acts or bool(re.search(r"['’]s$", word))
    return pair if german else True


def _opens(text: str, at: int) -> bool:
    """Whether a sentence begins there, or a line."""
    before = text[max(0, at - 4) : at].rstrip(" \t_")
    return not before or before[-1] in _OPENERS


# --- numbers and dates ------------------------------------------------------------------------------------------

_NUMBER_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|dozens?"
    r"|twice|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|april|june|july|august|september|october"
    r"|november|december|(?:in|of|since|until|by|last|next|early|late) (?:may|march)"
    r"|yesterday|tomorrow|tonight|(?:last|next|this) (?:week|month|year|spring|summer|autumn|winter)"
    r"|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|gestern|morgen|montag|dienstag|mittwoch|donnerstag"
    r"|freitag|samstag|sonntag|januar|februar|märz|juni|juli|oktober|dezember"
    r"|deux|trois|quatre|cinq|sept|huit|neuf|dix|hier|demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
    r"|dos|tres|cuatro|cinco|siete|ocho|nueve|diez|ayer|mañana|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
    r"|два|три|четыре|пять|шесть|семь|восемь|девять|десять|вчера|завтра)\b",
    re.IGNORECASE,
)
_CASELESS_NUMBER = re.compile(
    "[一二三四五六七八九十百千万億两](?:年|月|日|時|时|分|人|個|个|回|次|円|元|歳|岁|階|本|冊|枚|匹|週|周|度|番)"
    "|昨日|明日|今日|昨夜|来週|先週|来月|先月|来年|去年|昨天|明天|今天|上周|下周|月曜|火曜|水曜|木曜|金曜|土曜|日曜"
    "|星期|周[一二三四五六日]|어제|내일|오늘|월요일|화요일|수요일|목요일|금요일|토요일|일요일|เมื่อวาน|พรุ่งนี้"
)


_DIGIT = re.compile(r"\d")
"""Of any script."""


def tells_number(text: str) -> bool:
    return bool(
        _DIGIT.search(text) or _NUMBER_WORDS.search(text) or (not text.isascii() and _CASELESS_NUMBER.search(text))
    )


# --- technical terms --------------------------------------------------------------------------------------------

_CODE = re.compile(
    r"`[^`\n]+`|^[^\S\n]*(?:```|~~~)|\b[a-z]+_[a-z_]+\b|\b[a-z]+[A-Z]\w+\b|\w\(\)|\b\w+::\w+"
    r"|\b[A-Za-z]++\d[A-Za-z\d]*+\b|(?:^|\s)(?:[./~][\w.\-]*)?/[\w.\-]+/[\w.\-/]+|--[a-z][a-z\-]+\b|\b[A-Z]{2,}[_-][A-Z\d_-]+\b",
    re.MULTILINE,
)
"""As names in programs, commands, paths and part numbers are written."""
MOST_WORDS = 48
"""Of a text, looked up in the statistics."""


def telling_words(text: str) -> list[str]:
    """Those whose rarity is the text's: without stop words, each once, the longest first, at most 48."""
    found = {word.casefold() for word in _WORD.findall(normalize(text))}
    return sorted((word for word in found - STOP_WORDS if len(word) > 1), key=lambda w: (-len(w), w))[:MOST_WORDS]


def rarity(idf: Sequence[float], *, absent_term_idf: float) -> float:
    """In [0, 1]: mean IDF of the words as a share of `absent_term_idf`, the IDF of a word that no memory has. 0 for
    no words, and while there are too few memories to tell."""
    if not idf or absent_term_idf < STATISTICS_FROM:
        return 0.0
    return min(1.0, sum(idf) / len(idf) / absent_term_idf)
