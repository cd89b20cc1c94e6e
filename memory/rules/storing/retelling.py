"""What becomes of a memory that is told again: nothing that the new telling adds is lost (spec T6, ruling 13).

The text stays as it was first told. A lesson or a feeling in other words, and for an event another day, are kept with
it: the lesson with the lesson, all else in `Memory.retold`, which is searched and shown with the whole memory. A day on
which a standing fact is told again is not kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from madeleine.memory.model import (
    DatedAction,
    Emotion,
    EmotionVector,
    Memory,
    MemoryId,
    TextOrDatedAction,
    date_of_timeline_entry,
)
from madeleine.memory.rules.dynamics.future_dates import future_beginning_stated_in_text
from madeleine.memory.rules.dynamics.truth import is_in_future
from madeleine.memory.rules.feelings import MAX_EMOTION_LABELS
from madeleine.memory.searched_texts import timeline_as_json_list
from madeleine.memory.text.normalization import fold_text
from madeleine.memory.text.reading import AnalysedText
from madeleine.memory.text.terms import bm25_text_of_memory
from madeleine.memory.text.wording import have_equivalent_wording

MAX_RETOLD_ENTRIES_PER_MEMORY = 20
"""Entries of `Memory.retold`. What would need one more is stored beside the memory."""
MAX_MERGED_LESSON_CHARS = 1_000
"""Of the lessons of all tellings together."""
NON_EVENT_CATEGORIES = frozenset({"semantic", "procedural"})
"""What these hold is no event: the day of its telling is no fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRetelling:
    """A scene that was stored again (spec T6): counted on `memory_id`, its own words kept beside it. `day`: on which it
    happened, where it names one, else on which it was told."""

    memory_id: MemoryId
    text: str
    at: datetime
    tool: str
    client: str = ""
    session_id: str = ""
    key: str | None = None
    importance: float | None = None
    pinned: bool = False
    themes: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    feeling: str = ""
    lesson: str = ""
    emotions: tuple[Emotion, ...] = ()
    emotion: EmotionVector | None = None
    valid_from: datetime | None = None
    may_supersede: MemoryId | None = None
    """The telling says that the memory takes the place of this one, from a day to come on: `valid_from`."""


def retelling_record_of_existing_memory(
    of: MemoryId, draft: Memory, *, importance: float | None, key: str | None
) -> MemoryRetelling:
    """`draft`: the memory that the scene would have become."""
    days = tuple(dict.fromkeys(date_of_timeline_entry(item) for item in draft.scene.when if isinstance(item, str)))
    return MemoryRetelling(
        memory_id=of,
        text=draft.scene.action,
        at=draft.created_at,
        tool=draft.provenance.tool,
        client=draft.provenance.client,
        session_id=draft.provenance.session_id,
        key=key,
        importance=importance,
        pinned=draft.pinned,
        themes=draft.themes,
        days=days,
        feeling=draft.feeling,
        lesson=draft.lesson,
        emotions=draft.emotions,
        emotion=draft.emotion,
        valid_from=draft.valid_from,
        may_supersede=draft.may_supersede,
    )


def memory_after_retelling(memory: Memory, told: MemoryRetelling) -> Memory:
    """The memory with what the telling adds, counted once more."""
    themes = {fold_text(theme): theme for theme in reversed((*memory.themes, *told.themes))}
    emotions = tuple(dict.fromkeys((*memory.emotions, *told.emotions)))
    return replace(
        memory,
        access_count=memory.access_count + 1,
        last_accessed=max(told.at, memory.last_accessed or told.at),
        importance=max(memory.importance, told.importance or 0.0),
        pinned=memory.pinned or told.pinned,
        themes=tuple(dict.fromkeys(themes[fold_text(theme)] for theme in (*memory.themes, *told.themes))),
        lesson=_lesson_with_new_one_appended(memory.lesson, told.lesson),
        emotions=emotions[:MAX_EMOTION_LABELS],
        emotion=memory.emotion or told.emotion,
        retold=(*memory.retold, *_new_retold_entries(memory, told)),
        **_future_supersession_fields_of_retelling(memory, told),
    )


def retelling_changes_index(before: Memory, after: Memory) -> bool:
    """Whether the index holds something else of the memory after it was told again, or after that was taken back."""
    return bm25_text_of_memory(before) != bm25_text_of_memory(after) or before.valid_from != after.valid_from


