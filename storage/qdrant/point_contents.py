"""What ranking reads of a point beside its scores: it changes only when the point is written, so an engine in this
process reads it once and remembers it. To decode it anew took half of a recall's time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import RankingFeatures
from madeleine.memory.model import MemoryId
from madeleine.storage.qdrant import schema

MAX_CACHED_INDEX_POINTS = 10_000
"""1 KB each, and 0.4 KB for each piece of its text."""

TermIdAndWeightBitsArray = NDArray[np.uint32]
"""(2, terms): term ids, and the bits of their float32 weights; one array, which takes less memory than two."""


@dataclass(frozen=True, slots=True)
class IndexPointContent:
    id: MemoryId
    features: RankingFeatures
    term_weights: TermIdAndWeightBitsArray
    pieces: NDArray[np.int8]
    """(pieces, dim), in whatever length."""


def index_point_content_from_engine_point(id: UUID, point: Any) -> IndexPointContent:
    """`point`: a point of either engine, with the features of its payload and its sparse vector."""
    sparse_vector = point.vector.get(schema.BM25_VECTOR_NAME) if isinstance(point.vector, dict) else None
    # Each property is read once, as Edge copies the list at each reading.
    indices, values = ([], []) if sparse_vector is None else (sparse_vector.indices, sparse_vector.values)
    term_weights = np.array([indices, np.asarray(values, np.float32).view(np.uint32)], np.uint32)
    payload = point.payload or {}
    features, pieces = schema.ranking_features_from_payload(payload), schema.unpack_piece_vectors(payload)
    return IndexPointContent(MemoryId(str(id)), features, term_weights, pieces)


def matrix_of_stored_bm25_weights(contents: Sequence[IndexPointContent], terms: Sequence[int]) -> NDArray[np.float32]:
    """float32, (contents, terms): the stored weight of each term, 0 for an absent one. `terms`: each once."""
    weights = np.zeros((len(contents), len(terms)), np.float32)
    if not contents or not terms:
        return weights
    order = np.argsort(wanted := np.asarray(terms, np.uint32))
    wanted = wanted[order]
    ids, bits = np.concatenate([content.term_weights for content in contents], axis=1)
    column = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
    is_wanted = wanted[column] == ids
    rows = np.repeat(np.arange(len(contents)), [content.term_weights.shape[1] for content in contents])
    weights[rows[is_wanted], order[column[is_wanted]]] = bits.view(np.float32)[is_wanted]
    return weights


@dataclass(eq=False)
class IndexPointContentCache:
    """Contents of the points that queries hit, at most `MAX_CACHED_INDEX_POINTS`, the oldest go first; and the cosines
    of memories to vectors that are asked for again and again, as many of each."""

    _contents: dict[int, IndexPointContent] = field(default_factory=dict)
    _point_ids: dict[str, UUID] = field(default_factory=dict)
    _cosines: dict[bytes, dict[str, float]] = field(default_factory=dict)

    def contents_in_order_of_ids(
        self, ids: Sequence[UUID], read: Callable[[list[UUID]], Iterable[Any]]
    ) -> list[IndexPointContent]:
        """In the order of `ids`. `read` returns the engine's points for those that are missing, in any order."""
        known = self._contents
        if missing := [id_ for id_ in ids if id_.int not in known]:
            for point in read(missing):
                content = index_point_content_from_engine_point(id_ := point.id, point)
                known[id_.int], self._point_ids[content.id] = content, id_
        contents = [known[id_.int] for id_ in ids]
        for oldest in list(islice(known, max(0, len(known) - MAX_CACHED_INDEX_POINTS))):
            del self._point_ids[known.pop(oldest).id]
        return contents

    def point_id_of_memory(self, id_: MemoryId) -> UUID:
        return self._point_ids.get(id_) or UUID(id_)

    def cached_cosine_by_memory_id(self, vector: bytes) -> dict[str, float]:
        """By the id of the memory, to be added to."""
        known = self._cosines.setdefault(vector, {})
        if len(known) > MAX_CACHED_INDEX_POINTS:
            known.clear()
        return known

    def evict(self, ids: Iterable[str]) -> None:
        """Of points that are written or deleted."""
        for id_ in ids:
            if point_id := self._point_ids.pop(id_, None):
                del self._contents[point_id.int]
            for cosines in self._cosines.values():
                cosines.pop(id_, None)
