"""What of a text is only quoted from memory (spec T6): it was said once, and is not to be remembered again.

Two signs of a quote: the marks that recalled text comes in (tags, lines of a prompt block, a tool's answer as JSON),
and words that a memory says already. The second is compared sentence by sentence, and only where no fact differs: a
number, a name, a day or a negation more makes it news.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory.model import CATEGORIES, DatedAction, Memory, when_date
from memory.rules.lexicon import STOP_WORDS
from memory.rules.likeness import facts

BLOCKS = ("recall", "memory", "memories", "snapshot", "recent", "recent_nodes", "diary")
"""Tags between which memory is handed to a prompt."""
MOSTLY = 0.75
"""Share of its words from which a sentence of the assistant's is taken for a memory put in other words."""
LEAST_WORDS = 3
"""Fewer words are in many memories by chance: they count only if they are all that a memory says."""

_OPENING = re.compile(rf"<\s{{0,3}}({'|'.join(BLOCKS)})\b[^<>]{{0,200}}>", re.I)
_CLOSING = {name: re.compile(rf"<\s{{0,3}}/\s{{0,3}}{name}\s{{0,3}}>", re.I) for name in BLOCKS}
_PROMPT_LINE = re.compile(rf"^[ \t>*-]{{0,8}}\[(?:{'|'.join(one.upper() for one in CATEGORIES)})\] .*$", re.M)
_OWN_KEYS = ({"total_tokens", "budget_used"}, {"provenance", "id"}, {"snippet", "source"})
"""Keys that stand together in the answers of our own tools, at any depth."""
_MOST_OBJECTS = 50
"""Beginnings of JSON that are looked at in one text."""

_BREAKS = re.compile(r"\s+/\s+|[\r\n]+|(?<=[.!?…])[\"'”’)\]]{0,3}\s+|(?<=[。！？])")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = re.compile(r"\d+(?:[.,:/\-]\d+)*")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|en|er|e|s|n|t)$")
_FRAME = frozenset(
    """
    remember remembers remembered recall recalls recalled know knows knew told tell tells said say says mention
    mentioned
    mentions memory memories note noted notes earlier previously before already ago once time user users assistant
    person
    someone something according apparently like right correct true indeed based see
    ich du er sie es wir ihr mich dich mir dir sich mein meine dein deine ist bist bin sind war hat hast habe haben
    dass
    der die das ein eine einen und erinnere weiß gesagt erzählt
    je tu il elle nous vous me te se mon ma mes ton ta tes suis es est sont as ai avez que qu un une le la les des du
    de
    et souviens rappelle dit avais
    yo tú él ella nosotros mi mis su sus soy eres es son ha has he que el los las una uno recuerdo dijiste
    io lui lei noi voi mio mia tuo tua sono sei hai ho che il lo gli ricordo detto
    eu ele ela você meu minha seu sua sou é são tem tenho o os as um uma lembro disse
    я ты он она мы вы мой моя твой твоя что это помню сказал сказала
    """.split()
)
"""What only says that somebody speaks, remembers or is meant: it makes no sentence a new one."""
_PRONOUNS = frozenset(
    "he she i we you they me us him them his her hers my mine our ours your yours their theirs".split()
)
_PLACING = frozenset("up down in out on off over under first last before like true false".split())
"""Words that `likeness` counts as opposites, and that a sentence gets by being put in other words."""
_CASELESS_FRAME = re.compile(
    r"覚えて(?:い)?ます|覚えています|と言っていました|あなた(?:は|が)|ユーザー(?:は|が)|我记得|记得|你说过|用户|你|您"
)
_CASELESS_NOT = re.compile(r"ない|ません|なかった|ぬ|不|没|沒|無い|未|않|못|안\s|아니")


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a memory says. `about`: who and when, which goes without saying."""

    text: str
    about: str = ""


def told_by(memory: Memory) -> tuple[Told, ...]:
    """All that a memory says: its action, feeling, lesson, lines and timeline, each sentence and each whole."""
    scene = memory.scene
    about = " ".join((*scene.actors, *(when_date(item) for item in scene.when), scene.setting, memory.category))
    wholes = [scene.action, memory.feeling, memory.lesson, *scene.dialogue, *scene.sensory]
    wholes += [item.action for item in scene.when if isinstance(item, DatedAction)]
    parts = [part for whole in wholes for part in (whole, *sentences(whole))]
    return tuple(Told(part, about) for part in dict.fromkeys(parts) if part)


# --- marks ------------------------------------------------------------------------------------------------------


def unmarked(text: str) -> str:
    """The text without what is marked as recalled: between our tags, lines of a prompt block, answers of our tools. An
    opening tag that nothing closes marks its own line."""
    return _PROMPT_LINE.sub("", _without_answers(_without_blocks(text))).strip()


def _without_blocks(text: str) -> str:
    kept: list[str] = []
    at = 0
    unclosed: set[str] = set()
    while opening := _OPENING.search(text, at):
        kept.append(text[at : opening.start()])
        name = opening[1].lower()
        closing = None if name in unclosed else _CLOSING[name].search(text, opening.end())
        if closing is None:
            unclosed.add(name)
            end = text.find("\n", opening.end())
            at = len(text) if end < 0 else end
        else:
            at = closing.end()
    return "".join((*kept, text[at:]))


def _without_answers(text: str) -> str:
    kept: list[str] = []
    at = 0
    for _ in range(_MOST_OBJECTS):
        start = min((found for sign in "{[" if (found := text.find(sign, at)) >= 0), default=-1)
        if start < 0:
            break
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            value, end = None, start + 1
        own = _is_own(value)
        kept.append(text[at:start] if own else text[at:end])
        at = end
    return "".join((*kept, text[at:]))


def _is_own(value: Any, depth: int = 4) -> bool:
    if isinstance(value, dict):
        return any(keys <= value.keys() for keys in _OWN_KEYS) or (
            depth > 0 and any(_is_own(part, depth - 1) for part in value.values())
        )
    return isinstance(value, list) and depth > 0 and any(_is_own(part, depth - 1) for part in value[:20])


# --- words ------------------------------------------------------------------------------------------------------


def sentences(text: str) -> list[str]:
    """Also the fragments of a recall, which ` / ` parts. None is empty."""
    return [part for piece in _BREAKS.split(text) if (part := piece.strip(" \t-*•>\"'“”"))]


def unquoted(text: str, remembered: Iterable[Memory], *, by_assistant: bool, speakers: Collection[str] = ()) -> str:
    """The text without what is marked as recalled, and without sentences that a memory says already.

    What the assistant says of a memory is a quote, however it is put. A person may say a thing a second time: one
    sentence that a memory says too stays; two in one message are a quote.
    """
    rest = unmarked(text)
    told = [one for memory in remembered for one in told_by(memory)]
    if not rest or not told:
        return rest
    pieces = sentences(rest)
    quotes = [
        piece for piece in pieces if says_the_same(piece, told) or (by_assistant and echoes(piece, told, speakers))
    ]
    if not quotes or (not by_assistant and len(quotes) < 2):
        return rest
    left = [piece for piece in pieces if piece not in quotes]
    return "\n".join(left)


def says_the_same(text: str, told: Iterable[Told]) -> bool:
    """Word for word, letter case and signs aside."""
    mine = _plain(text)
    return bool(mine) and any(mine == _plain(one.text) for one in told)


def echoes(text: str, told: Sequence[Told], speakers: Collection[str] = (), *, share: float = MOSTLY) -> bool:
    """Whether every sentence of the text says no more than something told: no fact differs, and at least this share of
    its words is there. `speakers`: names that are no news."""
    pieces = sentences(text)
    return bool(pieces) and all(any(_echoes(piece, one, speakers, share) for one in told) for piece in pieces)


def restates(text: str, told: Sequence[Told], speakers: Collection[str] = ()) -> bool:
    """As `echoes`, for what a person has said: every word must be there, and nobody whom the memory names may be
    missing, for it may be told of somebody else."""
    pieces = sentences(text)
    return bool(pieces) and all(
        any(_echoes(piece, one, speakers, 1.0) and _names(one.text) <= _words(piece) for one in told)
        for piece in pieces
    )


def _echoes(text: str, one: Told, speakers: Collection[str], share: float) -> bool:
    mine, theirs = _tokens(text), _tokens(f"{one.text} {one.about} {' '.join(speakers)}")
    if len(mine) < LEAST_WORDS or not _no_news(text, one, speakers):
        return _plain(text) == _plain(one.text) != ""
    return len(mine & theirs) >= share * len(mine)


def _no_news(text: str, one: Told, speakers: Collection[str]) -> bool:
    """No number, name, day or negation that the other has not, and none of the other's negations missing."""
    mine, theirs = facts(text), facts(one.text)
    known = _words(f"{one.text} {one.about} {' '.join(speakers)}")
    if not set(_NUMBER.findall(text)) <= {*_NUMBER.findall(f"{one.text} {one.about}")}:
        return False
    if not (mine.names | _starting_names(text)) <= known | _FRAME | STOP_WORDS:
        return False
    telling = {word for word, _ in mine.telling} - _PRONOUNS - _PLACING - _FRAME
    if not telling <= known:
        return False
    return _negated(text) == _negated(one.text) and bool(mine.negated) == bool(theirs.negated)


