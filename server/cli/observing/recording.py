"""The calls that record the messages of a request, and end its session."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from madeleine.memory.errors import ConnectionLost, MadeleineError
from madeleine.memory.text.normalization import split_by_length, storable_text
from madeleine.server.attach.tool_calls import CallToolAndWait
from madeleine.server.cli.observing.request import ObserveRequest

MAX_MESSAGES_PER_OBSERVE_CALL = 100
MAX_CHARS_PER_OBSERVE_CALL = 1_000_000
"""Of one call: the host takes lines of 16 MiB, and a character may take 12 bytes in JSON."""
MESSAGES_RESENT_BEFORE_LAST_RECORDED = 20
"""Messages before the last recorded one that are sent again: Claude Code writes some lines late."""


def record_messages(call: CallToolAndWait, request: ObserveRequest, limit: int) -> None:
    """In order: the key of the last message tells where to continue. A refused message prevents no other from being
    recorded, unless a whole call is refused. Raises the first refusal at the end."""
    transcript: list[Any] = []
    if request.transcript:
        last_key = call("observe", {"session_id": request.arguments["session_id"]}).get("last_key")
        transcript = unrecorded_messages_with_overlap(split_long_messages(request.transcript, limit), last_key)
    given, memories = list(request.messages), request.arguments.get("memories") or []
    if isinstance(memories, list) and memories:
        given = [_message_with_key(message) for message in given]
        memories = [_memory_with_message_keys(memory, given) for memory in memories]
    messages = [*transcript, *split_long_messages(given, limit)]
    without_memories = {name: value for name, value in request.arguments.items() if name != "memories"}
    *batches, last_batch = list(_message_batches(messages)) or [[]]
    refusals = [
        refusal for batch in batches for refusal in _send_batch_and_return_refusals(call, without_memories, batch)
    ]
    if memories:
        refusals += _send_with_memories_and_return_refusals(call, without_memories, last_batch, memories)
    elif last_batch:
        refusals += _send_batch_and_return_refusals(call, without_memories, last_batch)
    if refusals:
        raise refusals[0]


def _message_with_key(message: Any) -> Any:
    """Several calls may be needed, and what a memory rests on is told by key in all of them."""
    if not isinstance(message, Mapping) or message.get("key") is not None:
        return message
    return {**message, "key": f"observed-{uuid.uuid4()}"}


def _memory_with_message_keys(memory: Any, messages: Sequence[Any]) -> Any:
    """The memory with the keys of its messages in place of their positions; without any, those of the last ones."""
    if not isinstance(memory, Mapping):
        return memory
    named = memory.get("messages") or range(max(0, len(messages) - MAX_MESSAGES_PER_OBSERVE_CALL), len(messages))

    def key_of(source: Any) -> Any:
        is_place = isinstance(source, int) and 0 <= source < len(messages)
        return messages[source]["key"] if is_place and isinstance(messages[source], Mapping) else source

    return {**memory, "messages": [key_of(source) for source in named]}


def _send_with_memories_and_return_refusals(
    call: CallToolAndWait, arguments: Mapping[str, Any], batch: Sequence[Any], memories: Sequence[Any]
) -> list[MadeleineError]:
    """The refusals. A refused call keeps nothing: its messages are then sent alone, and come first in what is told."""
    try:
        call("observe", {**arguments, "messages": batch, "memories": memories})
    except ConnectionLost:
        raise
    except MadeleineError as error:
        return [*_send_batch_and_return_refusals(call, arguments, batch), error]
    return []


def request_archiving_of_session_memories(call: CallToolAndWait, request: ObserveRequest) -> None:
    """What was to be kept for this session only goes into the archive (spec O2). Where the server does not offer the
    tool, or the caller may not, it goes when the session has been quiet for long enough."""
    with suppress(MadeleineError):
        call("archive", {"action": "end", "session_id": request.arguments["session_id"]})


def _send_batch_and_return_refusals(
    call: CallToolAndWait, arguments: Mapping[str, Any], batch: Sequence[Any]
) -> list[MadeleineError]:
    """The refusals. A call is refused whole for one of its messages, so they are then sent one by one. Raises the first
    refusal if all of several were refused, and `ConnectionLost`."""
    try:
        call("observe", {**arguments, "messages": batch})
    except ConnectionLost:
        raise
    except MadeleineError as error:
        if len(batch) == 1:
            return [error]
    else:
        return []
    refusals = [refusal for message in batch for refusal in _send_batch_and_return_refusals(call, arguments, [message])]
    if len(refusals) == len(batch):
        raise refusals[0]
    return refusals


def unrecorded_messages_with_overlap(
    messages: list[Any], last_key: str | None, overlap: int = MESSAGES_RESENT_BEFORE_LAST_RECORDED
) -> list[Any]:
    """The messages from `overlap` before the last recorded one; all if that is not among them."""
    keys = [message["key"] for message in messages]
    if last_key not in keys:
        return messages
    return messages[max(0, len(keys) - 1 - keys[::-1].index(last_key) - overlap) :]


def split_long_messages(messages: Iterable[Any], limit: int) -> list[Any]:
    """Split each text longer than `limit` characters; nothing is lost. The tool refuses invalid messages."""
    parts: list[Any] = []
    for message in messages:
        text = message.get("text") if isinstance(message, Mapping) else None
        if not isinstance(text, str) or len(text) <= limit:
            parts.append(message)
            continue
        key = message.get("key")
        for place, part in enumerate(filter(storable_text, split_by_length(storable_text(text), limit))):
            parts.append({**message, "text": part} | ({"key": f"{key}#{place}"} if key and place else {}))
    return parts


def _message_batches(messages: Sequence[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    chars = 0
    for message in messages:
        size = len(str(message))
        if batch and (len(batch) == MAX_MESSAGES_PER_OBSERVE_CALL or chars + size > MAX_CHARS_PER_OBSERVE_CALL):
            yield batch
            batch, chars = [], 0
        batch.append(message)
        chars += size
    if batch:
        yield batch
