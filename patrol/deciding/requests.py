"""Decision requests: memories, and what is to be decided about them, in a bounded size (ruling 10).

The same input gives the same requests, except for their ids.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any, Literal

from pydantic import TypeAdapter

from madeleine.memory.model import (
    Category,
    ClusterId,
    ContentHash,
    DatedAction,
    Memory,
    MemoryId,
    MemoryStatus,
    Scene,
    TruthStatus,
    content_hash,
    date_of_timeline_entry,
    short_id_of_memory_number,
)
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.memory.rules.excerpts import most_telling_sentences
from madeleine.memory.rules.ranking.budget import positions_within_token_budget

DecisionKind = Literal["consolidate", "split", "supersede", "repair", "diary", "compress"]


MAX_MEMORIES_PER_DECISION_REQUEST = 60


@dataclass(frozen=True, slots=True)
class DecisionRequestLimits:
    """Of one request: number of memories, their `MemoryInDecisionRequest.size_bytes` together, characters of a memory's
    text, of a dying one's, and consolidated memories shown with fresh ones."""

    memories: int = MAX_MEMORIES_PER_DECISION_REQUEST
    size: int = 24_000
    text_chars: int = 1_000
    partners: int = MAX_MEMORIES_PER_DECISION_REQUEST
    dying_text_chars: int = 1_000


