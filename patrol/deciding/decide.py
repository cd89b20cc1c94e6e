"""An offer is put to a language model (spec P6 ❹ ❻, P8, L3)."""

from __future__ import annotations

from madeleine.memory.language import Rejected
from madeleine.memory.metered_model import MeteredModel
from madeleine.patrol.deciding.answers import Answer
from madeleine.patrol.deciding.checks import against_offer
from madeleine.patrol.deciding.offer import Offer
from madeleine.patrol.deciding.prompts import render
from madeleine.patrol.deciding.shapes import AnswerShape, shape_of, with_ids


async def decide(model: MeteredModel, offer: Offer) -> Answer:
    """An answer that fits its offer, in memory ids; it is still to be held against the memories as they are when it is
    applied (`checks.against_present`). Raises `LanguageModelUnavailable`,
    `UnusableAnswer`."""

    def judge(shape: AnswerShape) -> Answer | Rejected:
        found = with_ids(shape, offer)
        answer = found if isinstance(found, Rejected) else against_offer(found, offer)
        return Rejected(in_numbers(answer.reason, offer)) if isinstance(answer, Rejected) else answer

    return await model.ask(render(offer), shape_of(offer.kind), judge)


def in_numbers(reason: str, offer: Offer) -> str:
    """With the numbers that the model knows for the ids that it does not."""
    for number, memory in enumerate(offer.memories, start=1):
        reason = reason.replace(repr(memory.id), str(number))
    return reason
