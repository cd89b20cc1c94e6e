"""Turn what was gathered for a context into prompt entries: each item once, ranked within its part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from madeleine.memory.chat import Message
from madeleine.memory.context.fitting import PromptEntry
from madeleine.memory.context.values import ContextFlags
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory, Note
from madeleine.memory.patrol_records import DiaryEntry
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.rules.prompting.prompt_parts import (
    PromptPart,
    dated_entry,
    diary_entry,
    first_sentence,
    list_item,
    message_entry,
    named_entry,
    scene_entry,
    soul_part,
)
from madeleine.memory.rules.prompting.recalled_text import in_prompt_order, memory_line

MAX_LEARNT_PREFERENCES = 50
"""Latest unnamed preferences that are shown: they are learnt without a request and are in every prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextMaterial:
    """What ledger, recall and search returned, before any token limit. Profile, notes, diary and chats: oldest first;
    `recent_nodes` and `hits`: latest first; `recalled`: best first."""

    profile: Sequence[ProfileEntry] = ()
    thoughts: Sequence[str] = ()
    notes: Sequence[Note] = ()
    diary: Sequence[DiaryEntry] = ()
    recent_nodes: Sequence[Memory] = ()
    recalled: Sequence[tuple[Memory, float]] = ()
    hits: Sequence[SearchHit] = ()
    current_chat: Sequence[Message] = ()
    other_chats: Sequence[Message] = ()
    meaning_off: str = ""


def prompt_entries(material: ContextMaterial, flags: ContextFlags) -> list[PromptEntry]:
    """Entries in the order in which they are shown, part by part."""
    recalled: dict[str, int] = {memory.id: rank for rank, (memory, _) in enumerate(material.recalled)}
    recent = [memory for memory in material.recent_nodes if memory.id not in recalled]
    shown: set[str] = {*recalled, *(memory.id for memory in recent), *(note.id for note in material.notes)}
    shown |= {message.id for message in (*material.current_chat, *material.other_chats)}
    shown |= {day.date for day in material.diary}
    hits = [hit for hit in material.hits if hit.id not in shown]
    enabled = [entry for entry in material.profile if entry.enabled]

    def named(part: PromptPart) -> list[PromptEntry]:
        entries = [entry for entry in enabled if entry.kind == part]
        return _best_first(part, ((entry.id, named_entry(entry.name, entry.value)) for entry in entries))

    soul = [entry for entry in enabled if entry.kind == "soul"]
    return [
        *_best_first("soul", ((entry.name, soul_part(entry.name, entry.value)) for entry in soul)),
        *_best_first("thoughts", ((str(n), list_item(text)) for n, text in enumerate(material.thoughts))),
        *named("partner_rules"),
        *_best_first("preferences", _preferences(enabled)),
        *named("relationships"),
        *named("tools"),
        *named("map"),
        *_latest_best("notes", [(n.id, dated_entry(n.type, n.created_at, n.content)) for n in material.notes]),
        *named("knowledge"),
        *_diary_entries(material.diary, full=flags.ai_diary_full and not flags.prompt_lite_mode),
        *_best_first("recent_nodes", ((memory.id, scene_entry(memory)) for memory in recent)),
        *_best_first("memories", ((hit.id, dated_entry(hit.source, hit.timestamp, hit.snippet)) for hit in hits)),
        *(
            PromptEntry(part="memory_block", id=memory.id, text=memory_line(memory), rank=recalled[memory.id])
            for memory in in_prompt_order([memory for memory, _ in material.recalled])
        ),
        *_latest_best("history_recent", _messages(material.other_chats)),
        *_latest_best("history_current_chat", _messages(material.current_chat)),
    ]


def _preferences(enabled: Sequence[ProfileEntry]) -> list[tuple[str, str]]:
    """Named preferences first, then the latest learnt ones."""
    preferences = [entry for entry in enabled if entry.kind == "preferences"]
    named = [entry for entry in preferences if not entry.learnt]
    learnt = [entry for entry in preferences if entry.learnt][-MAX_LEARNT_PREFERENCES:]
    return [
        *((entry.memory_id or entry.id, named_entry(entry.name, entry.value)) for entry in named),
        *((entry.name, list_item(entry.value)) for entry in learnt),
    ]


def _diary_entries(days: Sequence[DiaryEntry], *, full: bool) -> list[PromptEntry]:
    """Shortened entries; with `full`, the whole text as an alternative where it differs."""
    entries = _latest_best("diary", [(day.date, diary_entry(day.date, first_sentence(day.text))) for day in days])
    if not full:
        return entries
    whole = [diary_entry(day.date, day.text) for day in days]
    return [
        PromptEntry(
            part="diary", id=entry.id, text=entry.text, rank=entry.rank, full="" if text == entry.text else text
        )
        for entry, text in zip(entries, whole, strict=True)
    ]


def _messages(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(said.id, message_entry(said.at, said.role, said.speaker, said.text)) for said in messages]


def _best_first(part: PromptPart, entries: Iterable[tuple[str, str]]) -> list[PromptEntry]:
    return [PromptEntry(part=part, id=id_, text=text, rank=rank) for rank, (id_, text) in enumerate(entries)]


def _latest_best(part: PromptPart, entries: Sequence[tuple[str, str]]) -> list[PromptEntry]:
    last = len(entries) - 1
    return [PromptEntry(part=part, id=id_, text=text, rank=last - n) for n, (id_, text) in enumerate(entries)]
