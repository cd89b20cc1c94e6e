"""Values: what a memory, a scene and a cluster are, and who may see them (spec P1 to P4, O1)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NewType, TypeAlias, get_args

from madeleine.memory.text.dates import IsoPeriod, enclosing_time_span, parse_iso_period, possible_utc_span

if TYPE_CHECKING:  # the command line reads these values, and numpy takes longer to import than all the rest
    import numpy as np
    from numpy.typing import NDArray

BeingId = NewType("BeingId", str)
MemoryId = NewType("MemoryId", str)
"""A UUID in its canonical text form; also the point id in the index."""
ClusterId = NewType("ClusterId", str)
NoteId = NewType("NoteId", str)
RunId = NewType("RunId", str)
ContentHash = NewType("ContentHash", str)
"""SHA-256, in hex, of the text that is embedded."""
EmbeddingModelName = NewType("EmbeddingModelName", str)
"""An embedding model: `NAME`, or `NAME@int8`, whose vectors can be compared with those of `NAME` (cosine 0.99)."""

UUID_CHARS, SHORT_ID_CHARS = 36, 8
Vector: TypeAlias = "NDArray[np.float32]"
"""float32, (dim,), unit length."""

Category = Literal["working", "episodic", "semantic", "procedural", "social"]
MEMORY_CATEGORIES: tuple[Category, ...] = get_args(Category)
MemoryStatus = Literal["active", "dying", "dead"]
ALL_MEMORY_STATUSES: tuple[MemoryStatus, ...] = get_args(MemoryStatus)
LIVING_STATUSES: tuple[MemoryStatus, ...] = ("active", "dying")
MemoryLevel = Literal["none", "session", "project", "persistent"]
"""How long what is stored is kept (spec O2): not at all, until its session or its project ends, for good."""
TruthStatus = Literal["current", "superseded", "retracted"]
"""Superseded: it was true until another memory took its place. Retracted: it was wrong (ruling 14)."""

Emotion = Literal[
    "admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion",
    "curiosity", "desire", "disappointment", "disapproval", "disgust", "embarrassment",
    "excitement", "fear", "gratitude", "grief", "joy", "love", "nervousness", "optimism",
    "pride", "realization", "relief", "remorse", "sadness", "surprise",
]  # fmt: skip
"""The fixed taxonomy of spec T8: the 27 labels of GoEmotions (doi:10.18653/v1/2020.acl-main.372)."""


Role = Literal["human", "c_suite", "lead", "senior", "agent"]
"""The caller that speaks for a being (spec O4): a person, an agent trusted with decisions (three ranks), any other."""
KnowledgeKind = Literal["policy", "decision", "procedure", "convention", "knowledge"]
"""Of what an organisation knows (spec O4, O5): core policies; decision records, procedures and conventions; what an
agent has shared."""
ORGANISATION_KNOWLEDGE_KINDS: tuple[KnowledgeKind, ...] = get_args(KnowledgeKind)
ORGANISATION_BEING_ID = BeingId("@organisation")
"""The being whose memory is what all beings of this store share. No connection can be its (`is_connectable_being`)."""
CALLER_ROLES: tuple[Role, ...] = get_args(Role)


def model_name_at_full_precision(model: EmbeddingModelName) -> EmbeddingModelName:
    return EmbeddingModelName(model.removesuffix("@int8"))


def model_name_in_both_precisions(model: EmbeddingModelName) -> tuple[EmbeddingModelName, ...]:
    """The model, then its other precision: while a store is embedded anew, vectors of the other stand in."""
    full = model_name_at_full_precision(model)
    return (model, EmbeddingModelName(f"{full}@int8") if model == full else full)


def is_connectable_being(being: str) -> bool:
    """Whether a connection can be this being's."""
    return being != ORGANISATION_BEING_ID


@dataclass(frozen=True, slots=True)
class Scope:
    """The being that is served, and the caller (spec P1, ruling 12). It comes from the connection, never from a tool
    argument. A caller sees and changes the memories of this being and of no other. Without `count_activations`
    reactivations are not counted. `author`: the being that acts, where it is another: on what all share. `project`: no
    memory of another is found; "" for none. `level`: of what is stored (spec O2). `token`: id of the bearer token."""

    being_id: BeingId
    client: str = ""
    role: Role = "agent"
    count_activations: bool = True
    author: BeingId | None = None
    project: str = ""
    level: MemoryLevel = "persistent"
    token: str = ""


@dataclass(frozen=True, slots=True)
class EmotionVector:
    """VADSNT (spec P2): each axis in [-1, 1]."""

    valence: float
    arousal: float
    dominance: float
    safety: float
    novelty: float
    trust: float


@dataclass(frozen=True, slots=True)
class EmotionSummary:
    """How several memories felt. `emotions`: their most frequent labels, at most three; `vector`: the mean."""

    emotions: tuple[Emotion, ...]
    vector: EmotionVector


@dataclass(frozen=True, slots=True)
class DatedAction:
    """A timeline entry that keeps what happened on its day (spec P4)."""

    date: str
    action: str


