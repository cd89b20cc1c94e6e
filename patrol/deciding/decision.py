"""The decision of the agent that called the tool: one flat shape for every kind of offer (ruling 10)."""

from __future__ import annotations

from typing import Annotated, assert_never

from pydantic import BaseModel, ConfigDict, Field

from madeleine.memory.language import Rejected
from madeleine.memory.model import MemoryId
from madeleine.patrol.deciding.answers import Answer, Consolidation, Diary, Merge, Part, Split, Summary
from madeleine.patrol.deciding.checks import LONGEST_POINT, LONGEST_TEXT, POINTS
from madeleine.patrol.deciding.offer import MOST, Kind, Offer

Id = Annotated[str, Field(min_length=1, max_length=64)]
Ids = Annotated[list[Id], Field(max_length=MOST)]


# No docstring and no word too many: it goes into the tool's schema, which every client puts into every prompt. What the
# fields mean is said with each offer (`prompts.GUIDANCE`).
class Decision(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    offer: Id
    merges: Annotated[list[Ids], Field(max_length=MOST // 2)] = []
    make_dead: Ids = []
    parts: Annotated[list[Ids], Field(max_length=MOST // 2)] = []
    diary: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    think_md: Annotated[list[Annotated[str, Field(max_length=LONGEST_POINT)]], Field(max_length=POINTS[1])] = []
    summary: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""


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


def answer_of(decision: Decision, offer: Offer) -> Answer | Rejected:
    """Refuses a decision with fields that belong to another kind of offer. Not yet checked."""
    own = fields_of(offer.kind)
    given = [name for name in Decision.model_fields if name != "offer" and getattr(decision, name)]
    if foreign := [name for name in given if name not in own]:
        return Rejected(
            f"Offer {offer.id} is to {offer.kind} and takes {' and '.join(own)}: leave out {', '.join(foreign)}."
        )
    match offer.kind:
        case "consolidate":
            if any(len(one) < 2 for one in decision.merges):
                return Rejected(f"Offer {offer.id}: each of merges names its survivor, then what that absorbs.")
            merges = tuple(Merge(MemoryId(one[0]), _ids(one[1:])) for one in decision.merges)
            return Consolidation(merges, _ids(decision.make_dead))
        case "split":
            if not all(decision.parts):
                return Rejected(f"Offer {offer.id}: each of parts begins with its name, its memories follow.")
            return Split(tuple(Part(one[0], _ids(one[1:])) for one in decision.parts))
        case "diary":
            return Diary(decision.diary, tuple(decision.think_md))
        case "compress":
            return Summary(decision.summary)
        case _:
            assert_never(offer.kind)


def _ids(ids: list[str]) -> tuple[MemoryId, ...]:
    return tuple(MemoryId(id_) for id_ in ids)
