"""Patrol runs and audit entries as the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from madeleine.memory.audit import AuditEntry
from madeleine.memory.model import short_id_of_non_memory
from madeleine.memory.patrol_records import PatrolRun
from madeleine.tools.replies import datetime_as_iso, without_empty_fields

if TYPE_CHECKING:  # a server imports it with the memory, behind its first answers
    from madeleine.storage.sql.overview import PatrolChangedRow

_JOURNAL_REFERENCE_FIELDS = (
    "cluster_id",
    "absorbed_into",
    "compressed_into",
    "superseded_by",
    "may_supersede",
    "parent_id",
)
"""Journalled fields that name a memory or a cluster."""
_JOURNAL_TIME_FIELDS = ("valid_from", "valid_until", "kept_until")
"""Journalled fields that are times, in microseconds since 1970."""
_JOURNAL_FIELDS_NOT_SHOWN = frozenset({"vector", "content_hash", "model", "since", "stopped_at", "fresh", "is_root"})
"""Journalled fields that say nothing to a person."""


def patrol_run_for_web_ui(run: PatrolRun) -> dict[str, Any]:
    ended = None if run.state == "running" else datetime_as_iso(run.finished)
    return {
        "id": short_id_of_non_memory(run.id),
        "state": run.state,
        "started": datetime_as_iso(run.started),
        "finished": ended,
        "report": dict(run.report),
    }


def audit_entry_as_json(entry: AuditEntry) -> dict[str, Any]:
    return {"seq": entry.seq, "at": datetime_as_iso(entry.at), "event": entry.event, "count": len(entry.ids)} | (
        without_empty_fields(client=entry.client, role=entry.role, token=entry.token, tool=entry.tool)
    )


def ids_named_in_change(change: PatrolChangedRow) -> Iterable[str]:
    yield change.target
    for fields in (change.before, change.after):
        yield from (fields[name] for name in _JOURNAL_REFERENCE_FIELDS if fields and fields.get(name))


def changed_fields(change: PatrolChangedRow, names: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """Fields whose value changed, with the value before and after; names in place of ids, and ISO times."""
    before, after = change.before or {}, change.after or {}

    def shown(name: str, value: Any) -> Any:
        if name in _JOURNAL_TIME_FIELDS and value is not None:
            return datetime_as_iso(datetime.fromtimestamp(value / 1_000_000, UTC))
        known = names.get(value) if name in _JOURNAL_REFERENCE_FIELDS and isinstance(value, str) else None
        return known.get("name") or known.get("id") if known else value

    return [
        {"name": name, "before": shown(name, before.get(name)), "after": shown(name, after.get(name))}
        for name in dict.fromkeys((*before, *after))
        if name not in _JOURNAL_FIELDS_NOT_SHOWN and before.get(name) != after.get(name)
    ]
