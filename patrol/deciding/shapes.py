"""The answers that a language model is asked for. It sees numbers in place of ids. Bounds are not in the schemas, where
structured outputs know none, but in `checks`. Docstrings would go into the schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from pydantic import BaseModel, ConfigDict

from madeleine.memory.language import Rejected
from madeleine.memory.model import MemoryId
from madeleine.memory.rules.dynamics.roots import Root
from madeleine.patrol.deciding.answers import Answer, Consolidation, Diary, Merge, Part, Split, Summary
from madeleine.patrol.deciding.offer import Kind, Offer


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class MergeShape(Shape):
    survivor: int
    absorbed: list[int]


class ConsolidationShape(Shape):
    merges: list[MergeShape]
    make_dead: list[int]


class PartShape(Shape):
    name: str
    memories: list[int]


class SplitShape(Shape):
    parts: list[PartShape]


class DiaryShape(Shape):
    diary: str
    think_md: list[str]


class SummaryShape(Shape):
    summary: str


class RootShape(Shape):
    number: int
    root: Root


class ClassificationShape(Shape):
    roots: list[RootShape]


AnswerShape = ConsolidationShape | SplitShape | DiaryShape | SummaryShape


def shape_of(kind: Kind) -> type[AnswerShape]:
    match kind:
        case "consolidate":
            return ConsolidationShape
        case "split":
            return SplitShape
        case "diary":
            return DiaryShape
        case "compress":
            return SummaryShape
        case _:
            assert_never(kind)


def with_ids(shape: AnswerShape, offer: Offer) -> Answer | Rejected:
    """The answer in memory ids. Numbers count from 1 in the order of the offer."""
    last = len(offer.memories)
    if unknown := sorted({number for number in _numbers(shape) if not 1 <= number <= last}):
        listed = ", ".join(map(str, unknown[:5]))
        return Rejected(f"There is no memory {listed}: the numbers go from 1 to {last}.")

    def ids(numbers: Sequence[int]) -> tuple[MemoryId, ...]:
        return tuple(offer.memories[number - 1].id for number in numbers)

    match shape:
        case ConsolidationShape():
            merges = tuple(Merge(ids([merge.survivor])[0], ids(merge.absorbed)) for merge in shape.merges)
            return Consolidation(merges, ids(shape.make_dead))
        case SplitShape():
            return Split(tuple(Part(part.name, ids(part.memories)) for part in shape.parts))
        case DiaryShape():
            return Diary(shape.diary, tuple(shape.think_md))
        case SummaryShape():
            return Summary(shape.summary)
        case _:
            assert_never(shape)


def _numbers(shape: AnswerShape) -> Iterator[int]:
    match shape:
        case ConsolidationShape():
            for merge in shape.merges:
                yield merge.survivor
                yield from merge.absorbed
            yield from shape.make_dead
        case SplitShape():
            for part in shape.parts:
                yield from part.memories
        case DiaryShape() | SummaryShape():
            return
        case _:
            assert_never(shape)
