"""The decision of the agent that called the tool: one flat shape for every kind of offer (ruling 10)."""

from __future__ import annotations

from typing import Annotated, assert_never

from pydantic import BaseModel, ConfigDict, Field

from memory.model import MemoryId
from patrol.deciding.answers import Answer, Consolidation, Diary, Merge, Part, Refused, Split, Summary
from patrol.deciding.checks import LONGEST_NAME, LONGEST_POINT, LONGEST_TEXT, POINTS
from patrol.deciding.offer import MOST, Kind, Offer

Id = Annotated[str, Field(min_length=1, max_length=64)]
Ids = Annotated[list[Id], Field(max_length=MOST)]


# No docstrings: they would go into the tool's schema.
class _Flat(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class DecidedMerge(_Flat):
    survivor: Id
    absorbed: Ids


class DecidedPart(_Flat):
    name: Annotated[str, Field(max_length=LONGEST_NAME)]
    memories: Ids


class Decision(_Flat):
    offer: Annotated[Id, Field(description="Its id.")]
    merges: Annotated[list[DecidedMerge], Field(max_length=MOST // 2, description="consolidate")] = []
    make_dead: Annotated[Ids, Field(description="consolidate")] = []
    parts: Annotated[list[DecidedPart], Field(max_length=MOST // 2, description="split")] = []
    diary: Annotated[str, Field(max_length=LONGEST_TEXT, description="diary: 3 to 5 lines")] = ""
    think_md: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_POINT)]],
        Field(max_length=POINTS[1], description="diary: 3 to 7 points"),
    ] = []
    summary: Annotated[str, Field(max_length=LONGEST_TEXT, description="compress")] = ""


def fields_of(kind: Kind) -> tuple[str, ...]:
    """Those of a decision that answer such an offer."""
    match kind:
        case "consolidate":
            return ("merges", "make_dead")
        case "split":
            return ("parts",)
        case "diary":
            return ("diary", "think_md")
        case "compress":
            return ("summary",)
        case _:
            assert_never(kind)


def answer_of(decision: Decision, offer: Offer) -> Answer | Refused:
    """Refuses a decision with fields that belong to another kind of offer. Not yet checked."""
    own = fields_of(offer.kind)
    given = [name for name in Decision.model_fields if name != "offer" and getattr(decision, name)]
    if foreign := [name for name in given if name not in own]:
        return Refused(
            f"Offer {offer.id} is to {offer.kind} and takes {' and '.join(own)}: leave out {', '.join(foreign)}."
        )
    match offer.kind:
        case "consolidate":
            merges = tuple(Merge(MemoryId(one.survivor), _ids(one.absorbed)) for one in decision.merges)
            return Consolidation(merges, _ids(decision.make_dead))
        case "split":
            return Split(tuple(Part(part.name, _ids(part.memories)) for part in decision.parts))
        case "diary":
            return Diary(decision.diary, tuple(decision.think_md))
        case "compress":
            return Summary(decision.summary)
        case _:
            assert_never(offer.kind)


def _ids(ids: list[str]) -> tuple[MemoryId, ...]:
    return tuple(MemoryId(id_) for id_ in ids)