DECISION_REQUEST_LIMITS_FOR_MODEL: Mapping[DecisionKind, DecisionRequestLimits] = {
    "consolidate": DecisionRequestLimits(), "split": DecisionRequestLimits(), "supersede": DecisionRequestLimits(),
    "diary": DecisionRequestLimits(), "repair": DecisionRequestLimits(text_chars=8_000),
    "compress": DecisionRequestLimits(text_chars=4_000),
}  # fmt: skip
"""Some 6,000 tokens of English. A summary stands for the whole memory, so it is made of more of it."""
DECISION_REQUEST_LIMITS_FOR_AGENT: Mapping[DecisionKind, DecisionRequestLimits] = {
    "consolidate": DecisionRequestLimits(20, 2_000, 250, 4, dying_text_chars=180),
    "split": DecisionRequestLimits(14, 1_000, 80),
    "supersede": DecisionRequestLimits(2, 1_200, 500), "diary": DecisionRequestLimits(14, 1_300, 200),
    "repair": DecisionRequestLimits(text_chars=1_200), "compress": DecisionRequestLimits(24, 2_200, 500),
}  # fmt: skip
"""One request of each kind fits into one answer (`resolution.MAX_BRIEF_DECISION_REQUESTS_BYTES`)."""
MIN_OFFERED_TEXT_PART_CHARS = 45
"""Of each part of a text that is offered as one."""
MIN_EXCERPT_CHARS = 100
"""From as many on a text is shortened to what tells most of it; to fewer, to its beginning."""
MAX_LINE_CHARS, MAX_DIALOGUE_LINES = 120, 3
MAX_FEELING_CHARS, MAX_ACTORS, MAX_ACTOR_CHARS, MAX_DATE_CHARS = 300, 10, 60, 40
STORING_TIME_SORT_KEY = attrgetter("created_at", "number", "id")
EVENT_TIME_SORT_KEY = attrgetter("happened_at", "created_at", "number", "id")
"""Keys for sorting memories; those of one call have one moment, and consecutive numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryInDecisionRequest:
    """A memory as far as a decision needs it. `text` is its action, shortened; `when` its first date, else the day it
    happened. Only of consolidate: `lesson` to `last_asked`; `stored`, and of a dying one `last_asked`, are days in ISO
    form, "" if it was never asked for (ruling 20)."""

    id: MemoryId
    number: int = 0
    text: str
    when: str
    feeling: str = ""
    importance: float
    status: MemoryStatus
    fresh: bool
    pinned: bool
    truth: TruthStatus = "current"
    actors: tuple[str, ...] = ()
    category: Category = "episodic"
    lesson: str = ""
    setting: str = ""
    dialogue: tuple[str, ...] = ()
    stored: str = ""
    last_asked: str = ""
    text_hash: ContentHash | None = None
    """Of the whole text, which `text` may shorten; None in what an earlier version has offered."""
    part_of: MemoryId | None = None
    """Of a part of one ingested text, the part by which all are decided (ADR 82)."""

    @property
    def short_id(self) -> str:
        return short_id_of_memory_number(self.number) if self.number else self.id

    @property
    def size_bytes(self) -> int:
        """In bytes of UTF-8, which cost much the same in tokens in every script."""
        lines = (self.text, self.when, self.feeling, self.lesson, self.setting, *self.actors, *self.dialogue)
        return sum(len(line.encode()) for line in lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """Within `DecisionRequestLimits`. `cluster_id` and `cluster`, its name, for consolidate and split; for compress
    `session_id`. Of supersede the older of two memories comes first. For diary: `date` (ISO), `earlier`, the entry
    already written that day, `think`, the points of the patrol before, and `until`, when the last memory of the request
    was stored: what is stored later is for the next entry, and `felt`, how the day felt. For repair: `note_id`, `note`,
    its content as it is, shortened, `reason`, why it could not be read, and `date`, when it was left."""

    id: DecisionRequestId = field(default_factory=lambda: DecisionRequestId(str(uuid.uuid4())))
    kind: DecisionKind
    memories: tuple[MemoryInDecisionRequest, ...]
    cluster_id: ClusterId | None = None
    cluster: str = ""
    session_id: str = ""
    date: str = ""
    earlier: str = ""
    think: tuple[str, ...] = ()
    until: datetime | None = None
    felt: str = ""
    note_id: str = ""
    note: str = ""
    reason: str = ""
    has_choice: bool = True
    """False where only one answer is possible: nothing in it is dying, and nothing resembles another."""

    @property
    def topic_key(self) -> str:
        """What it is about: requests of one topic are parts of one decision."""
        subject = self.note_id or self.cluster_id or self.session_id or self.date
        about = self.memories[-1].id if self.kind == "supersede" else subject
        return topic_key_of(self.kind, about)

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = _type_adapter_of_decision_request().dump_python(self, mode="json")
        return fields

    def other_parts_of_text(self, id_: MemoryId) -> list[MemoryInDecisionRequest]:
        """The other parts of the text that this memory begins."""
        return [memory for memory in self.memories if memory.part_of == id_]

    @property
    def memories_to_decide(self) -> list[MemoryInDecisionRequest]:
        """Without those that are decided with the first part of their text; that has the texts of all, and the greatest
        importance."""
        texts = ([memory, *self.other_parts_of_text(memory.id)] for memory in self.memories if memory.part_of is None)
        return [
            replace(
                parts[0], text=" ".join(part.text for part in parts), importance=max(part.importance for part in parts)
            )
            for parts in texts
        ]

    @property
    def ids_shown_with_text(self) -> set[MemoryId]:
        """Memories whose own text stands in the offer: not those that are parts of one text."""
        parts = {memory.part_of for memory in self.memories}
        return {memory.id for memory in self.memories if memory.part_of is None and memory.id not in parts}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DecisionRequest:
        return _type_adapter_of_decision_request().validate_python(raw)


def topic_key_of(kind: DecisionKind, about: str | None) -> str:
    """`about`: the key of what is to be decided (`DecisionHandler.keys_that_may_need_decision`)."""
    return f"{kind}:{about}"


@cache
def _type_adapter_of_decision_request() -> TypeAdapter[DecisionRequest]:
    return TypeAdapter(DecisionRequest)


def memory_text_for_decision_request(memory: Memory, kind: DecisionKind) -> str:
    """What a request of that kind is about; of compress with all that it has absorbed, for the summary hides it."""
    if kind != "compress":
        return memory.scene.action
    return "\n".join((memory.scene.action, *absorbed_texts(memory.scene)))


def absorbed_texts(scene: Scene) -> list[str]:
    """What a survivor has absorbed, each text with its date."""
    return [f"{date_of_timeline_entry(item)}: {item.action}" for item in scene.when if isinstance(item, DatedAction)]


def is_text_unchanged_since_offer(memory: Memory, offered: MemoryInDecisionRequest, kind: DecisionKind) -> bool:
    """Whether its text is still the one that was offered, which may have been shortened."""
    text, offered_text = memory_text_for_decision_request(memory, kind), offered.text
    if offered.text_hash is not None:
        return content_hash(text) == offered.text_hash
    shortened = offered_text.endswith("…") and text.startswith(offered_text[:-1])
    return text == offered_text or (shortened and len(text) > len(offered_text))


def offered_memory_from_memory(
    memory: Memory,
    kind: DecisionKind,
    limits: DecisionRequestLimits | None = None,
    *,
    shorten: Callable[[str, int], str] = most_telling_sentences,
) -> MemoryInDecisionRequest:
    when = date_of_timeline_entry(memory.scene.when[0]) if memory.scene.when else memory.happened_at.date().isoformat()
    text = memory_text_for_decision_request(memory, kind)
    chars = (limits or DECISION_REQUEST_LIMITS_FOR_MODEL[kind]).text_chars
    shorten = shorten if chars >= MIN_EXCERPT_CHARS else shorten_with_ellipsis
    return MemoryInDecisionRequest(
        id=memory.id,
        number=memory.number,
        text=shorten(text, chars),
        text_hash=content_hash(text),
        when=shorten_with_ellipsis(when, MAX_DATE_CHARS),
        feeling=shorten_with_ellipsis(memory.feeling, MAX_FEELING_CHARS),
        importance=memory.importance,
        status=memory.status,
        fresh=memory.fresh and kind == "consolidate",  # elsewhere it is not shown, and would make the request a new one
        pinned=memory.pinned,
        truth=memory.truth,
        actors=tuple(shorten_with_ellipsis(actor, MAX_ACTOR_CHARS) for actor in memory.scene.actors[:MAX_ACTORS]),
        **(_fields_shown_for_consolidation_only(memory) if kind == "consolidate" else {}),
    )


def _fields_shown_for_consolidation_only(memory: Memory) -> dict[str, Any]:
    asked = memory.last_activated if memory.status == "dying" else None
    lines = (shorten_with_ellipsis(line, MAX_LINE_CHARS) for line in memory.scene.dialogue[:MAX_DIALOGUE_LINES])
    return {
        "category": memory.category,
        "lesson": shorten_with_ellipsis(memory.lesson, MAX_FEELING_CHARS),
        "setting": shorten_with_ellipsis(memory.scene.setting, MAX_LINE_CHARS),
        "dialogue": tuple(lines),
        "stored": memory.created_at.date().isoformat(),
        "last_asked": asked.date().isoformat() if asked else "",
    }


def shorten_with_ellipsis(text: str, limit: int) -> str:
    """At most `limit` characters, the last of them `…` where something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def offered_memories_within_limits(
    memories: Sequence[Memory],
    kind: DecisionKind,
    limits: DecisionRequestLimits | None = None,
    *,
    used_characters: int = 0,
) -> tuple[MemoryInDecisionRequest, ...]:
    """In order, each that still fits into a request."""
    limits = limits or DECISION_REQUEST_LIMITS_FOR_MODEL[kind]
    offered = [offered_memory_from_memory(memory, kind, limits) for memory in memories]
    sizes = [memory.size_bytes for memory in offered]
    return tuple(
        offered[i]
        for i in positions_within_token_budget(sizes, limit=limits.memories, budget=limits.size - used_characters)
    )


