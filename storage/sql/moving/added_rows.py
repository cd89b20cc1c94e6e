"""What an import adds as it goes, remembered in the transaction that adds it: so that it is undone by one call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sqlalchemy import bindparam, select

from madeleine.memory.errors import CannotUndo
from madeleine.memory.ingest.ports import StoreBatch
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.retelling import RetellingAdditions
from madeleine.storage.sql.database import tables
from madeleine.storage.sql.database.dialect import insert_if_missing_statement
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import first_column_of_row

_SELECT_IMPORT_STATE = select(tables.imports_table.c.state).where(tables.imports_table.c.id == bindparam("import"))
_INSERT_IMPORTED_ROW_RECORD = insert_if_missing_statement(tables.imported_rows_table)
UNFINISHED_IMPORT_STATE = "unfinished"


def row_for_import_undo(type_: str, *key: str, memory_id: str | None = None, digest: str = "") -> dict[str, str | None]:
    """`digest`: for a reinforcement what it has added, else of the record as it was added."""
    return {
        "type": type_,
        "key": json.dumps(key, ensure_ascii=False),
        "memory_id": memory_id,
        "digest": digest,
    }


async def record_imported_rows(
    transaction: Transaction, import_id: str, rows: Sequence[Mapping[str, str | None]]
) -> None:
    """Raises `CannotUndo` if the import was undone meanwhile: what came after could not be undone."""
    states = await transaction.rows(_SELECT_IMPORT_STATE, first_column_of_row, **{"import": import_id})
    if states != [UNFINISHED_IMPORT_STATE]:
        raise CannotUndo(
            f"The import {import_id} was ended meanwhile. Nothing of this part was added: import it again."
        )
    await transaction.execute_many(_INSERT_IMPORTED_ROW_RECORD, [{**row, "import_id": import_id} for row in rows])


async def record_memories_added_by_import(
    transaction: Transaction, scope: Scope, batch: StoreBatch, added: Sequence[RetellingAdditions]
) -> None:
    """`added`: by each reinforcement of the batch."""
    rows = [row_for_import_undo("memory", memory.id, memory_id=memory.id) for memory in batch.new]
    rows += [
        row_for_import_undo(
            "reinforcement", scope.being_id, told.key or "", memory_id=told.memory_id, digest=addition.to_json()
        )
        for told, addition in zip(batch.reinforcements, added, strict=True)
    ]
    await record_imported_rows(transaction, batch.import_id, rows)
