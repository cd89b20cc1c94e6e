"""Texts that mention a forgotten memory: names of clusters, reports, a survivor's timeline."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from madeleine.memory.model import DatedAction, Memory, Scene, TextOrDatedAction
from madeleine.memory.rules.dynamics.naming import cluster_name_from_memories, memory_counts_of_cluster_name_words
from madeleine.memory.text.terms import ENGLISH_STOP_WORDS

FORGOTTEN_TEXT_MARK = "[forgotten]"
"""Replaces words of a forgotten memory in a report."""
_REPORT_KEYS_WITHOUT_MEMORY_TEXT = frozenset({"step", "name", "skipped", "run_id", "id", "cluster_id", "memory_id"})
"""Keys of a report whose text is never from a memory."""

_WORD = re.compile(r"\w+")


def fold_and_join_texts(texts: Iterable[str]) -> str:
    """One text for `mentions_forgotten` to search for words; decomposed, so that a name cut before an accent is found
    too."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", "\n".join(texts)).casefold())


def all_texts_of_memory(memory: Memory) -> list[str]:
    """Every text of its fields."""
    scene = memory.scene
    dated = [part for item in scene.when for part in _timeline_item_texts(item)]
    return [
        scene.action, *scene.actors, *dated, scene.setting, *scene.dialogue, *scene.sensory,
        memory.feeling, *memory.themes, memory.lesson,
    ]  # fmt: skip


def _timeline_item_texts(item: str | DatedAction) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else (item.date, item.action)


def mentions_forgotten(text: str, gone: str, kept: str = "") -> bool:
    """Whether `text` has a word, or the beginning of one, from `gone` that is not in `kept`; both are `folded`.

    Parts of words count because names are cut off at a length, and because some scripts put no space between words.
    """
    words = set(_WORD.findall(fold_and_join_texts([text]))) - ENGLISH_STOP_WORDS
    return any(word in gone and word not in kept for word in words)


def cluster_name_after_forgetting(name: str, gone: str, members: Collection[Memory], fallback: str) -> str:
    """The cluster's name if all that it mentions of the forgotten texts is in its members too, else a new one made from
    the members, or `fallback` without members."""
    if not mentions_forgotten(
        name, gone, fold_and_join_texts(text for member in members for text in all_texts_of_memory(member))
    ):
        return name
    if not members:
        return fallback
    memories = list(members)
    return cluster_name_from_memories(memories, dict.fromkeys(memory_counts_of_cluster_name_words(memories), 1.0))


def report_without_forgotten_mentions(report: Any, gone: str, names: Collection[str]) -> Any:
    """A patrol's report without texts that mention the forgotten; ids, counts and the `names` of clusters stay."""
    if isinstance(report, str):
        return FORGOTTEN_TEXT_MARK if report not in names and mentions_forgotten(report, gone) else report
    if isinstance(report, Mapping):
        return {
            key: value
            if key in _REPORT_KEYS_WITHOUT_MEMORY_TEXT and isinstance(value, str)
            else report_without_forgotten_mentions(value, gone, names)
            for key, value in report.items()
        }
    return (
        [report_without_forgotten_mentions(item, gone, names) for item in report]
        if isinstance(report, list | tuple)
        else report
    )


MAX_QUOTED_BEGINNING_CHARS = 60


def quotes_any_text(text: str, sources: Iterable[str]) -> bool:
    """Whether `text` holds one of the sources, or the beginning of a long one."""
    folded = " ".join(fold_and_join_texts([text]).split())
    beginnings = (" ".join(fold_and_join_texts([source]).split())[:MAX_QUOTED_BEGINNING_CHARS] for source in sources)
    return any(beginning in folded for beginning in beginnings if beginning)


MERGED_LESSONS_SEPARATOR = " / "
"""Between the lessons that a survivor has taken over."""


def texts_taken_over_by_survivor(memory: Memory, texts: Iterable[str] = ()) -> frozenset[str]:
    """The texts of an absorbed memory that its survivor may have taken over (spec P4, ruling 20): its action, its
    earlier actions `texts`, its own dated entries, its lessons and its feeling."""
    dated = (item.action for item in memory.scene.when if isinstance(item, DatedAction))
    taken_over = (memory.feeling, *memory.lesson.split(MERGED_LESSONS_SEPARATOR))
    return frozenset({memory.scene.action, *dated, *texts, *taken_over} - {""})


def scene_without_timeline_repeats_of_texts(scene: Scene, texts: Collection[str]) -> Scene:
    """A survivor's scene without the timeline entries that repeat these texts (spec P4, P6 ❹)."""
    return replace(scene, when=tuple(item for item in scene.when if not _timeline_item_repeats_text(item, texts)))


def remove_absorbed_lessons_from_text(text: str, texts: Collection[str]) -> str:
    """A survivor's lessons, or its feeling, without those of an absorbed memory."""
    return MERGED_LESSONS_SEPARATOR.join(part for part in text.split(MERGED_LESSONS_SEPARATOR) if part not in texts)


def _timeline_item_repeats_text(item: TextOrDatedAction, texts: Collection[str]) -> bool:
    """A timeline shortens long texts."""
    if isinstance(item, str):
        return False
    if item.action in texts:
        return True
    return item.action.endswith("…") and any(text.startswith(item.action[:-1]) for text in texts)