TextOrDatedAction = str | DatedAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One event, decision, emotion or observation (spec P4)."""

    action: str
    actors: tuple[str, ...] = ()
    when: tuple[TextOrDatedAction, ...] = ()
    setting: str = ""
    dialogue: tuple[str, ...] = ()
    sensory: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Origin of a memory: the tool, the client and the session; of what all share also the being that shared it, and
    the role that it had."""

    tool: str
    client: str = ""
    session_id: str = ""
    author: BeingId | None = None
    author_role: Role | None = None


DEFAULT_IMPORTANCE = 0.5
MAX_SUPERSEDED_TEXT_CHARS = 200
"""Of the text that a memory superseded, enough to tell what has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One record of a being's memory (spec P2).

    `importance` is in [0, 1]; `session_count` counts patrol cycles since the last activation; all times are aware, in
    UTC. `happened_at` is the first date of the scene that can be read as one, else `created_at`. `absorbed_into` names
    the survivor of a consolidation. A memory of a session that was summarised is `compressed`, and `compressed_into`
    names the summary, which is a `compression_source` (spec L3). `turn` counts the memories of its session that were
    stored before it. `resembles` names the nearest older memory that says much the same and yet was not taken for the
    same (spec T6). `retold`: what later tellings of the same have added: days, and feelings in other words. `number`
    counts the being's memories from 1 and is never used again; 0 until it is stored (ruling 23). `corrected_at`: when
    its text last changed. The ledger gives both. Before `kept_until` nobody is asked whether it still holds.

    What it says holds from `valid_from`, or where that is None from the earlier of `happened_at` and `created_at`,
    until `valid_until`, which is exclusive; None while no end is known. A superseded memory names its successor in
    `superseded_by`, and only such a one does. `before`: what it superseded (`dated_start_of_superseded_text`),
    derived by the ledger. `may_supersede` names an earlier memory that it was proposed to
    supersede; None too once that was declined. It is found only in its `project`, None for everywhere; `level`:
    `session` or `project` for what is kept until that ends, None for good (spec O2).
    """

    id: MemoryId
    being_id: BeingId
    scene: Scene
    provenance: Provenance
    created_at: datetime
    happened_at: datetime
    feeling: str = ""
    importance: float = DEFAULT_IMPORTANCE
    category: Category = "episodic"
    themes: tuple[str, ...] = ()
    emotions: tuple[Emotion, ...] = ()
    emotion: EmotionVector | None = None
    lesson: str = ""
    key: str | None = None
    pinned: bool = False
    status: MemoryStatus = "active"
    fresh: bool = True
    compressed: bool = False
    cluster_id: ClusterId | None = None
    absorbed_into: MemoryId | None = None
    compressed_into: MemoryId | None = None
    compression_source: bool = False
    session_count: int = 0
    access_count: int = 0
    reactivation_count: int = 0
    kept_until: datetime | None = None
    last_activated: datetime | None = None
    last_accessed: datetime | None = None
    turn: int = 0
    resembles: MemoryId | None = None
    retold: tuple[TextOrDatedAction, ...] = ()
    truth: TruthStatus = "current"
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    superseded_by: MemoryId | None = None
    retraction_reason: str = ""
    before: str = ""
    may_supersede: MemoryId | None = None
    knowledge: KnowledgeKind | None = None
    """Of what all share; else None."""
    project: str | None = None
    level: MemoryLevel | None = None
    number: int = field(default=0, compare=False)
    corrected_at: datetime | None = field(default=None, compare=False)

    @property
    def short_id(self) -> str:
        return short_id_of_memory_number(self.number, self.being_id) if self.number else self.id

    @property
    def possibly_superseded_memory_id(self) -> MemoryId | None:
        """The earlier one that it may supersede, while it neither has done so nor is to on a day."""
        return self.may_supersede if self.valid_from is None else None

    @property
    def embedded_text(self) -> str:
        return embedded_text(self.scene, self.feeling)

    @property
    def content_hash(self) -> ContentHash:
        return content_hash(self.embedded_text)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanges:
    """New values of a memory's fields; None for a field that stays."""

    text: str | None = None
    importance: float | None = None
    themes: tuple[str, ...] | None = None
    pinned: bool | None = None
    when: tuple[str, ...] | None = None
    """Dates without actions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryValuesBeforeChange:
    """The values before a change at `at`; None in the fields that stayed."""

    memory_id: MemoryId
    at: datetime
    client: str
    before: MemoryChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A group of memories (spec P3). A root is its own parent; `vector` is the mean of its active
    memories' vectors, float32 (dim,), unit length, or None while it has none."""

    id: ClusterId
    being_id: BeingId
    name: str
    parent_id: ClusterId
    is_root: bool = False
    vector: Vector | None = None
    model: EmbeddingModelName | None = None


