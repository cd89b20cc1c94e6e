"""What was told before of what a new scene tells: what it supersedes, resembles, or says again (rulings 13, 14)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from madeleine.memory.embedding import Embedder, VectorByContentHash
from madeleine.memory.errors import IndexUnavailable
from madeleine.memory.index import IndexForStoringMemories, IndexPoint
from madeleine.memory.ingest.ports import StoreScenesLedger
from madeleine.memory.ingest.store_plan import MAX_DUPLICATE_CANDIDATES, RepeatedOutdatedMemory, StorePlan
from madeleine.memory.model import LIVING_STATUSES, Memory, MemoryId, Scope, Vector
from madeleine.memory.rules.dynamics.future_dates import superseding_memory_and_start_date
from madeleine.memory.rules.dynamics.truth import (
    require_current_memory,
    start_of_truth_or_telling,
    was_superseded_after,
)
from madeleine.memory.rules.storing.similar_wording import index_of_most_resembling_text, index_of_outstanding_text
from madeleine.memory.text.same_words import wording_comparison_key
from madeleine.memory.vector_space import VectorSpace

logger = logging.getLogger(__name__)


class WordSharingMemories(NamedTuple):
    """`ids`: of living memories that share the most words with a new one. `memories`: those of them that need not be
    read again. `vectors`: of their texts, those that are known."""

    ids: Sequence[MemoryId]
    memories: Mapping[MemoryId, Memory]
    vectors: VectorByContentHash


class EarlierSimilarMemories(NamedTuple):
    """(memory, cosine) of what a new scene may say again. `near`: with the very text, the nearest, and those that share
    words; of these 1 where the model cannot read the text, for then the words alone decide, else 0. `together`: those
    that the call stores with it. `candidates`: of both, those that are still true. `vectors`: of some texts."""

    near: Sequence[tuple[Memory, float]]
    together: Sequence[tuple[Memory, float]]
    candidates: Sequence[tuple[Memory, float]]
    vectors: VectorByContentHash


async def find_earlier_similar_memories(
    ledger: StoreScenesLedger,
    index: IndexForStoringMemories,
    scope: Scope,
    point: IndexPoint,
    plan: StorePlan,
    *,
    supersedes: MemoryId | None,
    sharing_words: WordSharingMemories | None = None,
) -> EarlierSimilarMemories:
    """`supersedes`: no candidate. `sharing_words`: if they are known."""
    near = [
        pair
        for pair in await _similar_memories_with_cosines(ledger, index, scope, point, sharing_words)
        if not plan.supersedes_memory_with_id(pair[0].id)
    ]
    together = plan.similar_memories_in_plan(point)
    known = together + [
        (other, cosine)
        for other, cosine in near
        if _can_be_repeated_by_new_memory(point.memory, other) and other.truth == "current" and other.id != supersedes
    ]
    candidates = [(plan.retold.get(other.id, other), cosine) for other, cosine in known]
    vectors = plan.vectors() | (sharing_words.vectors if sharing_words else {})
    return EarlierSimilarMemories(near, together, candidates, vectors)


def _can_be_repeated_by_new_memory(new: Memory, other: Memory) -> bool:
    is_shown = other.status in LIVING_STATUSES and not other.compressed
    return is_shown and other.level in (None, new.level)  # else it would go sooner than what is told now


async def living_ids_sharing_most_words(index: IndexForStoringMemories, scope: Scope, memory: Memory) -> list[MemoryId]:
    """Living memories that share the most words with the new one. Raises `IndexUnavailable`."""
    words = memory.scene.action
    return await index.living_ids_sharing_most_words(
        scope, words, limit=MAX_DUPLICATE_CANDIDATES, statuses=LIVING_STATUSES
    )


async def _similar_memories_with_cosines(
    ledger: StoreScenesLedger,
    index: IndexForStoringMemories,
    scope: Scope,
    point: IndexPoint,
    sharing_words: WordSharingMemories | None,
) -> list[tuple[Memory, float]]:
    same_text = await ledger.ids_with_content_hash(scope, point.memory.content_hash)
    near: dict[MemoryId, float] = {}
    known: Mapping[MemoryId, Memory] = {}
    at_most, vector = MAX_DUPLICATE_CANDIDATES, point.vector
    try:
        if sharing_words is None:
            sharing_words = WordSharingMemories(await living_ids_sharing_most_words(index, scope, point.memory), {}, {})
        known = sharing_words.memories
        near = dict.fromkeys(sharing_words.ids, 1.0 if vector is None else 0.0)
        if vector is not None:
            near |= dict(await index.nearest(scope, vector, limit=at_most, statuses=LIVING_STATUSES))
    except IndexUnavailable as error:
        logger.warning("storing without a search for duplicates: %s", error)
    near |= dict.fromkeys(same_text, 1.0)
    unread = [id_ for id_ in near if id_ not in known]
    read = await ledger.memories_with_ids(scope, unread) if unread else []
    memories = {**known, **{memory.id: memory for memory in read}}
    return [(memories[id_], cosine) for id_, cosine in near.items() if id_ in memories]


async def as_superseding_memory(
    ledger: StoreScenesLedger, scope: Scope, memory: Memory, supersedes: MemoryId | None
) -> tuple[Memory, Memory | None, datetime | None]:
    """(memory, what it supersedes, since when) with the memory's dates as a version; an unknown memory to supersede is
    refused at the commit. Raises `NotCurrent` for a plan of what is not current."""
    if supersedes is None:
        return memory, None, None
    known = await ledger.memories_with_ids(scope, [supersedes])
    if not known:
        return memory, None, memory.happened_at
    version, since = superseding_memory_and_start_date(memory, known[0], memory.created_at)
    if since is None:
        require_current_memory(known[0])
    return version, known[0], since


async def find_absorber_or_outdated_duplicate(
    ledger: StoreScenesLedger, scope: Scope, memory: Memory, near: Sequence[tuple[Memory, float]]
) -> Memory | RepeatedOutdatedMemory | None:
    """The living memory that has absorbed the text of the new one; else what said it, if that is not true any more."""
    words = wording_comparison_key(memory.scene.action)
    told = (one for one, _ in near if one.truth != "current" or one.absorbed_into is not None)
    earlier = latest = next((one for one in told if wording_comparison_key(one.scene.action) == words), None)
    if earlier is None or latest is None:
        return None
    while latest.truth == "current" and latest.absorbed_into is not None:
        [latest] = await ledger.memories_with_ids(scope, [latest.absorbed_into])
    if latest.truth == "current":
        return latest if latest.status in LIVING_STATUSES and not latest.compressed else None
    if latest.truth == "retracted":
        return RepeatedOutdatedMemory(earlier, None)
    return RepeatedOutdatedMemory(earlier, await _current_version(ledger, scope, latest))


async def _current_version(ledger: StoreScenesLedger, scope: Scope, memory: Memory) -> Memory | None:
    ids = await ledger.current_version_id_by_memory_id(scope, [memory.id])
    return next(iter(await ledger.memories_with_ids(scope, [*ids.values()])), None)


async def find_superseded_memory_with_same_text(
    ledger: StoreScenesLedger, scope: Scope, new: Memory, supersedes: Memory, near: Sequence[tuple[Memory, float]]
) -> RepeatedOutdatedMemory | None:
    """The superseded memory with the very text and dates of the new one, if it was told after what it is to supersede:
    it was true then, and is not true again because its place in the chain is told late. None if `supersedes` is what
    has taken its place."""
    words = wording_comparison_key(new.scene.action)
    first = next(
        (
            one
            for one, _ in near
            if one.truth == "superseded" and one.number > supersedes.number and one.scene.when == new.scene.when
            if _can_be_repeated_by_new_memory(new, one)
            if wording_comparison_key(one.scene.action) == words
        ),
        None,
    )
    if first is None:
        return None
    current = await _current_version(ledger, scope, first)
    return None if current is None or current.id == supersedes.id else RepeatedOutdatedMemory(first, current)


def start_of_truth_before_supersession(memory: Memory) -> datetime:
    """Since when a superseded memory was true, as far as is known: before it was superseded."""
    begin = start_of_truth_or_telling(memory)
    return begin if was_superseded_after(memory, begin) else (memory.valid_until or begin) - timedelta(microseconds=1)


async def load_vectors_by_memory_id(
    ledger: StoreScenesLedger, embedder: Embedder, memories: Sequence[Memory], known: VectorByContentHash
) -> dict[MemoryId, Vector]:
    """Of those of the memories that have one. `known`: those that need not be read."""
    vectors = dict(known)
    hashes = {memory.id: memory.content_hash for memory in memories}
    if missing := {*hashes.values()} - vectors.keys():
        vectors |= await ledger.cached_vectors_by_hash(embedder.model_name, sorted(missing))
    return {id_: vectors[hash_] for id_, hash_ in hashes.items() if hash_ in vectors}


def with_cosines_to_vector(
    near: Sequence[tuple[Memory, float]], vector: Vector, vectors: Mapping[MemoryId, Vector]
) -> list[tuple[Memory, float]]:
    """The same memories, with the cosines of their `vectors` to this one; 0 for a memory without a vector."""
    rows = ((other, vectors.get(other.id)) for other, _ in near)
    return [(other, 0.0 if row is None else float(row @ vector)) for other, row in rows]


def id_of_most_similar_memory(
    point: IndexPoint,
    known: Sequence[Memory],
    vectors: Mapping[MemoryId, Vector],
    space: VectorSpace,
    *,
    resembling: float,
) -> MemoryId | None:
    """The one of `known` that resembles the new one most, if it does so enough or far more than every other."""
    text, texts = point.memory.scene.action, [other.scene.action for other in known]
    rows = [vectors.get(other.id) for other in known]
    cosines = space.cosines_where_texts_are_legible(point.vector, rows)
    best = index_of_most_resembling_text(text, texts, cosines, at_least=resembling)
    if best is None:
        across = space.cosines_where_texts_are_legible(point.vector, rows, across_languages=True)
        best = index_of_outstanding_text(text, texts, across, at_least=resembling)
    return None if best is None else known[best].id
