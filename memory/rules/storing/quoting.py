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
from functools import cached_property
from typing import Any

from madeleine.memory.model import CATEGORIES, DatedAction, Memory, when_date
from madeleine.memory.rules.storing.likeness import Facts, facts
from madeleine.memory.text.terms import STOP_WORDS

BLOCKS = ("recall", "memory", "context")
"""Tags between which memory is handed to a prompt (`rules.fragments`, `rules.prompt`, `rules.blocks`)."""
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

_BREAKS = re.compile(r"(?<!\s)\s++/\s++|[\r\n]+|(?<=[.!?…])[\"'”’)\]]{0,3}\s+|(?<=[。！？])")
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
    r"覚えてい?ます|と言っていました|あなた(?:は|が)|ユーザー(?:は|が)"
    r"|我记得|记得|你说过|用户|你|您|기억(?:해요|합니다|하고 있어요)"
)
_RECALLS = re.compile(
    r"\b(?:i|you) (?:remember|recall)\b|\b(?:you|i)(?:'ve| have)? (?:told|said|mentioned)\b|\bich erinnere\b"
    r"|\bdu hast gesagt\b|\bje me souviens\b|\bm'as dit\b|\b(?:recuerdo|dijiste)\b|\bricordo\b|\blembro\b|\bпомню\b"
    r"|覚えて|我记得|你说过|기억",
    re.I,
)
"""How a sentence begins that says what is remembered."""
_CASELESS_NOT = re.compile(r"ない|ません|なかった|ぬ|不|没|沒|無い|未|않|못|안\s|아니")


_NOT = frozenset(
    """
    no not never none nobody nothing neither nor without cannot dont cant wont isnt didnt doesnt wasnt stopped quit
    nicht kein keine keinen nie niemals pas jamais plus sans nunca jamás sin tampoco non mai senza não sem не нет
    никогда
    """.split()
)
_HAN = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
_HIRAGANA = re.compile(r"[\u3041-\u309f]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]")
_ANY_WORD = re.compile(r"\w+")


