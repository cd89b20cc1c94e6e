"""`archive`: what retention has taken out of the memory, found and brought back (spec O8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import BeingId, scene_to_text, short_id_of_non_memory
from madeleine.memory.permissions import Permission
from madeleine.memory.recall.search import split_search_terms
from madeleine.memory.retention.ports import ArchiveQuery
from madeleine.memory.retention.values import ArchivedMemory, ArchiveGroup, ArchiveGroupId, ListedArchiveGroup
from madeleine.memory.rules.archiving.retention import (
    EndedSessionOrProject,
    RetentionConfig,
    RetentionRule,
    RetentionSource,
)
from madeleine.tools.arguments import LongText, ShortText, ToolArguments
from madeleine.tools.replies import brief_memory_as_json, notice_field, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

ARCHIVE_REASON_TEXTS = {
    "expired": "its time was over",
    "limit": "there were too many memories",
    "session_ended": "it was kept for a session, which has ended",
    "project_ended": "it was kept for a project, which has ended",
}
RETENTION_RULE_SOURCE_TEXTS: Mapping[RetentionSource, str] = {
    "being_rule": "the being's rule for the category",
    "store_rule": "the store's rule for the category",
    "being_default": "the being's days",
    "store_default": "the store's days",
    "keep": "no rule",
}
ArchiveAction = Literal["find", "groups", "plan", "restore", "summarise", "end"]
_PERMISSION_BY_ARCHIVE_ACTION: dict[ArchiveAction, Permission] = {
    "restore": "write",
    "summarise": "write",
    "end": "maintain",
}


class ArchiveArguments(ToolArguments):
    action: Annotated[
        ArchiveAction,
        Field(
            description="find: by words, or the latest; groups: what went together; plan: what would go now; restore: "
            "ids; summarise: group and text, in place of extracts; end: a session_id or project is over."
        ),
    ] = "find"
    query: LongText = ""
    ids: Annotated[list[ShortText], Field(max_length=200, description="To restore: m12, as shown.")] = []
    group: ShortText = ""
    text: LongText = ""
    session_id: ShortText = ""
    project: ShortText = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 20
    position: Annotated[int, Field(ge=0, le=10**9, description="Entries to skip.")] = 0


def _permission_for_arguments(arguments: ArchiveArguments) -> Permission:
    return _PERMISSION_BY_ARCHIVE_ACTION.get(arguments.action, "read")


@tool_from_function(
    ArchiveArguments,
    object_schema("", array="memories groups missing rules", string="notice run_id", integer="archived max_memories"),
    name="archive",
    listed=False,
    permission="read",
    permission_of=_permission_for_arguments,
)
async def manage_archive(call: ToolCallContext, arguments: ArchiveArguments) -> dict[str, Any]:
    """Look into the archive, where memories go whose time is over, and bring them back exactly as they were. Nothing of
    it is part of a recall; search_memory names what it finds there. Restore what is needed again."""
    use, scope = call.use_cases.archive, call.scope
    match arguments.action:
        case "find":
            query = ArchiveQuery(
                terms=split_search_terms(arguments.query), limit=arguments.limit, position=arguments.position
            )
            entries = await use.search_archived(scope, query)
            call.audit_recall("archive", [entry.memory.id for entry in entries])
            return {"memories": [archived_memory_as_json(entry) for entry in entries]}
        case "groups":
            groups = await use.groups(scope, limit=arguments.limit)
            return {"groups": [archive_group_as_json(group) for group in groups]}
        case "plan":
            planned = await use.groups_due_for_archiving(scope)
            shown = [await _planned_archive_group_as_json(call, group) for group in planned]
            return {
                "groups": shown,
                "archived": sum(len(group.reasons) for group in planned),
                "rules": [retention_rule_as_json(rule) for rule in use.retention_rules_of_being(scope.being_id)],
            } | without_empty_fields(max_memories=use.config.max_memories_of(scope.being_id))
        case "restore":
            return await _restore_archived_memories(call, arguments)
        case "summarise":
            return await _set_archive_group_summary(call, arguments)
        case "end":
            return await _archive_ended_session_or_project(call, arguments)


async def _restore_archived_memories(call: ToolCallContext, arguments: ArchiveArguments) -> dict[str, Any]:
    if not arguments.ids:
        raise InvalidInput("Nothing was restored. ids: name what is to come back, such as m12.")
    full = await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, arguments.ids)
    restored = await call.use_cases.archive.restore(call.scope, list(full.values()))
    missing = [id_ for id_, full_id in full.items() if full_id in restored.missing]
    together = len(restored.memories) > len(full) - len(missing)
    return (
        {"memories": [brief_memory_as_json(memory) for memory in restored.memories]}
        | without_empty_fields(missing=missing)
        | notice_field("What it depends on came back with it." if together else "")
    )


async def _set_archive_group_summary(call: ToolCallContext, arguments: ArchiveArguments) -> dict[str, Any]:
    groups = await call.use_cases.archive.groups(call.scope, limit=10_000)
    named = [group.id for group in groups if arguments.group and group.id.startswith(arguments.group)]
    if len(named) != 1:
        raise InvalidInput("Nothing was changed. group: give the id of one group, as action groups shows it.")
    await call.use_cases.archive.set_group_summary(call.scope, ArchiveGroupId(named[0]), arguments.text)
    return notice_field("The archive tells this of the group now.")


async def _archive_ended_session_or_project(call: ToolCallContext, arguments: ArchiveArguments) -> dict[str, Any]:
    if bool(arguments.session_id) == bool(arguments.project):
        raise InvalidInput("Nothing was done. Give either the session_id or the project that has ended.")
    ended = EndedSessionOrProject(session_id=arguments.session_id, project=arguments.project)
    if not await call.use_cases.archive.groups_due_for_archiving(call.scope, ended):
        return {"archived": 0}  # hooks end every session: one that kept nothing makes no patrol run
    report = await call.use_cases.patrol(
        call.scope, steps=["retention"], language=call.language_model, offer_pending=False, ended=ended
    )
    archived = sum(step.counts.get("archived", 0) for step in report.steps)
    return {"archived": archived, "run_id": short_id_of_non_memory(report.run_id)}


async def _planned_archive_group_as_json(call: ToolCallContext, group: ArchiveGroup) -> dict[str, Any]:
    short_ids = await call.use_cases.short_ids.short_id_by_memory_id(call.scope, list(group.reasons))
    reasons: dict[str, list[str]] = {}
    for id_, reason in group.reasons.items():
        reasons.setdefault(reason, []).append(short_ids[id_])
    return {"category": group.category, "mode": group.mode, "digest": group.digest} | without_empty_fields(**reasons)


def archived_memory_as_json(entry: ArchivedMemory) -> dict[str, Any]:
    memory = entry.memory
    item = brief_memory_as_json(memory) | {"text": scene_to_text(memory.scene, memory.feeling, dated=False)}
    return item | {
        "archived": entry.archived_at.date().isoformat(),
        "reason": ARCHIVE_REASON_TEXTS[entry.reason],
        "group": short_id_of_non_memory(entry.group_id),
    }


def retention_rule_as_json(rule: RetentionRule) -> dict[str, Any]:
    """Without `days` where it keeps for good."""
    return {"category": rule.category, "from": RETENTION_RULE_SOURCE_TEXTS[rule.source]} | without_empty_fields(
        days=rule.days
    )


def explain_why_archived(entry: ArchivedMemory, config: RetentionConfig, being: BeingId) -> str:
    """When and why a memory was archived, by which of today's rules, and what brings it back."""
    memory, rule = entry.memory, ""
    days, most = config.rule_for_being_and_category(being, memory.category).days, config.max_memories_of(being)
    if entry.reason == "expired" and days is not None:
        rule = f" (the rule for {memory.category} memories: {days} days)"
    elif entry.reason == "limit" and most is not None:
        rule = f" (at most {most})"
    return (
        f"It was archived on {entry.archived_at.date().isoformat()}, as {ARCHIVE_REASON_TEXTS[entry.reason]}{rule}. "
        f"`madeleine archive restore {memory.short_id}`, or the tool archive, brings it back."
    )


def archive_group_as_json(group: ListedArchiveGroup) -> dict[str, Any]:
    return {
        "group": short_id_of_non_memory(group.id),
        "category": group.category,
        "mode": group.mode,
        "archived": group.archived_at.date().isoformat(),
        "memories": group.memories,
        "digest": group.digest,
        "told_by": "summary" if group.is_summary else "extracts",
    }
