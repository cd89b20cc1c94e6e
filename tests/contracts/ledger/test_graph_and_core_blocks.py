"""The contracts of the entity graph and of core blocks, on SQLite and in memory (spec O12, O14)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from madeleine.memory.core_blocks.ports import CoreBlockLedger
from madeleine.storage.sql.ledger import open_ledger
from tests.contracts.ledger.core_block_contract import CoreBlockContract
from tests.contracts.ledger.graph_contract import GraphContract, LedgerWithGraph
from tests.fakes.graph import InMemoryCoreBlocks, InMemoryGraph
from tests.fakes.store import Store


class TestSqlLedger(GraphContract, CoreBlockContract):
    @pytest.fixture
    async def ledger(self, new_db: Path) -> AsyncIterator[LedgerWithGraph]:
        async with open_ledger(new_db) as ledger:
            yield LedgerWithGraph(ledger.memories, ledger.drawing, ledger.graph)

    @pytest.fixture
    async def blocks(self, new_db: Path) -> AsyncIterator[CoreBlockLedger]:
        async with open_ledger(new_db) as ledger:
            yield ledger.core_blocks


class TestInMemoryLedger(GraphContract, CoreBlockContract):
    @pytest.fixture
    def ledger(self) -> LedgerWithGraph:
        graph = InMemoryGraph(Store())
        return LedgerWithGraph(graph, graph, graph)

    @pytest.fixture
    def blocks(self) -> CoreBlockLedger:
        return InMemoryCoreBlocks()
