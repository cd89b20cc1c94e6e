"""What the views of the page show besides the answers of the tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from madeleine.memory.audit import AuditEntry
from madeleine.memory.chat import ConversationMessage
from madeleine.memory.model import (
    ORGANISATION_KNOWLEDGE_KINDS,
    KnowledgeKind,
    MemoryId,
    RunId,
    Scope,
    short_id_of_memory_number,
    short_id_of_non_memory,
)
from madeleine.memory.organisation.knowledge import caller_scope_in_organisation
from madeleine.memory.patrol_records import PatrolRun
from madeleine.memory.permissions import permissions_of_role
from madeleine.memory.rules.dynamics.importance import (
    IMPORTANCE_DECAY_CYCLES,
    MAX_DYING_IMPORTANCE,
    patrols_until_status_is_dying,
)
from madeleine.memory.rules.dynamics.truth import beginning_of_validity
from madeleine.server import __version__
from madeleine.server.mcp.server import Caller
from madeleine.server.ui.change_reports import (
    audit_entry_as_json,
    changed_fields,
    ids_named_in_change,
    patrol_run_for_web_ui,
)
from madeleine.server.ui.memory_map import SemanticMapCache
from madeleine.server.ui.past_overview import past_overview_as_json
from madeleine.server.wiring.clocks import utc_now
from madeleine.tools.lessons import lesson_as_json
from madeleine.tools.profile import note_as_json
from madeleine.tools.replies import brief_memory_as_json, cluster_as_json, datetime_as_iso

if TYPE_CHECKING:  # a server imports them with the memory, behind its first answers
    from madeleine.server.wiring.open_memory import OpenedMemoryStore
    from madeleine.storage.sql.overview import MemoryOutline, PatrolChangedRow

RecordT = TypeVar("RecordT")

WEB_UI_CLIENT_NAME = "madeleine ui"
CHANGE_AUDIT_EVENTS = (
    *("store", "reinforce", "update", "forget", "observe", "note", "patrol", "profile"),
    *("supersede", "retract", "restore", "import"),
)
MAX_RECENT_CHANGES_SHOWN = 40
FADING_FORECAST_PATROLS = 30
MAX_FORECAST_FADING_MEMORIES = 500
SHOWN_COST_DAYS = 90
MAX_PATROL_RUNS_READ = 1_000
MAX_LESSONS_SHOWN_IN_WEB_UI = 200
GREATEST_AUDIT_NUMBER = 2**62
"""Greater than the number of any entry."""
MESSAGES_PER_CONVERSATION_PAGE = 200


@dataclass(frozen=True, slots=True)
class WebUiDataReader:
    """Reads for one request. `scope` counts no recalls: to look at a memory is not to use it. `as_of`: the moment that
    is looked back at. What was true is told by all that is known today, as `as_of` of `recall` does; what was recorded
    (changes, patrols, conversations, diary, costs, the audit) as far as it had been recorded then."""

    memory: OpenedMemoryStore
    caller: Caller
    memory_maps: SemanticMapCache
    as_of: datetime | None = None

    @property
    def scope(self) -> Scope:
        return Scope(
            self.caller.being_id, WEB_UI_CLIENT_NAME, self.caller.role, count_activations=False, token=self.caller.token
        )

    def caller_rights_and_fading_constants(self) -> dict[str, Any]:
        """Who looks, what they may do, and the constants of fading."""
        rights = permissions_of_role(self.caller.role)
        return {
            "being": self.caller.being_id,
            "role": self.caller.role,
            "rights": ["read"] if self.caller.read_only else sorted(rights),
            "version": __version__,
            "decay_cycles": IMPORTANCE_DECAY_CYCLES,
            "dying_importance": MAX_DYING_IMPORTANCE,
            "shares": self._kinds_that_may_be_shared(),
        }

    def _kinds_that_may_be_shared(self) -> list[KnowledgeKind]:
        access = self.memory.use_cases.organisation.config.write_access
        kinds = [kind for kind in ORGANISATION_KNOWLEDGE_KINDS if access.may_write(self.caller.role, kind)]
        return [] if self.caller.read_only else kinds

    async def overview(self) -> dict[str, Any]:
        """What changed lately, what waits for a decision, who the being is, and how much there is."""
        ledger, scope = self.memory.ledger, self.scope
        overview = ledger.overview
        changes = await overview.audit_page(
            scope, limit=MAX_RECENT_CHANGES_SHOWN, events=CHANGE_AUDIT_EVENTS, until=self.as_of
        )
        runs = await self._latest_patrol_runs(limit=1)
        start = {
            "changes": await self._audit_entries_as_json(changes),
            "last_patrol": patrol_run_for_web_ui(runs[0]) if runs else None,
        }
        if self.as_of is not None:
            outlines, summaries = (
                await overview.memory_outlines(scope),
                await ledger.recall.clusters_with_memory_counts(scope),
            )
            return start | past_overview_as_json(outlines, summaries, self.as_of)
        clusters = await self.memory.use_cases.browse.clusters_with_moods(scope)
        return start | {
            "counts": _memory_counts_by_state(await overview.count_memories_by_status_truth_and_pin(scope)),
            "clusters": [
                cluster_as_json(cluster, mood) | {"count": cluster.active + cluster.dying} for cluster, mood in clusters
            ],
            "think": list((await ledger.context.thoughts_for_next_session(scope)).points),
        }

    async def all_memory_outlines_by_column(self) -> dict[str, list[Any]]:
        """All memories, a column a field: it is read in one go, whatever their number."""
        outlines = await self.memory.ledger.overview.memory_outlines(self.scope)
        return await asyncio.to_thread(_memory_outlines_as_columns, outlines)

    async def memory_provenance_as_json(self, id_: MemoryId) -> dict[str, Any]:
        """What `recall_memory` does not tell of a memory: who wrote and recalled it, and what it was made of."""
        overview, scope = self.memory.ledger.overview, self.scope
        found = await self.memory.ledger.recall.memories_with_ids(scope, [id_])
        entries = self._records_until_as_of(
            await overview.audit_of_memory(scope, id_) if found else [], lambda entry: entry.at
        )
        runs = await self._latest_patrol_runs(limit=MAX_PATROL_RUNS_READ)
        clusters = await self.memory.ledger.recall.clusters_with_memory_counts(scope)
        names = {cluster.id: cluster.name for cluster in clusters}
        return {
            "audit": [audit_entry_as_json(entry) for entry in entries],
            "absorbed": [brief_memory_as_json(memory) for memory in await overview.memories_absorbed_by(scope, id_)],
            "messages": [
                _message_as_json(message)
                for message in self._records_until_as_of(
                    await overview.messages_of_memory(scope, id_), lambda message: message.at
                )
            ],
            "aged": [datetime_as_iso(run.started) for run in runs if _has_aged_memories(run)][::-1],
            "cluster": names.get(found[0].cluster_id, "") if found and found[0].cluster_id else "",
        }

    async def patrol_runs(self, limit: int) -> dict[str, Any]:
        return {"runs": [patrol_run_for_web_ui(run) for run in await self._latest_patrol_runs(limit=limit)]}

    async def _latest_patrol_runs(self, *, limit: int) -> list[PatrolRun]:
        """The latest first."""
        read = limit if self.as_of is None else MAX_PATROL_RUNS_READ
        return self._records_until_as_of(
            await self.memory.ledger.patrols.runs(self.scope, limit=read), lambda run: run.started
        )[:limit]

    def _records_until_as_of(self, records: Iterable[RecordT], at: Callable[[RecordT], datetime]) -> list[RecordT]:
        """Those that had been recorded by then."""
        return [record for record in records if self.as_of is None or at(record) <= self.as_of]

    async def patrol_run_with_changes(self, id_: RunId) -> dict[str, Any]:
        """A run with its changes, field by field; memories with the beginning of what they say."""
        overview = self.memory.ledger.overview
        run = await overview.patrol_run(self.scope, id_)
        changes = await overview.changes_of_patrol_run(self.scope, id_)
        names = await self._names_and_short_ids_by_id(changes)
        return {
            "run": patrol_run_for_web_ui(run) if run else None,
            "changes": [
                {"step": change.step, "kind": change.kind, "target": names.get(change.target, {"id": change.target})}
                | {"fields": changed_fields(change, names)}
                for change in changes
            ],
        }

    async def _names_and_short_ids_by_id(self, changes: Sequence[PatrolChangedRow]) -> dict[str, dict[str, str]]:
        """Short ids and names of what changes are about, and of what their fields name."""
        ids = [MemoryId(id_) for change in changes for id_ in ids_named_in_change(change)]
        memories = await self.memory.ledger.recall.memories_with_ids(self.scope, list(dict.fromkeys(ids)))
        clusters = await self.memory.ledger.recall.clusters_with_memory_counts(self.scope)
        gone = {
            change.target: str((change.before or change.after or {}).get("name", ""))
            for change in changes
            if change.kind == "cluster"
        }
        named = {id_: {"id": short_id_of_non_memory(id_), "name": name} for id_, name in gone.items()}
        named |= {cluster.id: {"id": short_id_of_non_memory(cluster.id), "name": cluster.name} for cluster in clusters}
        return named | {memory.id: {"id": memory.short_id, "text": memory.scene.action[:200]} for memory in memories}

    async def fading_forecast_as_json(self) -> dict[str, Any]:
        """What will be dying after the next patrols, if nobody recalls it; the soonest first."""
        outlines = await self.memory.ledger.overview.memory_outlines(self.scope)
        now = utc_now()
        soon = [
            (left, outline)
            for outline in outlines
            if outline.status == "active" and outline.truth == "current" and not outline.pinned
            if (left := _patrols_until_dying(outline, now)) <= FADING_FORECAST_PATROLS
        ]
        soon.sort(key=lambda each: (each[0], each[1].seq))
        dying = [outline for outline in outlines if outline.status == "dying"]
        return {
            "soon": [_fading_memory_as_json(outline, left) for left, outline in soon[:MAX_FORECAST_FADING_MEMORIES]],
            "dying": [_fading_memory_as_json(outline, 0) for outline in dying[:MAX_FORECAST_FADING_MEMORIES]],
            "total": len(soon),
            "patrols": FADING_FORECAST_PATROLS,
        }

    def stream_semantic_map(self) -> AsyncIterator[dict[str, Any]]:
        """Memories on a plane, near each other where they mean much the same: `SemanticMapCache.stream_map_blocks`."""
        return self.memory_maps.stream_map_blocks(self.memory, self.scope)

    async def conversations(self) -> dict[str, Any]:
        sessions = await self.memory.ledger.conversations.sessions(self.scope, limit=500, all_projects=True)
        return {
            "sessions": [
                asdict(session)
                | {"first_at": datetime_as_iso(session.first_at), "last_at": datetime_as_iso(session.last_at)}
                for session in self._records_until_as_of(sessions, lambda session: session.first_at)
            ]
        }

    async def conversation(self, session_id: str, start: int) -> dict[str, Any]:
        messages = await self.memory.ledger.conversations.session_messages_between_positions(
            self.scope, session_id, start=start, end=start + MESSAGES_PER_CONVERSATION_PAGE
        )
        heard = self._records_until_as_of(messages, lambda message: message.at)
        is_last = len(messages) < MESSAGES_PER_CONVERSATION_PAGE or len(heard) < len(messages)
        shown = [_message_as_json(message) for message in heard]
        return {"messages": shown, "next": None if is_last else start + MESSAGES_PER_CONVERSATION_PAGE}

    async def diary_notes_and_lessons(self) -> dict[str, Any]:
        """Diary, points for the next session, open notes, lessons. Points and which notes were open are of today."""
        context, scope, as_of = self.memory.ledger.context, self.scope, self.as_of
        last_day = "9" if as_of is None else as_of.date().isoformat()
        entries = await context.diary_entries_since(scope, "", limit=1_000)
        notes = await context.list_open_notes(scope, limit=500)
        lessons = await self.memory.ledger.lessons.lessons(scope, limit=MAX_LESSONS_SHOWN_IN_WEB_UI)
        return {
            "diary": [{"date": day.date, "text": day.text} for day in reversed(entries) if day.date <= last_day],
            "think": list((await context.thoughts_for_next_session(scope)).points) if as_of is None else [],
            "notes": [note_as_json(note) for note in self._records_until_as_of(notes, lambda note: note.created_at)],
            "lessons": [
                lesson_as_json(learnt, in_full=True) | {"status": learnt.memory.status}
                for learnt in self._records_until_as_of(lessons, lambda learnt: learnt.memory.created_at)
            ],
        }

    async def language_model_costs(self, now: datetime) -> dict[str, Any]:
        until = self.as_of or now
        costs = await self.memory.ledger.overview.costs_between(
            self.scope, until - timedelta(days=SHOWN_COST_DAYS), until
        )
        return {"costs": [asdict(cost) for cost in costs], "days": SHOWN_COST_DAYS}

    async def audit_entries(self, *, before: int, limit: int, event: str) -> dict[str, Any]:
        entries = await self.memory.ledger.overview.audit_page(
            self.scope,
            limit=limit,
            events=[event] if event else (),
            before=before or GREATEST_AUDIT_NUMBER,
            until=self.as_of,
        )
        return {"entries": await self._audit_entries_as_json(entries)}

    async def audit_entries_after(self, after: int) -> list[dict[str, Any]]:
        """Entries since then, the oldest first; without the page's own reads."""
        entries = await self.memory.ledger.overview.audit_page(self.scope, limit=50, after=after)
        shown = [entry for entry in entries if (entry.client, entry.event) != (WEB_UI_CLIENT_NAME, "recall")]
        return (await self._audit_entries_as_json(shown))[::-1]

    async def has_shared_change_after(self, after: int) -> bool:
        """Whether anybody has changed what all share."""
        everyone = caller_scope_in_organisation(self.scope)
        overview = self.memory.ledger.overview
        return bool(await overview.audit_page(everyone, limit=1, after=after, events=CHANGE_AUDIT_EVENTS))

    async def _audit_entries_as_json(self, entries: Sequence[AuditEntry]) -> list[dict[str, Any]]:
        ids = [MemoryId(id_) for entry in entries for id_ in entry.ids[:3]]
        known = {memory.id: memory for memory in await self.memory.ledger.recall.memories_with_ids(self.scope, ids)}
        return [
            audit_entry_as_json(entry)
            | {
                "memories": [
                    {"id": known[id_].short_id, "text": known[id_].scene.action[:200]}
                    for id_ in map(MemoryId, entry.ids[:3])
                    if id_ in known
                ]
            }
            for entry in entries
        ]


