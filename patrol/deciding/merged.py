"""What a survivor becomes by a merge (spec P6 ❹, rulings 14 and 20)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from madeleine.memory.model import (
    Category,
    DatedAction,
    Memory,
    TextOrDatedAction,
    date_of_timeline_entry,
    parse_iso_moment_or_none,
)
from madeleine.memory.rules.dynamics.importance import status_from_decayed_importance
from madeleine.memory.rules.dynamics.mentions import MERGED_LESSONS_SEPARATOR
from madeleine.memory.rules.dynamics.truth import beginning_of_validity
from madeleine.memory.rules.feelings import MAX_EMOTION_LABELS
from madeleine.patrol.deciding.requests import shorten_with_ellipsis

SURVIVOR_IMPORTANCE_BONUS = 0.05
"""Added to a survivor's importance, once a merge (spec P6 ❹)."""
CATEGORIES_IN_ASCENDING_MERGE_WEIGHT: Sequence[Category] = ("working", "episodic", "semantic", "social", "procedural")
"""The later weighs more: a preference stays one whatever it is merged with."""
MAX_TIMELINE_ACTION_CHARS = 2_000
"""Of an action in a timeline."""


def survivor_after_merge(survivor: Memory, absorbed: Sequence[Memory]) -> Memory:
    """Keeps its words and when it happened; takes over the others' histories, lessons and reactivations, the greatest
    importance and the category that weighs most, feelings where it has none; is as recently activated as the latest of
    them (ruling 20). Where one of them had superseded another, it is the later version now (ruling 14)."""
    together = (survivor, *absorbed)
    superseding = [memory.valid_from for memory in absorbed if memory.valid_from]
    begin = beginning_of_validity(survivor)
    merged = replace(
        survivor,
        scene=replace(survivor.scene, when=merged_timeline(survivor, absorbed)),
        feeling=next((memory.feeling for memory in together if memory.feeling), ""),
        emotions=tuple(dict.fromkeys(label for memory in together for label in memory.emotions))[:MAX_EMOTION_LABELS],
        emotion=next((memory.emotion for memory in together if memory.emotion), None),
        lesson=_joined_lessons(together),
        category=max((memory.category for memory in together), key=CATEGORIES_IN_ASCENDING_MERGE_WEIGHT.index),
        valid_from=min(superseding + ([begin] if begin else [])) if superseding else survivor.valid_from,
        importance=min(1.0, max(memory.importance for memory in together) + SURVIVOR_IMPORTANCE_BONUS),
        session_count=min(memory.session_count for memory in together),
        reactivation_count=survivor.reactivation_count + sum(memory.reactivation_count for memory in absorbed),
        fresh=False,
    )
    return replace(merged, status=status_from_decayed_importance(merged))


def _joined_lessons(memories: Sequence[Memory]) -> str:
    """Each once; one that another holds is left out."""
    lessons = list(dict.fromkeys(memory.lesson.strip() for memory in memories if memory.lesson.strip()))
    return MERGED_LESSONS_SEPARATOR.join(
        one for one in lessons if not any(one != other and one in other for other in lessons)
    )


def merged_timeline(survivor: Memory, absorbed: Sequence[Memory]) -> tuple[TextOrDatedAction, ...]:
    """The survivor's own entries as they are, then the histories of the others by date, undated ones last (spec P4).
    Nothing twice, and not what the survivor says itself of that day. A survivor without entries begins with its day,
    for the first entry is read as a memory's date."""
    own = {(date_of_timeline_entry(item), item.action) for item in dated_actions_of_memory(survivor)}
    told = [item for memory in absorbed for item in dated_actions_of_memory(memory)]
    items = {(date_of_timeline_entry(item), item.action): item for item in told}
    new = sorted(
        (key for key in items if key not in own), key=lambda key: (parse_iso_moment_or_none(key[0]) is None, key)
    )
    first = survivor.scene.when or ((survivor.happened_at.date().isoformat(),) if new else ())
    return (*first, *(items[key] for key in new))


def dated_actions_of_memory(memory: Memory) -> list[DatedAction]:
    """Its action on each of its plain dates, on the day it happened if it has none; then what it took over before
    and what later tellings have added."""
    when = memory.scene.when
    dates = [date_of_timeline_entry(item) for item in when if isinstance(item, str)] or [
        memory.happened_at.date().isoformat()
    ]
    dated = [DatedAction(date, memory.scene.action) for date in dates]
    dated += [item for item in when if isinstance(item, DatedAction)]
    dated += [DatedAction(item, memory.scene.action) if isinstance(item, str) else item for item in memory.retold]
    return [replace(item, action=shorten_with_ellipsis(item.action, MAX_TIMELINE_ACTION_CHARS)) for item in dated]
