"""`share`, `search_shared`, `retract`: what an organisation knows (spec O4, O5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import ORGANISATION_BEING_ID, KnowledgeKind, Memory, MemoryId, Scene, Scope
from madeleine.memory.organisation.knowledge import NewKnowledge, caller_scope_in_organisation
from madeleine.memory.permissions import Permission
from madeleine.memory.recall.selection import RecallQuery
from madeleine.tools.arguments import LongText, SceneLengthText, ShortText, ToolArguments, unique
from madeleine.tools.dates import validated_timeline_argument
from madeleine.tools.reading import parse_as_of
from madeleine.tools.replies import (
    brief_memory_as_json,
    memory_version_as_json,
    missing_vector_notice,
    notice_field,
    truth_details_as_json,
    without_empty_fields,
    words_only_notice,
)
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function


class ShareArguments(ToolArguments):
    text: Annotated[LongText, Field(description="In sentences that make sense alone.")] = ""
    memory: Annotated[ShortText, Field(description="Id of a memory of yours to share, in place of text.")] = ""
    kind: Annotated[
        KnowledgeKind,
        Field(description="policy: core rule, in every prompt; decision: record of one, with its reasons."),
    ] = "knowledge"
    when: Annotated[ShortText, Field(description="Since when it is true: ISO date.")] = ""
    supersedes: Annotated[ShortText, Field(description="Id (s3) of what this makes untrue, of the same kind.")] = ""
    themes: Annotated[list[ShortText], Field(max_length=20)] = []
    key: Annotated[ShortText, Field(description="Idempotency key.")] = ""


@tool_from_function(
    ShareArguments,
    object_schema("id", string="id kind status notice", object="superseded redacted"),
    name="share",
    listed=False,
)
async def share_with_organisation(call: ToolCallContext, arguments: ShareArguments) -> dict[str, Any]:
    """Share what everybody in the organisation should know: a finding (knowledge), a convention, a procedure, a
    decision, a policy. All agents can read it, under your name; your role decides which kinds you may write. If
    something shared has changed, name it in supersedes. For your own memory use store."""
    if bool(arguments.text) == bool(arguments.memory):
        raise InvalidInput("Nothing was shared. Give either text, or memory with the id of a memory of yours.")
    if arguments.memory and arguments.when:
        raise InvalidInput("Nothing was shared. when goes with text: a shared memory keeps its own date.")
    source = (
        (await call.use_cases.short_ids.full_memory_id_by_given_id(call.scope, [arguments.memory]))[arguments.memory]
        if arguments.memory
        else None
    )
    new = NewKnowledge(
        kind=arguments.kind,
        scene=Scene(action=arguments.text.strip(), when=validated_timeline_argument("when", arguments.when or ()))
        if arguments.text
        else None,
        source=source,
        themes=unique(arguments.themes),
        supersedes=await _full_id_of_shared_memory(call, arguments.supersedes) if arguments.supersedes else None,
        key=arguments.key or call.request_key() or None,
    )
    stored = await call.use_cases.organisation.share(call.scope, new)
    memory, before = stored.memory, stored.may_supersede
    return without_empty_fields(
        id=memory.short_id,
        kind=memory.knowledge,
        status="known" if stored.repeated else "shared",
        superseded=memory_version_as_json(stored.superseded) if stored.superseded else None,
        redacted=dict(stored.redacted),
    ) | notice_field(
        "Everybody knows this already." if stored.repeated and not new.key else "",
        missing_vector_notice("Shared", stored.embedding_error),
        f"{before.short_id} may no longer be true: {before.scene.action[:200]!r}. If this takes its place, share it "
        f"again with supersedes: {before.short_id}, and retract {memory.short_id}."
        if before
        else "",
    )


class SearchSharedArguments(ToolArguments):
    query: Annotated[LongText, Field(description="The task or question. Left out: a list, policies first.")] = ""
    kinds: Annotated[list[KnowledgeKind], Field(max_length=5)] = []
    scope: Annotated[
        Literal["all", "shared"], Field(description="all: beside your own memories; shared: only what is shared.")
    ] = "all"
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    token_budget: Annotated[int, Field(ge=1, le=100_000)] = 2000
    as_of: Annotated[ShortText, Field(description="Date: what was true then.")] = ""
    id: Annotated[ShortText, Field(description="Only this (s3), with all its versions and their authors.")] = ""


@tool_from_function(
    SearchSharedArguments,
    object_schema("memories", array="memories", string="notice"),
    counts_recalls=True,
    listed=False,
    permission="read",
)
async def search_shared(call: ToolCallContext, arguments: SearchSharedArguments) -> dict[str, Any]:
    """Search what the organisation knows, with your own memories: policies, decisions, procedures, conventions, and
    what others have shared. Call it when a task begins. Each hit says who shared it; ids of shared ones begin with s.
    Without a query it lists them. For your own memory alone use recall."""
    organisation, as_of = call.use_cases.organisation, parse_as_of(arguments.as_of)
    notices: tuple[str, ...] = ()
    if arguments.id:
        return await _shared_versions_as_json(call, arguments.id)
    if arguments.query.strip():
        personal = arguments.scope == "all" and not arguments.kinds
        query = arguments.to_dataclass(RecallQuery, text=arguments.query, as_of=as_of)
        result = await organisation.search(
            call.scope, query, kinds=arguments.kinds, personal=personal, language=call.language_model
        )
        found: list[tuple[Memory, float | None]] = [*result.found]
        notices = (words_only_notice(result.words_only_reason), *result.notices)
    else:
        listed = sorted(
            await organisation.list_knowledge(arguments.kinds, as_of=as_of), key=lambda one: one.knowledge != "policy"
        )
        found = [(one, None) for one in listed[: arguments.limit]]
        if more := len(listed) - len(found):
            notices = (f"{more} more: raise limit, name kinds, or give a query.",)
    organisation.audit_recall(call.scope, "search_shared", [one for one, _ in found])
    return {"memories": [shared_search_hit_as_json(one, score) for one, score in found]} | notice_field(*notices)


async def _shared_versions_as_json(call: ToolCallContext, id_: str) -> dict[str, Any]:
    full_id = await _full_id_of_shared_memory(call, id_)
    versions = (await call.use_cases.organisation.versions(call.scope, [full_id])).get(full_id, [])
    if not versions:
        raise InvalidInput(f"Nothing that is shared has the id {id_!r}. search_shared without arguments lists it.")
    call.use_cases.organisation.audit_recall(call.scope, "search_shared", versions)
    return {"memories": [shared_search_hit_as_json(one) | truth_details_as_json(one) for one in versions]}


def shared_search_hit_as_json(memory: Memory, score: float | None = None) -> dict[str, Any]:
    """A hit; of what is shared also its kind and its author."""
    source = memory.provenance
    shared = without_empty_fields(
        kind=memory.knowledge, author=source.author, author_role=source.author_role, themes=list(memory.themes)
    )
    return brief_memory_as_json(memory, score) | (shared if memory.being_id == ORGANISATION_BEING_ID else {})


class RetractArguments(ToolArguments):
    id: Annotated[ShortText, Field(description="Of what is shared, as s3.")]
    reason: Annotated[SceneLengthText, Field(description="Why it was never true, or must not be shared.")] = ""
    undo: Annotated[bool, Field(description="Take back its last supersession or retraction.")] = False
    erase: Annotated[bool, Field(description="For good, from the disk too: only on request.")] = False


def _permission_to_retract(arguments: RetractArguments) -> Permission:
    return "erase" if arguments.erase else "write"


@tool_from_function(
    RetractArguments,
    object_schema("id", string="id status notice", array="changed copies"),
    name="retract",
    destructive=True,
    listed=False,
    permission_of=_permission_to_retract,
)
async def retract_shared_knowledge(call: ToolCallContext, arguments: RetractArguments) -> dict[str, Any]:
    """Take back what was shared and is wrong: nobody finds it any more, its history is kept, and undo brings it back.
    An agent can retract what it has shared itself. Something that was true until now: share its successor with
    supersedes."""
    id_ = await _full_id_of_shared_memory(call, arguments.id)
    given = [bool(arguments.reason), arguments.undo, arguments.erase]
    if given.count(True) != 1:
        raise InvalidInput("Nothing was changed. Give one of reason, undo and erase.")
    if arguments.erase:
        outcome = await call.use_cases.organisation.erase(call.scope, id_)
        return {"id": arguments.id, "status": "erased"} | without_empty_fields(copies=list(outcome.copies))
    if arguments.undo:
        done = await call.use_cases.organisation.undo_last_truth_change(call.scope, id_)
    else:
        done = await call.use_cases.organisation.retract(call.scope, id_, arguments.reason)
    about, *others = done.changed
    return {"id": about.short_id, "status": about.truth} | without_empty_fields(
        changed=[memory_version_as_json(one) for one in others]
    )


async def _full_id_of_shared_memory(call: ToolCallContext, id_: str) -> MemoryId:
    shared: Scope = caller_scope_in_organisation(call.scope)
    return (await call.use_cases.short_ids.full_memory_id_by_given_id(shared, [id_]))[id_]