def offered_memories_split_by_request_size(
    memories: Sequence[Memory], kind: DecisionKind, limits: DecisionRequestLimits | None = None
) -> list[list[MemoryInDecisionRequest]]:
    """All of them, in order, for as many requests as they need."""
    return offered_texts_split_by_request_size(([memory] for memory in memories), kind, limits)


def offered_texts_split_by_request_size(
    texts: Iterable[Sequence[Memory]], kind: DecisionKind, limits: DecisionRequestLimits | None = None
) -> list[list[MemoryInDecisionRequest]]:
    """All of them, in order, for as many requests as they need, each text in one. A text of several memories is offered
    as one, with the beginning of each."""
    limits = limits or DECISION_REQUEST_LIMITS_FOR_MODEL[kind]
    of_requests: list[list[MemoryInDecisionRequest]] = []
    characters = 0
    for memories in texts:
        first, *others = _offered_parts_of_text(memories, kind, limits)
        offered = [first, *(replace(memory, part_of=first.id) for memory in others)]
        size = sum(memory.size_bytes for memory in offered)
        characters += size
        if not of_requests or len(of_requests[-1]) + len(offered) > limits.memories or characters > limits.size:
            of_requests.append([])
            characters = size
        of_requests[-1] += offered
    return of_requests


def _offered_parts_of_text(
    memories: Sequence[Memory], kind: DecisionKind, limits: DecisionRequestLimits
) -> list[MemoryInDecisionRequest]:
    """A text alone as what tells most of it; of several the beginnings."""
    if len(memories) == 1:
        return [offered_memory_from_memory(memories[0], kind, limits)]
    chars = max(MIN_OFFERED_TEXT_PART_CHARS, limits.text_chars // len(memories))
    shortened = replace(limits, text_chars=chars)
    return [offered_memory_from_memory(memory, kind, shortened, shorten=shorten_with_ellipsis) for memory in memories]