class Told:
    """One thing that was told, by a memory or in a conversation. `about`: who and when, which goes without saying."""

    def __init__(self, text: str, about: str = "") -> None:
        self.text = text
        self.plain = " ".join(_ANY_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
        self.stems = stems(text)
        self._about = about

    @cached_property
    def known(self) -> frozenset[str]:
        """Every word of it, as it stands."""
        return frozenset(_each_word(f"{self.text} {self._about}"))

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(_NUMBER.findall(unicodedata.normalize("NFKC", self.text)))

    @cached_property
    def known_numbers(self) -> frozenset[str]:
        return self.numbers | frozenset(_NUMBER.findall(self._about))

    @cached_property
    def names(self) -> frozenset[str]:
        """Capitalised words; the first word may be a name or not."""
        first = _WORD.search(unicodedata.normalize("NFKC", self.text))
        opening = {_bare(first[0])} if first and first[0][0].isupper() else set()
        return frozenset(self._facts.names | opening) - _FRAME - STOP_WORDS

    @cached_property
    def telling(self) -> frozenset[str]:
        """Words for amounts, days, negations and opposites."""
        return frozenset(word for word, _ in self._facts.telling) - _PRONOUNS - _PLACING - _FRAME

    @cached_property
    def caseless(self) -> frozenset[str]:
        return caseless_parts(self.text)

    @cached_property
    def known_caseless(self) -> frozenset[str]:
        return caseless_parts(f"{self.text} {self._about}", single=True)

    @cached_property
    def pairs(self) -> frozenset[str]:
        """Of signs, where the script has no case."""
        words = _WORD.findall(_CASELESS_FRAME.sub(" ", unicodedata.normalize("NFKC", self.text)))
        caseless = (word for word in words if word.lower() == word.upper())
        return frozenset(word[at : at + 2] for word in caseless for at in range(max(1, len(word) - 1)))

    @cached_property
    def denies(self) -> bool:
        words = frozenset(_each_word(self.text))
        return bool(words & _NOT) or any(one.endswith("n't") for one in words) or bool(_CASELESS_NOT.search(self.text))

    @cached_property
    def _facts(self) -> Facts:
        return facts(self.text)


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


def unquoted(text: str, told: Sequence[Told], *, by_assistant: bool, speakers: Collection[str] = ()) -> str:
    """The text without what is marked as recalled, and without sentences that a memory tells already.

    What the assistant says of a memory is a quote, however it is put. A person may say a thing a second time: one
    sentence that says no more than a memory stays, unless it says that it is remembered; two in one message are a
    quote.
    """
    rest = unmarked(text)
    if not rest or not told:
        return rest
    pieces = sentences(rest)
    share = MOSTLY if by_assistant else 1.0
    quotes = {piece for piece in dict.fromkeys(pieces) if _echoed(Told(piece), told, speakers, share)}
    if not by_assistant and len(quotes) < 2:
        quotes = {piece for piece in quotes if _RECALLS.search(piece)}
    if not quotes:
        return rest
    return "\n".join(piece for piece in pieces if piece not in quotes)


def echoes(text: str, told: Sequence[Told], speakers: Collection[str] = (), *, share: float = MOSTLY) -> bool:
    """Whether every sentence of the text says no more than something told: no fact differs, and at least this share of
    its words is there. `speakers`: names that are no news."""
    pieces = [Told(piece) for piece in sentences(text)]
    return bool(pieces) and all(_echoed(piece, told, speakers, share) for piece in pieces)


def restates(text: str, told: Sequence[Told], speakers: Collection[str] = ()) -> bool:
    """As `echoes`, for what a person has said: every word must be there, and nobody whom the memory names may be
    missing, for it may be told of somebody else."""
    pieces = [Told(piece) for piece in sentences(text)]
    return bool(pieces) and all(any(_restates(piece, one, speakers) for one in told) for piece in pieces)


def share_said(text: str, source: str) -> float:
    """The share of its words that the source has, too; 0 where it has no words with a meaning."""
    mine = stems(text)
    return len(mine & stems(source)) / len(mine) if mine else 0.0


def _restates(said: Told, one: Told, speakers: Collection[str]) -> bool:
    if not (_echoed(said, [one], speakers, 1.0) and one.names <= said.known):
        return False
    return len(said.pairs & one.pairs) >= MOSTLY * len(said.pairs)


def _echoed(said: Told, told: Iterable[Told], speakers: Collection[str], share: float) -> bool:
    extra = frozenset(low for name in speakers for low in _each_word(name))
    mine = said.stems - stems(" ".join(speakers)) if speakers else said.stems
    telling = len(mine | said.telling | said.numbers)
    for one in told:
        if said.plain and said.plain == one.plain:
            return True
        # The share first: it is soon told, and rules most of them out.
        if telling >= LEAST_WORDS and len(mine & one.stems) >= share * len(mine) and _no_news(said, one, extra):
            return True
    return False


def _no_news(said: Told, one: Told, speakers: frozenset[str]) -> bool:
    """No number, name, day or negation that the other has not, and none of the other's negations missing."""
    return (
        said.numbers <= one.known_numbers
        and said.names <= one.known | speakers
        and said.telling <= one.known
        and said.denies == one.denies
        and said.caseless <= one.known_caseless | caseless_parts(" ".join(speakers), single=True)
    )


def stems(text: str) -> frozenset[str]:
    """Of words with a meaning, and of scripts without case what stands for them."""
    text = _CASELESS_FRAME.sub(" ", unicodedata.normalize("NFKC", text))
    lows = (_bare(word) for word in _WORD.findall(text) if word.lower() != word.upper())
    meaning = frozenset(_ENDING.sub("", low) for low in lows if low not in STOP_WORDS and low not in _FRAME)
    return meaning | caseless_parts(text)


def caseless_parts(text: str, *, single: bool = False) -> frozenset[str]:
    """What carries the meaning in scripts without case: of Chinese and Japanese, pairs of signs that are no hiragana,
    which change with the tone; of others the beginnings of words. `single`: each sign by itself, too."""
    if text.isascii():
        return frozenset()
    found: set[str] = set()
    for word in _WORD.findall(_CASELESS_FRAME.sub(" ", unicodedata.normalize("NFKC", text))):
        if word.lower() != word.upper():
            continue
        if not _HAN.search(word):
            found.add(word[: 2 if _HANGUL.match(word) else 4])
            continue
        for run in _HIRAGANA.split(word):
            found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)) if run)
            found.update(run if single else ())
    return frozenset(found)


def _each_word(text: str) -> Iterator[str]:
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        yield word.replace("’", "'").casefold()
        yield _bare(word)


def _bare(word: str) -> str:
    """In lower case, without what an apostrophe joins to it."""
    return word.replace("’", "'").casefold().split("'")[0]
