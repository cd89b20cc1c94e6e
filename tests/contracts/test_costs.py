"""The contract of costs, on SQLite and on PostgreSQL; and `madeleine costs` (spec O10)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from madeleine.memory.language_model import ModelCallCost
from madeleine.memory.model import BeingId, RunId, Scope
from madeleine.memory.operations.ports import CostRecordRepository
from madeleine.server.cli.main import main
from madeleine.storage.sql.ledger import LedgerRepositories, open_ledger
from tests.contracts.ledger.cost_contract import MORNING, NIGHT, RECORDS, CostContract


class TestSqlCosts(CostContract):
    @pytest.fixture
    def costs(self, sql_ledger: LedgerRepositories) -> CostRecordRepository:
        return sql_ledger.costs


async def test_what_a_patrol_records_is_among_the_costs(sql_ledger: LedgerRepositories) -> None:
    spent = ModelCallCost(purpose="diary", model="small", input_tokens=90, output_tokens=10, usd=0.5)
    await sql_ledger.patrols.record_cost(Scope(BeingId("ada"), "test"), RunId("run-1"), spent, at=NIGHT)
    assert await sql_ledger.costs.query() == (RECORDS[0],)


def test_the_command_shows_calls_tokens_and_price_by_what_is_asked_for(
    new_db: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MADELEINE_DATA_DIR", str(new_db.parent))
    monkeypatch.setattr("os.umask", lambda mask: mask)  # it would be this process's for good
    assert main(["costs"]) == 0
    assert capsys.readouterr().out == "No call of a language model is recorded here.\n"

    async def record() -> None:
        async with open_ledger(new_db) as ledger:
            for record in RECORDS:
                await ledger.costs.save(record)

    asyncio.run(record())
    assert main(["costs", "--by", "model"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["model", "calls", "tokens", "in", "tokens", "out", "US", "dollars"],
        ["large", "1", "1,000,000,000,000", "1", "0.2500"],
        ["small", "3", "270", "30", "1.5000"],
        ["all", "4", "1,000,000,000,270", "31", "1.7500"],
        "The price of 1 call is not known, and is missing from the dollars.".split(),
    ]
    day = MORNING.date().isoformat()
    assert main(["costs", "--by", "run", "--being", "ada", "--since", day, "--until", day, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["by"], [total["group"] for total in told["costs"]]) == ("run", ["run-1", "run-2"])
    assert (told["costs"][1]["usd"], told["costs"][1]["unpriced_calls"]) == (None, 1)
    assert main(["costs", "--since", "yesterday"]) == 2
    assert "--since: 'yesterday' is not a date" in capsys.readouterr().err
