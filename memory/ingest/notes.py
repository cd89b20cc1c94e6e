"""The notes inbox: scenes as JSON that wait for a patrol (spec P6 ❶, ruling 1)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from madeleine.memory.ingest.ports import NoteLedger
from madeleine.memory.ingest.redaction import redact_note
from madeleine.memory.ingest.store import NewScene, new_memory
from madeleine.memory.model import (
    Category,
    DatedAction,
    Emotion,
    EmotionVector,
    Memory,
    Note,
    NoteId,
    Scene,
    Scope,
    WhenItem,
)
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets

SCENE = "scene"
PARSE_FAILED = "[PARSE_FAILED]"


class _Dated(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)
    date: str
    action: str


_Axis = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


class _Vadsnt(BaseModel):
    model_config = ConfigDict(defer_build=True)
    valence: _Axis = 0.0
    arousal: _Axis = 0.0
    dominance: _Axis = 0.0
    safety: _Axis = 0.0
    novelty: _Axis = 0.0
    trust: _Axis = 0.0


class SceneInput(BaseModel):
    """A scene note's content. `action` is required; a scene may stand by itself or under the key `scene`."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    action: str = Field(min_length=1)
    actors: list[str] = []
    when: list[str | _Dated] = []
    setting: str | None = None
    dialogue: list[str] = []
    sensory: list[str] = []
    feeling: str | None = None
    importance: float | None = Field(default=None, allow_inf_nan=False)
    category: Category = "episodic"
    themes: list[str] = []
    emotions: list[Emotion] = Field(default=[], max_length=3)
    emotion: _Vadsnt | None = None
    lesson: str | None = None
    pinned: bool = False

    @field_validator("when", mode="before")
    @classmethod
    def _one_date(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("action")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("action is blank")
        return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def read_scene(note: Note, scope: Scope, now: datetime) -> Memory | str:
    """The memory that a scene note becomes, or why it cannot be read. Importance is clamped to [0, 1] (spec P6 ❶)."""
    try:
        raw = json.loads(note.content)
        if isinstance(raw, dict) and isinstance(raw.get("scene"), dict):
            raw = {**{k: v for k, v in raw.items() if k != "scene"}, **raw["scene"]}
        given = SceneInput.model_validate(raw)
        for text in _texts(raw):
            text.encode()  # half of a surrogate pair cannot be stored
            if "\x00" in text:
                return "a NUL character cannot be stored"
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'note'}: {first['msg']}"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    when: tuple[WhenItem, ...] = tuple(w if isinstance(w, str) else DatedAction(w.date, w.action) for w in given.when)
    scene = Scene(
        action=given.action,
        actors=tuple(given.actors),
        when=when,
        setting=given.setting or "",
        dialogue=tuple(given.dialogue),
        sensory=tuple(given.sensory),
    )
    memory = new_memory(
        scope,
        NewScene(
            scene=scene,
            feeling=given.feeling or "",
            category=given.category,
            importance=given.importance,
            emotions=tuple(given.emotions),
            lesson=given.lesson or "",
            themes=tuple(given.themes),
            pinned=given.pinned,
            tool="notes",
        ),
        now,
    )
    if given.emotion is None:
        return memory
    return replace(memory, emotion=EmotionVector(**given.emotion.model_dump()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """The note as it was put into the inbox: without secrets. `redacted`: how many of which kind were taken out."""

    note: Note
    redacted: Mapping[str, int] = field(default_factory=dict)


async def add_note(
    ledger: NoteLedger,
    scope: Scope,
    content: str,
    *,
    now: datetime,
    type_: str = SCENE,
    redact: Redact = redact_secrets,
) -> Noted:
    content, found = redact_note(content, redact)
    note = Note(id=NoteId(str(uuid.uuid4())), being_id=scope.being_id, type=type_, content=content, created_at=now)
    await ledger.add_note(scope, note)
    return Noted(note=note, redacted=found)
