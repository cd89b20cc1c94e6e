"""Decision requests: memories, and what is to be decided about them, in a bounded size (ruling 10).

The same input gives the same requests, except for their ids.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from madeleine.memory.model import (
    LIVING,
    Cluster,
    ClusterId,
    DatedAction,
    Memory,
    MemoryId,
    Status,
    Vector,
    when_date,
)
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.memory.rules.dynamics.clustering import MIN_GROUP_SIMILARITY
from madeleine.memory.rules.ranking.budget import within_budget

DecisionKind = Literal["consolidate", "split", "diary", "compress"]

MAX_MEMORIES = 60
MAX_CHARACTERS = 24_000
"""Some 6,000 tokens of English."""
UNCONSOLIDATED_MEMORIES, UNCONSOLIDATED_CHARACTERS = 40, 16_000
"""Of a request to consolidate, what fresh and dying memories may fill; the rest is for their partners."""
TEXT_CHARACTERS = 1_000
SUMMARISED_CHARACTERS = 4_000
"""A summary stands for the whole memory, so it is made of more of it."""
FEELING_CHARACTERS, MAX_ACTORS, ACTOR_CHARACTERS, DATE_CHARACTERS = 300, 10, 60, 40
EARLIER_CHARACTERS, MAX_POINTS, POINT_CHARACTERS = 2_000, 7, 300
SPLIT_ABOVE_MEMORIES = 10
"""Active memories above which a sub-cluster is to be split (spec P6 ❻)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedMemory:
    """A memory as far as a decision needs it. `text` is its action, shortened; `when` its first date, else the day it
    happened."""

    id: MemoryId
    text: str
    when: str
    feeling: str = ""
    importance: float
    status: Status
    fresh: bool
    pinned: bool
    actors: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """In characters."""
        return len(self.text) + len(self.when) + len(self.feeling) + sum(len(actor) for actor in self.actors)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """At most `MAX_MEMORIES` memories and `MAX_CHARACTERS`. `cluster_id` and `cluster`, its name, for consolidate and
    split; `session_id` for compress. For diary: `date` (ISO), `earlier`, the entry already written that day, `think`,
    the points of the patrol before, and `until`, when the last memory of the request was stored: what is stored later
    is for the next entry."""

    id: DecisionRequestId = field(default_factory=lambda: DecisionRequestId(str(uuid.uuid4())))
    kind: DecisionKind
    memories: tuple[OfferedMemory, ...]
    cluster_id: ClusterId | None = None
    cluster: str = ""
    session_id: str = ""
    date: str = ""
    earlier: str = ""
    think: tuple[str, ...] = ()
    until: datetime | None = None

    @property
    def topic(self) -> str:
        """What it is about: requests of one topic are parts of one decision."""
        return f"{self.kind}:{self.cluster_id or self.session_id or self.date}"

    @property
    def has_choice(self) -> bool:
        """False where only one answer is possible: a single memory that is not dying has none to be merged with."""
        return self.kind != "consolidate" or len(self.memories) > 1 or self.memories[0].status == "dying"

    def as_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return fields

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DecisionRequest:
        return _adapter().validate_python(raw)


@cache
def _adapter() -> TypeAdapter[DecisionRequest]:
    return TypeAdapter(DecisionRequest)


def offered_text(memory: Memory, kind: DecisionKind) -> str:
    """As a request of that kind shows it; to be summarised with all that it has absorbed, for the summary hides it."""
    if kind != "compress":
        return shortened(memory.scene.action, TEXT_CHARACTERS)
    absorbed = [f"{when_date(item)}: {item.action}" for item in memory.scene.when if isinstance(item, DatedAction)]
    return shortened("\n".join((memory.scene.action, *absorbed)), SUMMARISED_CHARACTERS)


def offered_memory(memory: Memory, kind: DecisionKind) -> OfferedMemory:
    when = when_date(memory.scene.when[0]) if memory.scene.when else memory.happened_at.date().isoformat()
    return OfferedMemory(
        id=memory.id,
        text=offered_text(memory, kind),
        when=shortened(when, DATE_CHARACTERS),
        feeling=shortened(memory.feeling, FEELING_CHARACTERS),
        importance=memory.importance,
        status=memory.status,
        fresh=memory.fresh,
        pinned=memory.pinned,
        actors=tuple(shortened(actor, ACTOR_CHARACTERS) for actor in memory.scene.actors[:MAX_ACTORS]),
    )


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, the last of them `…` where something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


# --- one function a kind ----------------------------------------------------------------------------------------


def consolidation_requests(
    cluster: Cluster, members: Sequence[Memory], vectors: Mapping[MemoryId, Vector]
) -> list[DecisionRequest]:
    """Every fresh or dying living member is in exactly one request (spec P6 ❹), with those similar to it; after them
    the nearest consolidated living members, which may be in several. `vectors`: of the members that have one."""
    living = sorted((memory for memory in members if memory.status in LIVING), key=_arrival)
    unconsolidated = [memory for memory in living if _is_unconsolidated(memory)]
    # What a summary stands for is not recalled: a memory merged into it would not be either.
    partners = [memory for memory in living if not _is_unconsolidated(memory) and not memory.compressed]
    memories, characters = MAX_MEMORIES, MAX_CHARACTERS
    if partners:
        memories, characters = UNCONSOLIDATED_MEMORIES, UNCONSOLIDATED_CHARACTERS
    requests: list[DecisionRequest] = []
    for batch in _batches(unconsolidated, vectors, memories, characters):
        nearest = _nearest_first(partners, _rows(partners, vectors) @ _rows(batch, vectors).T)
        offered = _fitting([offered_memory(memory, "consolidate") for memory in [*batch, *nearest]])
        requests.append(
            DecisionRequest(kind="consolidate", memories=offered, cluster_id=cluster.id, cluster=cluster.name)
        )
    return requests


