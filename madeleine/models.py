"""What a memory answers, as frozen models. Fields that a newer server adds are ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from madeleine.memory.model import Category


class LibraryAnswer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Provenance(LibraryAnswer):
    """Where a memory comes from: when it was stored, by which tool, from which client and in which session. `full_id`:
    its UUID; calls take it as well as the short id of the answers."""

    full_id: str = ""
    stored_at: datetime | None = None
    tool: str = ""
    client: str = ""
    session_id: str = ""


class MemoryVersion(LibraryAnswer):
    """One of the versions of what a memory says. `truth` is "current", "superseded" or "retracted"; it is true from
    `valid_from` until `valid_until`, which is exclusive, each None while unknown."""

    id: str
    text: str
    truth: str
    valid_from: datetime | None = None
    valid_until: datetime | None = None


class StoreResult(LibraryAnswer):
    """`status` is "stored", or "reinforced" if an earlier memory says the same: then `id` is that memory, `reinforced`
    its text, and the text that was given is not kept."""

    id: str = ""
    status: str = ""
    refused: str = ""
    """Of `store_scenes`: why this scene was not stored; then all else is empty."""
    reinforced: str = ""
    not_kept: str = ""
    """The text that was given, where an earlier memory is reinforced."""
    repeated: bool = False
    """The idempotency key was used before for the same text; nothing was stored again."""
    resembles: MemoryRecord | None = None
    """A memory that says nearly the same and is kept apart; not named again where it is in `may_supersede`."""
    may_supersede: tuple[MemoryRecord, ...] = ()
    """A memory that this one may make untrue; say so by `supersedes`, or leave both."""
    superseded: MemoryVersion | None = None
    """The memory that is not true any more."""
    redacted: Mapping[str, int] = Field(default_factory=dict)
    """Kind of secret → how many were taken out of the text."""
    notice: str = ""


class StoredScenes(LibraryAnswer):
    """`scenes`: one each, in the order in which they were given."""

    scenes: tuple[StoreResult, ...]
    notice: str = ""


class Revision(LibraryAnswer):
    """What a memory was until it was changed; only what changed is set."""

    until: datetime | None = None
    changed_by: str = ""
    text: str = ""
    importance: float | None = None
    pinned: bool | None = None
    themes: tuple[str, ...] | None = None
    when: tuple[str, ...] | None = None


class MemoryRecord(LibraryAnswer):
    """A memory with all that is known of it. `id` is short and never used for another memory. `status` is "active",
    "dying" or "dead". `text` is "" where it stands elsewhere in the answer."""

    id: str
    text: str = ""
    when: str = ""
    """The scene's date as it was given, else the day it was stored (YYYY-MM-DD)."""
    updated: str = ""
    """The day of its last correction."""
    lesson: str = ""
    score: float | None = None
    """Orders the memories of one recall, best first; not comparable between recalls."""
    since: str = ""
    """Since when it is true, if it has superseded another memory."""
    before: str = ""
    """The beginning of what was true before."""
    status: str = "active"
    truth: str = "current"
    """Or "superseded" by the memory `superseded_by`, or "retracted"."""
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    superseded_by: str = ""
    retraction_reason: str = ""
    category: Category = "episodic"
    importance: float = 0.5
    timeline: tuple[str | Mapping[str, str], ...] = ()
    actors: tuple[str, ...] = ()
    setting: str = ""
    dialogue: tuple[str, ...] = ()
    sensory: tuple[str, ...] = ()
    feeling: str = ""
    emotions: tuple[str, ...] = ()
    emotion_vector: Mapping[str, float] = Field(default_factory=dict)
    """Axis → value in [-1, 1], where it was told."""
    themes: tuple[str, ...] = ()
    cluster_id: str = ""
    absorbed_into: str = ""
    compressed_into: str = ""
    resembles: str = ""
    compression_source: bool = False
    pinned: bool = False
    session_count: int = 0
    """Patrols since the last activation."""
    access_count: int = 0
    reactivation_count: int = 0
    provenance: Provenance = Provenance()
    history: tuple[Revision, ...] = ()
    """What it said before it was corrected, oldest first; by id or cluster only."""
    versions: tuple[MemoryVersion, ...] = ()
    """What was true before and after it, the current one last; by id or cluster only."""


class NearRecord(MemoryRecord):
    """A memory, or by `source` what is known elsewhere: a message ("chat") and a note ("notes") as in `SearchHit`, or
    an entry of the "profile", which has `kind` and `name` instead of an id."""

    id: str = ""
    source: str = "memories"
    kind: str = ""
    name: str = ""


