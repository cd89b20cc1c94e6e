"""The contracts of the entity graph and of core blocks, on SQLite, on PostgreSQL and in memory (spec O12, O14)."""

from __future__ import annotations

import pytest

from madeleine.memory.core_blocks.ports import CoreBlockLedger
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.core_block_contract import CoreBlockContract
from tests.contracts.ledger.graph_contract import GraphContract, LedgerWithGraph
from tests.fakes.graph import InMemoryCoreBlocks, InMemoryGraph
from tests.fakes.store import Store


class TestSqlLedger(GraphContract, CoreBlockContract):
    @pytest.fixture
    def ledger(self, sql_ledger: LedgerRepositories) -> LedgerWithGraph:
        return LedgerWithGraph(sql_ledger.memories, sql_ledger.graph_extraction, sql_ledger.graph)

    @pytest.fixture
    def blocks(self, sql_ledger: LedgerRepositories) -> CoreBlockLedger:
        return sql_ledger.core_blocks


class TestInMemoryLedger(GraphContract, CoreBlockContract):
    @pytest.fixture
    def ledger(self) -> LedgerWithGraph:
        graph = InMemoryGraph(Store())
        return LedgerWithGraph(graph, graph, graph)

    @pytest.fixture
    def blocks(self) -> CoreBlockLedger:
        return InMemoryCoreBlocks()
