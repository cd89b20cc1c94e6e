"""Lists and vectors as columns hold them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from madeleine.memory.model import Vector


def decode_texts(stored: str) -> tuple[Any, ...]:
    # Most lists of most memories are empty.
    return () if stored == "[]" else tuple(json.loads(stored))


@lru_cache(maxsize=8192)
def decode_texts_cached(stored: str) -> tuple[Any, ...]:
    """`decode_texts` for lists that many memories have in common: who was there, labels."""
    return decode_texts(stored)


def json_texts(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False) if values else "[]"


def to_bytes(vector: Vector) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def to_vector(stored: bytes) -> Vector:
    """Read-only: a view of the bytes."""
    return np.frombuffer(stored, dtype="<f4")
