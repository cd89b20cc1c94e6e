"""A patrol run: the services that its steps use, its limits, and its units of work."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import InitVar, dataclass, field
from datetime import date, datetime

from madeleine.memory.embedding import Embedder, EmbeddingOutcome, embed_with_cache
from madeleine.memory.index import WordIdfSource
from madeleine.memory.language_model import LanguageModel, MeteredModel, ModelCallCost
from madeleine.memory.model import ClusterId, EmbeddingModelName, MemoryId, RunId, Scope
from madeleine.memory.retention.ports import RetentionLedger
from madeleine.memory.rules.archiving.retention import EndedSessionOrProject, RetentionConfig
from madeleine.memory.rules.storing.secrets import RedactText, redact_secrets
from madeleine.patrol.ports import PatrolLedger, PatrolMemoryReader, PatrolTransaction
from madeleine.patrol.report import PatrolModelCosts
from madeleine.patrol.unit_of_work import PreparedStepInputs, UnitOfWork


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolConfig:
    """`token_budget`: for the language model in one patrol, 0 for unlimited. `step_seconds`: after these a step starts
    nothing new, and the rest waits for the next patrol. `compression_threshold`: number of sessions above which the
    older ones are summarised (spec L3). `undoable_runs`: number of finished runs that can be undone (ruling 26)."""

    token_budget: int = 200_000
    step_seconds: float = 60.0
    compression_threshold: int = 50
    undoable_runs: int = 100


@dataclass(frozen=True, slots=True)
class RetentionServices:
    """What the archive needs, and the rules (spec O8)."""

    ledger: RetentionLedger
    config: RetentionConfig = field(default_factory=RetentionConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatrolServices:
    """Shared by all patrols of a store. `now` is aware, in UTC; `local_day` is the day of a moment where the people
    are, by default in UTC: a being ages once in it, and has a diary entry for it;
    `write_lock` is the one of `StoreScenes`: a memory that it finds alive is alive when it is reinforced."""

    ledger: PatrolLedger
    word_idf: WordIdfSource
    embedder: Embedder
    now: Callable[[], datetime]
    local_day: Callable[[datetime], date] = datetime.date
    redact: RedactText = redact_secrets
    config: PatrolConfig = PatrolConfig()
    write_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    retention: RetentionServices | None = None
    """None: nothing is archived."""

    @property
    def embedding_model_name(self) -> EmbeddingModelName:
        return self.embedder.model_name

    def today(self) -> date:
        return self.local_day(self.now())

    async def embed(self, texts: Iterable[str]) -> EmbeddingOutcome:
        return await embed_with_cache(self.embedder, self.ledger, texts)


@dataclass(eq=False)
class PatrolRunContext:
    """One run. In a dry run all steps share one transaction, which is rolled back."""

    services: PatrolServices
    scope: Scope
    run_id: RunId
    language: InitVar[LanguageModel | None] = None
    dry_run: bool = False
    costs: PatrolModelCosts = field(default_factory=PatrolModelCosts)
    counts: Counter[str] = field(default_factory=Counter)
    """What the current step has done so far."""
    split_cluster_ids: set[ClusterId] = field(default_factory=set)
    """Clusters that this run has made by splitting."""
    prepared: PreparedStepInputs | None = None
    """For ❶, if prepared before the steps, as for a dry run."""
    ended: EndedSessionOrProject | None = None
    """A session or project that has ended; None: the rules are enforced when it is their time."""
    has_one_step: bool = False
    archived_ids: list[MemoryId] = field(default_factory=list)
    report_progress: Callable[[int, int], None] = lambda done, total: None
    """(done, total) of the current step."""

    def __post_init__(self, language: LanguageModel | None) -> None:
        self.language_model: MeteredModel | None = None
        if language is not None:
            budget = self.services.config.token_budget
            self.language_model = MeteredModel(
                language, self._record_cost, budget=budget, spent_tokens=self._spent_tokens
            )
        self.reads: PatrolMemoryReader = self.services.ledger.memory_reader_for_patrol(self.scope)
        self._shared_transaction: PatrolTransaction | None = None
        self._step_deadline = 0.0

    def share_transaction_between_steps(self, transaction: PatrolTransaction) -> None:
        """For all steps of a dry run."""
        self.reads = self._shared_transaction = transaction

    def reset_step_counts_and_deadline(self) -> None:
        self.counts = Counter()
        self._step_deadline = time.monotonic() + self.services.config.step_seconds

    @property
    def is_step_out_of_time(self) -> bool:
        return time.monotonic() > self._step_deadline

    @asynccontextmanager
    async def unit_of_work(self, step: str, prepared: PreparedStepInputs | None = None) -> AsyncIterator[UnitOfWork]:
        """A transaction of its own, written when left without an exception."""
        services = self.services
        async with AsyncExitStack() as stack:
            transaction = self._shared_transaction
            if transaction is None:
                await stack.enter_async_context(services.write_lock)
                transaction = await stack.enter_async_context(services.ledger.patrol_transaction(self.scope))
            work = UnitOfWork(
                self.scope,
                transaction,
                services.word_idf,
                services.embedding_model_name,
                run=self.run_id,
                now=services.now(),
                prepared=prepared or PreparedStepInputs(),
                space=services.embedder.vector_space,
                excluded_from_merge=frozenset(self.split_cluster_ids),
            )
            yield work
            await work.write_changes(step)

    async def _spent_tokens(self, purpose: str) -> int:
        return self.costs.input_tokens + self.costs.output_tokens

    async def _record_cost(self, spent: ModelCallCost) -> None:
        """Recorded whatever becomes of the run."""
        before = self.costs
        self.costs = PatrolModelCosts(
            calls=before.calls + 1,
            input_tokens=before.input_tokens + spent.input_tokens,
            output_tokens=before.output_tokens + spent.output_tokens,
            usd=None if before.usd is None or spent.usd is None else before.usd + spent.usd,
        )
        await self.services.ledger.record_cost(self.scope, self.run_id, spent, at=self.services.now())
