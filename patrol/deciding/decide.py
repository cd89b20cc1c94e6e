"""An offer is put to a language model (spec P6 ❹ ❻, P8, L3)."""

from __future__ import annotations

from collections.abc import Callable

from madeleine.memory.language import Spent
from madeleine.memory.ports import LanguageModel
from madeleine.patrol.deciding.answers import Answer, Refused
from madeleine.patrol.deciding.asking import ask
from madeleine.patrol.deciding.checks import against_offer
from madeleine.patrol.deciding.offer import Offer
from madeleine.patrol.deciding.prompts import render
from madeleine.patrol.deciding.shapes import AnswerShape, shape_of, with_ids


async def decide(language: LanguageModel, offer: Offer, spend: Callable[[Spent], None]) -> Answer:
    """An answer that fits its offer, in memory ids; it is still to be held against the memories as they are when it is
    applied (`checks.against_present`). `spend` is called for every call. Raises `LanguageModelUnavailable`,
    `UnusableAnswer`."""

    def judge(shape: AnswerShape) -> Answer | Refused:
        found = with_ids(shape, offer)
        answer = found if isinstance(found, Refused) else against_offer(found, offer)
        return Refused(in_numbers(answer.reason, offer)) if isinstance(answer, Refused) else answer

    return await ask(language, lambda complaint: render(offer, complaint), shape_of(offer.kind), judge, spend)


def in_numbers(reason: str, offer: Offer) -> str:
    """With the numbers that the model knows for the ids that it does not."""
    for number, memory in enumerate(offer.memories, start=1):
        reason = reason.replace(repr(memory.id), str(number))
    return reason
