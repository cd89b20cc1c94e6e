"""`context`: a ready context for a prompt (spec P5, H5, L4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.chat import Message
from madeleine.memory.context.values import BLOCKS, BuiltContext, ContextBlock, ContextFlags, ContextQuery, DroppedPart
from madeleine.memory.model import Memory, scene_to_text
from madeleine.memory.rules.prompting.memory_block import in_prompt_order
from madeleine.memory.rules.prompting.prompt_parts import MAX_MESSAGE_CHARS, truncated
from madeleine.tools.arguments import Arguments, LongText, Short
from madeleine.tools.replies import meaning_notice, moment, present, source, when
from madeleine.tools.search_memory import hit
from madeleine.tools.tool import OBJECTS, TEXT, TEXTS, Call, Tool, answer_schema


class ContextArguments(Arguments):
    message: Annotated[
        LongText | None, Field(description="What was said just now; without it nothing is recalled.")
    ] = None
    session_id: Annotated[Short | None, Field(description="Of this conversation, as observe has it.")] = None
    token_limit: Annotated[int | None, Field(ge=1, le=1_000_000, description="Of the prompt.")] = None
    blocks: Annotated[list[ContextBlock], Field(min_length=1, max_length=len(BLOCKS), description="Only these.")] = (
        list(BLOCKS)
    )
    enable_memories: bool | None = None
    context_verbosity: Annotated[
        int | None, Field(ge=0, le=50, description="Memories, and messages of each history, at most.")
    ] = None
    unified_history: bool | None = None
    prompt_lite_mode: bool | None = None
    enable_history_current_chat: bool | None = None
    enable_history_recent: bool | None = None
    enable_ai_diary: bool | None = None
    ai_diary_full: bool | None = None
    enable_thoughts: bool | None = None
    enable_tags_placeholder: bool | None = None


FLAGS = tuple(ContextFlags.__dataclass_fields__)


async def run(call: Call, arguments: ContextArguments) -> dict[str, Any]:
    use = call.use.context
    given = {name: value for name in FLAGS if (value := getattr(arguments, name)) is not None}
    query = ContextQuery(
        message=arguments.message or "",
        session_id=arguments.session_id or "",
        token_limit=arguments.token_limit or use.token_limit,
        blocks=frozenset(arguments.blocks),
        flags=replace(use.flags, **given),
    )
    built = await use(call.scope, query)
    call.use.audit(call.scope, "recall", tool="context", ids=built.shown)
    return as_json(built, query)


def as_json(built: BuiltContext, query: ContextQuery) -> dict[str, Any]:
    """What was not asked for, or is switched off, is not there; what is empty, is."""
    lists: dict[str, Any] = {
        "recent_nodes": _each(built.recent_nodes, node),
        "memory_block": built.memory_block,
        "memories": _each(built.memories, hit),
        "history_current_chat": _each(built.history_current_chat, said),
        "history_recent": _each(built.history_recent, said),
        "diary": _each(built.diary, lambda day: {"date": day.date, "text": day.text}),
        "thoughts": _each(built.thoughts, str),
        "tags_placeholder": _each(built.tags_placeholder, str),
    }
    found: dict[str, Any] = {"prompt": built.prompt}
    if "system_prompt" in query.blocks:
        found["system_prompt"] = built.system_prompt
    if "snapshot" in query.blocks:
        found["snapshot"] = [{"role": turn.role, "content": turn.content} for turn in built.snapshot]
    found |= {name: value for name, value in lists.items() if value is not None}
    found |= present(
        {"sources": [source(memory) for memory in in_prompt_order([memory for memory, _ in built.recalled])]}
    )
    found["dropped"] = [gone(one) for one in built.dropped]
    found["tokens"] = dict(built.tokens) | {"limit": query.token_limit}
    return found | meaning_notice(built.meaning_off)


def _each(items: Any, shape: Any) -> list[Any] | None:
    return None if items is None else [shape(one) for one in items]


def node(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "text": scene_to_text(memory.scene, memory.feeling),
        "category": memory.category,
        "when": when(memory),
        "last_activated": moment(memory.last_activated),
    }


def said(message: Message) -> dict[str, Any]:
    shown = {
        "id": message.id,
        "at": moment(message.at),
        "role": message.role,
        "text": truncated(message.text, MAX_MESSAGE_CHARS),
    }
    return shown | present({"speaker": message.speaker, "session_id": message.session_id})


def gone(one: DroppedPart) -> dict[str, Any]:
    what = {"block": one.part, "count": one.count, "tokens": one.tokens}
    return what | ({"in_full": True} if one.full else {})


TOOL = Tool(
    name="context",
    description=(
        "A ready context for the next answer: who to be (system_prompt, to be cached), a snapshot of notes, knowledge "
        "and diary, what came to mind lately, what this message brings to mind, and what was said before; as blocks "
        "and as one prompt, within a limit of tokens. For programs that build prompts; to remember call recall."
    ),
    arguments=ContextArguments,
    answers=answer_schema(
        ("prompt", "dropped", "tokens"),
        **dict.fromkeys(("prompt", "system_prompt", "memory_block", "notice"), TEXT),
        **dict.fromkeys(("snapshot", "recent_nodes", "memories", "history_current_chat", "history_recent"), OBJECTS),
        **dict.fromkeys(("diary", "sources", "dropped"), OBJECTS),
        **dict.fromkeys(("thoughts", "tags_placeholder"), TEXTS),
        tokens={"type": "object"},
    ),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    shows=False,
    only_counts=True,
    listed=False,
)
