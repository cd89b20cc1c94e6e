from __future__ import annotations

import pytest

from tests.contracts.ledger.any_ledger import StoringLedger
from tests.contracts.ledger.keyword_contract import KeywordContract
from tests.contracts.ledger.ledger_contract import LedgerContract
from tests.contracts.ledger.truth_contract import TruthContract
from tests.fakes.ledger import InMemoryLedger


class TestInMemoryLedger(LedgerContract, KeywordContract, TruthContract):
    @pytest.fixture
    def ledger(self) -> StoringLedger:
        return InMemoryLedger()
