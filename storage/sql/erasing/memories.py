"""Erasing memories from every table (ruling 11). What a table that comes later holds of them belongs here too."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update

from madeleine.memory.chat import MessageId
from madeleine.memory.ingest.ports import ErasureResult, ScrubBacklog
from madeleine.memory.model import ClusterId, Memory, MemoryId, Scope
from madeleine.memory.rules.dynamics import mentions
from madeleine.storage.sql.administration import record_audit_entry
from madeleine.storage.sql.archive.erasing import rearchive_after_erasure, restore_archived_to_erase
from madeleine.storage.sql.database.dialect import (
    equals_any,
    in_bound_list_condition,
    json_list_bind_value,
    without_index_use,
)
from madeleine.storage.sql.database.engine import DatabaseRepository, Transaction
from madeleine.storage.sql.database.mapping import (
    first_column_of_row,
    first_two_columns_of_row,
    microseconds_from_moment,
    moment_from_microseconds,
    row_of_being_binds,
    update_row_of_being_statement,
)
from madeleine.storage.sql.database.memory_rows import MEMORY_COLUMNS, memory_from_row, update_merge_survivors
from madeleine.storage.sql.database.tables import (
    ledger_copies_table,
    memories_table,
    metadata,
    notes_table,
    patrol_runs,
    pending_scrub_marks_table,
    reinforcements_table,
)
from madeleine.storage.sql.erasing import patrols
from madeleine.storage.sql.erasing.messages import erase_messages, source_message_ids_of_memories
from madeleine.storage.sql.erasing.scrub_marks import mark_erased_ids_for_scrubbing
from madeleine.storage.sql.erasing.summaries import summaries_quoting_erased_memories
from madeleine.storage.sql.memories import clusters
from madeleine.storage.sql.memories.clusters import ClusterFieldsExceptVector
from madeleine.storage.sql.memories.index_source import delete_orphaned_vectors, mark_memories_for_index
from madeleine.storage.sql.memories.reading import memories_with_ids, revisions_of_memories_oldest_first
from madeleine.storage.sql.memories.storing import remove_ingest_digests_of_memories
from madeleine.storage.sql.memories.truth import relink_version_chains
from madeleine.storage.sql.moving.source_imports import record_forgotten_imported_memories
from madeleine.storage.sql.tables.lifecycle import DeleteRowsNamingForgotten, dependent_rows_removal_statements

_m = memories_table.c
_BEING_ID_BIND = bindparam("being", type_=_m.being_id.type)
_DELETE_STATEMENTS_FOR_MEMORY_ROWS = dependent_rows_removal_statements(metadata, DeleteRowsNamingForgotten)
_SELECT_REINFORCEMENT_TEXTS = select(reinforcements_table.c.text).where(
    in_bound_list_condition(reinforcements_table.c.memory_id, "ids")
)
_IS_OF_BOUND_BEING = without_index_use(_m.being_id) == _BEING_ID_BIND
_IS_REMAINING_MEMORY = (_IS_OF_BOUND_BEING, ~in_bound_list_condition(_m.id, "ids"))
_SELECT_REMAINING_ABSORBED_MEMORIES = select(_m.id, _m.absorbed_into).where(
    *_IS_REMAINING_MEMORY, in_bound_list_condition(_m.absorbed_into, "ids")
)
_UPDATE_ABSORBED_INTO = update_row_of_being_statement(memories_table, "absorbed_into")
_SELECT_NOTE_IDS_OF_MEMORIES = select(notes_table.c.id).where(in_bound_list_condition(notes_table.c.memory_id, "ids"))
_SELECT_ORIGINALS_OF_SUMMARIES = (
    select(_m.id).where(*_IS_REMAINING_MEMORY, in_bound_list_condition(_m.compressed_into, "ids")).order_by(_m.seq)
)
_UNLINK_ORIGINALS_FROM_SUMMARIES = (
    update(memories_table)
    .where(_IS_OF_BOUND_BEING, in_bound_list_condition(_m.compressed_into, "ids"))
    .values(compressed=False, compressed_into=None)
)
_SELECT_CLUSTER_MEMBERS = (
    select(*MEMORY_COLUMNS).where(_m.being_id == _BEING_ID_BIND, _m.cluster_id == bindparam("cluster")).order_by(_m.seq)
)
_SELECT_PATROL_REPORTS = select(patrol_runs.c.id, patrol_runs.c.report).where(patrol_runs.c.being_id == _BEING_ID_BIND)
_UPDATE_PATROL_REPORT = update_row_of_being_statement(patrol_runs, "report")
_c = ledger_copies_table.c
_SELECT_LEDGER_COPY_PATHS_SINCE = (
    select(_c.path)
    .where(equals_any(_c.being_id, "", _BEING_ID_BIND), _c.made_at >= bindparam("earliest"))
    .order_by(_c.made_at, _c.path)
)
_SELECT_PENDING_SCRUB_MARKS = select(pending_scrub_marks_table.c.mark, pending_scrub_marks_table.c.memory_id).order_by(
    pending_scrub_marks_table.c.mark
)
_first = select(func.min(pending_scrub_marks_table.c.mark)).scalar_subquery()
_SELECT_SCRUB_BACKLOG = select(
    select(func.count(pending_scrub_marks_table.c.mark)).scalar_subquery(),
    select(pending_scrub_marks_table.c.erased_at).where(pending_scrub_marks_table.c.mark == _first).scalar_subquery(),
)
_DELETE_SCRUB_MARK = delete(pending_scrub_marks_table).where(pending_scrub_marks_table.c.mark == bindparam("old_mark"))


class _MemoryErasure:
    """Erases memories of a being within a transaction."""

    def __init__(self, transaction: Transaction, scope: Scope, erased: Sequence[Memory]) -> None:
        self._transaction = transaction
        self._scope = scope
        self._erased = erased
        self._ids = [memory.id for memory in erased]
        survivors = {memory.id: memory.absorbed_into for memory in erased}
        self._heirs = {id_: _first_unerased_in_chain(id_, survivors) for id_ in self._ids}
        later = {memory.id: memory.superseded_by or memory.absorbed_into for memory in erased}
        self._successors = {id_: _first_unerased_in_chain(id_, later) for id_ in self._ids}
        self._binds = {"being": scope.being_id, "ids": json_list_bind_value(self._ids)}

    async def erase(self) -> ErasureResult:
        transaction, scope = self._transaction, self._scope
        earlier = await self._texts_and_themes_before_revisions()
        words = await self._folded_text_of_erased_memories(earlier)
        timeline_texts = await self._texts_of_erased_in_timelines(earlier)
        absorbed = await self._give_absorbed_memories_to_heirs()
        relinked = await relink_version_chains(transaction, scope, self._successors)
        retold, heirs = await self._remove_texts_from_timelines(timeline_texts)
        # A session is summarised with all that its memories have absorbed.
        summaries = [memory.compressed_into for memory in retold if memory.compressed_into]
        related = [
            *absorbed,
            *(memory.id for memory in relinked),
            *heirs,
            *(memory.id for memory in retold),
            *await self._release_originals_of_erased_summaries(),
            *summaries,
        ]
        note_ids = await transaction.rows(_SELECT_NOTE_IDS_OF_MEMORIES, first_column_of_row, **self._binds)
        for statement in _DELETE_STATEMENTS_FOR_MEMORY_ROWS:
            await transaction.execute_many(statement, [{"ids": json_list_bind_value(self._ids)}])
        await remove_ingest_digests_of_memories(transaction, scope, self._ids)
        changed = [*self._erased, *retold, *relinked]
        names = await self._recompute_and_rename_clusters(changed, words)
        await delete_orphaned_vectors(transaction, [memory.content_hash for memory in self._erased])
        entries = await patrols.delete_diary_entries_about_memories(transaction, scope, self._ids)
        await patrols.delete_decision_requests_about_memories(
            transaction, scope, [memory.id for memory in changed], words
        )
        journalled = patrols.ErasedMemoryTracesInPatrolJournal(
            heirs=self._heirs,
            successors=self._successors,
            timeline_texts=timeline_texts,
            words=words,
            cluster_names=names,
            note_ids=note_ids,
            cluster_ids={memory.cluster_id for memory in changed if memory.cluster_id},
        )
        await patrols.redact_patrol_journal(transaction, scope, journalled)
        await self._redact_patrol_reports(words, frozenset(names.values()))
        last = {id_ for id_, successor in self._successors.items() if successor is None}
        return ErasureResult(
            erased_ids=tuple(self._ids),
            related_ids=tuple(dict.fromkeys(related)),
            diary_entries=entries,
            current_again_ids=tuple(memory.id for memory in relinked if memory.superseded_by in last),
        )

    async def _texts_and_themes_before_revisions(self) -> list[str]:
        """Texts and themes before each change."""
        changes = [
            revision.before
            for revision in await revisions_of_memories_oldest_first(self._transaction, self._scope, self._ids)
        ]
        return [text for before in changes for text in (before.text or "", *(before.themes or ()))]

    async def _folded_text_of_erased_memories(self, earlier: Iterable[str]) -> str:
        """Every text that was ever stored about the memories, folded for `mentions`."""
        texts = [text for memory in self._erased for text in mentions.all_texts_of_memory(memory)]
        reinforced = await self._transaction.rows(_SELECT_REINFORCEMENT_TEXTS, first_column_of_row, **self._binds)
        return mentions.fold_and_join_texts([*texts, *earlier, *reinforced])

    async def _texts_of_erased_in_timelines(self, earlier: Collection[str]) -> frozenset[str]:
        """Texts about the memories in timelines, without those about remaining memories that they had absorbed."""
        texts = {text for memory in self._erased for text in mentions.texts_taken_over_by_survivor(memory, earlier)}
        kept: set[str] = set()
        known = set(self._ids)
        wave = self._ids
        while wave:
            absorbed = await self._transaction.rows(
                _SELECT_REMAINING_ABSORBED_MEMORIES,
                first_two_columns_of_row,
                being=self._scope.being_id,
                ids=json_list_bind_value(wave),
            )
            wave = [id_ for id_, _ in absorbed if id_ not in known]
            known.update(wave)
            kept.update(memory.scene.action for memory in await memories_with_ids(self._transaction, self._scope, wave))
        shortened = {text for text in texts if text.endswith("…") and any(one.startswith(text[:-1]) for one in kept)}
        return frozenset(texts - kept - shortened)

    async def _give_absorbed_memories_to_heirs(self) -> list[MemoryId]:
        """Give the memories that the erased ones had absorbed to their heirs, if any (ruling 3); return their ids."""
        absorbed = await self._transaction.rows(
            _SELECT_REMAINING_ABSORBED_MEMORIES, first_two_columns_of_row, **self._binds
        )
        rows = [row_of_being_binds(self._scope, id_, absorbed_into=self._heirs[survivor]) for id_, survivor in absorbed]
        await self._transaction.execute_many(_UPDATE_ABSORBED_INTO, rows)
        return [id_ for id_, _ in absorbed]

    async def _remove_texts_from_timelines(self, texts: Collection[str]) -> tuple[list[Memory], list[MemoryId]]:
        """Take the texts out of the timelines of heirs and of earlier survivors. Return the changed memories as they
        were, and the heirs. Their new texts are embedded by whoever fills in vectors."""
        heirs = dict.fromkeys(heir for heir in self._heirs.values() if heir)
        survivors = dict.fromkeys(
            [*heirs, *await patrols.memory_ids_with_patrol_changed_timeline(self._transaction, self._scope)]
        )
        remaining = [id_ for id_ in survivors if id_ not in self._heirs]
        tellers = await memories_with_ids(self._transaction, self._scope, remaining)
        retold = await asyncio.to_thread(_memories_with_texts_removed, tellers, texts)
        changed = [old for old, _ in retold]
        await update_merge_survivors(self._transaction, self._scope, (new for _, new in retold))
        await delete_orphaned_vectors(self._transaction, [old.content_hash for old in changed])
        await mark_memories_for_index(self._transaction, [old.id for old in changed])
        return changed, [memory.id for memory in tellers if memory.id in heirs]

    async def _release_originals_of_erased_summaries(self) -> list[MemoryId]:
        """Recall the originals of erased summaries again. Return those, and the remaining summaries that may tell of
        erased memories."""
        originals = await self._transaction.rows(_SELECT_ORIGINALS_OF_SUMMARIES, first_column_of_row, **self._binds)
        await self._transaction.execute_many(_UNLINK_ORIGINALS_FROM_SUMMARIES, [self._binds])
        await mark_memories_for_index(self._transaction, originals)
        summaries = (memory.compressed_into for memory in self._erased)
        return [*originals, *(summary for summary in summaries if summary and summary not in self._heirs)]

    async def _recompute_and_rename_clusters(self, changed: Iterable[Memory], words: str) -> dict[str, str]:
        """Recompute the means that the changed memories were part of, and rename clusters whose names mention the
        words. Return the names of all clusters, by id."""
        transaction, scope = self._transaction, self._scope
        former = {memory.cluster_id for memory in changed if memory.cluster_id}
        # Of all clusters, which may be thousands, only the names are needed.
        known = {
            cluster.id: cluster for cluster in await clusters.read_all_clusters_omitting_vectors(transaction, scope)
        }
        renamed, removed = await self._clusters_to_rename_or_remove(known, words)
        outdated = {c.id: c for c in await clusters.read_clusters(transaction, scope, former | renamed.keys())}
        left = [outdated[id_] for id_ in former if id_ in outdated]
        outdated |= {c.id: c for c in await clusters.clusters_with_recomputed_vectors(transaction, scope, left)}
        mended = [replace(cluster, name=renamed.get(cluster.id, cluster.name)) for cluster in outdated.values()]
        await clusters.upsert_clusters(transaction, scope, mended)
        await clusters.delete_clusters(transaction, scope, removed)
        return {id_: renamed.get(id_, cluster.name) for id_, cluster in known.items() if id_ not in removed}

    async def _clusters_to_rename_or_remove(
        self, known: Mapping[ClusterId, ClusterFieldsExceptVector], words: str
    ) -> tuple[dict[ClusterId, str], list[ClusterId]]:
        """New names of those whose names mention the words, and those of which nothing would be left."""
        renamed: dict[ClusterId, str] = {}
        removed: list[ClusterId] = []
        parents = {cluster.parent_id for cluster in known.values()}
        for cluster in await asyncio.to_thread(_clusters_with_names_mentioning, list(known.values()), words):
            binds = {"being": self._scope.being_id, "cluster": cluster.id}
            members = await self._transaction.rows(_SELECT_CLUSTER_MEMBERS, memory_from_row, **binds)
            parent = known[cluster.parent_id].name if cluster.parent_id in known else ""
            name = mentions.cluster_name_after_forgetting(cluster.name, words, members, parent)
            if name != cluster.name and not members and cluster.id not in parents:
                removed.append(cluster.id)
            elif name != cluster.name:
                renamed[cluster.id] = name
        return renamed, removed

    async def _redact_patrol_reports(self, words: str, names: frozenset[str]) -> None:
        reports = await self._transaction.rows(
            _SELECT_PATROL_REPORTS, first_two_columns_of_row, being=self._scope.being_id
        )
        redacted = await asyncio.to_thread(_patrol_reports_without_forgotten_memories, reports, words, names)
        rows = [row_of_being_binds(self._scope, run, report=report) for run, report in redacted]
        await self._transaction.execute_many(_UPDATE_PATROL_REPORT, rows)


async def erase_memories(transaction: Transaction, scope: Scope, memories: Sequence[Memory]) -> ErasureResult:
    """Erase them and what tells of them, without a trace in the audit: what has never been shown, or is taken back."""
    return await _MemoryErasure(transaction, scope, memories).erase() if memories else ErasureResult()


def _first_unerased_in_chain(id_: MemoryId | None, survivors: dict[MemoryId, MemoryId | None]) -> MemoryId | None:
    """The first memory in the chain of survivors, or of later versions, that is not erased."""
    unvisited = dict(survivors)
    while id_ is not None and id_ in unvisited:
        id_ = unvisited.pop(id_)
    return None if id_ in survivors else id_


def _memories_with_texts_removed(tellers: Iterable[Memory], texts: Collection[str]) -> list[tuple[Memory, Memory]]:
    """The memories that have taken over any of the texts, as they are and as they become."""
    pairs = ((old, _memory_without_taken_over_texts(old, texts)) for old in tellers)
    return [(old, new) for old, new in pairs if new != old]


def _memory_without_taken_over_texts(teller: Memory, texts: Collection[str]) -> Memory:
    return replace(
        teller,
        scene=mentions.scene_without_timeline_repeats_of_texts(teller.scene, texts),
        feeling=mentions.remove_absorbed_lessons_from_text(teller.feeling, texts),
        lesson=mentions.remove_absorbed_lessons_from_text(teller.lesson, texts),
    )


def _clusters_with_names_mentioning(
    known: Iterable[ClusterFieldsExceptVector], words: str
) -> list[ClusterFieldsExceptVector]:
    return [cluster for cluster in known if not cluster.is_root and mentions.mentions_forgotten(cluster.name, words)]


def _patrol_reports_without_forgotten_memories(
    reports: Iterable[tuple[str, str]], words: str, names: frozenset[str]
) -> list[tuple[str, Any]]:
    """The reports that mentioned the words, by run. Every patrol has left one."""
    pairs = ((run, json.loads(report)) for run, report in reports)
    redacted = (
        (run, report, mentions.report_without_forgotten_mentions(report, words, names)) for run, report in pairs
    )
    return [(run, new) for run, report, new in redacted if new != report]


class ErasureRepository(DatabaseRepository):
    """`ForgetLedger` and `ErasedBytesLedger`."""

    async def forget(self, scope: Scope, ids: Sequence[MemoryId | MessageId], *, at: datetime) -> ErasureResult:
        async with self._database.transaction() as transaction:
            brought = await restore_archived_to_erase(transaction, scope, ids)
            known = await memories_with_ids(transaction, scope, [MemoryId(id_) for id_ in ids])
            known += await summaries_quoting_erased_memories(transaction, scope, known)
            memory_ids = [memory.id for memory in known]
            sources = [*(MessageId(id_) for id_ in ids), *await source_message_ids_of_memories(transaction, memory_ids)]
            messages, drawn = await erase_messages(transaction, scope, sources)
            await record_forgotten_imported_memories(transaction, scope.being_id, memory_ids)
            erased = await _MemoryErasure(transaction, scope, known).erase() if known else ErasureResult()
            if brought:
                await rearchive_after_erasure(transaction, scope, brought, set(memory_ids))
            if not known and not messages:
                return erased
            # One of the messages stands for all: their bytes are in the ledger's files alone.
            await mark_erased_ids_for_scrubbing(transaction, memory_ids or messages[:1])
            await record_audit_entry(transaction, scope, "forget", at, tool="forget", ids=[*memory_ids, *messages])
            remaining = [id_ for id_ in drawn if id_ not in memory_ids]
            related = tuple(dict.fromkeys([*erased.related_ids, *remaining]))
            # A message does not say when it came here.
            earliest = 0 if messages else min(microseconds_from_moment(memory.created_at) for memory in known)
            binds = {"being": scope.being_id, "earliest": earliest}
            copies = await transaction.rows(_SELECT_LEDGER_COPY_PATHS_SINCE, first_column_of_row, **binds)
            return replace(erased, related_ids=related, message_ids=tuple(messages), copies=tuple(copies))

    async def pending_scrub_marks_with_memory_ids(self) -> list[tuple[int, MemoryId]]:
        return await self._database.rows(_SELECT_PENDING_SCRUB_MARKS, first_two_columns_of_row)

    async def read_scrub_backlog(self) -> ScrubBacklog:
        [(count, erased_at)] = await self._database.rows(_SELECT_SCRUB_BACKLOG, first_two_columns_of_row)
        return ScrubBacklog(count, None if erased_at is None else moment_from_microseconds(erased_at))

    async def clear_scrub_marks(self, marks: Sequence[int]) -> None:
        async with self._database.transaction() as transaction:
            await transaction.execute_many(_DELETE_SCRUB_MARK, [{"old_mark": mark} for mark in marks])

    async def scrub_deleted_bytes(self) -> None:
        await self._database.scrub_deleted_bytes()
