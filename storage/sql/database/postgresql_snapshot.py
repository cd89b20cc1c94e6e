"""Reading one state of a ledger on PostgreSQL row by row, outside of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import ClauseElement
from sqlalchemy.ext.asyncio import AsyncConnection

from madeleine.storage.sql.database.engine import Row
from madeleine.storage.sql.database.postgresql import create_postgres_engine, run_postgres_work_to_end

_ROWS_PER_FETCH = 500


class PostgresSnapshot:
    def __init__(self, connection: AsyncConnection, runner: asyncio.Runner) -> None:
        self._connection = connection
        self._runner = runner

    def rows(self, statement: ClauseElement, **binds: Any) -> Iterator[Row]:
        stream: Any = self._connection.stream(statement, binds)  # type: ignore[call-overload]
        result = self._runner.run(run_postgres_work_to_end(stream))
        while rows := self._runner.run(run_postgres_work_to_end(result.fetchmany(_ROWS_PER_FETCH))):
            yield from map(tuple, rows)


@contextmanager
def open_postgres_snapshot(url: str) -> Iterator[PostgresSnapshot]:
    """In a transaction that sees one state. Blocking, for a thread without an event loop. Raises `StorageError`."""
    engine = create_postgres_engine(url, pooled=False).execution_options(isolation_level="REPEATABLE READ")
    with asyncio.Runner() as runner:
        connection = engine.connect()
        runner.run(run_postgres_work_to_end(connection.start()))
        try:
            yield PostgresSnapshot(connection, runner)
        finally:
            runner.run(connection.close())