NoteState = Literal["unread", "done", "parse_failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An entry of the notes inbox. Scene notes (`type == "scene"`) hold a scene as JSON (spec P6 ❶); `memory_id` names
    the memory that one became."""

    id: NoteId
    being_id: BeingId
    type: str
    content: str
    created_at: datetime
    state: NoteState = "unread"
    reason: str = ""
    memory_id: MemoryId | None = None

    @property
    def shown_text(self) -> str:
        """Its content; of one that could not be read why, and the beginning."""
        is_read = self.state != "parse_failed"
        return self.content if is_read else f"{self.reason}: {self.content[:MAX_UNREADABLE_NOTE_CHARS_SHOWN]}"


MAX_UNREADABLE_NOTE_CHARS_SHOWN = 300


def short_id_of_memory_number(number: int, being: str = "") -> str:
    """The id of a memory as answers show it (ruling 23); what all share has a letter of its own."""
    return f"s{number}" if being == ORGANISATION_BEING_ID else f"m{number}"


def short_id_of_non_memory(id_: str) -> str:
    """The first signs of a UUID, as answers show ids of anything but a memory; any other id as it is (ruling 23)."""
    return id_[:SHORT_ID_CHARS] if len(id_) == UUID_CHARS else id_


def date_of_timeline_entry(item: TextOrDatedAction) -> str:
    """The date of a timeline entry as it was told, without the time of day: a day, a month, a year, an interval. What
    is no date, in a store from before dates were checked, as written."""
    text = item if isinstance(item, str) else item.date
    period = parse_iso_period(text)
    return period.text if period else text


def date_as_told(when: Sequence[TextOrDatedAction], happened_at: datetime) -> str:
    """The first date of a timeline as told, else the day it was stored."""
    return date_of_timeline_entry(when[0]) if when else happened_at.date().isoformat()


def memory_date(memory: Memory) -> str:
    """The scene's date as told, else the day it was stored."""
    return date_as_told(memory.scene.when, memory.happened_at)


def text_behind_date(date: str, text: str) -> str:
    """The text behind its date ("2026-06-10: …"), unless it names that itself. `date`: "" for none."""
    return text if date in text else f"{date}: {text}"


def embedded_text(scene: Scene, feeling: str) -> str:
    """The text that is embedded: when + action + feeling (spec P4).

    Behind a plain date, entries with an action are what a survivor has absorbed (spec P6 ❹): not embedded, for a model
    reads little, and a few of them drown what the memory itself says. They are found by their words.
    """
    plain = [date_of_timeline_entry(item) for item in scene.when if isinstance(item, str)]
    dated = [f"{date_of_timeline_entry(item)} {item.action}" for item in scene.when if isinstance(item, DatedAction)]
    return " ".join(part for part in (*(plain or dated), scene.action, feeling) if part)


def scene_to_text(scene: Scene, feeling: str, *, dated: bool = True) -> str:
    """One readable line, `date — setting — action — "first line" — (feeling)`; empty parts are left out (spec P4).
    Undated for an answer that states the date by itself."""
    first_line = f'"{scene.dialogue[0]}"' if scene.dialogue else ""
    date_ = date_of_timeline_entry(scene.when[0]) if scene.when and dated else ""
    parts = (date_, scene.setting, scene.action, first_line, f"({feeling})" if feeling else "")
    return " — ".join(part for part in parts if part)


def texts_omitted_from_scene_line(scene: Scene) -> tuple[str, ...]:
    """The parts of a scene that `scene_to_text` leaves out."""
    dated = (f"{date_of_timeline_entry(item)}: {item.action}" for item in scene.when if isinstance(item, DatedAction))
    return (*scene.actors, *scene.dialogue[1:], *scene.sensory, *dated)


def content_hash(text: str) -> ContentHash:
    return ContentHash(hashlib.sha256(text.encode()).hexdigest())


def parse_iso_moment_or_none(text: str) -> datetime | None:
    """The start of an ISO date (`parse_iso_period`), aware, in UTC; None where the text is none."""
    period = parse_iso_period(text)
    return period.start if period else None


def first_timeline_period(when: Sequence[TextOrDatedAction]) -> IsoPeriod | None:
    """The first entry that can be read as a date."""
    periods = (parse_iso_period(item if isinstance(item, str) else item.date) for item in when)
    return next((period for period in periods if period), None)


def start_of_first_dated_timeline_entry(when: Sequence[TextOrDatedAction], default: datetime) -> datetime:
    """The start of the first entry that can be read as a date, else `default`."""
    period = first_timeline_period(when)
    return period.start if period else default


def time_spans_of_memory(memory: Memory) -> Sequence[tuple[datetime, datetime]]:
    """The first and the last moment of each of a memory's dates, of a month or a range those of its days; for one
    without dates `happened_at`. Entries with an action behind a plain date are another memory's (spec P6 ❹)."""
    return time_spans_of_timeline(memory.scene.when, memory.happened_at)


def time_spans_of_timeline(
    when: Sequence[TextOrDatedAction], happened_at: datetime
) -> Sequence[tuple[datetime, datetime]]:
    """As `time_spans_of_memory`."""
    dates = [item for item in when if isinstance(item, str)] or [i.date for i in when if isinstance(i, DatedAction)]
    return [span for date in dates if (span := possible_utc_span(date))] or [(happened_at, happened_at)]


def time_span_of_memory(memory: Memory) -> tuple[datetime, datetime]:
    """From the first to the last moment of `time_spans_of_memory`."""
    return enclosing_time_span(time_spans_of_memory(memory))
