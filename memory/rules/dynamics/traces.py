"""What else tells of a memory that is to be forgotten: names of clusters, reports, a survivor's timeline."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from madeleine.memory.model import DatedAction, Memory, Scene, WhenItem
from madeleine.memory.rules.dynamics.naming import cluster_name, common_words
from madeleine.memory.text.terms import STOP_WORDS

FORGOTTEN = "[forgotten]"
"""Stands in a report where words of a forgotten memory stood."""
_SAID_BY_CODE = frozenset({"step", "name", "skipped", "run_id", "id", "cluster_id", "memory_id"})
"""Keys of a report whose text is never a memory's."""

_WORD = re.compile(r"\w+")


def folded(texts: Iterable[str]) -> str:
    """One text in which `tells_of` looks for words; decomposed, so that a name cut before an accent is found too."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", "\n".join(texts)).casefold())


def all_texts(memory: Memory) -> list[str]:
    """Everything that was said of it."""
    scene = memory.scene
    dated = [part for item in scene.when for part in _said(item)]
    return [
        scene.action, *scene.actors, *dated, scene.setting, *scene.dialogue, *scene.sensory,
        memory.feeling, *memory.themes, memory.lesson,
    ]  # fmt: skip


def _said(item: str | DatedAction) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else (item.date, item.action)


def tells_of(text: str, gone: str, kept: str = "") -> bool:
    """Whether `text` has a word, or the beginning of one, from `gone` that is not in `kept`; both are `folded`.

    Parts of words count because names are cut off at a length, and because some scripts put no space between words.
    """
    words = set(_WORD.findall(folded([text]))) - STOP_WORDS
    return any(word in gone and word not in kept for word in words)


def renamed(name: str, gone: str, members: Collection[Memory], fallback: str) -> str:
    """The cluster's name if it tells nothing of what is gone that its members do not tell too, else a new one of their
    making; `fallback` where there are none."""
    if not tells_of(name, gone, folded(text for member in members for text in all_texts(member))):
        return name
    if not members:
        return fallback
    found = list(members)
    return cluster_name(found, dict.fromkeys(common_words(found), 1.0))


def redacted(report: Any, gone: str, names: Collection[str]) -> Any:
    """A patrol's report without what tells of the forgotten; ids, counts and the `names` of today's clusters stay."""
    match report:
        case str():
            return FORGOTTEN if report not in names and tells_of(report, gone) else report
        case Mapping():
            return {
                key: value if key in _SAID_BY_CODE and isinstance(value, str) else redacted(value, gone, names)
                for key, value in report.items()
            }
        case list() | tuple():
            return [redacted(item, gone, names) for item in report]
        case _:
            return report


def told_by(memory: Memory, texts: Iterable[str] = ()) -> frozenset[str]:
    """What a survivor's timeline says of one that it absorbed (spec P4): what happened, also in its earlier `texts`,
    and its own dated entries."""
    dated = (item.action for item in memory.scene.when if isinstance(item, DatedAction))
    return frozenset({memory.scene.action, *dated, *texts} - {""})


def without_retelling(scene: Scene, told: Collection[str]) -> Scene:
    """A survivor's scene without the entries of its timeline that retell what it absorbed (spec P4, P6 ❹)."""
    return replace(scene, when=tuple(item for item in scene.when if not _retells(item, told)))


def _retells(item: WhenItem, told: Collection[str]) -> bool:
    """A timeline cuts what is long."""
    if isinstance(item, str):
        return False
    if item.action in told:
        return True
    return item.action.endswith("…") and any(text.startswith(item.action[:-1]) for text in told)
