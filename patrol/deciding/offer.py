"""An offer: memories, and what is to be decided about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from madeleine.memory.model import ClusterId, DatedAction, Memory, MemoryId, Status, when_date
from madeleine.memory.patrol_records import DecisionRequestId

Kind = Literal["consolidate", "split", "diary", "compress"]

MOST = 60
"""Memories in one offer."""
SIZE = 24_000
"""Characters in one offer: some 6,000 tokens of English."""
TEXT = 1_000
TEXT_TO_SUMMARISE = 4_000
"""A summary stands for the whole memory, so it is made of more of it."""
FEELING, ACTORS, ACTOR, DATE = 300, 10, 60, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory as far as a mind needs it to decide. `text` is its action, cut; `when` its first date, else the day it
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
class Offer:
    """At most `MOST` memories and `SIZE` characters. `cluster_id` and `cluster`, its name, for consolidate and split;
    `session_id` for compress. For diary: `date` (ISO), `earlier`, the entry that was already written that day, and
    `think`, the points of the patrol before, and `until`, when the last memory that was looked at was stored: what is
    stored after that is for the next entry."""

    id: DecisionRequestId
    kind: Kind
    memories: tuple[Shown, ...]
    cluster_id: ClusterId | None = None
    cluster: str = ""
    session_id: str = ""
    date: str = ""
    earlier: str = ""
    think: tuple[str, ...] = ()
    until: datetime | None = None

    @property
    def size(self) -> int:
        """In characters."""
        return (
            sum(memory.size for memory in self.memories) + len(self.earlier) + sum(len(point) for point in self.think)
        )

    @property
    def needs_a_mind(self) -> bool:
        """False where one answer alone is possible: a single memory that is not dying has none to be merged with."""
        return self.kind != "consolidate" or len(self.memories) > 1 or self.memories[0].status == "dying"

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Offer:
        return _adapter().validate_python(raw)


@cache
def _adapter() -> TypeAdapter[Offer]:
    return TypeAdapter(Offer)


def text_of(memory: Memory, kind: Kind) -> str:
    """As an offer of that kind shows it; to be summarised with all that it has absorbed, for the summary hides it."""
    if kind != "compress":
        return cut(memory.scene.action, TEXT)
    retold = [f"{when_date(i)}: {i.action}" for i in memory.scene.when if isinstance(i, DatedAction)]
    return cut("\n".join((memory.scene.action, *retold)), TEXT_TO_SUMMARISE)


def shown(memory: Memory, kind: Kind) -> Shown:
    when = when_date(memory.scene.when[0]) if memory.scene.when else memory.happened_at.date().isoformat()
    return Shown(
        id=memory.id,
        text=text_of(memory, kind),
        when=cut(when, DATE),
        feeling=cut(memory.feeling, FEELING),
        importance=memory.importance,
        status=memory.status,
        fresh=memory.fresh,
        pinned=memory.pinned,
        actors=tuple(cut(actor, ACTOR) for actor in memory.scene.actors[:ACTORS]),
    )


def cut(text: str, most: int) -> str:
    """At most `most` characters, the last of them `…` where something is missing."""
    return text if len(text) <= most else text[: most - 1] + "…"
