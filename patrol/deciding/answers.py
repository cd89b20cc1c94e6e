"""Answers to decision requests: as a language model gives them, as the calling agent gives them, and in memory ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, assert_never

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from madeleine.memory.language_model import Rejected
from madeleine.memory.model import MemoryId
from madeleine.patrol.deciding.requests import MAX_MEMORIES, DecisionKind, DecisionRequest

MAX_TEXT_CHARS = 2_000
MAX_POINT_CHARS = 300
POINTS = (3, 7)

# --- in memory ids ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Merge:
    survivor: MemoryId
    absorbed: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class Consolidation:
    """spec P6 ❹"""

    merges: tuple[Merge, ...] = ()
    make_dead: tuple[MemoryId, ...] = ()


@dataclass(frozen=True, slots=True)
class NewCluster:
    name: str
    memories: tuple[MemoryId, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """New sub-clusters; a memory in none of them stays (spec P6 ❻)."""

    parts: tuple[NewCluster, ...] = ()


@dataclass(frozen=True, slots=True)
class Diary:
    """spec P8. Checked, `diary` has one line to a line and `think_md` its points without bullets."""

    diary: str
    think_md: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """spec L3"""

    summary: str


Answer = Consolidation | Split | Diary | Summary

# --- of a language model ----------------------------------------------------------------------------------------


class AnswerSchema(BaseModel):
    # It sees numbers in place of ids. Bounds are not in the schemas, where structured outputs know none, but in
    # `checks`. Docstrings would go into the schemas.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class MergeSchema(AnswerSchema):
    survivor: int
    absorbed: list[int]


class ConsolidationSchema(AnswerSchema):
    merges: list[MergeSchema]
    make_dead: list[int]


class NewClusterSchema(AnswerSchema):
    name: str
    memories: list[int]


class SplitSchema(AnswerSchema):
    parts: list[NewClusterSchema]


class DiarySchema(AnswerSchema):
    diary: str
    think_md: list[str]


class SummarySchema(AnswerSchema):
    summary: str


SCHEMAS: Mapping[DecisionKind, type[AnswerSchema]] = {
    "consolidate": ConsolidationSchema, "split": SplitSchema, "diary": DiarySchema, "compress": SummarySchema
}  # fmt: skip


@cache
def _answer_type(kind: DecisionKind) -> TypeAdapter[Answer]:
    types: Mapping[DecisionKind, type[Answer]] = {
        "consolidate": Consolidation, "split": Split, "diary": Diary, "compress": Summary
    }  # fmt: skip
    return TypeAdapter(types[kind])


def with_ids(answer: AnswerSchema, request: DecisionRequest) -> Answer | Rejected:
    """The answer in memory ids. Numbers count from 1 in the order of the request."""
    ids = {number: memory.id for number, memory in enumerate(request.memories, start=1)}
    unknown: set[int] = set()

    def replaced(value: Any) -> Any:
        match value:
            case int():
                unknown.update({value} - ids.keys())
                return ids.get(value, "")
            case list():
                return [replaced(item) for item in value]
            case dict():
                return {name: replaced(item) for name, item in value.items()}
            case _:
                return value

    fields = replaced(answer.model_dump())
    if unknown:
        listed = ", ".join(map(str, sorted(unknown)[:5]))
        return Rejected(f"There is no memory {listed}: the numbers go from 1 to {len(ids)}.")
    return _answer_type(request.kind).validate_python(fields)


# --- of the calling agent ---------------------------------------------------------------------------------------

Id = Annotated[str, Field(min_length=1, max_length=64)]
Ids = Annotated[list[Id], Field(max_length=MAX_MEMORIES)]


# One flat shape for every kind of request. No docstring and no word too many: it goes into the tool's schema, which
# every client puts into every prompt. What the fields mean is said with each request (`prompts.GUIDANCE`).
class Decision(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    offer: Id
    merges: Annotated[list[Ids], Field(max_length=MAX_MEMORIES // 2)] = []
    make_dead: Ids = []
    parts: Annotated[list[Ids], Field(max_length=MAX_MEMORIES // 2)] = []
    diary: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""
    think_md: Annotated[list[Annotated[str, Field(max_length=MAX_POINT_CHARS)]], Field(max_length=POINTS[1])] = []
    summary: Annotated[str, Field(max_length=MAX_TEXT_CHARS)] = ""


def answer_of(decision: Decision, request: DecisionRequest) -> Answer | Rejected:
    """Rejects a decision with fields that belong to another kind of request. Not yet checked."""
    own = tuple(SCHEMAS[request.kind].model_fields)
    given = [name for name in Decision.model_fields if name != "offer" and getattr(decision, name)]
    if foreign := [name for name in given if name not in own]:
        return Rejected(
            f"Offer {request.id} is to {request.kind} and takes {' and '.join(own)}: leave out {', '.join(foreign)}."
        )
    match request.kind:
        case "consolidate":
            if any(len(merge) < 2 for merge in decision.merges):
                return Rejected(f"Offer {request.id}: each of merges names its survivor, then what that absorbs.")
            merges = tuple(Merge(MemoryId(survivor), _ids(absorbed)) for survivor, *absorbed in decision.merges)
            return Consolidation(merges, _ids(decision.make_dead))
        case "split":
            if not all(decision.parts):
                return Rejected(f"Offer {request.id}: each of parts begins with its name, its memories follow.")
            return Split(tuple(NewCluster(name, _ids(memories)) for name, *memories in decision.parts))
        case "diary":
            return Diary(decision.diary, tuple(decision.think_md))
        case "compress":
            return Summary(decision.summary)
        case _:
            assert_never(request.kind)


def _ids(ids: list[str]) -> tuple[MemoryId, ...]:
    return tuple(MemoryId(id_) for id_ in ids)
