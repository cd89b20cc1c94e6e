"""The records of an export file, one class a type (`docs/export.md`). `export.schema.json` is generated from them.

Fields are in the order in which a line has them. Times are in UTC with six digits of a second; a field without a value
is left out. A change of a field's name or meaning needs a new `EXPORT_FORMAT_VERSION`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import Field, TypeAdapter

from madeleine.memory.chat import ChatRole
from madeleine.memory.model import (
    Category,
    Emotion,
    KnowledgeKind,
    MemoryLevel,
    MemoryStatus,
    NoteState,
    Role,
    TruthStatus,
)
from madeleine.memory.moving.archive_records import ArchivedMemoryExportRecord, ArchiveGroupExportRecord
from madeleine.memory.moving.record_base import (
    Count,
    EmotionAxisValue,
    ExportEnd,
    ExportFileBaseModel,
    ExportHeader,
    ExportRecord,
    Moment,
    RecordId,
    Texts,
    UnitFraction,
    Uuid,
)
from madeleine.memory.profile import ProfileKind


class BeingExportRecord(ExportRecord):
    """`cycle`: its clock. `think`: points for the next session, written from the memories `think_sources`."""

    key_fields = ("being",)
    id_fields = ("think_sources",)
    type: Literal["being"] = "being"
    cycle: Count
    think: Texts
    think_sources: Texts
    last_number: Count


class ClusterExportRecord(ExportRecord):
    id_fields = ("id", "parent_id")
    type: Literal["cluster"] = "cluster"
    id: RecordId
    name: str
    parent_id: RecordId
    is_root: bool


class DatedActionExportRecord(ExportFileBaseModel):
    date: str
    action: str


ExportTimeline = tuple[str | DatedActionExportRecord, ...]


class MemoryExportRecord(ExportRecord):
    """The fields of `memory.model.Memory`."""

    id_fields = ("id", "cluster_id", "absorbed_into", "compressed_into", "resembles", "superseded_by", "may_supersede")
    type: Literal["memory"] = "memory"
    id: Uuid
    number: Count
    action: str
    actors: Texts
    when: ExportTimeline
    setting: str
    dialogue: Texts
    sensory: Texts
    feeling: str
    lesson: str
    category: Category
    themes: Texts
    emotions: tuple[Emotion, ...]
    emotion: (
        tuple[
            EmotionAxisValue, EmotionAxisValue, EmotionAxisValue, EmotionAxisValue, EmotionAxisValue, EmotionAxisValue
        ]
        | None
    ) = None
    importance: UnitFraction
    pinned: bool
    created_at: Moment
    happened_at: Moment
    tool: str
    client: str
    session_id: str
    turn: Count
    key: str | None = None
    status: MemoryStatus
    fresh: bool
    cluster_id: RecordId | None = None
    absorbed_into: RecordId | None = None
    compressed: bool
    compressed_into: RecordId | None = None
    compression_source: bool
    resembles: RecordId | None = None
    retold: ExportTimeline
    truth: TruthStatus
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: RecordId | None = None
    retraction_reason: str
    may_supersede: RecordId | None = None
    knowledge: KnowledgeKind | None = None
    author: RecordId | None = None
    author_role: Role | None = None
    project: str | None = None
    level: MemoryLevel | None = None
    session_count: int
    access_count: Count
    reactivation_count: Count
    kept_until: Moment | None = None
    last_activated: Moment | None = None
    last_accessed: Moment | None = None


class ExportRecordBelongingToMemory(ExportRecord):
    key_fields = ()
    id_fields: ClassVar[tuple[str, ...]] = ("memory_id",)
    memory_id: RecordId


class ReinforcementExportRecord(ExportRecordBelongingToMemory):
    type: Literal["reinforcement"] = "reinforcement"
    at: Moment
    text: str
    tool: str
    client: str
    session_id: str
    key: str | None = None


class RevisionExportRecord(ExportRecordBelongingToMemory):
    """Fields as they were before a change; those that stayed are left out."""

    type: Literal["revision"] = "revision"
    at: Moment
    client: str
    text: str | None = None
    importance: float | None = None
    themes: Texts | None = None
    pinned: bool | None = None
    when: Texts | None = None


class TruthChangeExportRecord(ExportRecordBelongingToMemory):
    """One memory's share in an act that changed what is true; times in `before` and `after` are microseconds since
    1970."""

    id_fields = ("memory_id", "act_id")
    type: Literal["truth_act"] = "truth_act"
    at: Moment
    act_id: RecordId
    kind: str
    client: str
    tool: str
    run_id: str
    before: Mapping[str, str | int | None]
    after: Mapping[str, str | int | None]


class LessonExportRecord(ExportRecordBelongingToMemory):
    """What a failure taught, of the memory that is found (spec O11)."""

    type: Literal["lesson"] = "lesson"
    discovery: str
    condition: str
    action: str
    rationale: str
    steps: Texts
    confidence: UnitFraction
    helped: Count
    failed: Count


class StatedRelationExportRecord(ExportRecordBelongingToMemory):
    """A relation that a caller has stated of a memory; what is drawn from texts is drawn anew (spec O14)."""

    type: Literal["stated_relation"] = "stated_relation"
    subject: str
    relation: str
    object: str
    client: str
    at: Moment


class SessionExportRecord(ExportRecord):
    """`messages`: the position that the next message gets; those before `watched` were read by the memory thread."""

    key_fields = ("being", "session_id")
    id_fields = ()
    type: Literal["session"] = "session"
    session_id: str
    title: str
    interface: str
    first_at: Moment
    last_at: Moment
    messages: Count
    watched: Count
    put_off: Count
    abandoned: Count
    failures: Count
    next_try: Moment
    project: str | None = None


class MessageExportRecord(ExportRecord):
    type: Literal["message"] = "message"
    id: RecordId
    session_id: str
    position: Count
    role: ChatRole
    speaker: str
    text: str
    at: Moment
    stored_at: Moment
    client: str
    key: str | None = None


class MessageMemoryExportRecord(ExportRecord):
    """A memory that was drawn from a message."""

    key_fields = ("message_id", "memory_id")
    id_fields = ("message_id", "memory_id")
    type: Literal["message_memory"] = "message_memory"
    message_id: RecordId
    memory_id: RecordId


class NoteExportRecord(ExportRecord):
    id_fields = ("id", "memory_id")
    type: Literal["note"] = "note"
    id: RecordId
    kind: str
    content: str
    state: NoteState
    reason: str
    created_at: Moment
    memory_id: RecordId | None = None


class ProfileExportRecord(ExportRecord):
    key_fields = ("being", "kind", "name")
    id_fields = ("memory_id",)
    type: Literal["profile"] = "profile"
    kind: ProfileKind
    name: str
    value: str
    enabled: bool
    updated_at: Moment
    memory_id: RecordId | None = None


class CoreBlockExportRecord(ExportRecord):
    """A version of a core block; the last one is current (spec O12)."""

    key_fields = ("being", "name", "version")
    id_fields = ()
    type: Literal["core_block"] = "core_block"
    name: str
    version: Count
    text: str
    description: str
    max_chars: Count
    written_at: Moment
    client: str


class DiaryExportRecord(ExportRecord):
    key_fields = ("being", "date")
    id_fields = ("sources",)
    type: Literal["diary"] = "diary"
    date: str
    text: str
    sources: Texts
    written_at: Moment


class ForgottenMessageKeyExportRecord(ExportRecord):
    """The hash of the key of a message that was forgotten: reading its conversation again does not bring it back."""

    key_fields = ("being", "key_hash")
    id_fields = ()
    type: Literal["forgotten_key"] = "forgotten_key"
    key_hash: RecordId


class PatrolRunExportRecord(ExportRecord):
    type: Literal["patrol_run"] = "patrol_run"
    id: RecordId
    started: Moment
    finished: Moment
    state: str
    report: Mapping[str, Any]


class PatrolChangeExportRecord(ExportRecord):
    """A line of the journal; vectors are left out of it."""

    key_fields = ()
    id_fields = ()
    type: Literal["patrol_change"] = "patrol_change"
    run_id: RecordId
    step: str
    kind: str
    target: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


AnyExportRecord: TypeAlias = (
    BeingExportRecord
    | ClusterExportRecord
    | MemoryExportRecord
    | ReinforcementExportRecord
    | RevisionExportRecord
    | TruthChangeExportRecord
    | LessonExportRecord
    | StatedRelationExportRecord
    | ArchiveGroupExportRecord
    | ArchivedMemoryExportRecord
    | SessionExportRecord
    | MessageExportRecord
    | MessageMemoryExportRecord
    | NoteExportRecord
    | ProfileExportRecord
    | CoreBlockExportRecord
    | DiaryExportRecord
    | ForgottenMessageKeyExportRecord
    | PatrolRunExportRecord
    | PatrolChangeExportRecord
)
EXPORT_RECORD_CLASSES: Mapping[str, type[ExportRecord]] = {
    kind.model_fields["type"].default: kind for kind in get_args(AnyExportRecord)
}
"""By type, in the order in which a file has them: what others refer to comes first."""


PATROL_JOURNAL_RECORD_TYPES = ("patrol_run", "patrol_change")
_EXPORT_LINE_ADAPTER: TypeAdapter[AnyExportRecord | ExportEnd] = TypeAdapter(
    Annotated[AnyExportRecord | ExportEnd, Field(discriminator="type")]
)


_EXPORT_RECORD_ADAPTER: TypeAdapter[AnyExportRecord] = TypeAdapter(
    Annotated[AnyExportRecord, Field(discriminator="type")]
)


def parse_export_record(line: bytes) -> AnyExportRecord:
    """As `parse_export_line`, for a line that is not the end."""
    return _EXPORT_RECORD_ADAPTER.validate_json(line)


def export_record_from_content(content: Mapping[str, Any]) -> AnyExportRecord:
    """A record from the content of a line. Raises `pydantic.ValidationError`."""
    return _EXPORT_RECORD_ADAPTER.validate_json(json.dumps(content))


def parse_export_line(line: bytes) -> AnyExportRecord | ExportEnd:
    """Raises `pydantic.ValidationError`, a `ValueError`."""
    return _EXPORT_LINE_ADAPTER.validate_json(line)


def export_json_schema() -> dict[str, Any]:
    """JSON Schema of any line of an export file."""
    schema = TypeAdapter(ExportHeader | AnyExportRecord | ExportEnd).json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A line of a Madeleine export"} | schema
