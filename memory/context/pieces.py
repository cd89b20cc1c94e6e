"""From what was found to the pieces of a prompt: each thing once, best first within its part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from madeleine.memory.chat import Message
from madeleine.memory.context.flags import ContextFlags
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory, Note
from madeleine.memory.patrol_records import DiaryEntry
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.rules.prompting.blocks import (
    Part,
    diary_entry,
    entry,
    hit_entry,
    message_entry,
    named_entry,
    note_entry,
    scene_entry,
    shortened,
    soul_part,
)
from madeleine.memory.rules.prompting.prompt import in_prompt_order, prompt_line
from madeleine.memory.rules.prompting.reduction import Piece

MOST_LEARNT = 50
"""Preferences that nobody named: of these the latest are shown, for they come by themselves and are in every prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the ledger, a recall and a search have of it, before any limit. Lists of what has a time: oldest first;
    `recent_nodes` and `hits`: latest first; `recalled`: best first."""

    entries: Sequence[ProfileEntry] = ()
    thoughts: Sequence[str] = ()
    notes: Sequence[Note] = ()
    diary: Sequence[DiaryEntry] = ()
    recent_nodes: Sequence[Memory] = ()
    recalled: Sequence[tuple[Memory, float]] = ()
    hits: Sequence[SearchHit] = ()
    current_chat: Sequence[Message] = ()
    other_chats: Sequence[Message] = ()
    meaning_off: str = ""


def pieces_of(found: Found, flags: ContextFlags) -> list[Piece]:
    """In the order in which they are shown, part by part."""
    recalled: set[str] = {memory.id for memory, _ in found.recalled}
    recent = [memory for memory in found.recent_nodes if memory.id not in recalled]
    told: set[str] = recalled | {memory.id for memory in recent} | {note.id for note in found.notes}
    told |= {message.id for message in (*found.current_chat, *found.other_chats)}
    told |= {one.date for one in found.diary}
    rank_of = {memory.id: rank for rank, (memory, _) in enumerate(found.recalled)}
    return [
        *_best_first("soul", ((one.name, soul_part(one.name, one.value)) for one in _of(found, "soul"))),
        *_best_first("thoughts", ((str(n), entry(text)) for n, text in enumerate(found.thoughts))),
        *_named(found, "partner_rules"),
        *_best_first("preferences", _preferences(found)),
        *_named(found, "relationships"),
        *_named(found, "tools"),
        *_named(found, "map"),
        *_latest_best("notes", [(n.id, note_entry(n.type, n.created_at, n.content)) for n in found.notes]),
        *_named(found, "knowledge"),
        *_days(found.diary, flags),
        *_best_first("recent_nodes", ((memory.id, scene_entry(memory)) for memory in recent)),
        *_best_first(
            "memories",
            ((hit.id, hit_entry(hit.source, hit.timestamp, hit.snippet)) for hit in found.hits if hit.id not in told),
        ),
        *(
            Piece(part="memory_block", id=memory.id, text=prompt_line(memory), rank=rank_of[memory.id])
            for memory in in_prompt_order([memory for memory, _ in found.recalled])
        ),
        *_latest_best("history_recent", _said(found.other_chats)),
        *_latest_best("history_current_chat", _said(found.current_chat)),
    ]


def _of(found: Found, kind: str) -> list[ProfileEntry]:
    return [one for one in found.entries if one.kind == kind and one.enabled]


def _preferences(found: Found) -> list[tuple[str, str]]:
    named = [one for one in _of(found, "preferences") if not one.learnt]
    learnt = [one for one in _of(found, "preferences") if one.learnt][-MOST_LEARNT:]
    return [
        *((one.memory_id or one.id, named_entry(one.name, one.value)) for one in named),
        *((one.name, entry(one.value)) for one in learnt),
    ]


def _named(found: Found, part: Part) -> list[Piece]:
    return _best_first(part, ((one.id, named_entry(one.name, one.value)) for one in _of(found, part)))


def _days(days: Sequence[DiaryEntry], flags: ContextFlags) -> list[Piece]:
    whole = flags.ai_diary_full and not flags.prompt_lite_mode
    found = []
    for position, day in enumerate(days):
        brief, full = diary_entry(day.date, shortened(day.text)), diary_entry(day.date, day.text)
        more = full if whole and full != brief else ""
        found.append(Piece(part="diary", id=day.date, text=brief, in_full=more, rank=len(days) - 1 - position))
    return found


def _said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(one.id, message_entry(one.at, one.role, one.speaker, one.text)) for one in messages]


def _best_first(part: Part, entries: Iterable[tuple[str, str]]) -> list[Piece]:
    return [Piece(part=part, id=id_, text=text, rank=rank) for rank, (id_, text) in enumerate(entries)]


def _latest_best(part: Part, entries: Sequence[tuple[str, str]]) -> list[Piece]:
    last = len(entries) - 1
    return [Piece(part=part, id=id_, text=text, rank=last - place) for place, (id_, text) in enumerate(entries)]