def can_future_draft_retell_memory(memory: Memory, draft: Memory) -> bool:
    """Whether the memory may be told again by a draft that takes another's place from a day to come on: its date or its
    text tells of the future itself, and of no other day or memory. What is true now must not become a plan. True for
    any other draft."""
    if draft.may_supersede is None or (memory.valid_from, memory.may_supersede) == (
        draft.valid_from,
        draft.may_supersede,
    ):
        return True
    is_same = memory.valid_from in (None, draft.valid_from) and memory.may_supersede in (None, draft.may_supersede)
    if not is_same or memory.id == draft.may_supersede:
        return False
    stated = future_beginning_stated_in_text(memory, draft.created_at)
    return (stated is not None and stated == draft.valid_from) or is_in_future(memory.happened_at, draft.created_at)


def _future_supersession_fields_of_retelling(memory: Memory, told: MemoryRetelling) -> dict[str, Any]:
    """The fields of a memory that is said to take the place of another one only now, when it is told again."""
    if told.may_supersede is None or memory.valid_from is not None or memory.truth != "current":
        return {}
    return {"valid_from": told.valid_from, "may_supersede": told.may_supersede}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetellingAdditions:
    """What one retelling has added to its memory, so that it can be taken back."""

    themes: tuple[str, ...] = ()
    retold: tuple[TextOrDatedAction, ...] = ()
    lesson: str = ""

    def to_json(self) -> str:
        content = {"themes": self.themes, "retold": timeline_as_json_list(self.retold), "lesson": self.lesson}
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> RetellingAdditions:
        content = json.loads(text)
        retold = (item if isinstance(item, str) else DatedAction(**item) for item in content["retold"])
        return cls(themes=tuple(content["themes"]), retold=tuple(retold), lesson=content["lesson"])


def additions_of_retelling(before: Memory, after: Memory) -> RetellingAdditions:
    return RetellingAdditions(
        themes=tuple(theme for theme in after.themes if theme not in before.themes),
        retold=after.retold[len(before.retold) :],
        lesson=after.lesson.removeprefix(before.lesson).lstrip("\n"),
    )


def memory_without_retelling(memory: Memory, added: RetellingAdditions) -> Memory:
    """The memory counted once less, without what the retelling had added, as far as that is still as it was."""
    retold = list(memory.retold)
    for entry in added.retold:
        if entry in retold:
            retold.remove(entry)
    lines = [line for line in memory.lesson.split("\n") if not added.lesson or line not in added.lesson.split("\n")]
    return replace(
        memory,
        access_count=max(0, memory.access_count - 1),
        themes=tuple(theme for theme in memory.themes if theme not in added.themes),
        retold=tuple(retold),
        lesson="\n".join(lines),
    )


def has_room_for_retelling(memory: Memory, told: MemoryRetelling) -> bool:
    """Whether all that the telling adds fits beside the memory."""
    after = memory_after_retelling(memory, told)
    return len(after.retold) <= MAX_RETOLD_ENTRIES_PER_MEMORY and len(after.lesson) <= max(
        MAX_MERGED_LESSON_CHARS, len(memory.lesson)
    )


def _lesson_with_new_one_appended(lesson: str, new: str) -> str:
    """Both, one a line, unless the lesson says it already."""
    known = lesson.splitlines()
    return lesson if not new or any(have_equivalent_wording(new, line) for line in known) else "\n".join((*known, new))


def _new_retold_entries(memory: Memory, told: MemoryRetelling) -> list[TextOrDatedAction]:
    """The new feeling, and labels that have no room, on their day; else the days that are new."""
    feelings = [memory.feeling, *(item.action for item in memory.retold if isinstance(item, DatedAction))]
    is_known = not told.feeling or any(have_equivalent_wording(told.feeling, feeling) for feeling in feelings)
    labels = [one for one in told.emotions if one not in (memory.emotions + told.emotions)[:MAX_EMOTION_LABELS]]
    days = _new_event_days_of_retelling(memory, told)
    if felt := "; ".join((*([] if is_known else [told.feeling]), *(one for one in labels if one not in feelings))):
        first, *days = days or [*told.days, told.at.date().isoformat()][:1]
        return [DatedAction(first, felt), *days]
    return list(days)


def _new_event_days_of_retelling(memory: Memory, told: MemoryRetelling) -> list[str]:
    """Days of the telling on which the memory is not yet known to have happened. One that names no day, but tells of
    `yesterday`, is told of another day by being told on one."""
    if memory.category in NON_EVENT_CATEGORIES:
        return []
    days = told.days
    if not days and AnalysedText(told.text).mentions_date:
        days = (told.at.date().isoformat(),)
    known = {date_of_timeline_entry(item) for item in (*memory.scene.when, *memory.retold)} | {
        moment.date().isoformat() for moment in (memory.happened_at, memory.created_at)
    }
    return [day for day in days if day not in known]
