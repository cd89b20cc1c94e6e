"""The language model: prompts, rejected answers (spec P6 ❶ ❹ ❻, P8, L3), and calls whose cost is recorded and bounded
(spec O10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol, TypeVar

from pydantic import BaseModel

from madeleine.memory.errors import TokenBudgetTooSmallForNextCall, UnusableAnswer
from madeleine.memory.model import RunId, Scope

LanguageModelSize = Literal["small", "large"]
"""A small model classifies; a large one consolidates, splits and writes."""

AnswerModelT = TypeVar("AnswerModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class RejectedModelAnswer:
    """An answer that cannot be used. `reason`: for people and logs, quotes nothing of the answer. `complaint`: for the
    model alone, "" if the reason says it all. `text`: the answer as the model wrote it, "" if its schema was right."""

    reason: str
    complaint: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`system` holds the instructions, `text` the data, which is never an instruction. `purpose` is for the cost
    record: classify, consolidate, split, diary, compress, extract, reformulate."""

    purpose: str
    system: str
    text: str
    size: LanguageModelSize
    max_tokens: int = 4_000
    """Upper bound for the answer."""
    rejected: RejectedModelAnswer | None = None
    """The previous answer to this prompt, with its `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallCost:
    """Cost of one call: tokens as the API counted them; US dollars, None if the price is unknown."""

    purpose: str
    model: str
    input_tokens: int
    output_tokens: int
    usd: float | None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


MAX_ATTEMPTS_PER_PROMPT = 2
MIN_BYTES_PER_TOKEN = 3
"""Lower bound for a prompt: English has 4 or 5, other scripts 3."""

AcceptedAnswerT = TypeVar("AcceptedAnswerT")


class LanguageModel(Protocol):
    """Safe for use by several tasks. Retries, backoff and timeouts are its own."""

    async def answer_prompt(
        self, prompt: Prompt, schema: type[AnswerModelT], on_cost: Callable[[ModelCallCost], None]
    ) -> AnswerModelT | RejectedModelAnswer:
        """Return one answer that fits the schema, or why it does not. `on_cost` is called for every call that cost
        tokens, also where the answer is invalid. Raises `LanguageModelUnavailable`, `UnusableAnswer`; never quotes the
        key."""


class ModelCostRecorder(Protocol):
    async def record_cost(self, scope: Scope, run: RunId, spent: ModelCallCost, *, at: datetime) -> None: ...


@dataclass(eq=False)
class MeteredModel:
    """Safe for use by several tasks: the tokens of calls under way are reserved (spec O10). `record` is awaited after
    each call that cost tokens. `budget`: tokens, 0 for unlimited. `spent_tokens`: how many of them are spent, for a
    purpose."""

    model: LanguageModel
    record: Callable[[ModelCallCost], Awaitable[None]]
    _: KW_ONLY
    budget: int = 0
    spent_tokens: Callable[[str], Awaitable[int]] | None = None
    _reserved: int = field(default=0, init=False)

    async def answer_prompt(
        self,
        prompt: Prompt,
        schema: type[AnswerModelT],
        check: Callable[[AnswerModelT], AcceptedAnswerT | RejectedModelAnswer],
    ) -> AcceptedAnswerT:
        """Return what `check` makes of the answer. After an answer that breaks the schema, or that `check` rejects, the
        model is asked once more, with the complaint. Raises `LanguageModelUnavailable`
        (`TokenBudgetTooSmallForNextCall` if the call might cost more than is left), `UnusableAnswer`."""
        costs: list[ModelCallCost] = []
        reason = ""
        for _ in range(MAX_ATTEMPTS_PER_PROMPT):
            answer = await self._call_within_budget(prompt, schema, costs)
            result = answer if isinstance(answer, RejectedModelAnswer) else check(answer)
            if not isinstance(result, RejectedModelAnswer):
                return result
            reason = result.reason
            text = result.text if isinstance(answer, RejectedModelAnswer) else answer.model_dump_json()
            prompt = replace(prompt, rejected=replace(result, text=text))
        raise UnusableAnswer(costs[-1].model if costs else "that was asked", reason)

    async def _call_within_budget(
        self, prompt: Prompt, schema: type[AnswerModelT], costs: list[ModelCallCost]
    ) -> AnswerModelT | RejectedModelAnswer:
        maximum = max_total_tokens_of_call(prompt)
        if self.budget and self.spent_tokens:
            spent = await self.spent_tokens(prompt.purpose)
            if spent + self._reserved + maximum > self.budget:
                raise TokenBudgetTooSmallForNextCall(maximum, spent, self.budget)
        recorded = len(costs)
        self._reserved += maximum
        try:
            return await self.model.answer_prompt(prompt, schema, costs.append)
        finally:
            self._reserved -= maximum
            for cost in costs[recorded:]:
                await self.record(cost)


def max_total_tokens_of_call(prompt: Prompt) -> int:
    """Upper estimate of what the call may cost."""
    rejected = prompt.rejected or RejectedModelAnswer("")
    texts = (prompt.system, prompt.text, rejected.text, rejected.complaint or rejected.reason)
    return len("".join(texts).encode(errors="replace")) // MIN_BYTES_PER_TOKEN + prompt.max_tokens
