"""Of a memory what a search by words looks into, and its timeline as JSON (spec P11)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from madeleine.memory.model import Memory, TextOrDatedAction


def keyword_searchable_texts_of_memory(memory: Memory) -> tuple[str, ...]:
    """The texts of a memory that keyword search looks into (spec P11). Its themes are compared as wholes."""
    scene = memory.scene
    timeline = timeline_as_search_text((*scene.when, *memory.retold))
    return (
        scene.action, memory.feeling, timeline, scene.setting, *scene.actors, *scene.dialogue, *scene.sensory,
        memory.lesson,
    )  # fmt: skip


def timeline_as_json_list(when: Sequence[TextOrDatedAction]) -> list[Any]:
    return [i if isinstance(i, str) else {"date": i.date, "action": i.action} for i in when]


_encode_json = json.JSONEncoder(ensure_ascii=False).encode


def timeline_as_search_text(when: Sequence[TextOrDatedAction]) -> str:
    """The `when` array as JSON text, which keyword search looks into (spec P11)."""
    return _encode_json(timeline_as_json_list(when))
