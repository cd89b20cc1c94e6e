"""Records as values of this memory, and as another being's."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from madeleine.memory.model import (
    BeingId,
    ClusterId,
    DatedAction,
    EmotionVector,
    Memory,
    MemoryId,
    Provenance,
    Scene,
    TextOrDatedAction,
)
from madeleine.memory.moving.archive_records import ArchivedMemoryExportRecord
from madeleine.memory.moving.record_base import ExportRecord
from madeleine.memory.moving.records import (
    AnyExportRecord,
    CoreBlockExportRecord,
    DiaryExportRecord,
    ExportTimeline,
    MemoryExportRecord,
    MessageExportRecord,
    NoteExportRecord,
    ProfileExportRecord,
    TruthChangeExportRecord,
    export_record_from_content,
)

TEXT_FIELDS_COMPARED_BY_IMPORT: Mapping[type[ExportRecord], tuple[str, ...]] = {
    MemoryExportRecord: ("action", "actors", "setting", "dialogue", "sensory", "truth", "superseded_by"),
    MessageExportRecord: ("role", "speaker", "text"),
    NoteExportRecord: ("content",),
    ProfileExportRecord: ("value",),
    DiaryExportRecord: ("text",),
    CoreBlockExportRecord: ("text", "description"),
}
"""What somebody has told. The other fields are how it fares: they differ between two stores by living."""
_REASSIGNED_ID_UUID_NAMESPACE = uuid.UUID("6d61646c-656e-5f65-8978-706f72740001")
_SCENE_FIELDS = ("action", "actors", "setting", "dialogue", "sensory")
_PROVENANCE_FIELDS = ("tool", "client", "session_id", "author", "author_role")
_SEPARATELY_CONVERTED_FIELDS = (
    "being",
    "type",
    "when",
    "retold",
    "emotion",
    "number",
    *_PROVENANCE_FIELDS,
    *_SCENE_FIELDS,
)


def are_contradictory_records(here: ExportRecord, told: ExportRecord) -> bool:
    """Whether two records of one identity say something different."""
    return any(
        getattr(here, name) != getattr(told, name) for name in TEXT_FIELDS_COMPARED_BY_IMPORT.get(type(told), ())
    )


def memory_from_export_record(record: MemoryExportRecord) -> Memory:
    scene = Scene(when=_timeline_from_export(record.when), **{name: getattr(record, name) for name in _SCENE_FIELDS})
    names = (name for name in MemoryExportRecord.model_fields if name not in _SEPARATELY_CONVERTED_FIELDS)
    others: dict[str, Any] = {name: getattr(record, name) for name in names}
    others["id"] = MemoryId(record.id)
    others["cluster_id"] = ClusterId(record.cluster_id) if record.cluster_id else None
    return Memory(
        being_id=BeingId(record.being),
        scene=scene,
        provenance=Provenance(
            tool=record.tool,
            client=record.client,
            session_id=record.session_id,
            author=BeingId(record.author) if record.author else None,
            author_role=record.author_role,
        ),
        emotion=EmotionVector(*record.emotion) if record.emotion else None,
        retold=_timeline_from_export(record.retold),
        number=record.number,
        **others,
    )


def first_memory_record(records: Iterable[ExportRecord]) -> MemoryExportRecord:
    return next(record for record in records if isinstance(record, MemoryExportRecord))


def _timeline_from_export(entries: ExportTimeline) -> tuple[TextOrDatedAction, ...]:
    return tuple(item if isinstance(item, str) else DatedAction(item.date, item.action) for item in entries)


def reassign_export_record_to_being(record: AnyExportRecord, being: str) -> AnyExportRecord:
    """The record as another being's: with ids of its own, which are the same whenever it is imported."""
    if record.being == being:
        return record
    values: dict[str, Any] = {"being": being}
    if isinstance(record, MemoryExportRecord):  # of what all share it becomes the being's own
        values |= dict.fromkeys(("knowledge", "author", "author_role"))

    def own(id_: Any) -> Any:
        return str(uuid.uuid5(_REASSIGNED_ID_UUID_NAMESPACE, f"{being}\n{id_}")) if id_ else id_

    for name in record.id_fields:
        named = getattr(record, name)
        values[name] = tuple(map(own, named)) if isinstance(named, tuple) else own(named)
    if isinstance(record, TruthChangeExportRecord):
        for side in ("before", "after"):
            fields = dict(getattr(record, side))
            values[side] = fields | {
                name: own(fields[name]) for name in ("superseded_by", "may_supersede") if name in fields
            }
    if isinstance(record, ArchivedMemoryExportRecord):
        values["records"] = tuple(
            all_fields_of_export_record(reassign_export_record_to_being(export_record_from_content(one), being))
            for one in record.records
        )
    if isinstance(record, ProfileExportRecord) and record.name == record.memory_id:
        values["name"] = values["memory_id"]
    return record.model_copy(update=values)


REDACTED_EXPORT_RECORD_FIELDS: Mapping[str, tuple[str, ...]] = {
    "memory": ("action", "setting", "feeling", "lesson", "actors", "dialogue", "sensory"),
    "reinforcement": ("text",),
    "revision": ("text",),
    "lesson": ("discovery", "condition", "action", "rationale", "steps"),
    "message": ("text",),
    "note": ("content",),
    "profile": ("value",),
    "diary": ("text",),
    "core_block": ("text", "description"),
    "stated_relation": ("subject", "relation", "object"),
    "archive_group": ("digest",),
}


def all_fields_of_export_record(record: ExportRecord) -> Mapping[str, Any]:
    """What its line holds."""
    content: Mapping[str, Any] = json.loads(record.json_line())
    return content


def export_record_with_changed_texts(record: AnyExportRecord, change: Callable[[str], str]) -> AnyExportRecord:
    """`change` applied to what was told."""
    changed: dict[str, Any] = {}
    if isinstance(record, ArchivedMemoryExportRecord):
        parts = tuple(
            all_fields_of_export_record(export_record_with_changed_texts(export_record_from_content(one), change))
            for one in record.records
        )
        changed |= {"records": parts} if parts != record.records else {}
    for name in REDACTED_EXPORT_RECORD_FIELDS.get(record.type, ()):
        value = getattr(record, name)
        new = tuple(map(change, value)) if isinstance(value, tuple) else change(value) if value else value
        if new != value:
            changed[name] = new
    return record.model_copy(update=changed) if changed else record
