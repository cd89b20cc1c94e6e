"""Values and errors as answers. No null is ever sent, and no traceback."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mcp_types import CallToolResult, TextContent

from madeleine.memory.errors import ERROR_META, MadeleineError, error_as_json
from madeleine.memory.model import Memory, Provenance, Revision, when_date, when_to_json
from madeleine.memory.rules.prompting.memory_block import timeline_lines

logger = logging.getLogger(__name__)


def answer(content: dict[str, Any]) -> CallToolResult:
    """`structuredContent` is complete by itself; the text is its compact equal."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def refusal(error: MadeleineError) -> CallToolResult:
    """A `ToolError`: the message says what to do. Its kind is for programs, in `_meta`."""
    text = TextContent(type="text", text=str(error))
    return CallToolResult(content=[text], is_error=True, meta={ERROR_META: error_as_json(error)})


def crash(tool: str, error: BaseException) -> CallToolResult:
    """What no code expected. The log has the traceback under the number that the client is told."""
    incident = uuid.uuid4().hex[:8]
    logger.error("%s failed, incident %s", tool, incident, exc_info=error)
    message = (
        f"{tool} failed inside Madeleine (incident {incident}; the server's log tells more). "
        "What was answered before is safe. Try again."
    )
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def present(content: dict[str, Any]) -> dict[str, Any]:
    """Without what is not there: None, "" and empty lists."""
    return {key: value for key, value in content.items() if value not in (None, "", [], ())}


def moment(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def when(memory: Memory) -> str:
    """The scene's date as it was told, else the day it was stored."""
    return when_date(memory.scene.when[0]) if memory.scene.when else memory.happened_at.date().isoformat()


def provenance(source: Provenance, stored_at: datetime | None) -> dict[str, Any]:
    """When, by which tool, from which client and in which session it was stored."""
    return present(
        {
            "stored_at": moment(stored_at),
            "tool": source.tool,
            "client": source.client,
            "session_id": source.session_id,
        }
    )


def source(memory: Memory) -> dict[str, Any]:
    """Where a memory comes from, for answers that give its text elsewhere."""
    return present(
        {
            "id": memory.id,
            "when": when(memory),
            "actors": list(memory.scene.actors),
            "provenance": provenance(memory.provenance, memory.created_at),
        }
    )


def brief(memory: Memory, score: float) -> dict[str, Any]:
    """A memory as recall shows it."""
    return present(
        {
            "id": memory.id,
            "text": memory.scene.action,
            "score": score,
            "category": memory.category,
            "when": when(memory),
            "actors": list(memory.scene.actors),
            "feeling": memory.feeling,
            "lesson": memory.lesson,
            "timeline": list(timeline_lines(memory)),
            "provenance": provenance(memory.provenance, memory.created_at),
        }
    )


def whole(memory: Memory, revisions: Sequence[Revision] = ()) -> dict[str, Any]:
    """A memory with everything that is known of it; a dead one is marked by its status. `history`: what it was before
    it was changed, oldest first."""
    scene = memory.scene
    timeline = when_to_json(scene.when)
    return present(
        {
            "id": memory.id,
            "text": scene.action,
            "status": memory.status,
            "category": memory.category,
            "importance": memory.importance,
            "when": when(memory),
            "timeline": timeline if len(timeline) > 1 or any(isinstance(item, dict) for item in timeline) else None,
            "actors": list(scene.actors),
            "setting": scene.setting,
            "dialogue": list(scene.dialogue),
            "sensory": list(scene.sensory),
            "feeling": memory.feeling,
            "emotions": list(memory.emotions),
            "lesson": memory.lesson,
            "themes": list(memory.themes),
            "cluster_id": memory.cluster_id,
            "absorbed_into": memory.absorbed_into,
            "compressed_into": memory.compressed_into,
            "resembles": memory.resembles,
            "compression_source": memory.compression_source or None,
            "provenance": provenance(memory.provenance, memory.created_at),
            "history": [earlier(revision) for revision in revisions],
        }
    ) | {
        "pinned": memory.pinned,
        "session_count": memory.session_count,
        "access_count": memory.access_count,
        "reactivation_count": memory.reactivation_count,
    }


def earlier(revision: Revision) -> dict[str, Any]:
    """What a memory was until it was changed."""
    before = revision.before
    shown = {"until": moment(revision.at), "changed_by": revision.client, "text": before.text}
    numbers = {"importance": before.importance, "pinned": before.pinned}
    themes = {} if before.themes is None else {"themes": list(before.themes)}
    return present(shown) | {name: value for name, value in numbers.items() if value is not None} | themes


def meaning_notice(reason: str) -> dict[str, Any]:
    """What to tell when meaning-based recall is off."""
    if not reason:
        return {}
    return {"notice": f"Meaning-based recall is off, words only are compared. {reason}"}


def notice(*sentences: str) -> dict[str, Any]:
    """What could not be done, or should be known; nothing if there is nothing to tell."""
    return present({"notice": " ".join(filter(None, sentences))})
