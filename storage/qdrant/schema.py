"""The schema of the index, for both engines: dense and BM25 vectors, payload, model (spec O13, ruling 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from madeleine.memory.index import IndexPoint, RankingFeatures, WordingSignals
from madeleine.memory.model import LIVING, ModelName
from madeleine.memory.rules.ranking.blended import wording_signals
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.qdrant.bm25 import WORDS_VERSION, document_terms

SCHEMA_VERSION = 4
"""Raise it when vectors, payload or their indexes change: an index of another version is rebuilt."""

DENSE = "dense"
BM25 = "bm25"

BEING = "being"
STATUS = "status"
STATUS_OF_BEING = "lives_in"
"""The being, of a living memory only that no summary stands for (spec L3): what nearly every query asks for, in one
condition instead of two (0.3 ms of 1 ms at 10,000 memories)."""
CATEGORY = "category"
CLUSTER = "cluster"
SESSION = "session"
TURN = "turn"
THEMES = "themes"
"""Folded, as keyword search compares them."""
TIME = "time"
"""Whole seconds since 1970."""
ACTORS = "actors"
EMOTIONS = "emotions"
LENGTH = "length"
"""Words of the action."""
TOKENS = "tokens"
SIGNALS = "signals"
"""Of the action's wording (`packed`)."""
FEATURES = (SESSION, TURN, ACTORS, EMOTIONS, LENGTH, TOKENS, SIGNALS)
"""What `features` reads."""
KEYWORD_FIELDS = (BEING, STATUS_OF_BEING, STATUS, CATEGORY, CLUSTER, SESSION, THEMES)

RRF_K = 2
RRF_WEIGHTS = (1.0, 2.0)
"""(dense, BM25). A first place counts 1/k of itself whatever its weight; the weight stretches the ranks behind it:
1/((position + 1)/weight + k - 1). At this k the heavier channel does count more; at k = 60 it counts less."""

HNSW_GRAPH_EDGES = 0
HNSW_BEING_EDGES = 16
HNSW_EF_CONSTRUCT = 128
"""One graph a being and none over all of them, for no query crosses beings."""

SCAN_BELOW = 5_000
"""Points that are searched without a graph: a full scan of so many takes 0.4 ms at 384 dimensions."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an index was made with. One made with anything else gives wrong answers and must be rebuilt."""

    model: ModelName
    dim: int
    words: int = WORDS_VERSION
    schema: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def named_vectors(point: IndexPoint, sparse_vector: Callable[..., Any]) -> dict[str, Any]:
    """`sparse_vector`: the engine's class, made of `indices` and `values`."""
    vectors: dict[str, Any] = {} if point.vector is None else {DENSE: point.vector.tolist()}
    indices, values = document_terms(point.words)
    # An empty sparse vector would count as a document in one kind of segment and not in the other.
    if indices:
        vectors[BM25] = sparse_vector(indices=indices, values=values)
    return vectors


def payload(point: IndexPoint) -> dict[str, Any]:
    memory = point.memory
    fields: dict[str, Any] = {
        BEING: memory.being_id,
        STATUS: memory.status,
        CATEGORY: memory.category,
        SESSION: memory.provenance.session_id,
        TURN: memory.turn,
        THEMES: [fold_text(theme) for theme in memory.themes],
        TIME: int(memory.happened_at.timestamp()),
        ACTORS: list(memory.scene.actors),
        EMOTIONS: list(memory.emotions),
        LENGTH: len(memory.scene.action.split()),
        TOKENS: point.tokens,
        SIGNALS: packed(wording_signals(memory.scene.action)),
    }
    if memory.status in LIVING and not memory.compressed:
        fields[STATUS_OF_BEING] = memory.being_id
    if memory.cluster_id is not None:
        fields[CLUSTER] = memory.cluster_id
    return fields


def features(payload: Mapping[str, Any]) -> RankingFeatures:
    return RankingFeatures(
        session_id=payload[SESSION],
        turn=payload[TURN],
        actors=tuple(payload[ACTORS]),
        emotions=tuple(payload[EMOTIONS]),
        words=payload[LENGTH],
        tokens=payload[TOKENS],
        signals=unpacked(payload[SIGNALS]),
    )


_STEPS = 100


def packed(told: WordingSignals) -> int:
    """One number: three flags, and above them the first person's share in hundredths."""
    return told.asks | told.tells_when << 1 | told.prefers << 2 | round(told.first_person * _STEPS) << 3


def unpacked(number: int) -> WordingSignals:
    return WordingSignals(
        asks=bool(number & 1),
        tells_when=bool(number & 2),
        prefers=bool(number & 4),
        first_person=(number >> 3) / _STEPS,
    )
