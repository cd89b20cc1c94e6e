"""`observe`: keep messages of a conversation, and memories drawn from them (spec T1, T4). For hooks and programs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.chat import ChatRole, NewMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import parse_moment
from madeleine.memory.watch.extraction import Extracted
from madeleine.memory.watch.observe import AgentMemory, Observation
from madeleine.tools.arguments import Arguments, Emotions, Line, LongText, Share, Short, printable, unique
from madeleine.tools.replies import present
from madeleine.tools.tool import Call, Tool, answer_schema

MAX_MESSAGES = 100
"""Per call."""


class ObservedMessage(Arguments):
    role: ChatRole
    text: LongText
    speaker: Annotated[Short | None, Field(description="Name of the speaker, if known.")] = None
    at: Annotated[Short | None, Field(description="ISO time; now by default.")] = None
    key: Annotated[
        Short | None, Field(description="Id within its session; a repeated key is stored once.")
    ] = None  # fmt: skip


class ObservedMemory(Arguments):
    essence: Annotated[Line, Field(description="What to remember, in sentences that make sense alone.")]
    weight: Annotated[Share, Field(description="0 noise, 1 critical.")]
    emotions: Emotions = []
    lesson: Annotated[Line | None, Field(description="What to do in future.")] = None
    messages: Annotated[
        list[Short | Annotated[int, Field(ge=0, le=MAX_MESSAGES - 1)]],
        Field(
            max_length=MAX_MESSAGES, description="Its messages: keys, or positions in this call from 0; by default all."
        ),
    ] = []


class ObserveArguments(Arguments):
    session_id: Short
    messages: Annotated[list[ObservedMessage], Field(max_length=MAX_MESSAGES, description="In order.")] = []
    memories: Annotated[
        list[ObservedMemory], Field(max_length=20, description="Memories you drew from them yourself; usually none.")
    ] = []
    title: Short | None = None
    interface: Annotated[Short | None, Field(description="Where it is held; by default the client's name.")] = None


async def run(call: Call, arguments: ObserveArguments) -> dict[str, Any]:
    observation = Observation(
        session_id=arguments.session_id,
        messages=[_message(position, message) for position, message in enumerate(arguments.messages)],
        memories=[
            AgentMemory(
                Extracted(memory.essence.strip(), unique(memory.emotions), memory.weight, memory.lesson or ""),
                unique(memory.messages),
            )
            for memory in arguments.memories
        ],
        title=arguments.title or "",
        interface=arguments.interface or "",
    )
    observed = await call.use.observe(call.scope, observation, request=call.request_key())
    return {"new": len(observed.new)} | present(
        {
            "ids": [message.id for message in observed.new],
            "position": observed.new[0].position if observed.new else None,
            "known": observed.known or None,
            "last_key": observed.last_key,
            "memories": [
                {"id": stored.memory.id, "status": stored.status} if stored else {"status": "forgotten"}
                for stored in observed.memories
            ],
            "redacted": dict(observed.redacted),
        }
    )


def _message(position: int, message: ObservedMessage) -> NewMessage:
    at = None if message.at is None else parse_moment(message.at)
    if at is None and message.at is not None:
        raise InvalidInput(
            f"messages.{position}.at: {printable(message.at)!r} is not an ISO date or time, such as "
            "2026-03-01T12:00:00Z. Nothing was stored: correct it or leave it out."
        )
    return NewMessage(role=message.role, text=message.text, speaker=message.speaker or "", at=at, key=message.key)


TOOL = Tool(
    name="observe",
    description=(
        "Append messages to the chat history, word for word; for programs that watch a conversation. A message with a "
        "key is stored once. Memories drawn from the messages may come along; to remember anything else use store. "
        "Without messages: returns the key of the session's last one. position: that of the first new message in its "
        "session; the others follow."
    ),
    arguments=ObserveArguments,
    answers=answer_schema("new", integer="new position known", array="ids memories", string="last_key"),
    run=run,
    listed=False,
)
