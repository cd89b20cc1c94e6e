"""Memories: what is stored, found, changed and erased."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import Field

from madeleine.memory.model import Category
from madeleine.models.base import ClientAnswerBaseModel


class Provenance(ClientAnswerBaseModel):
    """Where a memory comes from: when it was stored, by which tool, from which client and in which session. `full_id`:
    its UUID; calls take it as well as the short id of the answers."""

    full_id: str = ""
    stored_at: datetime | None = None
    tool: str = ""
    client: str = ""
    session_id: str = ""


class MemoryVersion(ClientAnswerBaseModel):
    """One of the versions of what a memory says. `truth` is "current", "superseded" or "retracted"; it is true from
    `valid_from` until `valid_until`, which is exclusive, each None while unknown."""

    id: str
    text: str
    truth: str
    valid_from: datetime | None = None
    valid_until: datetime | None = None


class StoreResult(ClientAnswerBaseModel):
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


class StoreScenesResult(ClientAnswerBaseModel):
    """`scenes`: one each, in the order in which they were given."""

    scenes: tuple[StoreResult, ...]
    notice: str = ""


class Revision(ClientAnswerBaseModel):
    """What a memory was until it was changed; only what changed is set."""

    until: datetime | None = None
    changed_by: str = ""
    text: str = ""
    importance: float | None = None
    pinned: bool | None = None
    themes: tuple[str, ...] | None = None
    when: tuple[str, ...] | None = None


class MemoryRecord(ClientAnswerBaseModel):
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
    """What was true before: its date, and the beginning of its text."""
    until: str = ""
    """Until when it was true, if it is superseded."""
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


class NearMatchRecord(MemoryRecord):
    """A memory, or by `source` what is known elsewhere: a message ("chat") and a note ("notes") as in `SearchHit`, or
    an entry of the "profile", which has `kind` and `name` instead of an id."""

    id: str = ""
    source: str = "memories"
    kind: str = ""
    name: str = ""


class MemoryExplanation(ClientAnswerBaseModel):
    """Why a memory came, or did not. `outcome` is "recalled", "near", or where it fell out: "past the limit", "too
    long", "below the gate", "no candidate", "superseded", "retracted", "merged", "summarised", "faded", "filtered",
    "switched off", "archived", "unknown". `reason`: a sentence, if the numbers do not say it all."""

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


class RecallExplanation(ClientAnswerBaseModel):
    """`ranking`: the profile. `memories`: the best candidates, then the one that was asked for."""

    ranking: str
    memories: tuple[MemoryExplanation, ...] = ()


class RecallResult(ClientAnswerBaseModel):
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
    near: tuple[NearMatchRecord, ...] = ()
    """What is related and did not match; not counted as recalled."""
    unknown_words: tuple[str, ...] = ()
    """Words of the query that no memory has."""
    sources: tuple[MemoryRecord, ...] = ()
    reformulated: tuple[str, ...] = ()
    """Further queries that were asked."""
    explain: RecallExplanation | None = None
    notice: str = ""


class SearchHit(ClientAnswerBaseModel):
    """`source` is "memories", "diary", "chat" or "notes"; `text` has at most 400 characters, around the match.
    `when`: the day; of messages and notes the time."""

    source: str
    id: str
    text: str
    when: str
    lesson: str = ""
    since: str = ""
    before: str = ""
    """Of a memory that has superseded another: since when it is true, and what was true before, with its date."""
    until: str = ""
    """Until when a superseded memory was true."""
    matched: str = ""
    """The version of a memory that holds the words, where neither `text` nor `before` does."""
    themes: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    status: str = ""
    provenance: Provenance = Provenance()


class SearchPage(ClientAnswerBaseModel):
    """Newest first. `next_cursor` is "" on the last page."""

    hits: tuple[SearchHit, ...]
    next_cursor: str = ""
    omitted: int = 0
    """Of a search by the subject of a message: texts with any of its words beyond the limit."""
    notice: str = ""


class MemoryPage(ClientAnswerBaseModel):
    """`missing`: ids that this being has no memory of. `next_cursor` is "" on the last page."""

    memories: tuple[MemoryRecord, ...]
    missing: tuple[str, ...] = ()
    next_cursor: str = ""


class Cluster(ClientAnswerBaseModel):
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


class ClusterList(ClientAnswerBaseModel):
    clusters: tuple[Cluster, ...]


class UpdateResult(ClientAnswerBaseModel):
    """`changed`: names of the fields that were given."""

    id: str
    changed: tuple[str, ...]
    superseded: MemoryVersion | None = None
    """With `when`: what was true until then; `id` is that of the new version."""
    versions: tuple[MemoryVersion, ...] = ()
    """After a retraction or an undo: the memories that it has changed, as they are."""
    redacted: Mapping[str, int] = Field(default_factory=dict)
    notice: str = ""


class ForgetResult(ClientAnswerBaseModel):
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
