"""Values and errors as answers, without nulls and tracebacks."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mcp_types import CallToolResult, TextContent

from madeleine.memory.errors import ERROR_META_KEY, MadeleineError, error_as_json
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.ingest.store_plan import RepeatedOutdatedMemory
from madeleine.memory.keyword_search import SearchHit
from madeleine.memory.model import (
    MAX_SUPERSEDED_TEXT_CHARS,
    EmotionSummary,
    Memory,
    MemoryId,
    MemoryValuesBeforeChange,
    Provenance,
    memory_date,
    short_id_of_non_memory,
)
from madeleine.memory.recall.ports import ClusterWithMemoryCounts
from madeleine.memory.rules.dynamics.future_dates import (
    future_beginning_missing_from_dates,
    future_day_missing_from_dates,
    future_day_when_new_may_replace_old,
    future_start_of_replacement,
)
from madeleine.memory.rules.dynamics.truth import (
    beginning_of_validity,
    end_of_superseded_version_text,
    version_start_date_text,
)
from madeleine.memory.rules.feelings import emotion_vector_of_memory
from madeleine.memory.rules.prompting import latest_dated_action_lines_of_memory, truncate_with_ellipsis
from madeleine.memory.rules.storing.statements import cached_statement_for_comparison
from madeleine.memory.searched_texts import timeline_as_json_list
from madeleine.memory.text.structure import escape_foreign_markup, escape_foreign_markup_in_json
from madeleine.tools.tool import ToolCallContext

if TYPE_CHECKING:
    from madeleine.tools.tool import ToolCallContext

logger = logging.getLogger(__name__)


def tool_result_of_content(content: dict[str, Any]) -> CallToolResult:
    """`structuredContent` is complete by itself; the text is the same, compact. Stored text in it is data."""
    content = escape_foreign_markup_in_json(content)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content)


def tool_result_of_error(error: MadeleineError) -> CallToolResult:
    """A tool error whose message says what to do; its kind is in `_meta`, for programs."""
    text = TextContent(type="text", text=escape_foreign_markup(str(error)))
    meta = {ERROR_META_KEY: escape_foreign_markup_in_json(error_as_json(error))}
    return CallToolResult(content=[text], is_error=True, meta=meta)


def tool_result_of_crash(tool: str, error: BaseException) -> CallToolResult:
    """An unexpected error. The log has the traceback under the incident number that the client gets."""
    incident = uuid.uuid4().hex[:8]
    logger.error("%s failed, incident %s", tool, incident, exc_info=error)
    message = (
        f"{tool} failed inside Madeleine (incident {incident}; the traceback is in the server's log). "
        "Everything acknowledged before is safe. Try again."
    )
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def without_empty_fields(**fields: Any) -> dict[str, Any]:
    """The fields, without None, "" and empty collections."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], (), {})}


def named_attributes_as_json(value: object, names: str) -> dict[str, Any]:
    """The attributes of these names, which spaces separate, as JSON."""
    attributes = {name: getattr(value, name) for name in names.split()}
    return {name: list(field) if isinstance(field, tuple) else field for name, field in attributes.items()}


