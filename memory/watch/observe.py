"""Observing a conversation (spec T1, T4): its messages are stored word for word, and the memories that the agent has
made of them itself."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta

from madeleine.memory.chat import ConversationMessage, MessageId, NewConversationMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.store import StoredSceneResult
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.secrets import (
    CountingRedactor,
    RedactText,
    redact_secrets,
    refuse_value_that_is_secret,
)
from madeleine.memory.watch.extraction import ExtractedMemory
from madeleine.memory.watch.ports import ObservationLedger

_ONE_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AgentExtractedMemory:
    """A memory that an agent has extracted from a conversation itself. `sources`: the messages that it rests on, by
    their keys in the session or by their places in the call; all of the call if there are none."""

    extracted: ExtractedMemory
    sources: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedConversationPart:
    """Messages of one session, in order. `interface`: where the conversation is held, by default the caller's name.
    `watched`: the memory thread does not read them. `import_id`: of the import that brings them."""

    session_id: str
    messages: Sequence[NewConversationMessage] = ()
    memories: Sequence[AgentExtractedMemory] = ()
    title: str = ""
    interface: str = ""
    watched: bool = False
    import_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveConversationResult:
    """`new_messages`: as they are stored. `known_count`: how many were stored before, or forgotten. `last_key`: of the
    last message in the session that has a key. `memories`: in the order of the observation's; None for one that was not
    stored, since all its sources, or it itself, are forgotten. `redacted`: secrets that were taken out, by kind."""

    new_messages: tuple[ConversationMessage, ...]
    known_count: int
    last_key: str | None
    memories: tuple[StoredSceneResult | None, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


RememberAgentMemory = Callable[
    [Scope, str, ExtractedMemory, Sequence[ConversationMessage], str], Awaitable[StoredSceneResult | None]
]
"""`RememberExtractedMemories.store_memory_extracted_by_agent`: (scope, session, memory, messages, key). Redacts
and stores the memory, and links it to its messages. The same non-empty key stores nothing twice."""


@dataclass(frozen=True, eq=False)
class ObserveConversation:
    """The use case. A message with a known key, or of a repeated call, is not stored again. Without `remember` memories
    are refused. `on_append` is called when new messages are durable; it must not block."""

    ledger: ObservationLedger
    remember: RememberAgentMemory | None = None
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText = redact_secrets
    on_append: Callable[[], None] = lambda: None

    async def __call__(
        self, scope: Scope, observation: ObservedConversationPart, *, request: str = ""
    ) -> ObserveConversationResult:
        """Redact, store the messages, then the memories. `request`: the same for a repeated call, else "".

        Raises `InvalidInput` for a key or session id that is a secret, and for unknown sources; `StorageFull`,
        `StorageError`.
        """
        if observation.memories and self.remember is None:
            raise InvalidInput(
                "Nothing was stored: this process accepts messages but no memories. Send the messages alone."
            )
        observation, redacted = redact_observation(observation, self.redact)
        _require_existing_source_message_places(observation)
        # A client that goes away does not stop half-way what it has asked for.
        observed = await asyncio.shield(self._store_messages_and_memories(scope, observation, request))
        counts = Counter(redacted)
        for stored in observed.memories:
            counts.update(stored.redacted if stored else {})
        return replace(observed, redacted=counts)

    async def _store_messages_and_memories(
        self, scope: Scope, observation: ObservedConversationPart, request: str
    ) -> ObserveConversationResult:
        session_id = observation.session_id
        messages = self._build_conversation_messages(scope, observation)
        fallback_keys = (f"{request}-{place}" if request else None for place in range(len(messages)))
        keys = [message.key or fallback for message, fallback in zip(observation.messages, fallback_keys, strict=True)]
        ids = await self.ledger.append_messages(
            scope,
            session_id,
            messages,
            keys=keys,
            title=observation.title,
            interface=observation.interface or scope.client,
            # An agent that brings memories has read the messages itself.
            watched=observation.watched or bool(observation.memories),
            import_id=observation.import_id,
        )
        if ids:
            self.on_append()
        memories: list[StoredSceneResult | None] = []
        if self.remember is not None and observation.memories:
            all_sources = await self._source_messages_of_memories(scope, observation, messages, keys)
            for number, (memory, sources) in enumerate(zip(observation.memories, all_sources, strict=True)):
                key = f"{request}-memory-{number}" if request else ""
                if (memory.sources or messages) and not sources:  # it would bring back what was forgotten with them
                    memories.append(None)
                    continue
                memories.append(await self.remember(scope, session_id, memory.extracted, sources, key))
        return ObserveConversationResult(
            new_messages=tuple(await self.ledger.messages_with_ids(scope, ids)),
            known_count=len(messages) - len(ids),
            last_key=await self.ledger.last_message_key(scope, session_id),
            memories=tuple(memories),
        )

    def _build_conversation_messages(
        self, scope: Scope, observation: ObservedConversationPart
    ) -> list[ConversationMessage]:
        """Their positions are assigned by the ledger. Messages without a time get the present, one after the other."""
        now = self.now()
        return [
            ConversationMessage(
                id=MessageId(str(uuid.uuid4())),
                session_id=observation.session_id,
                position=0,
                role=message.role,
                text=message.text,
                speaker=message.speaker,
                at=message.at or now + place * _ONE_MICROSECOND,
                stored_at=now,
                client=scope.client,
            )
            for place, message in enumerate(observation.messages)
        ]

    async def _source_messages_of_memories(
        self,
        scope: Scope,
        observation: ObservedConversationPart,
        messages: Sequence[ConversationMessage],
        keys: Sequence[str | None],
    ) -> list[list[ConversationMessage]]:
        """The stored messages that each memory rests on, by position; forgotten ones are left out."""
        named = {source for memory in observation.memories for source in memory.sources if isinstance(source, str)}
        own_keys = {key for key in keys if key is not None}
        by_key = await self.ledger.messages_by_keys(scope, observation.session_id, [*named, *own_keys])
        if missing := sorted(named - set(by_key) - own_keys):
            raise InvalidInput(
                f"The session has no message with the key {missing[0]!r}, which a memory names. The messages are kept, "
                "no memory was stored: name messages by keys that they have, or by their places in the call."
            )
        new = {
            message.id: message
            for message in await self.ledger.messages_with_ids(scope, [each.id for each in messages])
        }
        # Messages that were stored before are known by their keys.
        by_place = [new.get(message.id) or by_key.get(key or "") for message, key in zip(messages, keys, strict=True)]
        all_sources: list[list[ConversationMessage]] = []
        for memory in observation.memories:
            places = memory.sources or range(len(by_place))
            sources = (by_key.get(place) if isinstance(place, str) else by_place[place] for place in places)
            by_id = {message.id: message for message in sources if message}
            all_sources.append(sorted(by_id.values(), key=lambda message: message.position))
        return all_sources


def redact_observation(
    observation: ObservedConversationPart, redact: RedactText
) -> tuple[ObservedConversationPart, Mapping[str, int]]:
    """The session and its messages without secrets, and the number of secrets by kind; memories are redacted where they
    are stored. A secret in an id or key is refused: redacted, it would be the same as another one."""
    refuse_value_that_is_secret("session_id", observation.session_id, redact)
    for message in observation.messages:
        refuse_value_that_is_secret("key", message.key or "", redact)
    redaction = CountingRedactor(redact)
    messages = [redaction.redact_fields(message, "text", "speaker") for message in observation.messages]
    redacted = redaction.redact_fields(observation, "title", "interface")
    return replace(redacted, messages=messages), redaction.found


def _require_existing_source_message_places(observation: ObservedConversationPart) -> None:
    count = len(observation.messages)
    for memory in observation.memories:
        for source in memory.sources:
            if isinstance(source, int) and not 0 <= source < count:
                raise InvalidInput(
                    f"A memory names message {source} of the call, which has {count}, counted from 0. Nothing was "
                    "kept: name messages that there are, or leave them out for all."
                )
