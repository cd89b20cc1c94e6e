"""Values and errors as answers, without nulls and tracebacks."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from mcp_types import CallToolResult, TextContent

from madeleine.memory.errors import ERROR_META_KEY, MadeleineError, error_as_json
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import Memory, Provenance, Revision, memory_date, timeline_to_json
from madeleine.memory.rules.prompting import latest_timeline_lines

logger = logging.getLogger(__name__)


def tool_result_of_content(content: dict[str, Any]) -> CallToolResult:
    """`structuredContent` is complete by itself; the text is the same, compact."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def tool_result_of_error(error: MadeleineError) -> CallToolResult:
    """A `ToolError` whose message says what to do; its kind is in `_meta`, for programs."""
    text = TextContent(type="text", text=str(error))
    return CallToolResult(content=[text], is_error=True, meta={ERROR_META_KEY: error_as_json(error)})


def tool_result_of_crash(tool: str, error: BaseException) -> CallToolResult:
    """An unexpected error. The log has the traceback under the incident number that the client gets."""
    incident = uuid.uuid4().hex[:8]
    logger.error("%s failed, incident %s", tool, incident, exc_info=error)
    message = (
        f"{tool} failed inside Madeleine (incident {incident}; the traceback is in the server's log). "
        "Everything acknowledged before is safe. Try again."
    )
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def nonempty(**fields: Any) -> dict[str, Any]:
    """The fields, without None, "" and empty collections."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], (), {})}


def fields_of(value: object, names: str) -> dict[str, Any]:
    """The attributes of these names, which spaces separate, as JSON."""
    attributes = {name: getattr(value, name) for name in names.split()}
    return {name: list(field) if isinstance(field, tuple) else field for name, field in attributes.items()}


def iso_time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def provenance_as_json(source: Provenance, stored_at: datetime | None) -> dict[str, Any]:
    return nonempty(stored_at=iso_time(stored_at), **asdict(source))


def source_json(memory: Memory) -> dict[str, Any]:
    """Provenance of a memory, for answers that hold its text elsewhere."""
    return nonempty(
        id=memory.id,
        when=memory_date(memory),
        actors=list(memory.scene.actors),
        provenance=provenance_as_json(memory.provenance, memory.created_at),
    )


def recalled_json(memory: Memory, score: float) -> dict[str, Any]:
    """A memory as recall returns it."""
    return nonempty(
        id=memory.id,
        text=memory.scene.action,
        score=score,
        category=memory.category,
        when=memory_date(memory),
        actors=list(memory.scene.actors),
        **fields_of(memory, "feeling lesson"),
        timeline=list(latest_timeline_lines(memory)),
        provenance=provenance_as_json(memory.provenance, memory.created_at),
    )


def memory_json(memory: Memory, revisions: Sequence[Revision] = ()) -> dict[str, Any]:
    """A memory with all details; a dead one is marked by its status. `history`: its earlier versions, oldest first."""
    timeline = timeline_to_json(memory.scene.when)
    return nonempty(
        id=memory.id,
        text=memory.scene.action,
        **fields_of(memory, "status category importance"),
        when=memory_date(memory),
        timeline=timeline if len(timeline) > 1 or any(isinstance(item, dict) for item in timeline) else None,
        **fields_of(memory.scene, "actors setting dialogue sensory"),
        **fields_of(memory, "feeling emotions lesson themes cluster_id absorbed_into compressed_into resembles"),
        compression_source=memory.compression_source or None,
        provenance=provenance_as_json(memory.provenance, memory.created_at),
        history=[revision_as_json(revision) for revision in revisions],
    ) | fields_of(memory, "pinned session_count access_count reactivation_count")


def hit_json(hit: SearchHit) -> dict[str, Any]:
    """A hit of `search_memory` (spec H3)."""
    return {
        "source": hit.source,
        "id": hit.id,
        "timestamp": iso_time(hit.timestamp),
        **fields_of(hit, "snippet tags"),
        "provenance": provenance_as_json(hit.provenance, hit.stored_at),
        **nonempty(**fields_of(hit, "actors status")),
    }


def revision_as_json(revision: Revision) -> dict[str, Any]:
    """An earlier version of a memory, in the fields that were changed."""
    before = {name: value for name, value in asdict(revision.before).items() if value is not None}
    if "themes" in before:
        before["themes"] = list(before["themes"])
    return nonempty(until=iso_time(revision.at), changed_by=revision.client) | before


def meaning_notice(reason: str) -> str:
    """What to say while meaning-based recall is off; "" if `reason` is."""
    return f"Meaning-based recall is off; only words are compared. {reason}" if reason else ""


def missing_vector_notice(done: str, reason: str) -> str:
    """What to say of a memory that was stored or changed without a vector; "" if `reason` is."""
    return f"{done}; found by its words only until it can be embedded. {reason}" if reason else ""


def notice(*sentences: str) -> dict[str, Any]:
    """The sentences under the key `notice`; nothing if all are empty."""
    return nonempty(notice=" ".join(filter(None, sentences)))
