"""What language models cost (spec O10)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import insert

from memory.language import Spent
from memory.model import RunId
from memory.scope import Scope
from storage.sql.engine import Database
from storage.sql.tables import cost_records
from storage.sql.times import to_micros

_INSERT = insert(cost_records)


async def record(database: Database, scope: Scope, run: RunId, spent: Spent, at: datetime) -> None:
    row = {
        "being_id": scope.being_id,
        "run_id": run,
        "at": to_micros(at),
        "purpose": spent.purpose,
        "model": spent.model,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "usd": spent.usd,
    }
    async with database.transaction() as transaction:
        await transaction.run(_INSERT, [row])
