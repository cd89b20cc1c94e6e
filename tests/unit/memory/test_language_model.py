"""spec O10: language-model calls are recorded, bounded by a budget, and repeated once after an invalid answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from pydantic import BaseModel

from madeleine.memory.errors import LanguageModelUnavailable, TokenBudgetTooSmallForNextCall, UnusableAnswer
from madeleine.memory.language_model import ModelCallCost, Prompt, RejectedModelAnswer, max_total_tokens_of_call
from tests.doubles import metered

PROMPT = Prompt(purpose="classify", system="Count.", text="one two", size="small", max_tokens=100)


class Number(BaseModel):
    value: int


class ScriptedModel:
    """Gives these answers in order, at ten tokens each."""

    def __init__(self, *answers: Number | RejectedModelAnswer | Exception) -> None:
        self.prompts: list[Prompt] = []
        self._answers = list(answers)

    async def answer_prompt(
        self, prompt: Prompt, schema: object, on_cost: Callable[[ModelCallCost], None]
    ) -> Number | RejectedModelAnswer:
        self.prompts.append(prompt)
        answer = self._answers.pop(0)
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        on_cost(ModelCallCost(purpose=prompt.purpose, model="scripted-1", input_tokens=6, output_tokens=4, usd=None))
        return answer


def even(number: Number) -> int | RejectedModelAnswer:
    return number.value if number.value % 2 == 0 else RejectedModelAnswer("It is odd.")


async def ask(model: ScriptedModel, spent: list[ModelCallCost], budget: int = 0) -> int:
    return await metered(model, spent, budget=budget).answer_prompt(PROMPT, Number, even)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [Number(value=1), RejectedModelAnswer("it is not JSON.", text="one")])
async def test_a_rejected_answer_is_sent_back_once_with_the_reason(first: Number | RejectedModelAnswer) -> None:
    model, spent = ScriptedModel(first, Number(value=2)), list[ModelCallCost]()
    assert await ask(model, spent) == 2
    assert len(spent) == 2
    rejected = model.prompts[1].rejected
    assert rejected
    assert (rejected.reason, rejected.text) in [("It is odd.", '{"value":1}'), ("it is not JSON.", "one")]


async def test_two_rejected_answers_are_unusable() -> None:
    model, spent = (
        ScriptedModel(RejectedModelAnswer("it is not JSON.", text="one"), Number(value=1)),
        list[ModelCallCost](),
    )
    with pytest.raises(UnusableAnswer, match=r"scripted-1 cannot be used: It is odd\."):
        await ask(model, spent)
    assert len(spent) == 2


async def test_a_call_that_may_exceed_the_budget_is_not_made() -> None:
    model, spent = ScriptedModel(Number(value=1), Number(value=2)), list[ModelCallCost]()
    with pytest.raises(TokenBudgetTooSmallForNextCall):
        await ask(model, spent, budget=max_total_tokens_of_call(PROMPT) + 5)
    assert len(model.prompts) == len(spent) == 1


async def test_concurrent_calls_reserve_their_tokens() -> None:
    model, spent = ScriptedModel(Number(value=2), Number(value=4)), list[ModelCallCost]()
    meter = metered(model, spent, budget=max_total_tokens_of_call(PROMPT) + 50)  # type: ignore[arg-type]
    calls: Sequence[object] = await asyncio.gather(
        *(meter.answer_prompt(PROMPT, Number, even) for _ in range(2)), return_exceptions=True
    )
    assert calls[0] == 2
    assert isinstance(calls[1], TokenBudgetTooSmallForNextCall)
    assert await meter.answer_prompt(PROMPT, Number, even) == 4, "what was reserved is free again"


async def test_the_tokens_of_a_call_that_fails_are_not_reserved_any_more() -> None:
    model, spent = ScriptedModel(LanguageModelUnavailable("m", "it is away"), Number(value=2)), list[ModelCallCost]()
    meter = metered(model, spent, budget=max_total_tokens_of_call(PROMPT) + 5)  # type: ignore[arg-type]
    with pytest.raises(LanguageModelUnavailable, match="away"):
        await meter.answer_prompt(PROMPT, Number, even)
    assert await meter.answer_prompt(PROMPT, Number, even) == 2
