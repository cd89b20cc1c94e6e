"""What is a turn of a conversation, and what an agent has noted of one.

A turn is understood from the turns beside it, and a later one goes on with what an earlier one began. Notes of one
session are about different things: each stands for itself, on the day that it tells of, and a later one may tell what
became of an earlier one. Small stores (`make small`), told in sessions: read as turns, notes lose 2.4 points of first
places.
"""

from __future__ import annotations

import re
from functools import lru_cache

from madeleine.memory.model import Memory
from madeleine.memory.rules.storing.statements import cached_statement_for_comparison

ASSISTANT_NAMES = frozenset(
    {"assistant", "ai", "agent", "bot", "chatbot", "model", "system", "chatgpt", "gpt", "claude", "gemini", "copilot"}
)
"""What they say is rarely what happened."""
MAX_LETTERS_OF_PARTICLE = 3
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=2_000)
def first_name_of_actor(actor: str) -> str:
    match = _WORD.search(actor.casefold())
    return match.group() if match else ""


def is_said_by_assistant(memory: Memory) -> bool:
    """By its whole name: Claude Dupont is a person."""
    return bool(memory.scene.actors) and memory.scene.actors[0].casefold() in ASSISTANT_NAMES


def is_turn_of_conversation(memory: Memory) -> bool:
    """Whether it is what somebody said in a session: behind the name of an actor ("Ann: …"; where no actors are told,
    behind what may be any name), or in an actor's first person."""
    if not memory.provenance.session_id:
        return False
    statement, actors = cached_statement_for_comparison(memory.scene.action), memory.scene.actors
    if not actors:
        return _may_be_name(statement.speaker_label)
    speaker = statement.speaker_label.casefold()
    names = {name for actor in actors for name in (actor.casefold(), *actor.casefold().split())}
    return speaker in names or statement.is_told_in_first_person


def _may_be_name(label: str) -> bool:
    """Whether what stands before a colon may be a speaker: one word, or several in capitals ("Ludwig van Beethoven"),
    not "Rate limit", nor "Dentist appointment for Theo"."""
    words = label.split()
    lower = [at for at, word in enumerate(words) if word[0].islower()]
    if len(words) < 2 or not lower:
        return bool(words)
    return (
        lower[0] > 0 and lower[-1] < len(words) - 1 and all(len(words[at]) <= MAX_LETTERS_OF_PARTICLE for at in lower)
    )
