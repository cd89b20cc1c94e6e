"""The argument `explain` of `recall`, and what an answer says for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from madeleine.memory.model import MemoryId
from madeleine.memory.recall.explaining import MemoryExplanation, QuerySimilarity, RecallExplanation
from madeleine.memory.recall.recall import RecallResult
from madeleine.tools.archive import explain_why_archived
from madeleine.tools.replies import without_empty_fields
from madeleine.tools.tool import ToolCallContext

MAX_EXPLAINED_TEXT_CHARS = 80


async def resolve_explain_argument(call: ToolCallContext, explain: bool | str) -> dict[MemoryId, str] | None:
    """The memory that is asked for beside the best ones, with its id as it was given; None for no explanation."""
    if isinstance(explain, bool):
        return {} if explain else None
    return {
        full: given
        for given, full in (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [explain])).items()
    }


def ids_of_explained_memories(result: RecallResult) -> list[MemoryId]:
    """Those that an explanation shows: for the audit."""
    return [one.id for one in result.explanation.memories if one.memory] if result.explanation else []


async def recall_explanation_as_json(
    call: ToolCallContext, explanation: RecallExplanation, given_ids: Mapping[MemoryId, str]
) -> dict[str, Any]:
    """What is 0 or empty is left out. The parts of a score add up to it, and those of a likeness."""
    memories = []
    unknown = [one.id for one in explanation.memories if one.memory is None]
    entries = await call.use_cases.archive.archived_memories_with_ids(call.scope, unknown) if unknown else []
    archived = {entry.memory.id: entry for entry in entries}
    for explained in explanation.memories:
        if (entry := archived.get(explained.id)) is not None:
            because = explain_why_archived(entry, call.use_cases.archive.config, call.scope.being_id)
            memories.append({"id": entry.short_id, "outcome": "archived", "reason": because})
            continue
        reason = await call.replace_ids_with_short_ids(explained.reason)
        memories.append(_memory_explanation_as_json(explained, reason, given_ids.get(explained.id, explained.id)))
    return {"ranking": explanation.profile, "memories": memories}


def _memory_explanation_as_json(explained: MemoryExplanation, reason: str, id_: str) -> dict[str, Any]:
    memory = explained.memory
    return without_empty_fields(
        id=memory.short_id if memory else id_,
        text=memory.scene.action[:MAX_EXPLAINED_TEXT_CHARS] if memory else None,
        outcome=explained.outcome,
        rank=explained.rank or None,
        score=explained.score or None,
        parts=dict(explained.parts),
        likeness=_query_similarity_as_json(explained.likeness) if explained.likeness else None,
        reason=reason,
    )


def _query_similarity_as_json(likeness: QuerySimilarity) -> dict[str, float]:
    return {**likeness.parts, "sum": likeness.value, "needed": likeness.needed}
