"""The optional arguments of `madeleine.client.Memory`, as type checkers and editors read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypedDict

from madeleine.memory.keyword_search import SearchSource
from madeleine.memory.model import Category, Emotion, KnowledgeKind

Moment = datetime | date | str
"""A date alone, a moment, or either in ISO 8601."""


class StoreArguments(TypedDict, total=False):
    """Optional arguments of `Memory.store`."""

    when: Moment | Sequence[str | Mapping[str, str]]
    """The scene's date, or a timeline of dates and `{"date": …, "action": …}`."""
    actors: Sequence[str]
    """The speaker first."""
    setting: str
    dialogue: Sequence[str]
    sensory: Sequence[str]
    feeling: str
    """In the first person."""
    category: Category
    """"episodic" by default."""
    importance: float
    """0 to 1, 0.5 by default."""
    emotions: Sequence[Emotion]
    """At most three."""
    emotion_vector: Mapping[str, float]
    """valence, arousal, dominance, safety, novelty and trust, each from -1 to 1; 0 by default."""
    lesson: str
    themes: Sequence[str]
    session_id: str
    pinned: bool
    """It never fades."""
    distinct: bool
    """Store beside a memory that seems to say the same."""
    supersedes: str
    """Id of the memory that was true until `when` (now, without one), and is not any more."""
    key: str
    """An idempotency key: a repeated call stores once."""
    project: str
    """It is found only there."""
    level: Literal["session", "project"]
    """It is kept until that ends; that of the connection by default."""


class RecallArguments(TypedDict, total=False):
    """Optional arguments of `Memory.recall`."""

    limit: int
    """1 to 50, 3 by default."""
    categories: Sequence[Category]
    themes: Sequence[str]
    """All of them."""
    emotions: Sequence[Emotion]
    """Felt now."""
    ranking: Literal["blended", "rrf", "linear", "associative"]
    token_budget: int
    """Tokens of the answer, 2,000 by default."""
    format: Literal["memories", "fragments", "prompt"]
    """For `RecallResult.memories` (the default), one string of shuffled impressions, or a `<memory>` block."""
    since: Moment
    until: Moment
    """Inclusive."""
    include_compressed: bool
    """What a summary stands for, too."""
    as_of: Moment
    """What was true then, instead of what is true now."""
    project: str
    """What was stored in it, too."""
    details: bool
    """All fields, with provenance; the default here."""
    explain: bool | str
    """True: `RecallResult.explain` says why the best candidates came or not; an id: of that memory, too."""


class SearchArguments(TypedDict, total=False):
    """Optional arguments of `Memory.search`."""

    mode: Literal["or", "and", "subject"]
    """Any word (the default), all words, or the subject of the query, which is then a whole message."""
    themes: Sequence[str]
    """All of them."""
    categories: Sequence[Category]
    since: Moment
    until: Moment
    """Inclusive."""
    sources: Sequence[SearchSource]
    """All by default."""
    include_dead: bool
    """Faded memories too; the default."""
    include_compressed: bool
    as_of: Moment
    """What was true then, instead of what is true now."""
    project: str
    """What was stored in it, too."""
    limit: int
    """1 to 100 a page, 10 by default."""
    cursor: str
    """`next_cursor` of the page before."""
    details: bool
    """All fields, with provenance; the default here."""


class ClusterMemoriesArguments(TypedDict, total=False):
    """Arguments of `Memory.memories` for a cluster."""

    cluster_id: str
    limit: int
    """1 to 100 a page, 20 by default."""
    cursor: str
    """`next_cursor` of the page before."""
    details: bool
    """All fields, with provenance; the default here."""


class UpdateArguments(TypedDict, total=False):
    """Arguments of `Memory.update`; at least one."""

    text: str
    """The whole new text."""
    when: Moment
    """Since when `text` is true: what the memory said stays, as what was true until then. Without it, a correction.
    Without `text`: the right date of the memory."""
    retracted: str
    """Why it was never true. It is recalled no more; what it had superseded is true again. Stands alone."""
    undo: bool
    """Take back the last supersession or retraction that concerned the memory. Stands alone."""
    importance: float
    """0 to 1."""
    themes: Sequence[str]
    pinned: bool


class PatrolArguments(TypedDict, total=False):
    """Optional arguments of `Memory.patrol`; `decisions` and `undo` each stand alone."""

    steps: Sequence[str]
    """All by default."""
    dry_run: bool
    """Only report what would change."""
    decisions: Sequence[Mapping[str, Any]]
    """Answers to `PatrolReport.pending`; an empty list shows what is pending."""
    undo: str
    """The `run_id` of a patrol whose changes are to be put back."""
    details: bool
    """True by default: all counts, and as many pending decisions as one answer holds."""


class ShareArguments(TypedDict, total=False):
    """Optional arguments of `Memory.share`."""

    memory: str
    """Id of a memory of this being's, in place of a text."""
    kind: KnowledgeKind
    """"knowledge" by default."""
    when: Moment
    """Since when it is true."""
    supersedes: str
    """Id of what it takes the place of, of the same kind."""
    themes: Sequence[str]
    key: str
    """An idempotency key: a repeated call shares once."""


class SearchSharedArguments(TypedDict, total=False):
    """Optional arguments of `Memory.search_shared`."""

    kinds: Sequence[KnowledgeKind]
    """Only of these kinds; own memories have none."""
    scope: Literal["all", "shared"]
    """"all" by default: own memories, too."""
    limit: int
    """1 to 50, 10 by default."""
    token_budget: int
    as_of: Moment
    """What was true then, instead of what is true now."""
    id: str
    """Only this, with all its versions; without a query."""


class ContextArguments(TypedDict, total=False):
    """Optional arguments of `Memory.context`. The switches have the settings' values by default."""

    message: str
    """To be answered; without it nothing is recalled."""
    session_id: str
    project: str
    token_limit: int
    """Tokens of `Context.prompt`."""
    blocks: Sequence[str]
    """Only these, by their names in `Context`."""
    enable_memories: bool
    context_verbosity: int
    """Memories, and messages of each history, at most."""
    unified_history: bool
    prompt_lite_mode: bool
    enable_history_current_chat: bool
    enable_history_recent: bool
    enable_ai_diary: bool
    ai_diary_full: bool
    enable_thoughts: bool
    enable_tags_placeholder: bool


class ObserveArguments(TypedDict, total=False):
    """Optional arguments of `Memory.observe`."""

    title: str
    interface: str
    """Where it is held; by default this client's name."""
    project: str
    """A conversation belongs to that of its first message."""
    memories: Sequence[Mapping[str, Any]]
    """Memories that were drawn from the messages already, as the tool `observe` takes them."""
