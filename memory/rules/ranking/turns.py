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
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=2_000)
def first_name_of_actor(actor: str) -> str:
    match = _WORD.search(actor.casefold())
    return match.group() if match else ""


def is_said_by_assistant(memory: Memory) -> bool:
    """By its whole name: Claude Dupont is a person."""
    return bool(memory.scene.actors) and memory.scene.actors[0].casefold() in ASSISTANT_NAMES


def is_turn_of_conversation(memory: Memory) -> bool:
    """Whether it is what somebody said in a session: behind the name of an actor ("Ann: …"), or in an actor's first
    person; where no actors are told, behind what may be any name, or as one speaks to somebody: notes seldom ask or
    say "you"."""
    if not memory.provenance.session_id:
        return False
    statement, actors = cached_statement_for_comparison(memory.scene.action), memory.scene.actors
    if not actors:
        return _may_be_name(statement.speaker_label) or statement.speaks_to_somebody
    speaker = statement.speaker_label.casefold()
    names = {name for actor in actors for name in (actor.casefold(), *actor.casefold().split())}
    return speaker in names or statement.is_told_in_first_person


def _may_be_name(label: str) -> bool:
    """Whether what stands before a colon may be a speaker: one word ("user 1"), or several in capitals ("Ann Lee"), not
    "Rate limit", nor "Name der Katze"."""
    words = [word for word in label.split() if not word.isdecimal()]
    return len(words) == 1 or (len(words) > 1 and not any(word[0].islower() for word in words))
