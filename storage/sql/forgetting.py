"""Erasing memories from every table (ruling 11). What a table that comes later holds of them belongs here too."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from memory.audit import entry_of
from memory.model import Cluster, Memory, MemoryId
from memory.ports import Erased
from memory.rules.traces import all_texts, folded, redacted, renamed, tells_of, without_retelling
from memory.scope import Scope
from storage.sql import audit, clusters, embeddings, memories, pending, revisions
from storage.sql.engine import Database, Reads, Row, Transaction
from storage.sql.query import among, as_list
from storage.sql.rows import MEMORY, from_memory, scalar, to_memory
from storage.sql.tables import forgotten, index_pending, notes, patrol_runs, reinforcements
from storage.sql.tables import memories as table
from storage.sql.tables import revisions as revisions_table

_m = table.c
_BEING = bindparam("being", type_=_m.being_id.type)
_PARTS = tuple(
    delete(part).where(among(part.c.memory_id, "ids"))
    for part in (revisions_table, reinforcements, index_pending, notes)
)
_DELETE = delete(table).where(among(_m.id, "ids"))
_SAID_AGAIN = select(reinforcements.c.text).where(among(reinforcements.c.memory_id, "ids"))
_ABSORBED = select(_m.id, _m.absorbed_into).where(
    _m.being_id == _BEING, among(_m.absorbed_into, "ids"), ~among(_m.id, "ids")
)
_TIE = update(table).where(_m.id == bindparam("target")).values(absorbed_into=bindparam("survivor"))
_RETOLD = (
    update(table)
    .where(_m.id == bindparam("target"))
    .values(when_=bindparam("new_when"), folded=bindparam("new_folded"), content_hash=bindparam("new_hash"))
)
_MEMBERS = select(*MEMORY).where(_m.being_id == _BEING, _m.cluster_id == bindparam("cluster")).order_by(_m.seq)
_REPORTS = select(patrol_runs.c.id, patrol_runs.c.report).where(patrol_runs.c.being_id == _BEING)
_REPORT = update(patrol_runs).where(patrol_runs.c.id == bindparam("target")).values(report=bindparam("new_report"))
_MARK = insert(forgotten)
_MARKS = select(forgotten.c.mark, forgotten.c.memory_id).order_by(forgotten.c.mark)
_CLEAR = delete(forgotten).where(forgotten.c.mark == bindparam("old_mark"))


async def forget(database: Database, scope: Scope, ids: Sequence[MemoryId], *, at: datetime) -> Erased:
    async with database.transaction() as transaction:
        gone = await memories.by_ids(transaction, scope, ids)
        if not gone:
            return Erased()
        gone_ids = [memory.id for memory in gone]
        words = await _words(transaction, scope, gone)
        related, retold = await _untie(transaction, scope, gone)
        for statement in (*_PARTS, _DELETE):
            await transaction.run(statement, [{"ids": as_list(gone_ids)}])
        names = await _mend_clusters(transaction, scope, [*gone, *retold], words)
        await embeddings.remove_orphans(transaction, [memory.content_hash for memory in gone])
        await _redact_reports(transaction, scope, words, names)
        await transaction.run(_MARK, [{"memory_id": id_} for id_ in gone_ids])
        await audit.append(transaction, [entry_of(scope, "forget", at, tool="forget", ids=gone_ids)])
        return Erased(tuple(gone_ids), tuple(related))


async def marks(reads: Reads) -> list[tuple[int, MemoryId]]:
    return await reads.rows(_MARKS, _to_pair)


async def clear(database: Database, done: Sequence[int]) -> None:
    async with database.transaction() as transaction:
        await transaction.run(_CLEAR, [{"old_mark": mark} for mark in done])


def _to_pair(row: Row) -> tuple[Any, Any]:
    return row[0], row[1]


async def _words(transaction: Transaction, scope: Scope, gone: Sequence[Memory]) -> str:
    """All that was ever said of them, as `memory.rules.traces` compares it."""
    ids = [memory.id for memory in gone]
    said = [text for memory in gone for text in all_texts(memory)]
    said += await transaction.rows(_SAID_AGAIN, scalar, ids=as_list(ids))
    for revision in await revisions.of(transaction, scope, ids):
        said += [revision.before.text or "", *(revision.before.themes or ())]
    return folded(said)


async def _untie(transaction: Transaction, scope: Scope, gone: Sequence[Memory]) -> tuple[list[MemoryId], list[Memory]]:
    """What they absorbed is left to the one that absorbed them, if any (ruling 3), which retells them no longer.

    The memories that stay on either end of such a tie; and, as they were, those whose text has changed by it.
    """
    into = {memory.id: memory.absorbed_into for memory in gone}
    absorbed = await transaction.rows(_ABSORBED, _to_pair, being=scope.being_id, ids=as_list(into))
    await transaction.run(_TIE, [{"target": id_, "survivor": _survivor(of, into)} for id_, of in absorbed])
    heirs = [heir for memory in gone if (heir := _survivor(memory.absorbed_into, into))]
    survivors = await memories.by_ids(transaction, scope, heirs)
    retold = await _retell(transaction, survivors, {memory.scene.action for memory in gone})
    return list(dict.fromkeys([*(id_ for id_, _ in absorbed), *(memory.id for memory in survivors)])), retold


def _survivor(id_: MemoryId | None, into: Mapping[MemoryId, MemoryId | None]) -> MemoryId | None:
    """The first up the chain that stays."""
    left = dict(into)
    while id_ is not None and id_ in left:
        id_ = left.pop(id_)
    return None if id_ in into else id_


async def _retell(transaction: Transaction, survivors: Sequence[Memory], actions: set[str]) -> list[Memory]:
    """Those that are changed, as they were. Their new text is embedded by whoever fills in vectors."""
    changed = []
    for old in survivors:
        new = replace(old, scene=without_retelling(old.scene, actions))
        if new == old:
            continue
        row = from_memory(new)
        change = {"new_when": row["when_"], "new_folded": row["folded"], "new_hash": row["content_hash"]}
        await transaction.run(_RETOLD, [{"target": new.id} | change])
        await embeddings.remove_orphans(transaction, [old.content_hash])
        await transaction.run(pending.INSERT, [{"memory_id": new.id}])
        changed.append(old)
    return changed


async def _mend_clusters(
    transaction: Transaction, scope: Scope, changed: Sequence[Memory], words: str
) -> frozenset[str]:
    """Means without the vectors of `changed`, names without the words. All names as they are then."""
    left = {memory.cluster_id for memory in changed}
    found = {one.id: one for one in await clusters.all_of(transaction, scope)}
    mended = {one.id: one for one in await clusters.recompute(transaction, scope, _of(found, left))}
    removed = []
    for one in found.values():
        if one.is_root or not tells_of(one.name, words):
            continue
        members = await transaction.rows(_MEMBERS, to_memory, being=scope.being_id, cluster=one.id)
        name = renamed(one.name, words, members, found[one.parent_id].name if one.parent_id in found else "")
        if name != one.name and not members and not any(other.parent_id == one.id for other in found.values()):
            removed.append(one.id)
        elif name != one.name:
            mended[one.id] = replace(mended.get(one.id, one), name=name)
    await clusters.upsert(transaction, scope, list(mended.values()))
    await clusters.remove(transaction, scope, removed)
    return frozenset(one.name for one in (found | mended).values() if one.id not in removed)


def _of(found: Mapping[Any, Cluster], ids: set[Any]) -> list[Cluster]:
    return [one for id_, one in found.items() if id_ in ids]


async def _redact_reports(transaction: Transaction, scope: Scope, words: str, names: frozenset[str]) -> None:
    changed = []
    for id_, report in await transaction.rows(_REPORTS, _to_pair, being=scope.being_id):
        was = json.loads(report)
        if (new := redacted(was, words, names)) != was:
            changed.append({"target": id_, "new_report": json.dumps(new, ensure_ascii=False)})
    await transaction.run(_REPORT, changed)
