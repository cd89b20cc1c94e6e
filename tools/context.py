"""`context`: a ready context for a prompt (spec P5, H5, L4)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.chat import Message
from madeleine.memory.context.values import (
    CONTEXT_BLOCKS,
    BuiltContext,
    ContextBlock,
    ContextFlags,
    ContextQuery,
    DroppedPart,
)
from madeleine.memory.model import Memory, scene_to_text
from madeleine.memory.rules.prompting import MAX_MESSAGE_CHARS, memories_in_prompt_order, truncated
from madeleine.tools.arguments import Arguments, LongText, Short
from madeleine.tools.replies import fields_of, hit_json, iso_time, meaning_notice, memory_date, nonempty, source_json
from madeleine.tools.tool import Call, answer_schema, tool


class ContextArguments(Arguments):
    message: Annotated[LongText, Field(description="The message to answer. Without it, nothing is recalled.")] = ""
    session_id: Annotated[Short, Field(description="Of this conversation, as in observe.")] = ""
    token_limit: Annotated[int | None, Field(ge=1, le=1_000_000, description="Of the prompt.")] = None
    blocks: Annotated[
        list[ContextBlock], Field(min_length=1, max_length=len(CONTEXT_BLOCKS), description="Only these.")
    ] = list(CONTEXT_BLOCKS)
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


@tool(
    ContextArguments,
    answer_schema(
        "prompt dropped tokens",
        string="prompt system_prompt memory_block notice",
        array="snapshot recent_nodes memories history_current_chat history_recent diary sources dropped thoughts "
        "tags_placeholder",
        object="tokens",
    ),
    counts_recalls=True,
    listed=False,
)
async def context(call: Call, arguments: ContextArguments) -> dict[str, Any]:
    """Build a context for the next answer, within a token limit: identity (system_prompt, cacheable), a snapshot of
    notes, knowledge and diary, recently active memories, memories relevant to the message, and chat history; as blocks
    and as one prompt. For programs that build prompts; to remember something call recall."""
    flags = arguments.model_dump(include=set(ContextFlags.model_fields), exclude_none=True)
    query = ContextQuery(
        message=arguments.message,
        session_id=arguments.session_id,
        token_limit=arguments.token_limit or call.use.context.token_limit,
        blocks=frozenset(arguments.blocks),
        flags=call.use.context.flags.model_copy(update=flags),
    )
    return context_as_json(await build_context(call, query, audited_as="context"), query)


async def build_context(call: Call, query: ContextQuery, *, audited_as: str) -> BuiltContext:
    built = await call.use.context(call.scope, query)
    call.audit_recall(audited_as, built.shown)
    return built


def context_as_json(context: BuiltContext, query: ContextQuery) -> dict[str, Any]:
    """Blocks that were not requested, or are disabled, are left out; empty ones are not."""
    blocks: dict[str, Any] = {
        "system_prompt": context.system_prompt if "system_prompt" in query.blocks else None,
        "snapshot": [asdict(turn) for turn in context.snapshot] if "snapshot" in query.blocks else None,
        "recent_nodes": _json_list(context.recent_nodes, node_as_json),
        "memory_block": context.memory_block,
        "memories": _json_list(context.memories, hit_json),
        "history_current_chat": _json_list(context.history_current_chat, message_as_json),
        "history_recent": _json_list(context.history_recent, message_as_json),
        "diary": _json_list(context.diary, asdict),
        "thoughts": _json_list(context.thoughts, str),
        "tags_placeholder": _json_list(context.tags_placeholder, str),
    }
    return {
        "prompt": context.prompt,
        **{name: block for name, block in blocks.items() if block is not None},
        **nonempty(
            sources=[source_json(memory) for memory in memories_in_prompt_order([m for m, _ in context.recalled])]
        ),
        "dropped": [dropped_as_json(dropped) for dropped in context.dropped],
        "tokens": {**context.tokens, "limit": query.token_limit},
        **nonempty(notice=meaning_notice(context.meaning_off)),
    }


def _json_list(items: Any, as_json: Any) -> list[Any] | None:
    return None if items is None else [as_json(item) for item in items]


def node_as_json(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "text": scene_to_text(memory.scene, memory.feeling),
        "category": memory.category,
        "when": memory_date(memory),
        "last_activated": iso_time(memory.last_activated),
    }


def message_as_json(message: Message) -> dict[str, Any]:
    text = truncated(message.text, MAX_MESSAGE_CHARS)
    fields = {"id": message.id, "at": iso_time(message.at), "role": message.role, "text": text}
    return fields | nonempty(**fields_of(message, "speaker session_id"))


def dropped_as_json(dropped: DroppedPart) -> dict[str, Any]:
    values = {"block": dropped.part, "count": dropped.count, "tokens": dropped.tokens}
    return values | ({"in_full": True} if dropped.full else {})
