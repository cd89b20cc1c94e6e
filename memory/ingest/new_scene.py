"""A scene that is to be stored, and the memory that it may become (spec T4, ruling 1)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from madeleine.memory.chat import MessageId
from madeleine.memory.lessons.values import Lesson
from madeleine.memory.model import (
    Category,
    Emotion,
    EmotionVector,
    KnowledgeKind,
    Memory,
    MemoryId,
    Provenance,
    Scene,
    Scope,
    start_of_first_dated_timeline_entry,
)
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, refuse_value_that_is_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class NewScene:
    """A scene to store. `importance` None means 0.5 for a new memory, unchanged for a reinforced one. `supersedes`: the
    memory that was true until the scene's first date, or until now; `is_update`: an update of that memory has made
    it, and it is retracted if the update is undone. `sources`: the messages that it was drawn from."""

    scene: Scene
    feeling: str = ""
    category: Category = "episodic"
    importance: float | None = None
    emotions: tuple[Emotion, ...] = ()
    emotion: EmotionVector | None = None
    lesson: str = ""
    themes: tuple[str, ...] = ()
    session_id: str = ""
    pinned: bool = False
    key: str | None = None
    tool: str = "store"
    supersedes: MemoryId | None = None
    is_update: bool = False
    sources: tuple[MessageId, ...] = ()
    knowledge: KnowledgeKind | None = None
    """Of what all share."""
    learnt: Lesson | None = None
    distinct: bool = False
    """It says something else than any memory, however alike: store it beside them."""


def redact_scene(new: NewScene, redact: RedactText) -> tuple[NewScene, Mapping[str, int]]:
    """The scene without secrets, and the number of secrets by kind.

    A secret in the key is refused: redacted, the key would be the same as another one.
    """
    refuse_value_that_is_secret("key", new.key or "", redact)
    redaction = CountingRedactor(redact)
    redacted = redaction.redact_fields(new, "feeling", "lesson", "themes", "session_id")
    return replace(redacted, scene=redaction.redact_scene(new.scene)), redaction.found


def memory_from_new_scene(scope: Scope, new: NewScene, now: datetime) -> Memory:
    """A fresh, active memory without a cluster (ruling 1)."""
    return Memory(
        id=MemoryId(str(uuid.uuid4())),
        being_id=scope.being_id,
        scene=new.scene,
        feeling=new.feeling,
        importance=0.5 if new.importance is None else min(1.0, max(0.0, new.importance)),
        category=new.category,
        themes=new.themes,
        emotions=new.emotions,
        emotion=new.emotion,
        lesson=new.lesson,
        key=new.key,
        pinned=new.pinned,
        knowledge=new.knowledge,
        provenance=Provenance(
            tool=new.tool,
            client=scope.client,
            session_id=new.session_id,
            author=scope.author,
            author_role=scope.role if scope.author is not None else None,
        ),
        created_at=now,
        happened_at=start_of_first_dated_timeline_entry(new.scene.when, now),
    )
