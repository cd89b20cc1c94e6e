"""`observe`: keep messages of a conversation, and what was drawn from them (spec T1, T4). For hooks and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.chat import ChatRole, NewMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import parse_moment
from madeleine.memory.watch.extraction import Extracted
from madeleine.memory.watch.observe import AgentMemory, Observation
from madeleine.tools.arguments import Arguments, Emotions, Line, LongText, Share, Short, printable
from madeleine.tools.replies import present
from madeleine.tools.tool import COUNT, OBJECTS, TEXT, TEXTS, Call, Tool, answer_schema

MOST = 100
"""Messages of a call."""


class SaidMessage(Arguments):
    role: ChatRole
    text: LongText
    speaker: Annotated[Short | None, Field(description="Who said it, where a name is known.")] = None
    at: Annotated[Short | None, Field(description="ISO time; now by default.")] = None
    key: Annotated[Short | None, Field(description="Its id in its session: kept once, however often it is sent.")] = (
        None
    )


class DrawnMemory(Arguments):
    essence: Annotated[Line, Field(description="What is to be remembered, in sentences that make sense alone.")]
    weight: Annotated[Share, Field(description="0 noise, 1 critical.")]
    emotions: Emotions = []
    lesson: Annotated[Line | None, Field(description="What to do from now on.")] = None
    messages: Annotated[
        list[Short | Annotated[int, Field(ge=0, le=MOST - 1)]],
        Field(max_length=MOST, description="What it is of: keys, or places in this call from 0; all by default."),
    ] = []


class ObserveArguments(Arguments):
    session_id: Short
    messages: Annotated[list[SaidMessage], Field(max_length=MOST, description="In their order.")] = []
    memories: Annotated[
        list[DrawnMemory], Field(max_length=20, description="What you drew from them yourself; usually none.")
    ] = []
    title: Short | None = None
    interface: Annotated[Short | None, Field(description="Where it is held; the client's name by default.")] = None


async def run(call: Call, arguments: ObserveArguments) -> dict[str, Any]:
    seen = Observation(
        session_id=arguments.session_id,
        messages=[_message(place, message) for place, message in enumerate(arguments.messages)],
        drawn=_drawn(arguments.memories),
        title=arguments.title or "",
        interface=arguments.interface or "",
    )
    found = await call.use.observe(call.scope, seen, request=call.request_key())
    rest = {
        "ids": [message.id for message in found.new],
        "position": found.new[0].position if found.new else None,
        "known": found.known or None,
        "last_key": found.last_key,
        "memories": [
            {"id": one.memory.id, "status": one.status} if one else {"status": "forgotten"} for one in found.memories
        ],
        "redacted": dict(found.redacted) or None,
    }
    return {"new": len(found.new)} | present(rest)


def _message(place: int, given: SaidMessage) -> NewMessage:
    at = parse_moment(given.at) if given.at is not None else None
    if at is None and given.at is not None:
        raise InvalidInput(
            f"messages.{place}.at: {printable(given.at)!r} is not an ISO date or time, such as 2026-03-01T12:00:00Z. "
            "Nothing was kept: correct it, or leave it out for now."
        )
    return NewMessage(role=given.role, text=given.text, speaker=given.speaker or "", at=at, key=given.key)


def _drawn(given: Sequence[DrawnMemory]) -> list[AgentMemory]:
    return [
        AgentMemory(
            Extracted(one.essence.strip(), tuple(dict.fromkeys(one.emotions)), one.weight, one.lesson or ""),
            tuple(dict.fromkeys(one.messages)),
        )
        for one in given
    ]


TOOL = Tool(
    name="observe",
    description=(
        "Append messages of a conversation to the chat history, word for word; for programs that watch one. A message "
        "with a key is kept once. What should be remembered of them may come along as memories; to remember something "
        "else use store. Without messages: tells the key of the session's last one. position: that of the first new "
        "message in its session, the others follow."
    ),
    arguments=ObserveArguments,
    answers=answer_schema(("new",), new=COUNT, ids=TEXTS, position=COUNT, known=COUNT, last_key=TEXT, memories=OBJECTS),
    run=run,
    read_only=False,
    destructive=False,
    idempotent=False,
    shows=False,
    listed=False,
)
