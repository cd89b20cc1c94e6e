"""What the memory thread may spend on a language model (spec O10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from madeleine.memory.language import Answer, Prompt, Spent
from madeleine.memory.model import RunId
from madeleine.memory.ports import LanguageModel
from madeleine.memory.scope import Scope

BUDGET_OF = timedelta(days=1)
"""What a budget is for: a day that slides, read from the ledger, so that a restart does not begin a new one."""
BYTES_A_TOKEN = 3
"""At least, of a prompt: English has 4 or 5, other scripts 3."""


class CostLedger(Protocol):
    async def record_cost(self, scope: Scope, run: RunId, spent: Spent, *, at: datetime) -> None: ...

    async def tokens_since(self, purpose: str, since: datetime) -> int:
        """Of all beings: it is the store's key that pays. Not scoped, as it tells of no being."""
        ...


class OutOfTokens(Exception):
    """The next question might cost more than is left of the budget; it was not asked. `most`: tokens that it may cost.
    `spent`: in the time that the budget is for."""

    def __init__(self, most: int, spent: int) -> None:
        super().__init__(f"{most} tokens may be needed, and {spent} are spent")
        self.most = most
        self.spent = spent


class Paid:
    """A language model whose every call is written down, and which is asked only as far as the budget reaches: what a
    call may cost at most has to be left. 0: no bound."""

    def __init__(
        self,
        language: LanguageModel,
        ledger: CostLedger,
        scope: Scope,
        run: RunId,
        *,
        budget: int,
        now: Callable[[], datetime],
    ) -> None:
        self._language = language
        self._ledger = ledger
        self._scope = scope
        self._run = run
        self._budget = budget
        self._now = now

    async def ask(self, prompt: Prompt, shape: type[Answer], spend: Callable[[Spent], None]) -> Answer:
        """Raises `OutOfTokens` too."""
        if self._budget:
            most = len((prompt.system + prompt.text).encode(errors="replace")) // BYTES_A_TOKEN + prompt.max_tokens
            spent_before = await self._ledger.tokens_since(prompt.purpose, self._now() - BUDGET_OF)
            if spent_before + most > self._budget:
                raise OutOfTokens(most, spent_before)
        costs: list[Spent] = []

        def spent(one: Spent) -> None:
            costs.append(one)
            spend(one)

        try:
            return await self._language.ask(prompt, shape, spent)
        finally:
            for one in costs:
                await self._ledger.record_cost(self._scope, self._run, one, at=self._now())
