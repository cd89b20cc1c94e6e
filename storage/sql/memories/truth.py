"""What is true now (ruling 14): the acts that change it, their journal and their undo."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, or_, select

from madeleine.memory.errors import CannotUndo, InvalidInput
from madeleine.memory.ingest.ports import NoTruthChangeToUndo
from madeleine.memory.model import Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics import truth
from madeleine.memory.rules.dynamics.truth import Supersession, TruthChangeKind, TruthChangeOutcome
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.database.dialect import (
    in_bound_list_condition,
    json_list_bind_value,
    json_list_item_rows,
    sql_json_field,
    without_index_use,
)
from madeleine.storage.sql.database.engine import Transaction
from madeleine.storage.sql.database.mapping import (
    encode_column_value,
    first_two_columns_of_row,
    microseconds_from_moment,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row
from madeleine.storage.sql.database.tables import memories_table, truth_changes_table
from madeleine.storage.sql.memories.clusters import recompute_cluster_vectors
from madeleine.storage.sql.memories.index_source import mark_memories_for_index
from madeleine.storage.sql.memories.reading import memories_with_ids
from madeleine.storage.sql.memories.versions import current_version_id_by_memory_id

_a, _m = truth_changes_table.c, memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)

_UPDATE_TRUTH_FIELDS = update_row_of_being_statement(memories_table, *truth.MEMORY_TRUTH_FIELDS).values(kept_until=None)
"""That it was kept says nothing of what is true since (ADR 84)."""
_INSERT_TRUTH_ACT_ROW = insert(truth_changes_table)
_SELECT_PREDECESSORS_OF_MEMORIES = (
    select(*MEMORY_COLUMNS)
    .where(_m.being_id == _BEING_ID_BIND, in_bound_list_condition(_m.superseded_by, "ids"))
    .order_by(_m.valid_until, _m.seq)
)
_SELECT_LAST_TRUTH_ACT = (
    select(_a.act_id, _a.kind)
    .where(_a.memory_id == bindparam("id"), _a.being_id == _BEING_ID_BIND)
    .order_by(_a.seq.desc())
    .limit(1)
)
_absorbed = memories_table.alias("absorbed").c
_IS_ABSORBED_BY_BOUND_MEMORIES = (
    without_index_use(_absorbed.being_id) == _BEING_ID_BIND,
    in_bound_list_condition(_absorbed.absorbed_into, "ids"),
)
_asked = json_list_item_rows(bindparam("ids"))
_SELECT_PREDECESSORS_OF_SURVIVOR = (
    select(*MEMORY_COLUMNS)
    .where(
        _m.being_id == _BEING_ID_BIND,
        _m.superseded_by.is_not(None),
        _m.superseded_by.in_(
            select(_asked.c.value).union_all(select(_absorbed.id).where(*_IS_ABSORBED_BY_BOUND_MEMORIES))
        ),
    )
    .order_by(_m.valid_until, _m.seq)
)
"""Those of a memory, and of what it has absorbed."""
_SELECT_ROWS_OF_TRUTH_ACT = (
    select(_a.memory_id, _a.before, _a.after).where(_a.act_id == bindparam("act")).order_by(_a.seq)
)
_DELETE_TRUTH_ACT = delete(truth_changes_table).where(_a.act_id == bindparam("old_act"))
_DELETE_TRUTH_ACTS_OF_PATROL_RUN = delete(truth_changes_table).where(
    _a.run_id == bindparam("old_run"), _a.being_id == _BEING_ID_BIND
)
_named = truth_changes_table.alias("named").c
_names_an_erased_memory = or_(
    in_bound_list_condition(_named.memory_id, "ids"),
    *(
        in_bound_list_condition(sql_json_field(fields, "superseded_by"), "ids")
        for fields in (_named.before, _named.after)
    ),
)
_DELETE_TRUTH_ACTS_OF_MEMORIES = delete(truth_changes_table).where(
    _a.act_id.in_(select(_named.act_id).where(_named.being_id == _BEING_ID_BIND, _names_an_erased_memory))
)

# --- acts ---------------------------------------------------------------------------------------------------------


async def apply_supersessions(
    transaction: Transaction, scope: Scope, acts: Iterable[Supersession], *, run_id: str = ""
) -> list[Memory]:
    """Return the changed memories, as they are. Raises `NotCurrent` and `InvalidInput`; nothing must be committed then.
    Two that supersede one memory at the same time meet here: the second one is told."""
    changed: list[MemoryId] = []
    for act in acts:
        known = {memory.id: memory for memory in await memories_with_ids(transaction, scope, [act.old, act.new])}
        await _require_existing_current_memory(transaction, scope, act.old, known.get(act.old))
        if (new := known.get(act.new)) is None or not truth.was_superseded_after(new, act.since):
            await _require_existing_current_memory(transaction, scope, act.new, new)
        before = (known[act.old], known[act.new])
        after = truth.memories_after_supersession(*before, act.since, act.at)
        undone = [_encoded_truth_fields(memory) for memory in before]
        if act.makes_new:
            undone[1] |= truth.FIELD_VALUES_MARKING_VERSION_AS_UNDONE
        await _write_truth_act(transaction, scope, "supersede", undone, after, at=act.at, tool=act.tool, run_id=run_id)
        changed += (act.old, act.new)
    return await memories_with_ids(transaction, scope, changed)


async def _require_existing_current_memory(
    transaction: Transaction, scope: Scope, id_: MemoryId, memory: Memory | None
) -> None:
    if memory is None:
        raise InvalidInput(
            f"There is no memory {id_!r}. Nothing was changed: take an id that recall or search_memory returned."
        )
    if memory.truth != "current":
        latest = await current_version_id_by_memory_id(transaction, scope, [id_])
        current = await memories_with_ids(transaction, scope, list(latest.values()))
        truth.require_current_memory(memory, current[0] if current else None)


async def retract_memory(
    transaction: Transaction, scope: Scope, memory_id: MemoryId, reason: str, *, at: datetime, tool: str
) -> TruthChangeOutcome | None:
    """None if there is no such memory. Raises `NotCurrent` if it is retracted already."""
    known = await memories_with_ids(transaction, scope, [memory_id])
    if not known:
        return None
    binds = {"being": scope.being_id, "ids": json_list_bind_value([memory_id])}
    predecessors = await transaction.rows(_SELECT_PREDECESSORS_OF_SURVIVOR, memory_from_row, **binds)
    before = [_encoded_truth_fields(memory) for memory in (*known, *predecessors)]
    after = truth.memories_after_retraction(known[0], predecessors, reason)
    await _write_truth_act(transaction, scope, "retract", before, after, at=at, tool=tool)
    changed = await memories_with_ids(transaction, scope, [memory.id for memory in after])
    return TruthChangeOutcome(kind="retract", changed=tuple(changed))


async def undo_last_truth_change(
    transaction: Transaction, scope: Scope, memory_id: MemoryId, *, at: datetime, tool: str
) -> TruthChangeOutcome | None:
    """Take back the last act that concerned the memory. None if there is no such memory. Raises `CannotUndo`."""
    known = await memories_with_ids(transaction, scope, [memory_id])
    if not known:
        return None
    acts = await transaction.rows(_SELECT_LAST_TRUTH_ACT, first_two_columns_of_row, id=memory_id, being=scope.being_id)
    if not acts:
        raise NoTruthChangeToUndo(
            f"Memory {known[0].short_id} was neither superseded nor retracted nor corrected, nor has it superseded "
            "another. Nothing was changed: recall_memory shows its versions."
        )
    act, kind = acts[0]
    journalled = await transaction.rows(_SELECT_ROWS_OF_TRUTH_ACT, tuple, act=act)
    concerned = [MemoryId(row[0]) for row in journalled]
    now = {memory.id: memory for memory in await memories_with_ids(transaction, scope, concerned)}
    restored = {
        MemoryId(id_): _truth_fields_after_undo(now[id_], json.loads(before), json.loads(after))
        for id_, before, after in journalled
    }
    await _write_truth_fields(transaction, scope, now, restored)
    await transaction.execute_many(_DELETE_TRUTH_ACT, [{"old_act": act}])
    await record_audit_entry(transaction, scope, "restore", at, tool=tool, ids=concerned)
    return TruthChangeOutcome(kind=kind, changed=tuple(await memories_with_ids(transaction, scope, concerned)))


def _truth_fields_after_undo(memory: Memory, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    current = _encoded_truth_fields(memory)
    changed = [name for name in truth.MEMORY_TRUTH_FIELDS if before[name] != after[name]]
    if any(current[name] != after[name] for name in changed):
        raise CannotUndo(
            f"Memory {memory.short_id} was superseded or retracted again since then. Nothing was changed: undo that "
            "first, with this id."
        )
    return current | {name: before[name] for name in changed}


async def _write_truth_act(
    transaction: Transaction,
    scope: Scope,
    kind: TruthChangeKind,
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Memory],
    *,
    at: datetime,
    tool: str,
    run_id: str = "",
) -> None:
    """Write the fields of the memories as they are to be, and the journal: `before` is what an undo makes of them."""
    fields = {memory.id: _encoded_truth_fields(memory) for memory in after}
    await _write_truth_fields(transaction, scope, {memory.id: memory for memory in after}, fields)
    act: dict[str, Any] = {
        "act_id": str(uuid.uuid4()),
        "kind": kind,
        "being_id": scope.being_id,
        "client": scope.client,
    }
    act |= {"tool": tool, "run_id": run_id, "at": microseconds_from_moment(at)}
    rows = [
        act | {"memory_id": id_, "before": json.dumps(dict(undone)), "after": json.dumps(new)}
        for undone, (id_, new) in zip(before, fields.items(), strict=True)
    ]
    await transaction.execute_many(_INSERT_TRUTH_ACT_ROW, rows)
    await record_audit_entry(transaction, scope, kind, at, tool=tool, ids=fields)


async def _write_truth_fields(
    transaction: Transaction,
    scope: Scope,
    concerned: Mapping[MemoryId, Memory],
    fields: Mapping[MemoryId, Mapping[str, Any]],
) -> None:
    """A cluster's mean is that of its current memories, and the index holds state and validity."""
    await transaction.execute_many(
        _UPDATE_TRUTH_FIELDS, [row_of_being_binds(scope, id_, **values) for id_, values in fields.items()]
    )
    await mark_memories_for_index(transaction, fields)
    clusters = {memory.cluster_id for memory in concerned.values() if memory.cluster_id}
    await recompute_cluster_vectors(transaction, scope, clusters)


