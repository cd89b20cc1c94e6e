"""Whether a text that a model wrote rests on what it was shown: its numbers and names stand there too (spec T3)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from madeleine.memory.text.terms import STOP_WORDS

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_OPENERS = frozenset('.!?:;\n"\u201c\u201e\u2018«([—–')
_COMMON = frozenset(
    """
    the a an user users assistant person they he she it his her their its this that these those there someone somebody
    everyone nobody both all some each i we you my our your in on at for from with after before during since until while
    when where who what how why because although if as to by of and or but not no one ai agent
    der die das ein eine er sie es sein ihr nutzer nutzerin benutzer im in am an auf für mit nach vor seit wenn weil und
    le la les un une il elle ils elles son sa ses l' l d' d utilisateur utilisatrice dans en sur pour avec après avant
    el los las una usuario usuaria su sus en para con después antes él ella
    lo gli uno utente suo sua nel per con dopo prima lui lei
    o os as um uma usuário usuária seu sua no na para com depois antes ele ela
    пользователь он она его её они в на с для после до
    """.split()
)
_GERMAN = frozenset("der die das und ist nicht ein eine hat mit für von zu den dem sich auf im wird".split())
_SPOKEN: Mapping[str, str] = {
    word: number
    for number, words in (
        line.split(maxsplit=1)
        for line in """
        0 zero null zéro cero
        1 one once first single eins ein eine einmal un une uno una primera primero
        2 two twice second couple both double zwei zweimal deux dos due dois
        3 three third thrice drei trois tres tre três
        4 four fourth vier quatre cuatro quattro quatro
        5 five fifth fünf cinq cinco cinque
        6 six sixth half-dozen sechs seis sei
        7 seven seventh sieben sept siete sette sete
        8 eight eighth acht huit ocho otto oito
        9 nine ninth neun neuf nueve nove
        10 ten tenth zehn dix diez dieci dez
        11 eleven elf onze once undici
        12 twelve dozen zwölf douze doce dodici doze
        13 thirteen dreizehn treize trece
        14 fourteen vierzehn quatorze catorce
        15 fifteen fünfzehn quinze quince
        16 sixteen sechzehn seize
        17 seventeen siebzehn
        18 eighteen achtzehn
        19 nineteen neunzehn
        20 twenty zwanzig vingt veinte venti vinte
        30 thirty dreißig trente treinta trenta trinta
        40 forty vierzig quarante cuarenta quaranta quarenta
        50 fifty fünfzig cinquante cincuenta cinquanta cinquenta
        60 sixty sechzig soixante sesenta
        70 seventy siebzig setenta
        80 eighty achtzig ochenta
        90 ninety neunzig noventa
        100 hundred hundert cent cien cento cem
        1000 thousand tausend mille mil
        """.strip().splitlines()
    )
    for word in words.split()
}
_VALUE = re.compile(
    r"\b(?:password|passphrase|passcode|passwort|pin|codes?|keys?|tokens?|secret|login|username|handle|account|iban|"
    r"e-?mail|phone|address)\b(?: \w+)?(?: is| are| was| ist|:|=)\s+[\"'“„«]?([^\s\"'”“»,;]+)"
    r"|[\"“„«]([^\"”“»]{1,200})[\"”“»]|(\S+@\S+|\b(?:https?://|www\.)\S+)",
    re.I,
)
_HAN = str.maketrans("〇零一二两三四五六七八九", "0012234" + "56789")


def ungrounded(text: str, sources: str, *, orders: bool = False) -> tuple[str, ...]:
    """Names, numbers and values of the text that do not stand in the sources, nor in words; in order, each once.
    A value is what is quoted, an address, or what is said to be a password, a code, an account.

    A name is a capitalised word, at a sentence's beginning only if the sources have no such word in any form. Where
    nouns are capitalised, in German, some may be the writer's own: not if most of them are. `orders`: the text is an
    instruction, whose sentences begin with a verb.
    """
    text, sources = unicodedata.normalize("NFKC", text), unicodedata.normalize("NFKC", sources)
    new = (*_new_numbers(text, sources), *_new_names(text, sources, orders), *_new_values(text, sources))
    return tuple(dict.fromkeys(new))


def _new_numbers(text: str, sources: str) -> list[str]:
    words = {word.casefold() for word in _WORD.findall(sources)}
    known = {_bare(number) for number in _NUMBER.findall(sources)} | {
        _SPOKEN[word] for word in words if word in _SPOKEN
    }
    known |= {part for number in _NUMBER.findall(sources) for part in re.findall(r"\d+", number)}
    known |= set(re.findall(r"\d+", sources.translate(_HAN)))
    known |= {part.lstrip("0") for part in known}
    return [
        number for number in _NUMBER.findall(text) if _bare(number) not in known and number.lstrip("0") not in known
    ]


def _bare(number: str) -> str:
    """1,000 and 1.000 are 1000; 3,5 and 3.5 are one number, and 7:30 is itself."""
    grouped = re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", number)
    return re.sub(r"[.,]", "", number) if grouped else number.replace(",", ".")


def _new_names(text: str, sources: str, orders: bool) -> list[str]:
    known = {_stem(word) for word in _WORD.findall(sources)}
    names: list[str] = []
    unknown: list[str] = []
    for found in _WORD.finditer(text):
        word = found[0]
        low = word.replace("’", "'").casefold().split("'")[0]
        if not word[0].isupper() or low in _COMMON or low in STOP_WORDS:
            continue
        names.append(word)
        if _is_known(low, known):
            continue
        before = text[max(0, found.start() - 8) : found.start()].rstrip(" \t")
        opens = not before or before[-1] in _SENTENCE_OPENERS
        if not (opens and (orders or low.endswith(("ing", "ed", "ly", "ez", "iert", "ый", "но")))):
            unknown.append(word)
    low_words = [word.casefold() for word in _WORD.findall(text)]
    german = sum(word in _GERMAN for word in low_words) >= 2
    return [] if german and len(unknown) * 2 < len(names) else unknown


def _is_known(low: str, known: set[str]) -> bool:
    stem = _stem(low)
    return stem in known or any(
        len(one) >= 3
        and len(stem) >= 3
        and (stem.startswith(one) or one.startswith(stem))
        and abs(len(one) - len(stem)) <= 3
        for one in known
    )


def _new_values(text: str, sources: str) -> list[str]:
    known = {word.casefold() for word in re.findall(r"\w+", sources)}
    values = (next(filter(None, found.groups())).rstrip(".!?)") for found in _VALUE.finditer(text))
    return [value for value in values if not {word.casefold() for word in re.findall(r"\w+", value)} <= known]


def _stem(word: str) -> str:
    low = word.replace("’", "'").casefold().split("'")[0]
    return re.sub(r"(?<=\w{3})(?:ing|ed|es|s|e)$", "", low)