class MemoryExplanation(LibraryAnswer):
    """Why a memory came, or did not. `outcome` is "recalled", "near", or where it fell out: "past the limit", "too
    long", "below the gate", "no candidate", "superseded", "retracted", "merged", "summarised", "faded", "filtered",
    "switched off", "unknown". `reason`: a sentence, if the numbers do not say it all."""

    id: str
    text: str = ""
    """Its beginning."""
    outcome: str
    reason: str = ""
    rank: int = 0
    """Among the memories, or the preferences, that match; 0 for one that does not."""
    score: float = 0.0
    parts: Mapping[str, float] = Field(default_factory=dict)
    """They add up to `score`."""
    likeness: Mapping[str, float] = Field(default_factory=dict)
    """What decides whether it matches: the parts of its likeness to the query, their `sum`, and what was `needed`."""


class RecallExplanation(LibraryAnswer):
    """`ranking`: the profile. `memories`: the best candidates, then the one that was asked for."""

    ranking: str
    memories: tuple[MemoryExplanation, ...] = ()


class RecallResult(LibraryAnswer):
    """`memories` for the format "memories", else `fragments` or `prompt` with its `sources`, which have no text.
    Without a query `start`."""

    count: int = 0
    total_tokens: int = 0
    budget_used: float = 0.0
    """Share of the token budget, 0 to 1."""
    memories: tuple[MemoryRecord, ...] = ()
    preferences: tuple[MemoryRecord, ...] = ()
    """Procedural memories that match; with `prompt` they stand in the block."""
    fragments: str = ""
    prompt: str = ""
    start: str = ""
    near: tuple[NearRecord, ...] = ()
    """What is related and did not match; not counted as recalled."""
    unknown_words: tuple[str, ...] = ()
    """Words of the query that no memory has."""
    sources: tuple[MemoryRecord, ...] = ()
    reformulated: tuple[str, ...] = ()
    """Further queries that were asked."""
    explain: RecallExplanation | None = None
    notice: str = ""


class SearchHit(LibraryAnswer):
    """`source` is "memories", "diary", "chat" or "notes"; `text` has at most 400 characters, around the match.
    `when`: the day; of messages and notes the time."""

    source: str
    id: str
    text: str
    when: str
    lesson: str = ""
    since: str = ""
    before: str = ""
    """Of a memory that has superseded another: since when it is true, and the beginning of what was true before."""
    themes: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    status: str = ""
    provenance: Provenance = Provenance()


class SearchPage(LibraryAnswer):
    """Newest first. `next_cursor` is "" on the last page."""

    hits: tuple[SearchHit, ...]
    next_cursor: str = ""
    omitted: int = 0
    """Of a search by the subject of a message: texts with any of its words beyond the limit."""
    notice: str = ""


class MemoryPage(LibraryAnswer):
    """`missing`: ids that this being has no memory of. `next_cursor` is "" on the last page."""

    memories: tuple[MemoryRecord, ...]
    missing: tuple[str, ...] = ()
    next_cursor: str = ""


class Cluster(LibraryAnswer):
    """A topic, with the number of its memories by status. `parent`: name of the root that it belongs to. `emotions` and
    `emotion_vector`: how its active memories felt."""

    id: str
    name: str
    parent: str = ""
    is_root: bool = False
    active: int = 0
    dying: int = 0
    dead: int = 0
    emotions: tuple[str, ...] = ()
    emotion_vector: Mapping[str, float] = Field(default_factory=dict)


class ClusterList(LibraryAnswer):
    clusters: tuple[Cluster, ...]


class UpdateResult(LibraryAnswer):
    """`changed`: names of the fields that were given."""

    id: str
    changed: tuple[str, ...]
    superseded: MemoryVersion | None = None
    """With `when`: what was true until then; `id` is that of the new version."""
    versions: tuple[MemoryVersion, ...] = ()
    """After a retraction or an undo: the memories that it has changed, as they are."""
    redacted: Mapping[str, int] = Field(default_factory=dict)
    notice: str = ""


class ObservedMessages(LibraryAnswer):
    """`new`: how many were not there yet, with their `ids`; `position`: of the first of them in its session; `known`:
    how many were there. `last_key`: of the session's last message with a key."""

    new: int
    ids: tuple[str, ...] = ()
    position: int | None = None
    known: int = 0
    last_key: str = ""
    memories: tuple[Mapping[str, str], ...] = ()
    """Id and status of each that was given."""
    redacted: Mapping[str, int] = Field(default_factory=dict)


class ForgetResult(LibraryAnswer):
    """`related`: memories tied to what was erased, which stay and may tell the same."""

    erased: tuple[str, ...]
    missing: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    messages: int = 0
    """Messages that were erased with the memories drawn from them."""
    diary_entries: int = 0
    copies: tuple[str, ...] = ()
    """Exports and backups that were made before and may still hold it."""
    notice: str = ""


class PatrolStep(LibraryAnswer):
    """`counts`: what the step did, by name. `skipped`, `failed`: why, or ""."""

    name: str
    counts: Mapping[str, int] = Field(default_factory=dict)
    skipped: str = ""
    failed: str = ""
    notes: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _collect_counts(cls, answer: Any) -> Any:
        if not isinstance(answer, Mapping) or "counts" in answer:
            return answer
        counts = {name: value for name, value in answer.items() if type(value) is int}
        return {**answer, "counts": counts}


