"""Cutting what waits for a decision into offers of a bounded size. The same input gives the same offers, but for their
ids."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.model import LIVING, Cluster, Memory, MemoryId, Vector
from madeleine.memory.patrol_records import DecisionRequestId
from madeleine.memory.rules.dynamics.grouping import SIMILARITY
from madeleine.memory.rules.ranking.budget import within_budget
from madeleine.patrol.deciding.offer import MOST, SIZE, Kind, Offer, Shown, cut, shown

SPLIT_ABOVE = 10
"""Active memories above which a sub-cluster is offered to be split (spec P6 ❻)."""
TO_SETTLE, SIZE_TO_SETTLE = 40, 16_000
"""Of an offer to consolidate, what fresh and dying memories may fill; the rest is for their partners."""
EARLIER, POINTS, POINT = 2_000, 7, 300


def consolidation_offers(
    cluster: Cluster, members: Sequence[Memory], vectors: Mapping[MemoryId, Vector]
) -> list[Offer]:
    """Every fresh or dying living member is in exactly one offer (spec P6 ❹), with those that are alike to it;
    after them the nearest settled living members, which may be in several. `vectors`: of those that have one."""
    living = sorted((memory for memory in members if memory.status in LIVING), key=_arrival)
    waiting = [memory for memory in living if _waits(memory)]
    # What a summary stands for is not recalled: a memory merged into it would not be either.
    settled = [memory for memory in living if not _waits(memory) and not memory.compressed]
    offers: list[Offer] = []
    for lot in _packed(waiting, vectors, room=(TO_SETTLE, SIZE_TO_SETTLE) if settled else (MOST, SIZE)):
        nearest = _nearest_first(settled, _rows(settled, vectors) @ _rows(lot, vectors).T)
        found = _fitting([shown(memory, "consolidate") for memory in [*lot, *nearest]])
        offers.append(_offer("consolidate", found, cluster))
    return offers


def split_offer(cluster: Cluster, active: Sequence[Memory]) -> Offer | None:
    """None where there is nothing to split: a root, or no more than 10 active memories (spec P6 ❻). Of more than fit,
    those that came first."""
    members = sorted((memory for memory in active if memory.status == "active"), key=_arrival)
    if cluster.is_root or len(members) <= SPLIT_ABOVE:
        return None
    return _offer("split", _fitting([shown(memory, "split") for memory in members]), cluster)


def diary_offer(date: str, memories: Sequence[Memory], earlier: str, think: Sequence[str]) -> Offer | None:
    """Of more memories than fit the most important, in the order in which they happened. None without any."""
    earlier, points = told_before(earlier, think)
    by_importance = sorted(memories, key=lambda memory: (-memory.importance, _order(memory)))
    room = SIZE - len(earlier) - sum(len(point) for point in points)
    found = {one.id: one for one in _fitting([shown(memory, "diary") for memory in by_importance], size=room)}
    if not found:
        return None
    return Offer(
        id=_new_id(),
        kind="diary",
        memories=tuple(found[memory.id] for memory in sorted(memories, key=_order) if memory.id in found),
        date=date,
        until=max(memory.created_at for memory in memories),
        earlier=earlier,
        think=points,
    )


def told_before(earlier: str, think: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The day's entry and the points as an offer shows them."""
    return cut(earlier, EARLIER), tuple(cut(point, POINT) for point in think[:POINTS])


def compress_offer(session_id: str, memories: Sequence[Memory]) -> list[Offer]:
    """The living episodic memories of a session that no summary stands for yet, in the order in which they happened
    (spec L3); one that is too long for an offer is cut into several, each to be summarised by itself."""
    waiting = [m for m in memories if m.category == "episodic" and m.status in LIVING and not m.compressed]
    offers: list[Offer] = []
    part: list[Shown] = []
    for one in (shown(memory, "compress") for memory in sorted(waiting, key=_order)):
        if part and (len(part) == MOST or sum(m.size for m in part) + one.size > SIZE):
            offers.append(_session_offer(session_id, part))
            part = []
        part.append(one)
    return [*offers, _session_offer(session_id, part)] if part else offers


def _offer(kind: Kind, memories: Sequence[Shown], cluster: Cluster) -> Offer:
    return Offer(id=_new_id(), kind=kind, memories=tuple(memories), cluster_id=cluster.id, cluster=cluster.name)


def _session_offer(session_id: str, memories: Sequence[Shown]) -> Offer:
    return Offer(id=_new_id(), kind="compress", memories=tuple(memories), session_id=session_id)


def _new_id() -> DecisionRequestId:
    return DecisionRequestId(str(uuid.uuid4()))


def _waits(memory: Memory) -> bool:
    return memory.fresh or memory.status == "dying"


def _arrival(memory: Memory) -> tuple[datetime, str]:
    return memory.created_at, memory.id


def _order(memory: Memory) -> tuple[datetime, datetime, str]:
    return memory.happened_at, memory.created_at, memory.id


def _fitting(memories: Sequence[Shown], *, most: int = MOST, size: int = SIZE) -> list[Shown]:
    """In order, each that still fits."""
    return [memories[i] for i in within_budget([one.size for one in memories], limit=most, budget=size)]


def _packed(
    memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector], *, room: tuple[int, int]
) -> list[list[Memory]]:
    """In lots of at most `room` (memories, characters): each group of those alike goes, whole, where it first fits."""
    most, size = room
    lots: list[list[Memory]] = []
    used: list[int] = []
    sizes = {memory.id: shown(memory, "consolidate").size for memory in memories}
    for group in _alike(memories, vectors, sizes, room=room):
        needs = sum(sizes[memory.id] for memory in group)
        for i in range(len(lots)):
            if len(lots[i]) + len(group) <= most and used[i] + needs <= size:
                lots[i] += group
                used[i] += needs
                break
        else:
            lots.append(list(group))
            used.append(needs)
    return lots


def _alike(
    memories: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    sizes: Mapping[MemoryId, int],
    *,
    room: tuple[int, int],
) -> Iterator[list[Memory]]:
    """Disjoint groups that fit into `room`: the first that is left, and the nearest of those alike to it."""
    rows = _rows(memories, vectors)
    left = np.arange(len(memories))
    most, size = room
    while len(left):
        nearness = (rows @ rows[left[0]])[left]
        nearness[0] = np.inf
        order = np.argsort(-nearness, kind="stable")
        near = left[order[nearness[order] >= SIMILARITY]]
        taken = near[within_budget([sizes[memories[i].id] for i in near], limit=most, budget=size)]
        yield [memories[i] for i in taken]
        left = left[~np.isin(left, taken)]


def _nearest_first(memories: Sequence[Memory], nearness: NDArray[np.float32]) -> list[Memory]:
    """`nearness`: float32, (memories, others). By the nearest of the others."""
    order = np.argsort(-nearness.max(axis=1), kind="stable") if len(memories) else ()
    return [memories[i] for i in order][:MOST]


def _rows(memories: Sequence[Memory], vectors: Mapping[MemoryId, Vector]) -> NDArray[np.float32]:
    """float32, (n, dim); zeros for a memory without a vector."""
    dim = next((len(vector) for vector in vectors.values()), 1)
    rows = np.zeros((len(memories), dim), np.float32)
    for row, memory in zip(rows, memories, strict=True):
        if memory.id in vectors:
            row[:] = vectors[memory.id]
    return rows