def _negated(text: str) -> bool:
    words = _words(text)
    plain = words & _NOT or any(word.endswith("n't") or word.endswith("n’t") for word in words)
    return bool(plain) or bool(_CASELESS_NOT.search(text))


_NOT = frozenset(
    """
    no not never none nobody nothing neither nor without cannot dont cant wont isnt didnt doesnt wasnt stopped quit
    nicht kein keine keinen nie niemals pas jamais plus sans nunca jamás sin tampoco non mai senza não sem не нет
    никогда
    """.split()
)


def _tokens(text: str) -> frozenset[str]:
    """Stems of words with a meaning; of scripts without case, pairs of signs."""
    text = _CASELESS_FRAME.sub(" ", unicodedata.normalize("NFKC", text))
    found: set[str] = set()
    for word in _WORD.findall(text):
        low = word.replace("’", "'").casefold().split("'")[0]
        if word.lower() != word.upper():
            if low not in STOP_WORDS and low not in _FRAME:
                found.add(_ENDING.sub("", low))
        else:
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    return frozenset(found)


def _words(text: str) -> frozenset[str]:
    return frozenset(_each_word(text))


def _each_word(text: str) -> Iterator[str]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        low = word.replace("’", "'").casefold()
        yield low
        yield low.split("'")[0]


def _names(text: str) -> frozenset[str]:
    return (facts(text).names | _starting_names(text)) - _FRAME - STOP_WORDS


def _starting_names(text: str) -> frozenset[str]:
    """The first word, which may be a name or not."""
    first = _WORD.search(unicodedata.normalize("NFKC", text))
    return (
        frozenset({first[0].replace("’", "'").casefold().split("'")[0]})
        if first and first[0][0].isupper()
        else frozenset()
    )


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
