"""The MCP prompt `memory_context`: a message with all that is to be known for its answer (spec P5)."""

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
    description="What Madeleine knows that matters for a message: who to be, what is kept in mind, what comes to mind.",
    arguments=[
        types.PromptArgument(name="message", description="What is to be answered.", required=True),
        types.PromptArgument(name="session_id", description="Of this conversation.", required=False),
        types.PromptArgument(
            name="token_limit", description="Tokens that the context may take, the message aside.", required=False
        ),
    ],
)


def _number(given: object) -> object:
    """A prompt's arguments are all text."""
    return int(given) if isinstance(given, str) and given.strip().isascii() and given.strip().isdigit() else given


class PromptArguments(Arguments):
    message: LongText
    session_id: Short | None = None
    token_limit: Annotated[int | None, BeforeValidator(_number), Field(ge=1, le=1_000_000)] = None


async def get(call: Call, given: Mapping[str, Any], *, max_text_chars: int) -> types.GetPromptResult:
    """Raises `InvalidInput` for arguments that cannot be used."""
    # What a client leaves empty in its form was not given.
    arguments = read_arguments(
        PromptArguments, {name: text for name, text in given.items() if text != ""}, max_text_chars=max_text_chars
    )
    use = call.use.context
    query = ContextQuery(
        message=arguments.message,
        session_id=arguments.session_id or "",
        token_limit=arguments.token_limit or use.token_limit,
        flags=use.flags,
    )
    built = await use(call.scope, query)
    call.use.audit(call.scope, "recall", tool=NAME, ids=built.shown)
    return types.GetPromptResult(description=PROMPT.description, messages=messages(built, arguments.message))


def messages(built: BuiltContext, message: str) -> list[types.PromptMessage]:
    """Blocks 1-A and 1-B first and alike from turn to turn, so that they can be cached; a prompt has no system role."""
    if not built.snapshot:
        return [_said("user", built.system_prompt, built.turn, message)]
    question, answer = built.snapshot
    return [
        _said("user", built.system_prompt, question.content),
        _said("assistant", answer.content),
        _said("user", built.turn, message),
    ]


def _said(role: types.Role, *texts: str) -> types.PromptMessage:
    text = "\n\n".join(text for text in texts if text)
    return types.PromptMessage(role=role, content=types.TextContent(type="text", text=text))
