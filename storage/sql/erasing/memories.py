"""Erasing memories from every table (ruling 11). What a table that comes later holds of them belongs here too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update

from madeleine.memory.chat import MessageId
from madeleine.memory.ingest.ports import Erased
from madeleine.memory.model import Cluster, Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics.mentions import (
    all_texts,
    folded,
    mentions,
    name_without,
    redact_report,
    timeline_texts,
    without_timeline_texts,
)
from madeleine.storage.sql.administration import record_audit
from madeleine.storage.sql.database.dialect import among, as_list
from madeleine.storage.sql.database.engine import Repository, Transaction
from madeleine.storage.sql.database.lifecycle import ClearReference, DeleteRows, tables_declaring
from madeleine.storage.sql.database.mapping import own_row_binds, pair, scalar, update_own_row
from madeleine.storage.sql.database.memory_rows import MEMORY, to_memory, update_timelines
from madeleine.storage.sql.database.tables import forgotten, metadata, notes, patrol_runs, reinforcements
from madeleine.storage.sql.database.tables import memories as table
from madeleine.storage.sql.erasing import derived
from madeleine.storage.sql.erasing import messages as erasing_chat
from madeleine.storage.sql.memories.clusters import (
    all_clusters,
    delete_clusters,
    upsert_clusters,
    with_recomputed_vectors,
)
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors, mark_for_index
from madeleine.storage.sql.memories.reading import memories_by_ids, revisions_of
from madeleine.storage.sql.memories.storing import remove_ingest_digests

_m = table.c
_BEING = bindparam("being", type_=_m.being_id.type)
_CLEAR_REFERENCES = tuple(
    update(part).where(among(part.c[one.column], "ids")).values({one.column: None})
    for part, one in tables_declaring(metadata, ClearReference)
)
_DELETE_ROWS = tuple(
    delete(part).where(among(part.c[one.column], "ids")) for part, one in tables_declaring(metadata, DeleteRows)
)
_SAID_AGAIN = select(reinforcements.c.text).where(among(reinforcements.c.memory_id, "ids"))
_ABSORBED = select(_m.id, _m.absorbed_into).where(
    _m.being_id == _BEING, among(_m.absorbed_into, "ids"), ~among(_m.id, "ids")
)
_TIE = update_own_row(table, "absorbed_into")
_NOTES = select(notes.c.id).where(among(notes.c.memory_id, "ids"))
_SUMMARISED = select(_m.id).where(_m.being_id == _BEING, among(_m.compressed_into, "ids"), ~among(_m.id, "ids"))
_UNSUMMARISE = (
    update(table)
    .where(_m.being_id == _BEING, among(_m.compressed_into, "ids"))
    .values(compressed=False, compressed_into=None)
)
_MEMBERS = select(*MEMORY).where(_m.being_id == _BEING, _m.cluster_id == bindparam("cluster")).order_by(_m.seq)
_REPORTS = select(patrol_runs.c.id, patrol_runs.c.report).where(patrol_runs.c.being_id == _BEING)
_REPORT = update_own_row(patrol_runs, "report")
_MARK = insert(forgotten)
_MARKS = select(forgotten.c.mark, forgotten.c.memory_id).order_by(forgotten.c.mark)
_CLEAR = delete(forgotten).where(forgotten.c.mark == bindparam("old_mark"))


async def _forget(transaction: Transaction, scope: Scope, gone: Sequence[Memory]) -> Erased:
    gone_ids = [memory.id for memory in gone]
    earlier = await _earlier_texts(transaction, scope, gone_ids)
    words = await _words(transaction, gone, earlier)
    into = {memory.id: _survivor(memory.id, {one.id: one.absorbed_into for one in gone}) for memory in gone}
    told = await _told(transaction, scope, gone, earlier)
    related, retold = await _untie(transaction, scope, gone, into, told)
    related += await _unsummarise(transaction, scope, gone)
    # A session is summarised with all that its memories have absorbed.
    related += [one.compressed_into for one in retold if one.compressed_into]
    from_notes = await transaction.rows(_NOTES, scalar, ids=as_list(gone_ids))
    for statement in (*_CLEAR_REFERENCES, *_DELETE_ROWS):
        await transaction.run(statement, [{"ids": as_list(gone_ids)}])
    await remove_ingest_digests(transaction, scope, gone_ids)
    names = await _mend_clusters(transaction, scope, [*gone, *retold], words)
    await delete_orphaned_vectors(transaction, [memory.content_hash for memory in gone])
    entries = await derived.remove_diary(transaction, scope, gone_ids)
    await derived.remove_offers(transaction, scope, [*gone_ids, *(one.id for one in retold)], words)
    means = {memory.cluster_id for memory in (*gone, *retold) if memory.cluster_id}
    going = derived.ErasedMemories(into=into, told=told, words=words, names=names, notes=from_notes, clusters=means)
    await derived.clean_journal(transaction, scope, going)
    await _redact_reports(transaction, scope, words, frozenset(names.values()))
    return Erased(tuple(gone_ids), tuple(dict.fromkeys(related)), entries)


_Earlier = Mapping[MemoryId, Sequence[str]]


async def _earlier_texts(transaction: Transaction, scope: Scope, ids: Sequence[MemoryId]) -> _Earlier:
    """What they said before they were changed, and their earlier themes."""
    found: dict[MemoryId, list[str]] = {}
    for revision in await revisions_of(transaction, scope, ids):
        said = [revision.before.text or "", *(revision.before.themes or ())]
        found.setdefault(revision.memory_id, []).extend(said)
    return found


async def _words(transaction: Transaction, gone: Sequence[Memory], earlier: _Earlier) -> str:
    """All that was ever said of them, as `memory.rules.dynamics.traces` compares it."""
    said = [text for memory in gone for text in (*all_texts(memory), *earlier.get(memory.id, ()))]
    said += await transaction.rows(_SAID_AGAIN, scalar, ids=as_list(memory.id for memory in gone))
    return folded(said)


async def _told(transaction: Transaction, scope: Scope, gone: Sequence[Memory], earlier: _Earlier) -> frozenset[str]:
    """What timelines say of them, but for what is of others, who stay, and whom they had absorbed."""
    told = {text for memory in gone for text in timeline_texts(memory, earlier.get(memory.id, ()))}
    kept: set[str] = set()
    known = {memory.id for memory in gone}
    wave = list(known)
    while absorbed := await transaction.rows(_ABSORBED, pair, being=scope.being_id, ids=as_list(wave)):
        wave = [id_ for id_, _ in absorbed if id_ not in known]
        if not wave:
            break
        known.update(wave)
        kept.update(memory.scene.action for memory in await memories_by_ids(transaction, scope, wave))
    return frozenset(told - kept - {text for text in told if text.endswith("…") and _begins(kept, text[:-1])})


def _begins(texts: Iterable[str], beginning: str) -> bool:
    return any(text.startswith(beginning) for text in texts)


async def _untie(
    transaction: Transaction,
    scope: Scope,
    gone: Sequence[Memory],
    into: Mapping[MemoryId, MemoryId | None],
    told: Collection[str],
) -> tuple[list[MemoryId], list[Memory]]:
    """What they absorbed is left to the one that absorbed them, if any (ruling 3). Nobody retells them any longer: not
    their survivor, not whoever absorbed that one, nor a survivor of long ago.

    The memories that stay on either end of such a tie; and, as they were, those whose text has changed by it.
    """
    absorbed = await transaction.rows(_ABSORBED, pair, being=scope.being_id, ids=as_list(into))
    await transaction.run(_TIE, [own_row_binds(scope, id_, absorbed_into=into[of]) for id_, of in absorbed])
    heirs = dict.fromkeys(heir for heir in into.values() if heir)
    telling = dict.fromkeys([*heirs, *await derived.retelling_sources(transaction, scope)])
    found = await memories_by_ids(transaction, scope, [id_ for id_ in telling if id_ not in into])
    retold = await _retell(transaction, scope, found, told)
    survivors = [memory.id for memory in found if memory.id in heirs]
    return [*(id_ for id_, _ in absorbed), *survivors, *(memory.id for memory in retold)], retold


async def _unsummarise(transaction: Transaction, scope: Scope, gone: Sequence[Memory]) -> list[MemoryId]:
    """What a forgotten summary stood for is recalled again. Those, and the summaries that stay and may tell of what is
    gone."""
    ids = {memory.id for memory in gone}
    binds = {"being": scope.being_id, "ids": as_list(ids)}
    originals = await transaction.rows(_SUMMARISED, scalar, **binds)
    await transaction.run(_UNSUMMARISE, [binds])
    await mark_for_index(transaction, originals)
    return [
        *originals,
        *(one.compressed_into for one in gone if one.compressed_into and one.compressed_into not in ids),
    ]


def _survivor(id_: MemoryId | None, into: Mapping[MemoryId, MemoryId | None]) -> MemoryId | None:
    """The first up the chain that stays."""
    left = dict(into)
    while id_ is not None and id_ in left:
        id_ = left.pop(id_)
    return None if id_ in into else id_


async def _retell(
    transaction: Transaction, scope: Scope, survivors: Sequence[Memory], told: Collection[str]
) -> list[Memory]:
    """Those that are changed, as they were. Their new text is embedded by whoever fills in vectors."""
    retold = await asyncio.to_thread(_retold, survivors, told)
    changed = [old for old, _ in retold]
    await update_timelines(transaction, scope, (new for _, new in retold))
    await delete_orphaned_vectors(transaction, [old.content_hash for old in changed])
    await mark_for_index(transaction, [old.id for old in changed])
    return changed


def _retold(survivors: Sequence[Memory], told: Collection[str]) -> list[tuple[Memory, Memory]]:
    """Those whose timelines say any of it, as they are and as they become."""
    retold = ((old, replace(old, scene=without_timeline_texts(old.scene, told))) for old in survivors)
    return [(old, new) for old, new in retold if new != old]


async def _mend_clusters(
    transaction: Transaction, scope: Scope, changed: Sequence[Memory], words: str
) -> dict[str, str]:
    """Means without the vectors of `changed`, names without the words. All names as they are then, by id."""
    left = {memory.cluster_id for memory in changed}
    found = {one.id: one for one in await all_clusters(transaction, scope)}
    mended = {one.id: one for one in await with_recomputed_vectors(transaction, scope, _of(found, left))}
    removed = []
    for one in await asyncio.to_thread(_telling, list(found.values()), words):
        members = await transaction.rows(_MEMBERS, to_memory, being=scope.being_id, cluster=one.id)
        name = name_without(one.name, words, members, found[one.parent_id].name if one.parent_id in found else "")
        if name != one.name and not members and not any(other.parent_id == one.id for other in found.values()):
            removed.append(one.id)
        elif name != one.name:
            mended[one.id] = replace(mended.get(one.id, one), name=name)
    await upsert_clusters(transaction, scope, list(mended.values()))
    await delete_clusters(transaction, scope, removed)
    return {one.id: one.name for one in (found | mended).values() if one.id not in removed}


def _telling(found: Iterable[Cluster], words: str) -> list[Cluster]:
    return [one for one in found if not one.is_root and mentions(one.name, words)]


def _of(found: Mapping[Any, Cluster], ids: set[Any]) -> list[Cluster]:
    return [one for id_, one in found.items() if id_ in ids]


async def _redact_reports(transaction: Transaction, scope: Scope, words: str, names: frozenset[str]) -> None:
    reports = await transaction.rows(_REPORTS, pair, being=scope.being_id)
    await transaction.run(_REPORT, await asyncio.to_thread(_redacted, scope, reports, words, names))


def _redacted(
    scope: Scope, reports: Sequence[tuple[Any, Any]], words: str, names: frozenset[str]
) -> list[dict[str, Any]]:
    """Those that told of them, as they are to be. Every patrol has left one."""
    changed = []
    for id_, stored in reports:
        report = json.loads(stored)
        if (new := redact_report(report, words, names)) != report:
            changed.append(own_row_binds(scope, id_, report=new))
    return changed


class ErasureRepository(Repository):
    """`ForgetLedger` and `RemainsSource`."""

    async def forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, at: datetime) -> Erased:
        async with self._database.transaction() as transaction:
            gone = await memories_by_ids(transaction, scope, [MemoryId(id_) for id_ in ids])
            gone_ids = [memory.id for memory in gone]
            said = [*(MessageId(id_) for id_ in ids), *await erasing_chat.sources(transaction, gone_ids)]
            messages, drawn = await erasing_chat.erase(transaction, scope, said)
            found = await _forget(transaction, scope, gone) if gone else Erased()
            if not gone and not messages:
                return found
            # One of the messages stands for all: their bytes are in the ledger's files alone.
            await transaction.run(_MARK, [{"memory_id": id_} for id_ in gone_ids or messages[:1]])
            await record_audit(transaction, scope, "forget", at, tool="forget", ids=[*gone_ids, *messages])
            stay = [id_ for id_ in drawn if id_ not in gone_ids]
            return replace(found, related=tuple(dict.fromkeys([*found.related, *stay])), messages=tuple(messages))

    async def pending_scrubs(self) -> list[tuple[int, MemoryId]]:
        return await self._database.rows(_MARKS, pair)

    async def clear_scrubs(self, marks: Sequence[int]) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(_CLEAR, [{"old_mark": mark} for mark in marks])

    async def scrub(self) -> None:
        await self._database.scrub()
