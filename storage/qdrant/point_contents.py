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

from madeleine.memory.index import MemoryRankingFeatures
from madeleine.memory.model import MemoryId, Vector
from madeleine.storage.qdrant import schema

MAX_CACHED_INDEX_POINTS = 10_000
"""1 KB each, 1.5 KB for its vector, and 0.4 KB for each piece of its text."""

TermIdAndWeightBitsArray = NDArray[np.uint32]
"""(2, terms): term ids, and the bits of their float32 weights; one array, which takes less memory than two."""


@dataclass(frozen=True, slots=True)
class IndexPointContent:
    id: MemoryId
    features: MemoryRankingFeatures
    term_weights: TermIdAndWeightBitsArray
    pieces: NDArray[np.int8]
    """(pieces, dim), in whatever length."""
    vector: Vector | None = None
    """Of the whole text, of unit length; None without one, or if the engine was not asked for it."""


def index_point_content_from_engine_point(id: UUID, point: Any) -> IndexPointContent:
    """`point`: a point of either engine, with the features of its payload and its sparse vector."""
    vectors = named if isinstance(named := point.vector, dict) else {}
    sparse_vector, dense = vectors.get(schema.BM25_VECTOR_NAME), vectors.get(schema.DENSE_VECTOR_NAME)
    # Each property is read once, as Edge copies the list at each reading.
    indices, values = ([], []) if sparse_vector is None else (sparse_vector.indices, sparse_vector.values)
    term_weights = np.array([indices, np.asarray(values, np.float32).view(np.uint32)], np.uint32)
    payload = point.payload or {}
    features, pieces = schema.ranking_features_from_payload(payload), schema.unpack_piece_vectors(payload)
    vector = None if dense is None else np.array(dense, np.float32)
    return IndexPointContent(MemoryId(str(id)), features, term_weights, pieces, vector)


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
    """Contents of the points that queries hit, at most `MAX_CACHED_INDEX_POINTS`, the oldest go first."""

    _contents: dict[int, IndexPointContent] = field(default_factory=dict)
    _point_ids: dict[str, UUID] = field(default_factory=dict)
    _compared_keys: Sequence[int] = ()
    _compared: tuple[tuple[int, ...], NDArray[np.float32]] = ((), np.zeros((0, 0), np.float32))
    """Keys and vectors, (n, dim), of the points last compared: a query's candidates are compared with several
    vectors, and their own lie far apart in memory."""

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

    def cosines_of_cached_points(self, keys: Sequence[int], vector: Vector) -> dict[int, float]:
        """Of those that are known, by the key of the point; 0 for one that has no vector. `vector`: of any length."""
        if keys != self._compared_keys:
            contents = {key: content for key in keys if (content := self._contents.get(key)) is not None}
            none = np.zeros(len(vector), np.float32)
            vectors = [none if content.vector is None else content.vector for content in contents.values()]
            self._compared_keys = keys if len(contents) == len(keys) else ()
            self._compared = tuple(contents), np.concatenate([none, *vectors]).reshape(-1, len(vector))[1:]
        known, matrix = self._compared
        unit = vector / max(np.linalg.norm(vector), np.finfo(np.float32).tiny)
        return dict(zip(known, (matrix @ unit).tolist(), strict=True))

    def evict(self, ids: Iterable[str]) -> None:
        """Of points that are written or deleted."""
        self._compared_keys = ()
        for id_ in ids:
            if point_id := self._point_ids.pop(id_, None):
                del self._contents[point_id.int]
