"""Test doubles: small, deterministic, and true to their ports (`tests/contracts`)."""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import TypedDict

from madeleine.memory.errors import EmbeddingUnavailable
from madeleine.memory.language_model import LanguageModel, MeteredModel, ModelCallCost
from madeleine.memory.model import (
    BeingId,
    Category,
    ClusterId,
    EmbeddingModelName,
    Emotion,
    EmotionVector,
    Memory,
    MemoryId,
    MemoryStatus,
    Provenance,
    Scene,
    Scope,
    TextOrDatedAction,
    TruthStatus,
    Vector,
    start_of_first_dated_timeline_entry,
)
from madeleine.memory.recall.ports import MemoryReactivation
from madeleine.memory.vector_space import VectorSpace

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADA = Scope(BeingId("ada"))
BOB = Scope(BeingId("bob"))

_WORD = re.compile(r"\w+")


def metered(model: LanguageModel, spent: list[ModelCallCost] | None = None, *, budget: int = 0) -> MeteredModel:
    """Records into `spent`, which the budget counts."""
    costs = [] if spent is None else spent

    async def record(cost: ModelCallCost) -> None:
        costs.append(cost)

    async def spent_tokens(purpose: str) -> int:
        return sum(cost.tokens for cost in costs)

    return MeteredModel(model, record, budget=budget, spent_tokens=spent_tokens)


class Clock:
    """`now` for the use cases: stands still until it is advanced."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> None:
        self.at += by


class ScriptedChance:
    """`memory.rules.prompting.RandomSource` that gives the numbers it is told, in order."""

    def __init__(self, picks: Iterable[int]) -> None:
        self._picks = iter(picks)

    def randrange(self, stop: int, /) -> int:
        pick = next(self._picks)
        assert 0 <= pick < stop
        return pick


class WordEmbedder:
    """`Embedder`: a bag of words, hashed into `dim` buckets. Texts that share words are alike."""

    def __init__(self, dim: int = 64, model: str = "words") -> None:
        self.dim = dim
        self.available = True
        self.batches: list[list[str]] = []
        """The texts of each call that was answered."""
        self._model = EmbeddingModelName(model)
        self.vector_space = VectorSpace.create_without_languages()

    @property
    def model_name(self) -> EmbeddingModelName:
        return self._model

    async def dimension(self) -> int:
        return self.dim

    async def warm_up(self) -> None:
        return None

    async def close(self) -> None:
        return None

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.available:
            raise EmbeddingUnavailable(self._model, "it was told to be away; tell it to come back")
        self.batches.append(list(texts))
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self.vector(text)
        return rows

    def vector(self, text: str) -> Vector:
        row = np.zeros(self.dim, np.float32)
        for word in _WORD.findall(text.casefold()) or [""]:
            row[zlib.crc32(word.encode()) % self.dim] += 1
        return np.asarray(row / np.linalg.norm(row), np.float32)

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(_WORD.findall(text)) for text in texts]


class MemoryFields(TypedDict, total=False):
    id: MemoryId
    being_id: BeingId
    feeling: str
    importance: float
    category: Category
    themes: tuple[str, ...]
    emotions: tuple[Emotion, ...]
    emotion: EmotionVector | None
    lesson: str
    pinned: bool
    status: MemoryStatus
    fresh: bool
    compressed: bool
    cluster_id: ClusterId | None
    absorbed_into: MemoryId | None
    session_count: int
    access_count: int
    reactivation_count: int
    kept_until: datetime | None
    truth: TruthStatus
    provenance: Provenance


def a_memory(
    action: str,
    *,
    when: tuple[TextOrDatedAction, ...] = (),
    actors: tuple[str, ...] = (),
    setting: str = "",
    dialogue: tuple[str, ...] = (),
    sensory: tuple[str, ...] = (),
    **fields: Unpack[MemoryFields],
) -> Memory:
    """A memory of Ada's, stored now."""
    given: dict[str, Any] = {
        "id": MemoryId(str(uuid.uuid4())),
        "being_id": ADA.being_id,
        "provenance": Provenance(tool="store"),
        **fields,
    }
    return Memory(
        scene=Scene(action=action, when=when, actors=actors, setting=setting, dialogue=dialogue, sensory=sensory),
        created_at=NOW,
        happened_at=start_of_first_dated_timeline_entry(when, NOW),
        **given,
    )


def unit(values: ArrayLike) -> Vector:
    vector = np.asarray(values, np.float32)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def at_cosine(cosine: float, dim: int = 4, axis: int = 1) -> Vector:
    """A unit vector at that cosine to the first axis, leaning towards `axis`."""
    row = np.zeros(dim, np.float32)
    row[0], row[axis] = cosine, np.sqrt(1 - cosine**2)
    return row


# --- patrol -----------------------------------------------------------------------------------------------------


class FakeWordStatistics:
    """`WordIdfSource`: longer words tell more, unless a test says what each is worth."""

    def __init__(self, worth: Mapping[str, float] | None = None) -> None:
        self._worth = worth or {}
        self.fails_with: Exception | None = None

    async def idf(self, scope: Scope, words: Sequence[str]) -> list[float]:
        if self.fails_with:
            raise self.fails_with
        return [self._worth.get(word, float(len(word))) for word in words]


class FakeActivationLog:
    def __init__(self) -> None:
        self.added: list[tuple[Scope, MemoryReactivation]] = []
        self.settled = 0

    def add_reactivations(self, scope: Scope, activations: Sequence[MemoryReactivation]) -> None:
        self.added += [(scope, activation) for activation in activations if scope.count_activations]

    async def flush(self) -> None:
        self.settled += 1