def datetime_as_iso(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def provenance_as_json(source: Provenance, stored_at: datetime | None) -> dict[str, Any]:
    return without_empty_fields(stored_at=datetime_as_iso(stored_at), **asdict(source))


def brief_memory_as_json(memory: Memory, score: float | None = None) -> dict[str, Any]:
    """A memory as recalls and lists show it: what it says and when, no provenance (ruling 23)."""
    return without_empty_fields(
        id=memory.short_id,
        text=memory.scene.action,
        **memory_dates_lesson_and_status_as_json(memory),
        score=score,
        **named_attributes_as_json(memory, "feeling"),
        timeline=list(latest_dated_action_lines_of_memory(memory)),
    )


def memory_without_text_as_json(memory: Memory) -> dict[str, Any]:
    """A memory whose text stands elsewhere in the answer."""
    return {"id": memory.short_id} | memory_dates_lesson_and_status_as_json(memory)


def undecided_supersession_as_json(memory: Memory, short_ids: Mapping[MemoryId, str]) -> dict[str, Any]:
    """Which memory of the same answer it may supersede, while nobody has decided that (ruling 14): they contradict each
    other. `short_ids`: of the memories of the answer."""
    older = memory.possibly_superseded_memory_id
    return without_empty_fields(may_supersede=short_ids.get(older) if older else None)


def memory_dates_lesson_and_status_as_json(memory: Memory) -> dict[str, Any]:
    """What every answer says beside a memory's text."""
    return without_empty_fields(
        when=memory_date(memory),
        updated=memory.corrected_at.date().isoformat() if memory.corrected_at else None,
        lesson=memory.lesson,
        since=version_start_date_text(memory),
        before=memory.before,
        status=status_limiting_recall(memory),
        until=end_of_superseded_version_text(memory),
    )


def status_limiting_recall(memory: Memory) -> str | None:
    """What keeps a memory from being recalled, or soon will; None for an active one that is true."""
    if memory.truth != "current":
        return memory.truth
    return memory.status if memory.status != "active" else None


def detailed_memory_as_json(
    memory: Memory,
    short_ids: Mapping[MemoryId, str],
    revisions: Sequence[MemoryValuesBeforeChange] = (),
    versions: Sequence[Memory] = (),
) -> dict[str, Any]:
    """A memory with all details. `short_ids`: of the memories that it refers to. `history`: what it said before it was
    corrected, oldest first. `versions`: what was true before and after it, the current one last."""
    timeline = timeline_as_json_list(memory.scene.when)
    references = {name: getattr(memory, name) for name in MEMORY_REFERENCE_FIELDS}
    references["may_supersede"] = memory.possibly_superseded_memory_id
    return without_empty_fields(
        id=memory.short_id,
        text=memory.scene.action,
        **memory_dates_lesson_and_status_as_json(memory)
        | named_attributes_as_json(memory, "status category importance truth"),
        **truth_details_as_json(memory),
        versions=[memory_version_as_json(version) for version in versions] if len(versions) > 1 else None,
        timeline=timeline if len(timeline) > 1 or any(isinstance(item, dict) for item in timeline) else None,
        **named_attributes_as_json(memory.scene, "actors setting dialogue sensory"),
        told_again=timeline_as_json_list(memory.retold),
        **named_attributes_as_json(memory, "feeling emotions themes"),
        emotion_vector=asdict(vector) if (vector := emotion_vector_of_memory(memory)) else None,
        cluster_id=short_id_of_non_memory(memory.cluster_id or ""),
        **{name: short_ids.get(id_, id_) for name, id_ in references.items() if id_ is not None},
        compression_source=memory.compression_source or None,
        provenance=provenance_as_json(memory.provenance, memory.created_at) | {"full_id": memory.id},
        history=[memory_revision_as_json(revision) for revision in revisions],
    ) | named_attributes_as_json(memory, "pinned session_count access_count reactivation_count")


def cluster_as_json(cluster: ClusterWithMemoryCounts, mood: EmotionSummary | None) -> dict[str, Any]:
    """With its short id, and how its active memories felt, where that is known."""
    felt = {"emotions": list(mood.emotions), "emotion_vector": asdict(mood.vector)} if mood else {}
    return asdict(cluster) | {"id": short_id_of_non_memory(cluster.id)} | without_empty_fields(**felt)


def truth_details_as_json(memory: Memory) -> dict[str, Any]:
    return without_empty_fields(
        valid_from=datetime_as_iso(memory.valid_from),
        valid_until=datetime_as_iso(memory.valid_until),
        retraction_reason=memory.retraction_reason,
    )


def memory_version_as_json(version: Memory) -> dict[str, Any]:
    """One of the versions of what a memory says (ruling 14)."""
    return {"id": version.short_id, "text": version.scene.action, "truth": version.truth} | without_empty_fields(
        valid_from=datetime_as_iso(beginning_of_validity(version)), valid_until=datetime_as_iso(version.valid_until)
    )


_MAX_NAMED_TEXT_CHARS = 80
"""Of each memory that a notice names beside another."""
MEMORY_REFERENCE_FIELDS = ("absorbed_into", "compressed_into", "resembles", "superseded_by", "may_supersede")
"""Fields of a memory that name another one."""


async def short_id_by_referenced_memory_id(call: ToolCallContext, memories: Sequence[Memory]) -> dict[MemoryId, str]:
    """The short ids of the memories that these refer to."""
    named = [getattr(memory, name) for memory in memories for name in MEMORY_REFERENCE_FIELDS]
    return await call.use_cases.short_ids.short_id_by_memory_id(call.scope, filter(None, named))


def search_hit_as_json(hit: SearchHit, *, details: bool = False) -> dict[str, Any]:
    """A hit of `search_memory` (spec H3)."""
    shown = {
        "id": hit.short_id,
        "source": hit.source,
        "when": hit.when or hit.timestamp.isoformat(timespec="minutes"),
        "text": hit.snippet,
        **without_empty_fields(
            actors=list(hit.actors) if hit.source == "chat" else None,
            lesson=hit.lesson,
            since=hit.since,
            before=hit.before,
            matched=hit.matched,
            status=_status_limiting_recall_of_hit(hit),
            until=hit.until,
        ),
    }
    if not details:
        return shown
    provenance = provenance_as_json(hit.provenance, hit.stored_at) | {"full_id": hit.id}
    return shown | without_empty_fields(**named_attributes_as_json(hit, "themes actors status"), provenance=provenance)


def _status_limiting_recall_of_hit(hit: SearchHit) -> str | None:
    if hit.truth != "current":
        return hit.truth
    return hit.status if hit.status != "active" else None


def memory_revision_as_json(revision: MemoryValuesBeforeChange) -> dict[str, Any]:
    """An earlier version of a memory, in the fields that were changed."""
    before = {name: value for name, value in asdict(revision.before).items() if value is not None}
    before |= {name: list(before[name]) for name in ("themes", "when") if name in before}
    return without_empty_fields(until=datetime_as_iso(revision.at), changed_by=revision.client) | before


def words_only_notice(reason: str) -> str:
    """What to say while meaning-based recall is off; "" if `reason` is."""
    return f"Meaning-based recall is off; only words are compared. {reason}" if reason else ""


def redaction_notice(redacted: Mapping[str, int]) -> str:
    """That secrets were left out of what was stored; "" for none. `redacted`: their number by kind."""
    kinds = ", ".join(redacted)
    return f"Left out as a secret ({kinds}): memory keeps none. Store where it is kept instead." if kinds else ""


def missing_vector_notice(outcome: str, reason: str) -> str:
    """What to say of a memory that was stored or changed without a vector; "" if `reason` is."""
    return f"{outcome}; found by its words only until it can be embedded. {reason}" if reason else ""


def notice_field(*sentences: str) -> dict[str, Any]:
    """The sentences under the key `notice`; nothing if all are empty."""
    return without_empty_fields(notice=" ".join(filter(None, sentences)))


def supersession_advice(memory: Memory, before: Memory) -> str:
    """What to do about a memory that the new one may supersede (ruling 14)."""
    if begin := future_start_of_replacement(before, memory, memory.created_at):
        day = memory_date(memory) if begin == memory.happened_at else begin.date().isoformat()
        return (
            f"A plan until {day}: {before.short_id} stays true until then. From that day on this comes first; to "
            f"retire {before.short_id} repeat then with supersedes: {before.short_id}."
        )
    return (
        f"{before.short_id} may no longer be true; both stay current until you decide. If this takes its place, repeat "
        f"this store with supersedes: {before.short_id} (that makes no second memory)"
        f"{_later_start_advice(memory, before)}. If both hold, do nothing.{_correction_advice(memory, before)}"
    )


def possible_change_advice(memory: Memory, before: Memory, *others: Memory) -> str:
    """What to do where the new memory tells of a change, and `before`, or one of `others`, may be what has changed (ADR
    74, 95). The answer has the text of `before`."""
    texts = (
        f"{other.short_id} ({truncate_with_ellipsis(other.scene.action, _MAX_NAMED_TEXT_CHARS)!r})" for other in others
    )
    return (
        f"This tells of a change. If {before.short_id} is what has changed, repeat this store with supersedes: "
        f"{before.short_id} (that makes no second memory){_later_start_advice(memory, before)}."
        f"{_correction_advice(memory, before)}{' Or else it may be ' + ' or '.join(texts) + '.' if others else ''}"
    )


def _later_start_advice(memory: Memory, before: Memory) -> str:
    """How the repeated store waits for the future day that the text names; "" if it names none."""
    if not (day := future_day_when_new_may_replace_old(before, memory, memory.created_at)):
        return ""
    return f"; if only from {day} on, first update_memory({memory.short_id}, when: {day}), and repeat with that when"


def old_fact_ended_before_new_begins_notice(stored: StoredSceneResult) -> str:
    """What to do where the text names a future day, and has taken the place of another one already."""
    memory, old = stored.memory, stored.superseded
    if old is None or old.valid_until is None or old.valid_until.date() < memory.created_at.date():
        return ""  # the call said since when the new one is true
    # The end of the old one is the moment of this call; the new one may have been stored long before.
    if not (day := future_day_when_new_may_replace_old(old, memory, old.valid_until)):
        return ""
    return (
        f"{old.short_id} is superseded from now on. If it stays true until {day}: update_memory({memory.short_id}, "
        f"undo), update_memory({memory.short_id}, when: {day}), then repeat this store with when: {day}."
    )


def others_still_current_notice(stored: StoredSceneResult, others: Sequence[Memory]) -> str:
    """That what the superseded memory may have superseded itself, or what said the same, is current until somebody
    decides."""
    if (old := stored.superseded) is None:
        return ""

    def relation(memory: Memory) -> str:
        proposed = memory.id == old.may_supersede
        return (
            f"which {old.short_id} may have superseded" if proposed else f"which says much of what {old.short_id} said"
        )

    return " ".join(
        f"{memory.short_id}, {relation(memory)}, is still current: "
        f"{memory.scene.action[:MAX_SUPERSEDED_TEXT_CHARS]!r}. "
        f"If it is not true any more, store this text once more with supersedes: {memory.short_id}."
        for memory in others
        if memory.id != stored.memory.id
    )


def undated_event_notice(stored: StoredSceneResult) -> str:
    """What is to come is told at the start of a conversation, and found by its date, only if it has one."""
    memory, old = stored.memory, stored.superseded or stored.may_supersede or next(iter(stored.may_have_changed), None)
    if (stored.status != "stored" or stored.repeated) and not stored.superseded:
        return ""
    now = (stored.superseded and stored.superseded.valid_until) or memory.created_at
    if now.date() < memory.created_at.date():
        return ""  # its date is since when it is true
    if old and future_day_when_new_may_replace_old(old, memory, now):
        return ""  # said with the advice about the old one
    is_linked = stored.superseded or stored.may_supersede
    begin = "" if is_linked else future_beginning_missing_from_dates(memory, now)
    if not (day := begin or future_day_missing_from_dates(memory, now)):
        return ""
    case = f"is true only from {day} on" if begin else f"is an event on {day}, and not what holds already"
    return f"If this {case}: update_memory({memory.short_id}, when: {day}); it is dated {memory_date(memory)}."


def _correction_advice(memory: Memory, before: Memory) -> str:
    """Advise to correct the old memory where the new one says that it was wrong: superseded, it stays true before."""
    if not cached_statement_for_comparison(memory.scene.action).states_correction:
        return ""
    return (
        f" If {before.short_id} was wrong from the start, correct it instead: update_memory({before.short_id}, text)."
    )


def new_memory_repeats_outdated_notice(memory: Memory, told_again: RepeatedOutdatedMemory) -> str:
    """What to do where the new memory says what an earlier one said that is not true any more."""
    earlier, now = told_again.earlier, told_again.now
    if now is None:
        return (
            f"{earlier.short_id} said this and was retracted: {earlier.retraction_reason!r}. If that is so, "
            f"update_memory({memory.short_id}, retracted)."
        )
    until = earlier.valid_until.date().isoformat() if earlier.valid_until else ""
    return (
        f"{earlier.short_id} said this until {until}; {now.short_id} is true instead and still comes first: "
        f"{now.scene.action[:MAX_SUPERSEDED_TEXT_CHARS]!r}. If this is true again, repeat this store with supersedes: "
        f"{now.short_id}."
    )


def notice_of_supersession_by_earlier_memory(stored: StoredSceneResult) -> str:
    """That a memory which was there before has taken the place of another one by this store."""
    if stored.superseded is None or (stored.status == "stored" and not stored.repeated):
        return ""
    return f"{stored.memory.short_id} was stored before; now it supersedes {stored.superseded.short_id}."


def memory_id_and_text_as_json(memory: Memory) -> dict[str, str]:
    return {"id": memory.short_id, "text": memory.scene.action}