def _encoded_truth_fields(memory: Memory) -> dict[str, Any]:
    return {name: encode_column_value(getattr(memory, name)) for name in truth.MEMORY_TRUTH_FIELDS}


# --- with patrols and erasure -------------------------------------------------------------------------------------


async def delete_truth_acts_of_patrol_run(transaction: Transaction, scope: Scope, run_id: str) -> None:
    """With the undo of a patrol, which restores the fields by its own journal."""
    await transaction.execute_many(_DELETE_TRUTH_ACTS_OF_PATROL_RUN, [{"old_run": run_id, "being": scope.being_id}])


async def relink_version_chains(
    transaction: Transaction, scope: Scope, erased: Mapping[MemoryId, MemoryId | None]
) -> list[Memory]:
    """Before the memories are erased: what they had superseded is superseded by the next version that stays, from the
    same day on; without one it is current again, as if the erased had never been told (ruling 25). `erased`: each
    memory and the next version that stays. Deletes the acts that name them. Return the relinked memories, as they
    were."""
    binds = {"being": scope.being_id, "ids": json_list_bind_value(erased)}
    predecessors = await transaction.rows(_SELECT_PREDECESSORS_OF_MEMORIES, memory_from_row, **binds)
    remaining = [memory for memory in predecessors if memory.id not in erased]
    for memory in remaining:
        successor = erased[memory.superseded_by] if memory.superseded_by else None
        relinked = truth.memory_with_other_successor(memory, successor, memory.valid_until)
        await transaction.execute_many(
            _UPDATE_TRUTH_FIELDS, [row_of_being_binds(scope, memory.id, **_encoded_truth_fields(relinked))]
        )
    await mark_memories_for_index(transaction, [memory.id for memory in remaining])
    await transaction.execute_many(_DELETE_TRUTH_ACTS_OF_MEMORIES, [binds])
    return remaining
