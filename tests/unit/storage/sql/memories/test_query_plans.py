"""ruling 25, ruling 14: what looks for a few memories does not read all of a being's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import ClauseElement

from madeleine.storage.sql.conversations import session_start
from madeleine.storage.sql.database.sqlite import compile_statement
from madeleine.storage.sql.erasing import memories as erasing
from madeleine.storage.sql.ledger import open_ledger
from madeleine.storage.sql.memories import index_source, reading, storing, truth, versions


@pytest.mark.parametrize(
    "statement",
    [
        erasing._SELECT_REMAINING_ABSORBED_MEMORIES,
        erasing._SELECT_ORIGINALS_OF_SUMMARIES,
        erasing._UNLINK_ORIGINALS_FROM_SUMMARIES,
        index_source._DELETE_ORPHANED_VECTORS,
        storing._CLEAR_RESEMBLES_POINTERS_TO_MEMORY,
        truth._SELECT_PREDECESSORS_OF_MEMORIES,
        truth._SELECT_PREDECESSORS_OF_SURVIVOR,
        versions._SELECT_CURRENT_VERSIONS,
        versions._SELECT_ALL_VERSIONS,
        reading._SELECT_MEMORIES_BY_IDS,
        session_start._SELECT_PINNED_MEMORIES,
        session_start._SELECT_MEMORIES_CORRECTED_SINCE,
    ],
)
async def test_few_memories_are_found_by_an_index(new_db: Path, statement: ClauseElement) -> None:
    async with open_ledger(new_db):
        pass
    compiled = compile_statement(statement)
    with closing(sqlite3.connect(new_db)) as connection:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {compiled}", compiled.params).fetchall()
    steps = [row[-1] for row in rows]
    of_beings = ("SEARCH beings", "SEARCH revisions")
    assert not [step for step in steps if step.endswith("(being_id=?)") and not step.startswith(of_beings)]
    assert not [step for step in steps if step.startswith(("SCAN memories", "SCAN embeddings"))]
    assert any(" INDEX " in step for step in steps)
