"""A patrol under way: what its steps work with, and what limits them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from madeleine.memory.embedding import Embedded, embed_cached
from madeleine.memory.language import Spent
from madeleine.memory.metered_model import MeteredModel
from madeleine.memory.model import ClusterId, ModelName, RunId
from madeleine.memory.ports import Embedder, LanguageModel, WordStatistics
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope
from madeleine.patrol.night import Evening, Night
from madeleine.patrol.ports import PatrolLedger, PatrolReads, PatrolTransaction
from madeleine.patrol.report import Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolConfig:
    """`token_budget`: for the language model in one patrol, 0 for any number. `step_seconds`: after these a step takes
    up nothing new, and what is left waits for the next patrol. `compression_threshold`: sessions, above which the older
    ones are summarised (spec L3)."""

    token_budget: int = 200_000
    step_seconds: float = 60.0
    compression_threshold: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What every patrol of a store works with. `now` is aware, in UTC; `today` is the day that its people have, whose
    diary is written."""

    ledger: PatrolLedger
    words: WordStatistics
    embedder: Embedder
    now: Callable[[], datetime]
    today: Callable[[], date]
    redact: Redact = redact_secrets
    config: PatrolConfig = PatrolConfig()
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """The one that `StoreScenes` takes: what it has found alive is alive when it is reinforced."""

    def without_secrets(self, text: str) -> str:
        """Of what a mind has written."""
        return self.redact(text).text

    @property
    def model(self) -> ModelName:
        return self.embedder.model

    async def embed(self, texts: Iterable[str]) -> Embedded:
        return await embed_cached(self.embedder, self.ledger, texts)


class Round:
    """One run. In a dry run every step works in one transaction, which is rolled back."""

    def __init__(
        self,
        world: World,
        scope: Scope,
        run_id: RunId,
        language: LanguageModel | None = None,
        *,
        rehearses: bool = False,
    ) -> None:
        self.world = world
        self.scope = scope
        self.run_id = run_id
        self.model = None
        if language is not None:
            self.model = MeteredModel(
                language, self._record, budget=world.config.token_budget, spent_tokens=self._spent_tokens
            )
        self.spending = Spending()
        self.counts: Counter[str] = Counter()
        """What the step under way has done so far."""
        self.made: frozenset[ClusterId] = frozenset()
        """Clusters that this run has made by splitting."""
        self.view: PatrolReads = world.ledger.patrol_reads(scope)
        self.rehearses = rehearses
        self.evening: Evening | None = None
        """What was prepared for ❶ before, as a rehearsal must."""
        self.tell: Callable[[int, int], None] = lambda done, total: None
        """How much of the step under way is done, of how much."""
        self._stage: PatrolTransaction | None = None
        self._until = 0.0

    def go_on_stage(self, transaction: PatrolTransaction) -> None:
        """Every step of a rehearsal works in this one."""
        self.view = self._stage = transaction

    def begin_step(self) -> None:
        self.counts = Counter()
        self._until = time.monotonic() + self.world.config.step_seconds

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > self._until

    async def _spent_tokens(self, purpose: str) -> int:
        return self.spending.input_tokens + self.spending.output_tokens

    async def _record(self, spent: Spent) -> None:
        """Whatever becomes of the run, this was spent."""
        known = self.spending.usd is not None and spent.usd is not None
        self.spending = replace(
            self.spending,
            calls=self.spending.calls + 1,
            input_tokens=self.spending.input_tokens + spent.input_tokens,
            output_tokens=self.spending.output_tokens + spent.output_tokens,
            usd=(self.spending.usd or 0.0) + (spent.usd or 0.0) if known else None,
        )
        await self.world.ledger.record_cost(self.scope, self.run_id, spent, at=self.world.now())

    @asynccontextmanager
    async def night(self, step: str, evening: Evening | None = None) -> AsyncIterator[Night]:
        """A transaction of its own, written when left without an exception."""
        async with AsyncExitStack() as stack:
            transaction = self._stage
            if transaction is None:
                await stack.enter_async_context(self.world.turn)
                transaction = await stack.enter_async_context(self.world.ledger.patrol(self.scope))
            world = self.world
            night = Night(self.scope, transaction, world.words, world.model, run=self.run_id, evening=evening)
            night.spared = self.made
            yield night
            await night.write(step)
