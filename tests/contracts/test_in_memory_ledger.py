from __future__ import annotations

import pytest

from tests.contracts.any_ledger import StoringLedger
from tests.contracts.keyword_contract import KeywordContract
from tests.contracts.ledger_contract import LedgerContract
from tests.fakes.ledger import InMemoryLedger


class TestInMemoryLedger(LedgerContract, KeywordContract):
    @pytest.fixture
    def ledger(self) -> StoringLedger:
        return InMemoryLedger()
