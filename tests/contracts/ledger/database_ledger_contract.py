"""All that a ledger over a database keeps, whichever database it is."""

from __future__ import annotations

import json

from sqlalchemy import select

from madeleine.storage.sql.database.tables import patrol_runs
from madeleine.storage.sql.ledger import LedgerRepositories
from tests.contracts.ledger.any_ledger import AnyLedger
from tests.contracts.ledger.forgetting_contract import ForgettingContract
from tests.contracts.ledger.keyword_contract import KeywordContract
from tests.contracts.ledger.ledger_contract import LedgerContract
from tests.contracts.ledger.patrol_contract import PatrolContract
from tests.contracts.ledger.patrol_state_contract import PatrolStateContract
from tests.contracts.ledger.search_contract import SearchContract
from tests.contracts.ledger.truth_contract import TruthContract


class DatabaseLedgerContract(
    LedgerContract,
    KeywordContract,
    TruthContract,
    PatrolStateContract,
    ForgettingContract,
    PatrolContract,
    SearchContract,
):
    async def _reports(self, ledger: AnyLedger) -> list[object]:
        assert isinstance(ledger, LedgerRepositories)
        statement = select(patrol_runs.c.report)
        return await ledger.database.rows(statement, lambda row: json.loads(row[0]))
