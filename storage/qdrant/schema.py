"""The schema of the index, for both engines: dense and BM25 vectors, payload, model (spec O13, ruling 6)."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from madeleine.memory.index import IndexPoint, MemoryRankingFeatures, MemoryWordingTraits
from madeleine.memory.model import (
    LIVING_STATUSES,
    BeingId,
    EmbeddingModelName,
    EmotionVector,
    Memory,
    Vector,
)
from madeleine.memory.rules.dynamics.windows import time_spans_with_announced_one
from madeleine.memory.rules.ranking.blended import detect_wording_signals_in_text
from madeleine.memory.rules.ranking.turns import is_turn_of_conversation
from madeleine.memory.text.dates import enclosing_time_span
from madeleine.memory.text.normalization import fold_text
from madeleine.storage.qdrant.bm25 import BM25_TERMS_VERSION, document_term_ids_and_weights

INDEX_SCHEMA_VERSION = 14
"""Raise it when vectors, payload or their indexes change: an index of another version is rebuilt."""

DENSE_VECTOR_NAME = "dense"
BM25_VECTOR_NAME = "bm25"

BEING_FIELD = "being"
STATUS_FIELD = "status"
BEING_IF_RECALLABLE_FIELD = "lives_in"
"""The being, of a living memory only that is not retracted, and that no summary stands for (spec L3): what nearly every
query asks for, in one condition instead of two (0.3 ms of 1 ms at 10,000 memories)."""
CATEGORY_FIELD = "category"
SESSION_FIELD = "session"
"""Of a turn of a conversation; "" for other memories."""
TURN_FIELD = "turn"
THEMES_FIELD = "themes"
"""Folded, as keyword search compares them."""
PERIOD_START_SECONDS_FIELD = "first"
PERIOD_END_SECONDS_FIELD = "last"
"""Of a memory's dates, since 1970."""
TRUE_FROM_SECONDS_FIELD = "true_from"
"""Whole seconds since 1970; absent in a chain of versions, of which the ledger tells which was true when."""
VERSION_CHAIN_POSITION_FIELD = "version"
"""`VersionChainPosition`; absent for the only version."""
ACTORS_FIELD = "actors"
EMOTIONS_FIELD = "emotions"
EMOTION_VECTOR_FIELD = "emotion_vector"
WORD_COUNT_FIELD = "length"
"""Words of the action."""
TOKEN_COUNT_FIELD = "tokens"
WORDING_SIGNALS_FIELD = "signals"
"""Of the action's wording (`pack_wording_signals_into_integer`)."""
PROPOSED_SUPERSEDED_ID_FIELD = "may_supersede"
PIECE_VECTORS_FIELD = "pieces"
"""The vectors of the pieces of the text (`piece_vectors_as_base64_texts`); absent without any. The engine's storage of
several vectors a point has files with holes, and to read one on a full disk ends the process (ADR 64)."""
RANKING_FEATURE_FIELDS = (
    SESSION_FIELD, TURN_FIELD, ACTORS_FIELD, EMOTIONS_FIELD, WORD_COUNT_FIELD, TOKEN_COUNT_FIELD,
    WORDING_SIGNALS_FIELD, CATEGORY_FIELD, EMOTION_VECTOR_FIELD, PROPOSED_SUPERSEDED_ID_FIELD,
    VERSION_CHAIN_POSITION_FIELD, PIECE_VECTORS_FIELD,
)  # fmt: skip
"""What `ranking_features_from_payload` and `unpack_piece_vectors` read."""
KEYWORD_INDEXED_FIELDS = (
    BEING_FIELD,
    BEING_IF_RECALLABLE_FIELD,
    STATUS_FIELD,
    CATEGORY_FIELD,
    THEMES_FIELD,
)
TIME_INDEXED_FIELDS = (PERIOD_START_SECONDS_FIELD, PERIOD_END_SECONDS_FIELD, TRUE_FROM_SECONDS_FIELD)

NO_PIECE_VECTORS: Final[NDArray[np.int8]] = np.zeros((0, 0), np.int8)

RRF_RANK_CONSTANT = 2
RRF_CHANNEL_WEIGHTS = (1.0, 2.0)
"""(dense, BM25). A first place counts 1/k of itself whatever its weight; the weight stretches the ranks behind it:
1/((position + 1)/weight + k - 1). At this k the heavier channel does count more; at k = 60 it counts less."""

HNSW_EDGES_IN_GLOBAL_GRAPH = 0
HNSW_EDGES_IN_BEING_GRAPH = 16
HNSW_EF_CONSTRUCT = 128
"""One graph a being and none over all of them, for no query crosses beings."""

VECTOR_COMPONENT_BYTES = 2
"""Half precision. The engine counts the vectors outside of a graph by their bytes."""
MAX_FULL_SCAN_POINTS = 5_000
"""Points that are searched without a graph: a full scan of so many takes 0.4 ms at 384 dimensions."""


@dataclass(frozen=True, slots=True)
class IndexFingerprint:
    """What an index was made with. One made with anything else gives wrong answers and must be rebuilt."""

    model: EmbeddingModelName
    dim: int
    words: int = BM25_TERMS_VERSION
    schema: int = INDEX_SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def being_partition_name(being: BeingId, project: str | None) -> str:
    """What a point has in place of its being: a project's memories are found in it alone, and whoever works in none
    asks for the being, as ever. No name of a being holds the sign between the two."""
    return f"{being}\0{project}" if project else being