class PatrolSpending(LibraryAnswer):
    """On language models. `usd` is None if a price is not known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


class PatrolReport(LibraryAnswer):
    """`pending`: decisions that a language model or the caller has to make, as `guidance` (kind → instructions) says;
    `still_open`: offers of an earlier answer; `waiting`: how many more there are."""

    run_id: str
    dry_run: bool = False
    steps: tuple[PatrolStep, ...] = ()
    decided: Sequence[Mapping[str, Any]] = ()
    pending: Sequence[Mapping[str, Any]] = ()
    guidance: Mapping[str, str] = Field(default_factory=dict)
    still_open: tuple[str, ...] = ()
    waiting: int = 0
    spent: PatrolSpending = PatrolSpending()
    undone: Mapping[str, int] = Field(default_factory=dict)
    """What `undo` put back, by name."""


class PromptTurn(LibraryAnswer):
    role: str
    content: str


class RecentMemory(LibraryAnswer):
    id: str
    text: str
    category: Category
    when: str
    last_activated: datetime | None = None


class ChatMessage(LibraryAnswer):
    id: str
    role: str
    text: str
    when: datetime | None = None
    speaker: str = ""
    session_id: str = ""


class DiaryDay(LibraryAnswer):
    when: str
    text: str


class DroppedBlock(LibraryAnswer):
    """Left out for the token limit: `count` entries with `tokens` tokens of a block; `in_full`: all of it."""

    block: str
    count: int
    tokens: int
    in_full: bool = False


class Context(LibraryAnswer):
    """`prompt` is the whole context as one text; the blocks follow by themselves. A block that was not asked for, or is
    switched off, is None."""

    prompt: str
    system_prompt: str | None = None
    snapshot: tuple[PromptTurn, ...] | None = None
    recent_nodes: tuple[RecentMemory, ...] | None = None
    memory_block: str | None = None
    memories: tuple[SearchHit, ...] | None = None
    history_current_chat: tuple[ChatMessage, ...] | None = None
    history_recent: tuple[ChatMessage, ...] | None = None
    diary: tuple[DiaryDay, ...] | None = None
    thoughts: tuple[str, ...] | None = None
    tags_placeholder: tuple[str, ...] | None = None
    sources: tuple[MemoryRecord, ...] = ()
    dropped: tuple[DroppedBlock, ...] = ()
    tokens: Mapping[str, int] = Field(default_factory=dict)
    """By block; `limit` is the token limit."""
    notice: str = ""


class SharedResult(LibraryAnswer):
    """`status`: "shared", or "known" if it was shared before, word for word or under this key."""

    id: str
    kind: str = ""
    status: str
    superseded: MemoryVersion | None = None
    redacted: Mapping[str, int] = Field(default_factory=dict)
    notice: str = ""


class SharedRecord(MemoryRecord):
    """What is shared has a kind and an author; a memory of the being's own has none."""

    kind: str = ""
    author: str = ""
    author_role: str = ""


class SharedPage(LibraryAnswer):
    memories: tuple[SharedRecord, ...]
    notice: str = ""


class RetractedResult(LibraryAnswer):
    """`status`: its state now, or "erased". `changed`: others that the act has changed, as they are."""

    id: str
    status: str
    changed: tuple[MemoryVersion, ...] = ()
    copies: tuple[str, ...] = ()
    notice: str = ""


class Entity(LibraryAnswer):
    """`kind`: "actor", "name", "place", "theme" or "date". `memories`: how many name it."""

    name: str
    kind: str
    memories: int


class EntityRelation(LibraryAnswer):
    """`memory`: id of the memory that says so, which is true from `since` until `until`, each "" while unknown."""

    subject: str
    relation: str
    object: str
    memory: str
    since: str = ""
    until: str = ""
    stated: bool = False


class EntityNeighbour(LibraryAnswer):
    """`via`: the entity between, "" for a neighbour of the first hop. `memories`: ids of a few that name both."""

    name: str
    kind: str
    via: str = ""
    weight: float
    memories: tuple[str, ...]


class TimelineRecord(MemoryRecord):
    until: str = ""


class Related(LibraryAnswer):
    """`entities`: others whose names hold the words asked for."""

    entity: Entity | None = None
    relations: tuple[EntityRelation, ...] = ()
    neighbours: tuple[EntityNeighbour, ...] = ()
    timeline: tuple[TimelineRecord, ...] = ()
    entities: tuple[Entity, ...] = ()
    notice: str = ""


class CoreBlock(LibraryAnswer):
    name: str
    version: int
    text: str
    max_chars: int
    description: str = ""
    client: str = ""


class CoreBlocks(LibraryAnswer):
    blocks: tuple[CoreBlock, ...]


class EditedCoreBlock(LibraryAnswer):
    """`block` is None where it was erased."""

    block: CoreBlock | None = None
    redacted: Mapping[str, int] = Field(default_factory=dict)