def split_request(cluster: Cluster, active: Sequence[Memory]) -> DecisionRequest | None:
    """None where there is nothing to split: a root, or no more than 10 active memories (spec P6 ❻). Of more than fit,
    those that came first."""
    members = sorted((memory for memory in active if memory.status == "active"), key=_arrival)
    if cluster.is_root or len(members) <= SPLIT_ABOVE_MEMORIES:
        return None
    offered = _fitting([offered_memory(memory, "split") for memory in members])
    return DecisionRequest(kind="split", memories=offered, cluster_id=cluster.id, cluster=cluster.name)


def diary_request(date: str, memories: Sequence[Memory], earlier: str, think: Sequence[str]) -> DecisionRequest | None:
    """Of more memories than fit the most important, in the order in which they happened. None without any."""
    earlier, points = offered_diary(earlier, think)
    by_importance = sorted(memories, key=lambda memory: (-memory.importance, _chronological(memory)))
    characters = MAX_CHARACTERS - len(earlier) - sum(map(len, points))
    offered = _fitting([offered_memory(memory, "diary") for memory in by_importance], characters)
    if not offered:
        return None
    by_id = {memory.id: memory for memory in offered}
    in_order = tuple(by_id[memory.id] for memory in sorted(memories, key=_chronological) if memory.id in by_id)
    until = max(memory.created_at for memory in memories)
    return DecisionRequest(kind="diary", memories=in_order, date=date, until=until, earlier=earlier, think=points)


def offered_diary(earlier: str, think: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The day's entry and the points as a request shows them."""
    points = tuple(shortened(point, POINT_CHARACTERS) for point in think[:MAX_POINTS])
    return shortened(earlier, EARLIER_CHARACTERS), points


def compression_requests(session_id: str, memories: Sequence[Memory]) -> list[DecisionRequest]:
    """The living episodic memories of a session that no summary stands for yet, in the order in which they happened
    (spec L3); a session too long for one request becomes several, each to be summarised by itself."""
    uncompressed = [m for m in memories if m.category == "episodic" and m.status in LIVING and not m.compressed]
    parts: list[list[OfferedMemory]] = []
    characters = 0
    for memory in (offered_memory(memory, "compress") for memory in sorted(uncompressed, key=_chronological)):
        characters += memory.size
        if not parts or len(parts[-1]) == MAX_MEMORIES or characters > MAX_CHARACTERS:
            parts.append([])
            characters = memory.size
        parts[-1].append(memory)
    return [DecisionRequest(kind="compress", memories=tuple(part), session_id=session_id) for part in parts]


# --- bounded sizes ----------------------------------------------------------------------------------------------


def _is_unconsolidated(memory: Memory) -> bool:
    return memory.fresh or memory.status == "dying"


def _arrival(memory: Memory) -> tuple[datetime, str]:
    return memory.created_at, memory.id


def _chronological(memory: Memory) -> tuple[datetime, datetime, str]:
    return memory.happened_at, memory.created_at, memory.id


def _fitting(memories: Sequence[OfferedMemory], characters: int = MAX_CHARACTERS) -> tuple[OfferedMemory, ...]:
    """In order, each that still fits."""
    sizes = [memory.size for memory in memories]
    return tuple(memories[i] for i in within_budget(sizes, limit=MAX_MEMORIES, budget=characters))


def _batches(
    memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector], max_memories: int, max_characters: int
) -> list[list[Memory]]:
    """Each group of similar memories goes, whole, into the first batch where it fits."""
    batches: list[list[Memory]] = []
    used: list[int] = []
    sizes = {memory.id: offered_memory(memory, "consolidate").size for memory in memories}
    for group in _similar_groups(memories, vectors, sizes, max_memories, max_characters):
        needed = sum(sizes[memory.id] for memory in group)
        for i, batch in enumerate(batches):
            if len(batch) + len(group) <= max_memories and used[i] + needed <= max_characters:
                batch.extend(group)
                used[i] += needed
                break
        else:
            batches.append(list(group))
            used.append(needed)
    return batches


def _similar_groups(
    memories: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    sizes: Mapping[MemoryId, int],
    max_memories: int,
    max_characters: int,
) -> Iterator[list[Memory]]:
    """Disjoint groups within the limits: the first that is left, and the nearest of those similar to it."""
    rows = _rows(memories, vectors)
    left = np.arange(len(memories))
    while len(left):
        cosines = (rows @ rows[left[0]])[left]
        cosines[0] = np.inf
        order = np.argsort(-cosines, kind="stable")
        similar = left[order[cosines[order] >= MIN_GROUP_SIMILARITY]]
        fitting = within_budget([sizes[memories[i].id] for i in similar], limit=max_memories, budget=max_characters)
        yield [memories[i] for i in similar[fitting]]
        left = left[~np.isin(left, similar[fitting])]


def _nearest_first(memories: Sequence[Memory], cosines: NDArray[np.float32]) -> list[Memory]:
    """`cosines`: float32, (memories, others). By the nearest of the others."""
    order = np.argsort(-cosines.max(axis=1), kind="stable") if len(memories) else ()
    return [memories[i] for i in order][:MAX_MEMORIES]


def _rows(memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector]) -> NDArray[np.float32]:
    """float32, (n, dim); zeros for a memory without a vector."""
    dim = next((len(vector) for vector in vectors.values()), 1)
    rows = np.zeros((len(memories), dim), np.float32)
    for row, memory in zip(rows, memories, strict=True):
        if memory.id in vectors:
            row[:] = vectors[memory.id]
    return rows
