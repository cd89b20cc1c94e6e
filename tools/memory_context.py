"""The MCP prompt `memory_context`: a message with the context for its answer (spec P5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import mcp_types as types
from pydantic import BeforeValidator, Field

from madeleine.memory.context.values import BuiltContext, ContextQuery
from madeleine.tools.arguments import Arguments, LongText, Short, read_arguments
from madeleine.tools.tool import Call

NAME = "memory_context"
PROMPT = types.Prompt(
    name=NAME,
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
    session_id: Short | None = None
    token_limit: Annotated[int | None, BeforeValidator(_parse_integer), Field(ge=1, le=1_000_000)] = None


async def get(call: Call, raw: Mapping[str, Any], *, max_text_chars: int) -> types.GetPromptResult:
    """Raises `InvalidInput` for invalid arguments."""
    # Fields left empty in a client's form arrive as "".
    given = {name: text for name, text in raw.items() if text != ""}
    arguments = read_arguments(PromptArguments, given, max_text_chars=max_text_chars)
    build = call.use.context
    query = ContextQuery(
        message=arguments.message,
        session_id=arguments.session_id or "",
        token_limit=arguments.token_limit or build.token_limit,
        flags=build.flags,
    )
    context = await build(call.scope, query)
    call.use.audit(call.scope, "recall", tool=NAME, ids=context.shown)
    return types.GetPromptResult(description=PROMPT.description, messages=messages(context, arguments.message))


def messages(context: BuiltContext, message: str) -> list[types.PromptMessage]:
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
