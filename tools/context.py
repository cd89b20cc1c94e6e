"""`context`: a ready context for a prompt; beside the tools, the same as an MCP prompt, and parts of a memory as
resources (spec P5, H5, L4)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types
from pydantic import BeforeValidator, Field

from madeleine.memory.chat import ConversationMessage
from madeleine.memory.context.values import (
    CONTEXT_BLOCK_NAMES_FOR_MESSAGE,
    BuiltContext,
    ContextBlockName,
    ContextFlags,
    ContextQuery,
)
from madeleine.memory.model import BeingId, Memory, memory_date, scene_to_text, short_id_of_non_memory
from madeleine.memory.patrol_records import DiaryEntry
from madeleine.memory.rules.prompting import MAX_PROMPT_MESSAGE_CHARS, memories_in_prompt_order, truncate_with_ellipsis
from madeleine.memory.text.structure import escape_foreign_markup, escape_foreign_markup_in_json
from madeleine.tools.arguments import LongText, ShortText, ToolArguments, validate_tool_arguments
from madeleine.tools.profile import profile_and_open_notes_as_json
from madeleine.tools.replies import (
    datetime_as_iso,
    memory_without_text_as_json,
    named_attributes_as_json,
    search_hit_as_json,
    without_empty_fields,
    words_only_notice,
)
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function


class ContextArguments(ToolArguments):
    message: Annotated[LongText, Field(description="The message to answer. Without it, nothing is recalled.")] = ""
    session_id: Annotated[ShortText, Field(description="Of this conversation, as in observe.")] = ""
    project: Annotated[ShortText, Field(description="Its own too.")] = ""
    token_limit: Annotated[int | None, Field(ge=1, le=1_000_000, description="Of the prompt.")] = None
    blocks: Annotated[
        list[ContextBlockName],
        Field(min_length=1, max_length=len(CONTEXT_BLOCK_NAMES_FOR_MESSAGE), description="Only these."),
    ] = list(CONTEXT_BLOCK_NAMES_FOR_MESSAGE)
    enable_memories: bool | None = None
    context_verbosity: Annotated[
        int | None, Field(ge=0, le=50, description="Limit of memories, and of messages of each history.")
    ] = None
    unified_history: bool | None = None
    prompt_lite_mode: bool | None = None
    enable_history_current_chat: bool | None = None
    enable_history_recent: bool | None = None
    enable_ai_diary: bool | None = None
    ai_diary_full: bool | None = None
    enable_thoughts: bool | None = None
    enable_tags_placeholder: bool | None = None


@tool_from_function(
    ContextArguments,
    object_schema(
        "prompt dropped tokens",
        string="prompt system_prompt memory_block notice",
        array="snapshot recent_nodes memories history_current_chat history_recent diary sources dropped thoughts "
        "tags_placeholder",
        object="tokens",
    ),
    name="context",
    counts_recalls=True,
    permission="read",
    listed=False,
)
async def build_context(call: ToolCallContext, arguments: ContextArguments) -> dict[str, Any]:
    """Build a context for the next answer, within a token limit: identity (system_prompt, cacheable), a snapshot of
    notes, knowledge and diary, recently active memories, memories relevant to the message, and chat history; as blocks
    and as one prompt. For programs that build prompts; to remember something call recall."""
    flags = arguments.model_dump(include=set(ContextFlags.model_fields), exclude_none=True)
    query = arguments.to_dataclass(
        ContextQuery,
        token_limit=arguments.token_limit or call.use_cases.context.token_limit,
        blocks=frozenset(arguments.blocks),
        flags=call.use_cases.context.flags.model_copy(update=flags),
    )
    call = call.in_project(arguments.project)
    return built_context_as_json(await build_audited_context(call, query, audited_as="context"), query)


async def build_audited_context(call: ToolCallContext, query: ContextQuery, *, audited_as: str) -> BuiltContext:
    built = await call.use_cases.context(call.scope, query)
    call.audit_recall(audited_as, built.shown_ids)
    return built


async def conversation_start_prompt(call: ToolCallContext, token_limit: int, *, audited_as: str) -> str:
    """The start of a conversation (ruling 18): preferences, open notes, the last diary entry, what is pinned and what
    changed lately; "" if there is nothing."""
    flags = call.use_cases.context.flags.model_copy(update={"ai_diary_full": True})
    query = ContextQuery(token_limit=token_limit, blocks=frozenset({"start"}), flags=flags)
    built = await build_audited_context(call, query, audited_as=audited_as)
    return built.prompt if built.shown_ids else ""


def built_context_as_json(context: BuiltContext, query: ContextQuery) -> dict[str, Any]:
    """Blocks that were not requested, or are disabled, are left out; empty ones are not."""
    blocks: dict[str, Any] = {
        "system_prompt": context.system_prompt if "system_prompt" in query.blocks else None,
        "snapshot": [asdict(turn) for turn in context.snapshot] if "snapshot" in query.blocks else None,
        "recent_nodes": _items_as_json_or_none(context.recent_nodes, recent_memory_as_json),
        "memory_block": context.memory_block,
        "memories": _items_as_json_or_none(context.memories, partial(search_hit_as_json, details=True)),
        "history_current_chat": _items_as_json_or_none(context.history_current_chat, context_message_as_json),
        "history_recent": _items_as_json_or_none(context.history_recent, context_message_as_json),
        "diary": _items_as_json_or_none(context.diary, diary_day_as_json),
        "thoughts": _items_as_json_or_none(context.thoughts, str),
        "tags_placeholder": _items_as_json_or_none(context.tags_placeholder, str),
    }
    return {
        "prompt": context.prompt,
        **{name: block for name, block in blocks.items() if block is not None},
        **without_empty_fields(
            sources=[
                memory_without_text_as_json(memory)
                for memory in memories_in_prompt_order([m for m, _ in context.recalled])
            ]
        ),
        "dropped": [
            without_empty_fields(block=part.part, count=part.count, tokens=part.tokens, in_full=part.in_full or None)
            for part in context.dropped
        ],
        "tokens": {**context.tokens, "limit": query.token_limit},
        **without_empty_fields(notice=words_only_notice(context.words_only_reason)),
    }


def _items_as_json_or_none(items: Any, as_json: Any) -> list[Any] | None:
    return None if items is None else [as_json(item) for item in items]


def diary_day_as_json(day: DiaryEntry) -> dict[str, Any]:
    return {"when": day.date, "text": day.text}


def recent_memory_as_json(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.short_id,
        "text": scene_to_text(memory.scene, memory.feeling),
        "category": memory.category,
        "when": memory_date(memory),
        "last_activated": datetime_as_iso(memory.last_activated),
    }


def context_message_as_json(message: ConversationMessage) -> dict[str, Any]:
    text = truncate_with_ellipsis(message.text, MAX_PROMPT_MESSAGE_CHARS)
    fields = {
        "id": short_id_of_non_memory(message.id),
        "when": datetime_as_iso(message.at),
        "role": message.role,
        "text": text,
    }
    return fields | without_empty_fields(**named_attributes_as_json(message, "speaker session_id"))


CONTEXT_MCP_PROMPT = types.Prompt(
    name="memory_context",
    description="The context for answering a message: identity, notes and knowledge, relevant memories. Without a "
    "message, the start of a conversation.",
    arguments=[
        types.PromptArgument(name="message", description="The message to answer.", required=False),
        types.PromptArgument(name="session_id", description="Id of this conversation.", required=False),
        types.PromptArgument(
            name="token_limit", description="Tokens of the context, without the message.", required=False
        ),
    ],
)


def _integer_if_digits(value: object) -> object:
    """Prompt arguments are all text."""
    return int(value) if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() else value


class ContextPromptArguments(ToolArguments):
    message: LongText = ""
    session_id: ShortText = ""
    token_limit: Annotated[int | None, BeforeValidator(_integer_if_digits), Field(ge=1, le=1_000_000)] = None


async def get_context_prompt(
    call: ToolCallContext, raw: Mapping[str, Any], *, max_text_chars: int
) -> types.GetPromptResult:
    """Raises `InvalidInput` for invalid arguments."""
    # Fields left empty in a client's form arrive as "".
    filled_in = {name: text for name, text in raw.items() if text != ""}
    arguments = validate_tool_arguments(ContextPromptArguments, filled_in, max_text_chars=max_text_chars)
    own = call.use_cases.context
    if not arguments.message.strip():
        start = await conversation_start_prompt(
            call, arguments.token_limit or own.token_limit, audited_as=CONTEXT_MCP_PROMPT.name
        )
        messages = [_prompt_message("user", start or "Nothing is stored yet.")]
        return types.GetPromptResult(description=CONTEXT_MCP_PROMPT.description, messages=messages)
    query = arguments.to_dataclass(ContextQuery, token_limit=arguments.token_limit or own.token_limit, flags=own.flags)
    built = await build_audited_context(call, query, audited_as=CONTEXT_MCP_PROMPT.name)
    messages = context_as_prompt_messages(built, arguments.message)
    return types.GetPromptResult(description=CONTEXT_MCP_PROMPT.description, messages=messages)


def context_as_prompt_messages(context: BuiltContext, message: str) -> list[types.PromptMessage]:
    """Blocks 1-A and 1-B come first and stay the same from turn to turn, so that clients can cache them. MCP prompts
    have no system role."""
    if not context.snapshot:
        return [_prompt_message("user", context.system_prompt, context.turn, message)]
    snapshot, reply = context.snapshot
    return [
        _prompt_message("user", context.system_prompt, snapshot.content),
        _prompt_message("assistant", reply.content),
        _prompt_message("user", context.turn, message),
    ]


def _prompt_message(role: types.Role, *texts: str) -> types.PromptMessage:
    text = escape_foreign_markup("\n\n".join(text for text in texts if text))
    return types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))


# --- resources --------------------------------------------------------------------------------------------------

MEMORY_RESOURCE_URI_SCHEME = "memory"
MARKDOWN, JSON = "text/markdown", "application/json"
UNLIMITED_RESOURCE_TOKENS = 1_000_000
"""Resources are returned whole."""


@dataclass(frozen=True, slots=True)
class MemoryResource:
    name: str
    description: str
    mime_type: str
    read: Callable[[ToolCallContext], Awaitable[str]]


async def read_context_snapshot_resource(call: ToolCallContext) -> str:
    context = await _build_context_with_one_block(call, "snapshot", token_limit=call.use_cases.context.token_limit)
    return escape_foreign_markup(context.snapshot[0].content) if context.snapshot else ""


async def read_recently_recalled_memories_resource(call: ToolCallContext) -> str:
    context = await _build_context_with_one_block(call, "recent_nodes")
    return _json_with_escaped_markup(
        {"recent_nodes": [recent_memory_as_json(memory) for memory in context.recent_nodes or ()]}
    )


async def read_diary_resource(call: ToolCallContext) -> str:
    context = await _build_context_with_one_block(call, "diary")
    return _json_with_escaped_markup({"diary": [diary_day_as_json(day) for day in context.diary or ()]})


async def read_profile_resource(call: ToolCallContext) -> str:
    return _json_with_escaped_markup(await profile_and_open_notes_as_json(call, audited_as="memory://profile"))


MEMORY_RESOURCES = (
    MemoryResource(
        "snapshot", "Open notes, knowledge, and the diary of the last 7 days.", MARKDOWN, read_context_snapshot_resource
    ),
    MemoryResource("recent", "The 5 memories recalled last.", JSON, read_recently_recalled_memories_resource),
    MemoryResource("diary", "The diary of the last 7 days, in full.", JSON, read_diary_resource),
    MemoryResource(
        "profile",
        "Soul, partner rules, preferences, relationships, tools, map, knowledge.",
        JSON,
        read_profile_resource,
    ),
)


def resources_of_being(being: BeingId) -> list[types.Resource]:
    """The resources of one being; those of others are not disclosed."""
    return [
        types.Resource(
            uri=uri_of_being_resource(being, r.name), name=r.name, description=r.description, mime_type=r.mime_type
        )
        for r in MEMORY_RESOURCES
    ]


def uri_of_being_resource(being: BeingId, name: str) -> str:
    return f"{MEMORY_RESOURCE_URI_SCHEME}://{quote(being, safe='')}/{name}"


def find_memory_resource_by_uri(requested: str, being: BeingId) -> MemoryResource | None:
    """The resource of this URI; None for unknown URIs and for another being's (ruling 12)."""
    try:
        parts = urlsplit(requested)
    except ValueError:
        return None
    if parts.scheme != MEMORY_RESOURCE_URI_SCHEME or unquote(parts.netloc) != being or parts.query or parts.fragment:
        return None
    return next((resource for resource in MEMORY_RESOURCES if parts.path == f"/{resource.name}"), None)


async def _build_context_with_one_block(
    call: ToolCallContext, block: ContextBlockName, *, token_limit: int = UNLIMITED_RESOURCE_TOKENS
) -> BuiltContext:
    flags = call.use_cases.context.flags
    if block == "diary":
        flags = flags.model_copy(update={"enable_ai_diary": True, "ai_diary_full": True, "prompt_lite_mode": False})
    query = ContextQuery(token_limit=token_limit, blocks=frozenset({block}), flags=flags)
    return await build_audited_context(call, query, audited_as=f"memory://{block}")


def _json_with_escaped_markup(content: Any) -> str:
    return json.dumps(escape_foreign_markup_in_json(content), ensure_ascii=False)
