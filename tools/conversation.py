"""`observe` and `ingest`: whole conversations and long texts, for hooks and programs (spec T1, T4, L1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from madeleine.memory.chat import MAX_OBSERVED_MESSAGES_PER_CALL, ChatRole, NewConversationMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.ingest import IngestedChunk, IngestedTextWithChunks, TextIngestRequest
from madeleine.memory.model import Category, MemoryId, parse_iso_moment_or_none, short_id_of_non_memory
from madeleine.memory.text.dates import parse_iso_period
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.observe import AgentExtractedMemory, ObservedConversationPart
from madeleine.tools.arguments import (
    LongText,
    SceneLengthText,
    ShortText,
    ToolArguments,
    ZeroToOne,
    excerpt_for_error,
    unique,
)
from madeleine.tools.feelings import EmotionLabelsArgument
from madeleine.tools.replies import missing_vector_notice, notice_field, without_empty_fields
from madeleine.tools.tool import ToolCallContext, object_schema, tool_from_function

CHUNK_PREVIEW_CHARS = 60
"""Beginning of a chunk that the answer shows."""
CHUNK_SCORE_DIGITS = 4
IDEMPOTENCY_KEY_TEXT_FORGOTTEN_MESSAGE = (
    "This key was used before, and part of that text has been forgotten since. Nothing was stored now. To store a "
    "different text, or this one again, use another key."
)
UNREADABLE_DATE_NOTICE = (
    "when is no ISO date: it is kept as written, and the memories are dated to the time of storing."
)


class ObservedMessage(ToolArguments):
    role: ChatRole
    text: LongText
    speaker: Annotated[ShortText, Field(description="Name of the speaker, if known.")] = ""
    when: Annotated[ShortText, Field(description="ISO time; now by default.")] = ""
    key: Annotated[ShortText | None, Field(description="Id within its session; a repeated key is stored once.")] = None


class ObservedMemory(ToolArguments):
    text: Annotated[SceneLengthText, Field(description="What to remember, in sentences that make sense alone.")]
    importance: Annotated[ZeroToOne, Field(description="0 noise, 1 critical.")]
    emotions: EmotionLabelsArgument = []
    lesson: Annotated[SceneLengthText, Field(description="What to do in future.")] = ""
    messages: Annotated[
        list[ShortText | Annotated[int, Field(ge=0, le=MAX_OBSERVED_MESSAGES_PER_CALL - 1)]],
        Field(
            max_length=MAX_OBSERVED_MESSAGES_PER_CALL,
            description="Its messages: keys, or positions in this call from 0; by default all.",
        ),
    ] = []


class ObserveArguments(ToolArguments):
    session_id: ShortText
    messages: Annotated[
        list[ObservedMessage], Field(max_length=MAX_OBSERVED_MESSAGES_PER_CALL, description="In order.")
    ] = []
    memories: Annotated[
        list[ObservedMemory], Field(max_length=20, description="Memories you drew from them yourself; usually none.")
    ] = []
    title: ShortText = ""
    interface: Annotated[ShortText, Field(description="Where it is held; by default the client's name.")] = ""
    project: Annotated[ShortText, Field(description="A conversation belongs to that of its first message.")] = ""


@tool_from_function(
    ObserveArguments,
    object_schema("new", integer="new position known", array="ids memories", string="last_key"),
    name="observe",
    listed=False,
)
async def observe_conversation(call: ToolCallContext, arguments: ObserveArguments) -> dict[str, Any]:
    """Append messages to the chat history, word for word; for programs that watch a conversation. A message with a key
    is stored once. Memories drawn from the messages may come along; to remember anything else use store. Without
    messages: returns the key of the session's last one. position: that of the first new message in its session; the
    others follow."""
    observation = arguments.to_dataclass(
        ObservedConversationPart,
        messages=[
            _conversation_message_from_argument(position, message)
            for position, message in enumerate(arguments.messages)
        ],
        memories=[
            AgentExtractedMemory(
                ExtractedMemory(memory.text.strip(), unique(memory.emotions), memory.importance, memory.lesson),
                unique(memory.messages),
            )
            for memory in arguments.memories
        ],
    )
    call = call.in_project(arguments.project)
    observed = await call.use_cases.observe(call.scope, observation, request=call.request_key())
    return {"new": len(observed.new_messages)} | without_empty_fields(
        ids=[short_id_of_non_memory(message.id) for message in observed.new_messages],
        position=observed.new_messages[0].position if observed.new_messages else None,
        known=observed.known_count or None,
        last_key=observed.last_key,
        memories=[
            {"id": stored.memory.short_id, "status": stored.status} if stored else {"status": "forgotten"}
            for stored in observed.memories
        ],
        redacted=dict(observed.redacted),
    )


def _conversation_message_from_argument(position: int, message: ObservedMessage) -> NewConversationMessage:
    at = parse_iso_moment_or_none(message.when) if message.when else None
    if message.when and at is None:
        raise InvalidInput(
            f"messages.{position}.when: {excerpt_for_error(message.when)!r} is not an ISO date or time, such as "
            "2026-03-01T12:00:00Z. Nothing was stored: correct it or leave it out."
        )
    return NewConversationMessage(role=message.role, text=message.text, speaker=message.speaker, at=at, key=message.key)


class IngestArguments(ToolArguments):
    text: LongText
    session_id: ShortText = ""
    category: Annotated[Category | None, Field(description="For all parts; by default chosen for each part.")] = None
    key: Annotated[ShortText, Field(description="Idempotency key for repeated calls.")] = ""
    when: Annotated[ShortText, Field(description="Date of the text (YYYY-MM-DD or ISO time).")] = ""
    actors: Annotated[list[ShortText], Field(max_length=50, description="Authors or speakers.")] = []


@tool_from_function(
    IngestArguments,
    object_schema("stored reinforced dropped chunks", integer="stored reinforced dropped", array="chunks"),
    listed=False,
)
async def ingest(call: ToolCallContext, arguments: IngestArguments) -> dict[str, Any]:
    """Import a long text into memory: a document, a transcript, notes. It is split where its meaning changes, and each
    part is scored; parts without anything new or informative are dropped and reported. For one scene in your own words
    use store."""
    key = arguments.key or call.request_key() or None
    text = arguments.to_dataclass(TextIngestRequest, key=key, actors=unique(arguments.actors))
    ingested = await call.use_cases.ingest(call.scope, text)
    named = [id_ for chunk in ingested.chunks for id_ in (chunk.id, chunk.resembles) if id_]
    short_ids = await call.use_cases.short_ids.short_id_by_memory_id(call.scope, named)
    counts = Counter(chunk.status for chunk in ingested.chunks)
    return (
        {
            "stored": counts["stored"],
            "reinforced": counts["reinforced"],
            "dropped": counts["dropped"],
            "chunks": [chunk_as_json(chunk, ingested, short_ids) for chunk in ingested.chunks],
        }
        | without_empty_fields(
            repeated=(ingested.repeated and arguments.key != "") or None,
            redacted=dict(ingested.redacted),
            forgotten=counts["forgotten"] or None,
        )
        | notice_field(
            missing_vector_notice("Stored", ingested.embedding_error),
            IDEMPOTENCY_KEY_TEXT_FORGOTTEN_MESSAGE if counts["forgotten"] else "",
            UNREADABLE_DATE_NOTICE if arguments.when and parse_iso_period(arguments.when) is None else "",
        )
    )


def chunk_as_json(
    chunk: IngestedChunk, ingested: IngestedTextWithChunks, short_ids: Mapping[MemoryId, str]
) -> dict[str, Any]:
    if chunk.status == "forgotten":
        return {"status": chunk.status}
    text = ingested.text[chunk.start : chunk.start + chunk.length]
    begins = " ".join(text[: 2 * CHUNK_PREVIEW_CHARS].split())[:CHUNK_PREVIEW_CHARS]
    scores = {name: round(getattr(chunk, name), CHUNK_SCORE_DIGITS) for name in ("importance", "novelty", "salience")}
    references = {name: short_ids.get(id_) for name in ("id", "resembles") if (id_ := getattr(chunk, name))}
    details = without_empty_fields(**references, category=chunk.category, begins=begins, chars=chunk.length or None)
    return {"status": chunk.status} | details | scores
