"""What every log of activations must do; the log of the real ledger and the two fakes do it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.ports import MemoryReactivation, ReactivationRecorder
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.any_ledger import StoringLedger
from tests.contracts.ledger.ledger_values import ADA, MOMENT, batch, memory, stored_memory
from tests.doubles import FakeActivationLog
from tests.fakes.ledger import InMemoryLedger


@dataclass(frozen=True)
class CountedLog:
    """A log, and the reactivations of ADA's memories that it has recorded."""

    log: ReactivationRecorder
    counts: Callable[[], Awaitable[dict[MemoryId, int]]]


MEMORIES = (memory(), memory())
FIRST, SECOND = (stored.id for stored in MEMORIES)


async def log_of(ledger: StoringLedger) -> CountedLog:
    await ledger.memories.commit_store_batch(ADA, batch(*MEMORIES))

    async def counts() -> dict[MemoryId, int]:
        stored = [await stored_memory(ledger, one) for one in MEMORIES]
        return {one.id: one.reactivation_count for one in stored if one.reactivation_count}

    return CountedLog(ledger.activations, counts)


class ActivationLogContract:
    """A fixture `counted` gives an empty log."""

    async def test_flushed_activations_are_added_up(self, counted: CountedLog) -> None:
        counted.log.add_reactivations(
            ADA, [MemoryReactivation(FIRST, 1, MOMENT), MemoryReactivation(SECOND, 2, MOMENT)]
        )
        counted.log.add_reactivations(ADA, [MemoryReactivation(FIRST, 3, MOMENT)])
        await counted.log.flush()
        assert await counted.counts() == {FIRST: 4, SECOND: 2}

    async def test_a_scope_that_does_not_count_leaves_no_trace(self, counted: CountedLog) -> None:
        counted.log.add_reactivations(replace(ADA, count_activations=False), [MemoryReactivation(FIRST, 1, MOMENT)])
        await counted.log.flush()
        assert await counted.counts() == {}

    async def test_flushing_again_counts_nothing_twice(self, counted: CountedLog) -> None:
        await counted.log.flush()
        counted.log.add_reactivations(ADA, [MemoryReactivation(SECOND, 1, MOMENT)])
        counted.log.add_reactivations(ADA, [])
        await asyncio.gather(counted.log.flush(), counted.log.flush())
        assert await counted.counts() == {SECOND: 1}


class TestSqlLedger(ActivationLogContract):
    @pytest.fixture
    async def counted(self, sql_ledger: LedgerRepositories) -> CountedLog:
        return await log_of(sql_ledger)


class TestInMemoryLedger(ActivationLogContract):
    @pytest.fixture
    async def counted(self) -> CountedLog:
        return await log_of(InMemoryLedger())


class TestFakeActivationLog(ActivationLogContract):
    @pytest.fixture
    def counted(self) -> CountedLog:
        log = FakeActivationLog()

        async def counts() -> dict[MemoryId, int]:
            total: Counter[MemoryId] = Counter()
            for _, activation in log.added:
                total[activation.memory_id] += activation.times
            return dict(total)

        return CountedLog(log, counts)
