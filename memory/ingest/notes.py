"""The notes inbox: scenes as JSON that wait for a patrol (spec P6 ❶, ruling 1)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from madeleine.memory.ingest.new_scene import NewScene, memory_from_new_scene
from madeleine.memory.ingest.ports import NoteRecorder
from madeleine.memory.model import Category, DatedAction, Emotion, EmotionVector, Memory, Note, NoteId, Scene, Scope
from madeleine.memory.rules.feelings import (
    EMOTION_AXES,
    EMOTION_LABELS,
    MAX_EMOTION_LABELS,
    closest_emotion_name,
    emotion_axis_from_approximate_name,
)
from madeleine.memory.rules.storing.secrets import RedactText, redact_note_content, redact_secrets

SCENE_NOTE_TYPE = "scene"
PARSE_FAILED_MARK = "[PARSE_FAILED]"


class _DatedActionInput(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    date: str
    action: str


def _is_emotion_axis_value(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1 <= value <= 1


class SceneWrittenAsNote(BaseModel):
    """A scene note's content. `action` is required; a scene may stand by itself or under the key `scene`."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    action: str = Field(min_length=1)
    actors: tuple[str, ...] = ()
    when: tuple[str | _DatedActionInput, ...] = ()
    setting: str | None = None
    dialogue: tuple[str, ...] = ()
    sensory: tuple[str, ...] = ()
    feeling: str | None = None
    importance: float | None = Field(default=None, allow_inf_nan=False)
    category: Category = "episodic"
    themes: tuple[str, ...] = ()
    emotions: tuple[Emotion, ...] = ()
    emotion: EmotionVector | None = None
    lesson: str | None = None
    pinned: bool = False

    @field_validator("when", mode="before")
    @classmethod
    def _wrap_single_date_in_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("emotions", mode="before")
    @classmethod
    def _keep_known_emotion_labels(cls, value: Any) -> Any:
        """Odd spelling is forgiven, and what is no label left out (ruling 21)."""
        told = [value] if isinstance(value, str) else value
        if not isinstance(told, list):
            return ()
        known = filter(None, (closest_emotion_name(label, EMOTION_LABELS) for label in told))
        return tuple(dict.fromkeys(known))[:MAX_EMOTION_LABELS]

    @field_validator("emotion", mode="before")
    @classmethod
    def _keep_known_emotion_axes(cls, value: Any) -> Any:
        """In whatever case; what is no axis, or no number from -1 to 1, is left out (ruling 21)."""
        if not isinstance(value, dict):
            return None
        usable = {
            axis: float(told)
            for name, told in value.items()
            if (axis := emotion_axis_from_approximate_name(name)) and _is_emotion_axis_value(told)
        }
        return EmotionVector(**dict.fromkeys(EMOTION_AXES, 0.0) | usable) if usable else None

    @field_validator("action")
    @classmethod
    def _require_nonblank_action(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("action is blank")
        return value


def _strings_within_json_value(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings_within_json_value(part)


def memory_or_fault_from_scene_note(note: Note, scope: Scope, now: datetime) -> Memory | str:
    """The memory that a scene note becomes, or why it cannot be read. Importance is clamped to [0, 1] (spec P6 ❶)."""
    try:
        raw = json.loads(note.content)
        if isinstance(raw, dict) and isinstance(raw.get("scene"), dict):
            raw = {**{k: v for k, v in raw.items() if k != "scene"}, **raw["scene"]}
        given = SceneWrittenAsNote.model_validate(raw)
        for text in _strings_within_json_value(raw):
            text.encode()  # half of a surrogate pair cannot be stored
            if "\x00" in text:
                return "a NUL character cannot be stored"
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'note'}: {first['msg']}"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    new = NewScene(
        scene=Scene(
            action=given.action,
            actors=given.actors,
            when=tuple(item if isinstance(item, str) else DatedAction(item.date, item.action) for item in given.when),
            setting=given.setting or "",
            dialogue=given.dialogue,
            sensory=given.sensory,
        ),
        feeling=given.feeling or "",
        category=given.category,
        importance=given.importance,
        emotions=given.emotions,
        emotion=given.emotion,
        lesson=given.lesson or "",
        themes=given.themes,
        pinned=given.pinned,
        tool="notes",
    )
    return memory_from_new_scene(scope, new, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNoteWithRedactionCounts:
    """The note as it was put into the inbox. `redacted`: number of secrets removed, by kind."""

    note: Note
    redacted: Mapping[str, int] = field(default_factory=dict)


async def add_note(
    ledger: NoteRecorder,
    scope: Scope,
    content: str,
    *,
    now: datetime,
    type_: str = SCENE_NOTE_TYPE,
    redact: RedactText = redact_secrets,
) -> StoredNoteWithRedactionCounts:
    content, found = redact_note_content(content, redact)
    note = Note(id=NoteId(str(uuid.uuid4())), being_id=scope.being_id, type=type_, content=content, created_at=now)
    await ledger.add_note(scope, note)
    return StoredNoteWithRedactionCounts(note=note, redacted=found)