def _memory_counts_by_state(counted: Sequence[tuple[str, str, bool, int]]) -> dict[str, int]:
    counts = dict.fromkeys(("memories", "active", "dying", "dead", "pinned", "superseded", "retracted"), 0)
    for status, truth, pinned, count in counted:
        counts["memories"] += count
        counts[status] += count
        counts["pinned"] += count if pinned else 0
        if truth != "current":
            counts[truth] += count
    return counts


def _memory_outlines_as_columns(outlines: Sequence[MemoryOutline]) -> dict[str, list[Any]]:
    return {
        "seq": [outline.seq for outline in outlines],
        "id": [short_id_of_memory_number(outline.number) for outline in outlines],
        "text": [outline.text for outline in outlines],
        "happened": [_unix_milliseconds(outline.happened_at) for outline in outlines],
        "created": [_unix_milliseconds(outline.created_at) for outline in outlines],
        "importance": [round(outline.importance, 3) for outline in outlines],
        "cycles": [outline.session_count for outline in outlines],
        "status": [outline.status for outline in outlines],
        "truth": [outline.truth for outline in outlines],
        "category": [outline.category for outline in outlines],
        "cluster": [short_id_of_non_memory(outline.cluster_id or "") for outline in outlines],
        "pinned": [outline.pinned for outline in outlines],
        "from": [_unix_milliseconds(beginning_of_validity(outline)) for outline in outlines],
        "until": [_unix_milliseconds(outline.valid_until) for outline in outlines],
    }


def _unix_milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1_000)


def _patrols_until_dying(outline: MemoryOutline, now: datetime) -> int:
    """With a patrol a day."""
    kept = (outline.kept_until - now).days if outline.kept_until else 0
    return patrols_until_status_is_dying(outline.importance, outline.session_count, patrols_kept=max(0, kept))


def _fading_memory_as_json(outline: MemoryOutline, patrols_left: int) -> dict[str, Any]:
    return {
        "id": short_id_of_memory_number(outline.number),
        "text": outline.text,
        "importance": round(outline.importance, 3),
        "cycles": outline.session_count,
        "left": patrols_left,
    }


def _message_as_json(message: ConversationMessage) -> dict[str, Any]:
    fields = {"id": short_id_of_non_memory(message.id), "when": datetime_as_iso(message.at), "role": message.role}
    return fields | {
        "text": message.text,
        "speaker": message.speaker,
        "session": message.session_id,
        "position": message.position,
    }


def _has_aged_memories(run: PatrolRun) -> bool:
    steps = run.report.get("steps", ())
    return run.state != "undone" and any(step.get("name") == "age" and not step.get("skipped") for step in steps)
