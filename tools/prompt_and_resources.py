"""Beside the tools: a prompt with the context for an answer, and parts of a memory as resources (spec P5)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any
from urllib.parse import quote, unquote, urlsplit

import mcp_types as types
from pydantic import BeforeValidator, Field

from madeleine.memory.context.values import BuiltContext, ContextBlock, ContextQuery
from madeleine.memory.model import BeingId
from madeleine.tools.arguments import Arguments, LongText, Short, read_arguments
from madeleine.tools.context import build_context, node_as_json
from madeleine.tools.profile import show_profile
from madeleine.tools.tool import Call

CONTEXT_PROMPT = types.Prompt(
    name="memory_context",
    description="The context for answering a message: identity, notes and knowledge, relevant memories.",
    arguments=[
        types.PromptArgument(name="message", description="The message to answer.", required=True),
        types.PromptArgument(name="session_id", description="Id of this conversation.", required=False),
        types.PromptArgument(
            name="token_limit", description="Tokens of the context, without the message.", required=False
        ),
    ],
)


def _parse_integer(value: object) -> object:
    """Prompt arguments are all text."""
    return int(value) if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() else value


class PromptArguments(Arguments):
    message: LongText
    session_id: Short = ""
    token_limit: Annotated[int | None, BeforeValidator(_parse_integer), Field(ge=1, le=1_000_000)] = None


async def get_context_prompt(call: Call, raw: Mapping[str, Any], *, max_text_chars: int) -> types.GetPromptResult:
    """Raises `InvalidInput` for invalid arguments."""
    # Fields left empty in a client's form arrive as "".
    filled_in = {name: text for name, text in raw.items() if text != ""}
    arguments = read_arguments(PromptArguments, filled_in, max_text_chars=max_text_chars)
    query = ContextQuery(
        message=arguments.message,
        session_id=arguments.session_id,
        token_limit=arguments.token_limit or call.use.context.token_limit,
        flags=call.use.context.flags,
    )
    built = await build_context(call, query, audited_as=CONTEXT_PROMPT.name)
    messages = context_messages(built, arguments.message)
    return types.GetPromptResult(description=CONTEXT_PROMPT.description, messages=messages)


def context_messages(context: BuiltContext, message: str) -> list[types.PromptMessage]:
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
    text = "\n\n".join(text for text in texts if text)
    return types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))


# --- resources --------------------------------------------------------------------------------------------------

RESOURCE_SCHEME = "memory"
MARKDOWN, JSON = "text/markdown", "application/json"
UNLIMITED_TOKENS = 1_000_000
"""Resources are returned whole."""


@dataclass(frozen=True, slots=True)
class MemoryResource:
    name: str
    description: str
    mime_type: str
    read: Callable[[Call], Awaitable[str]]


async def read_snapshot(call: Call) -> str:
    context = await _build_block(call, "snapshot", token_limit=call.use.context.token_limit)
    return context.snapshot[0].content if context.snapshot else ""


async def read_recent_memories(call: Call) -> str:
    context = await _build_block(call, "recent_nodes")
    return _json_text({"recent_nodes": [node_as_json(memory) for memory in context.recent_nodes or ()]})


async def read_diary(call: Call) -> str:
    context = await _build_block(call, "diary")
    return _json_text({"diary": [asdict(day) for day in context.diary or ()]})


async def read_profile(call: Call) -> str:
    return _json_text(await show_profile(call, audited_as="memory://profile"))


RESOURCES = (
    MemoryResource("snapshot", "Open notes, knowledge, and the diary of the last 7 days.", MARKDOWN, read_snapshot),
    MemoryResource("recent", "The 5 memories recalled last.", JSON, read_recent_memories),
    MemoryResource("diary", "The diary of the last 7 days, in full.", JSON, read_diary),
    MemoryResource(
        "profile", "Soul, partner rules, preferences, relationships, tools, map, knowledge.", JSON, read_profile
    ),
)


def resources_of_being(being: BeingId) -> list[types.Resource]:
    """The resources of one being; those of others are not disclosed."""
    return [
        types.Resource(uri=resource_uri(being, r.name), name=r.name, description=r.description, mime_type=r.mime_type)
        for r in RESOURCES
    ]


def resource_uri(being: BeingId, name: str) -> str:
    return f"{RESOURCE_SCHEME}://{quote(being, safe='')}/{name}"


def find_resource(requested: str, being: BeingId) -> MemoryResource | None:
    """The resource of this URI; None for unknown URIs and for another being's (ruling 12)."""
    try:
        parts = urlsplit(requested)
    except ValueError:
        return None
    if parts.scheme != RESOURCE_SCHEME or unquote(parts.netloc) != being or parts.query or parts.fragment:
        return None
    return next((resource for resource in RESOURCES if parts.path == f"/{resource.name}"), None)


async def _build_block(call: Call, block: ContextBlock, *, token_limit: int = UNLIMITED_TOKENS) -> BuiltContext:
    flags = call.use.context.flags
    if block == "diary":
        flags = flags.model_copy(update={"enable_ai_diary": True, "ai_diary_full": True, "prompt_lite_mode": False})
    query = ContextQuery(token_limit=token_limit, blocks=frozenset({block}), flags=flags)
    return await build_context(call, query, audited_as=f"memory://{block}")


def _json_text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