def named_vectors_of_index_point(point: IndexPoint, sparse_vector: Callable[..., Any]) -> dict[str, Any]:
    """`sparse_vector`: the engine's class, made of `indices` and `values`."""
    vectors: dict[str, Any] = {} if point.vector is None else {DENSE_VECTOR_NAME: point.vector.tolist()}
    indices, values = document_term_ids_and_weights(point.words)
    # An empty sparse vector would count as a document in one kind of segment and not in the other.
    if indices:
        vectors[BM25_VECTOR_NAME] = sparse_vector(indices=indices, values=values)
    return vectors


def payload_of_index_point(point: IndexPoint) -> dict[str, Any]:
    memory = point.memory
    first, last = enclosing_time_span(time_spans_with_announced_one(memory))
    is_turn = is_turn_of_conversation(memory)
    fields: dict[str, Any] = {
        BEING_FIELD: being_partition_name(memory.being_id, memory.project),
        STATUS_FIELD: memory.status,
        CATEGORY_FIELD: memory.category,
        SESSION_FIELD: memory.provenance.session_id if is_turn else "",
        TURN_FIELD: memory.turn,
        THEMES_FIELD: [fold_text(theme) for theme in memory.themes],
        PERIOD_START_SECONDS_FIELD: math.floor(first.timestamp()),
        PERIOD_END_SECONDS_FIELD: math.floor(last.timestamp()),
        ACTORS_FIELD: list(memory.scene.actors),
        EMOTIONS_FIELD: list(memory.emotions),
        WORD_COUNT_FIELD: len(memory.scene.action.split()),
        TOKEN_COUNT_FIELD: point.tokens,
        WORDING_SIGNALS_FIELD: pack_wording_signals_into_integer(_wording_signals(memory, is_turn=is_turn)),
    }
    if memory.status in LIVING_STATUSES and not memory.compressed and memory.truth != "retracted":
        fields[BEING_IF_RECALLABLE_FIELD] = fields[BEING_FIELD]
    if memory.emotion is not None:
        fields[EMOTION_VECTOR_FIELD] = list(astuple(memory.emotion))
    if memory.may_supersede is not None:
        fields[PROPOSED_SUPERSEDED_ID_FIELD] = memory.may_supersede
    if memory.superseded_by is not None:
        fields[VERSION_CHAIN_POSITION_FIELD] = "earlier"
    elif memory.valid_from is not None:
        fields[VERSION_CHAIN_POSITION_FIELD] = "last"
    else:
        fields[TRUE_FROM_SECONDS_FIELD] = math.floor(min(memory.happened_at, memory.created_at).timestamp())
    if point.pieces:
        fields[PIECE_VECTORS_FIELD] = piece_vectors_as_base64_texts(point.pieces)
    return fields


def piece_vectors_as_base64_texts(pieces: Sequence[Vector]) -> list[str]:
    """Each as base64 of int8: its direction, to about half a degree."""
    steps = (np.rint(piece * (127 / np.abs(piece).max())).astype(np.int8) for piece in pieces)
    return [b64encode(piece.tobytes()).decode() for piece in steps]


def unpack_piece_vectors(payload: Mapping[str, Any]) -> NDArray[np.int8]:
    """(pieces, dim); (0, 0) without any."""
    packed = payload.get(PIECE_VECTORS_FIELD, ())
    rows = [np.frombuffer(b64decode(piece), np.int8) for piece in packed]
    return np.stack(rows) if rows else NO_PIECE_VECTORS


def _wording_signals(memory: Memory, *, is_turn: bool) -> MemoryWordingTraits:
    """The day of what is no turn of a conversation is the day of what happened, not only when it was said."""
    signals = detect_wording_signals_in_text(memory.scene.action)
    has_own_day = bool(memory.scene.when) and not is_turn
    return replace(signals, tells_when=signals.tells_when or has_own_day)


def ranking_features_from_payload(payload: Mapping[str, Any]) -> MemoryRankingFeatures:
    return MemoryRankingFeatures(
        session_id=payload[SESSION_FIELD],
        turn=payload[TURN_FIELD],
        actors=tuple(payload[ACTORS_FIELD]),
        emotions=tuple(payload[EMOTIONS_FIELD]),
        words=payload[WORD_COUNT_FIELD],
        tokens=payload[TOKEN_COUNT_FIELD],
        signals=unpack_wording_signals(payload[WORDING_SIGNALS_FIELD]),
        may_supersede=payload.get(PROPOSED_SUPERSEDED_ID_FIELD),
        version=payload.get(VERSION_CHAIN_POSITION_FIELD, "only"),
        category=payload[CATEGORY_FIELD],
        emotion=EmotionVector(*axes) if (axes := payload.get(EMOTION_VECTOR_FIELD)) else None,
    )


_FIRST_PERSON_SHARE_STEPS = 100


def pack_wording_signals_into_integer(told: MemoryWordingTraits) -> int:
    """One number: three flags, and above them the first person's share in hundredths."""
    return (
        told.asks | told.tells_when << 1 | told.prefers << 2 | round(told.first_person * _FIRST_PERSON_SHARE_STEPS) << 3
    )


def unpack_wording_signals(packed: int) -> MemoryWordingTraits:
    return MemoryWordingTraits(
        asks=bool(packed & 1),
        tells_when=bool(packed & 2),
        prefers=bool(packed & 4),
        first_person=(packed >> 3) / _FIRST_PERSON_SHARE_STEPS,
    )
