"""A memory as a row, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from madeleine.memory.model import (
    DatedAction,
    EmotionVector,
    Memory,
    Provenance,
    Scene,
    WhenItem,
    when_as_searched,
)
from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.folding import fold_fields, fold_themes
from madeleine.storage.sql.database.tables import memories
from madeleine.storage.sql.database.times import from_micros, from_micros_or_none, to_micros, to_micros_or_none
from madeleine.storage.sql.database.values import decode_texts, decode_texts_cached, json_texts
from madeleine.storage.sql.memories.clock import SESSION_COUNT

MEMORY = (
    memories.c.id, memories.c.being_id,
    memories.c.action, memories.c.actors, memories.c.when_, memories.c.setting, memories.c.dialogue,
    memories.c.sensory, memories.c.tool, memories.c.client, memories.c.session_id,
    memories.c.created_at, memories.c.happened_at, memories.c.feeling, memories.c.importance, memories.c.category,
    memories.c.themes, memories.c.emotions, memories.c.emotion, memories.c.lesson, memories.c.key,
    memories.c.pinned, memories.c.status, memories.c.fresh, memories.c.compressed, memories.c.cluster_id,
    memories.c.absorbed_into, memories.c.compressed_into, memories.c.compression_source, SESSION_COUNT,
    memories.c.access_count, memories.c.reactivation_count, memories.c.last_activated, memories.c.last_accessed,
    memories.c.turn, memories.c.resembles,
)  # fmt: skip
"""The columns that `to_memory` takes, in its order."""
REWRITTEN = ("when_", "folded", "content_hash")


def to_memory(row: Row) -> Memory:
    (
        id_, being_id,
        action, actors, when, setting, dialogue,
        sensory, tool, client, session_id,
        created_at, happened_at, feeling, importance, category,
        themes, emotions, emotion, lesson, key,
        pinned, status, fresh, compressed, cluster_id,
        absorbed_into, compressed_into, compression_source, session_count,
        access_count, reactivation_count, last_activated, last_accessed,
        turn, resembles,
    ) = row  # fmt: skip
    return Memory(
        id=id_,
        being_id=being_id,
        scene=Scene(
            action=action,
            actors=decode_texts_cached(actors),
            when=to_when(when),
            setting=setting,
            dialogue=decode_texts(dialogue),
            sensory=decode_texts(sensory),
        ),
        provenance=Provenance(tool=tool, client=client, session_id=session_id),
        created_at=from_micros(created_at),
        happened_at=from_micros(happened_at),
        feeling=feeling,
        importance=importance,
        category=category,
        themes=decode_texts_cached(themes),
        emotions=decode_texts_cached(emotions),
        emotion=EmotionVector(*json.loads(emotion)) if emotion else None,
        lesson=lesson,
        key=key,
        pinned=bool(pinned),
        status=status,
        fresh=bool(fresh),
        compressed=bool(compressed),
        cluster_id=cluster_id,
        absorbed_into=absorbed_into,
        compressed_into=compressed_into,
        compression_source=bool(compression_source),
        session_count=session_count,
        access_count=access_count,
        reactivation_count=reactivation_count,
        last_activated=from_micros_or_none(last_activated),
        last_accessed=from_micros_or_none(last_accessed),
        turn=turn,
        resembles=resembles,
    )


def from_memory(memory: Memory) -> dict[str, Any]:
    """By column, but for `session_count`, which is kept as two (`storage.sql.memories.clock`)."""
    scene = memory.scene
    emotion = memory.emotion
    axes = emotion and [
        emotion.valence, emotion.arousal, emotion.dominance, emotion.safety, emotion.novelty, emotion.trust,
    ]  # fmt: skip
    when = when_as_searched(scene.when)
    return {
        "id": memory.id,
        "being_id": memory.being_id,
        "action": scene.action,
        "actors": json_texts(scene.actors),
        "when_": when,
        "setting": scene.setting,
        "dialogue": json_texts(scene.dialogue),
        "sensory": json_texts(scene.sensory),
        "feeling": memory.feeling,
        "importance": memory.importance,
        "category": memory.category,
        "themes": json_texts(memory.themes),
        "emotions": json_texts(memory.emotions),
        "emotion": json.dumps(axes) if axes else None,
        "lesson": memory.lesson,
        "key": memory.key,
        "pinned": memory.pinned,
        "status": memory.status,
        "fresh": memory.fresh,
        "compressed": memory.compressed,
        "cluster_id": memory.cluster_id,
        "absorbed_into": memory.absorbed_into,
        "compressed_into": memory.compressed_into,
        "compression_source": memory.compression_source,
        "session_count": memory.session_count,
        "access_count": memory.access_count,
        "reactivation_count": memory.reactivation_count,
        "created_at": to_micros(memory.created_at),
        "happened_at": to_micros(memory.happened_at),
        "last_activated": to_micros_or_none(memory.last_activated),
        "last_accessed": to_micros_or_none(memory.last_accessed),
        "tool": memory.provenance.tool,
        "client": memory.provenance.client,
        "session_id": memory.provenance.session_id,
        "turn": memory.turn,
        "resembles": memory.resembles,
        "content_hash": memory.content_hash,
        "folded": fold_fields((scene.action, memory.feeling, when)),
        "folded_themes": fold_themes(memory.themes),
    }


def rewritten_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """What of a memory's row (`from_memory`) changes with its timeline."""
    return {name: row[name] for name in REWRITTEN}


def to_when(stored: str) -> tuple[WhenItem, ...]:
    return tuple(item if isinstance(item, str) else DatedAction(**item) for item in decode_texts(stored))


def scalar(row: Row) -> Any:
    return row[0]


def pair(row: Row) -> tuple[Any, Any]:
    return row[0], row[1]


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_HasId)


def in_order_of(ids: Iterable[str], records: Iterable[T]) -> list[T]:
    """Each record once, in the order of `ids`; ids without a record are skipped."""
    by_id = {record.id: record for record in records}
    return [by_id[id_] for id_ in dict.fromkeys(ids) if id_ in by_id]
