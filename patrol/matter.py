"""What needs a mind: a language model's, or the calling agent's (ruling 10). One class for each kind of offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from madeleine.memory.language import Rejected
from madeleine.memory.model import ClusterId, ContentHash, MemoryId, Vector
from madeleine.patrol.deciding.answers import Answer
from madeleine.patrol.deciding.checks import Present
from madeleine.patrol.deciding.offer import Kind, Offer
from madeleine.patrol.night import Night
from madeleine.patrol.ports import PatrolReads
from madeleine.patrol.round import World


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that waits to be decided. `key`: a cluster, a session, a day; `weight`: the heaviest come first."""

    kind: Kind
    key: str
    weight: int


@dataclass(frozen=True, slots=True)
class Applied:
    """`made`: clusters that are new by it."""

    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    made: frozenset[ClusterId] = frozenset()


class Matter(Protocol):
    """Finding what waits, offering it, and doing what was decided."""

    kind: Kind

    async def waiting(self, world: World, view: PatrolReads) -> list[Topic]:
        """Cheap: by counts."""
        ...

    async def offers(self, world: World, view: PatrolReads, topic: Topic) -> list[Offer]: ...

    async def texts(self, world: World, view: PatrolReads, offer: Offer, answer: Answer) -> Mapping[ContentHash, str]:
        """Texts that are to be embedded before the answer is applied."""
        ...

    async def apply(self, night: Night, offer: Offer, answer: Answer, world: World) -> Applied | Rejected:
        """Checks the answer against the memories as they are now. `night.evening.vectors` has the texts'."""
        ...


async def present(view: PatrolReads | Night, offer: Offer) -> Present:
    """The offered memories as they are now."""
    ids = [memory.id for memory in offer.memories]
    found = await (view.whole(await view.states(ids)) if isinstance(view, Night) else view.memories(ids))
    return Present({memory.id: memory for memory in found})


def topic_of(offer: Offer) -> str:
    return f"{offer.kind}:{offer.cluster_id or offer.session_id or offer.date}"


def vectors_of(ids: Mapping[MemoryId, ContentHash], vectors: Mapping[ContentHash, Vector]) -> dict[MemoryId, Vector]:
    return {id_: vectors[hash_] for id_, hash_ in ids.items() if hash_ in vectors}


def heaviest_first(topics: Sequence[Topic]) -> list[Topic]:
    return sorted(topics, key=lambda topic: (-topic.weight, topic.key))
