"""Observing a conversation (spec T1, T4): its messages are stored word for word, and the memories that the agent has
made of them itself."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from madeleine.memory.chat import Message, MessageId, NewMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.redaction import Redaction, refuse_secret
from madeleine.memory.ingest.store import Stored
from madeleine.memory.model import Scope
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.watch.extraction import Extracted
from madeleine.memory.watch.ports import ChatLedger

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent has extracted from a conversation itself. `sources`: the messages that it rests on, by their keys
    in the session or by their places in the call; all of the call if there are none."""

    extracted: Extracted
    sources: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Messages of one session, in order. `interface`: where the conversation is held, by default the caller's name.
    `watched`: the memory thread does not read them."""

    session_id: str
    messages: Sequence[NewMessage] = ()
    memories: Sequence[AgentMemory] = ()
    title: str = ""
    interface: str = ""
    watched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """`new`: messages as they are stored. `known`: how many were stored before, or forgotten. `last_key`: of the last
    message in the session that has a key. `memories`: in the order of the observation's; None for one that was not
    stored, since all its sources, or it itself, are forgotten. `redacted`: secrets that were taken out, by kind."""

    new: tuple[Message, ...]
    known: int
    last_key: str | None
    memories: tuple[Stored | None, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


class RememberAgentMemory(Protocol):
    """`memory.watch.remember.Remember.agent_memory`: redacts and stores the memory, and links it to its messages. The
    same non-empty `key` stores nothing twice."""

    async def __call__(
        self, scope: Scope, session_id: str, extracted: Extracted, messages: Sequence[Message], *, key: str = ""
    ) -> Stored | None: ...


class Observe:
    """The use case. A message with a known key, or of a repeated call, is not stored again."""

    def __init__(
        self,
        ledger: ChatLedger,
        remember: RememberAgentMemory | None = None,
        *,
        now: Callable[[], datetime],
        redact: Redact = redact_secrets,
        on_append: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `remember` memories are refused. `on_append` is called when new messages are durable; it must not
        block."""
        self._ledger = ledger
        self._remember = remember
        self._on_append = on_append
        self._now = now
        self._redact = redact

    async def __call__(self, scope: Scope, observation: Observation, *, request: str = "") -> Observed:
        """Redact, store the messages, then the memories. `request`: the same for a repeated call, else "".

        Raises `InvalidInput` for a key or session id that is a secret, and for unknown sources; `StorageFull`,
        `StorageError`.
        """
        if observation.memories and self._remember is None:
            raise InvalidInput(
                "Nothing was stored: this process accepts messages but no memories. Send the messages alone."
            )
        observation, redacted = redact_observation(observation, self._redact)
        _require_sources(observation)
        # A client that goes away does not stop what it has asked for half-way.
        observed = await asyncio.shield(self._store(scope, observation, request))
        counts = Counter(redacted)
        for stored in observed.memories:
            counts.update(stored.redacted if stored else {})
        return replace(observed, redacted=counts)

    async def _store(self, scope: Scope, observation: Observation, request: str) -> Observed:
        messages = self._messages(scope, observation)
        keys = [
            message.key or (f"{request}-{place}" if request else None)
            for place, message in enumerate(observation.messages)
        ]
        ids = await self._ledger.append(
            scope,
            observation.session_id,
            messages,
            keys=keys,
            title=observation.title,
            interface=observation.interface or scope.client,
            # An agent that brings memories has read the messages itself.
            watched=observation.watched or bool(observation.memories),
        )
        if ids:
            self._on_append()
        memories: list[Stored | None] = []
        if observation.memories:
            memories = await self._store_memories(scope, observation, messages, keys, request)
        return Observed(
            new=tuple(await self._ledger.messages(scope, ids)),
            known=len(messages) - len(ids),
            last_key=await self._ledger.last_key(scope, observation.session_id),
            memories=tuple(memories),
        )

    def _messages(self, scope: Scope, observation: Observation) -> list[Message]:
        """Their positions are assigned by the ledger. Messages without a time get the present, one after the other."""
        now = self._now()
        return [
            Message(
                id=MessageId(str(uuid.uuid4())),
                session_id=observation.session_id,
                position=0,
                role=message.role,
                text=message.text,
                speaker=message.speaker,
                at=message.at or now + place * _TICK,
                stored_at=now,
                client=scope.client,
            )
            for place, message in enumerate(observation.messages)
        ]

    async def _store_memories(
        self,
        scope: Scope,
        observation: Observation,
        messages: Sequence[Message],
        keys: Sequence[str | None],
        request: str,
    ) -> list[Stored | None]:
        session_id = observation.session_id
        named = {source for memory in observation.memories for source in memory.sources if isinstance(source, str)}
        own_keys = {key for key in keys if key is not None}
        by_key = await self._ledger.keyed_messages(scope, session_id, [*named, *own_keys])
        if missing := sorted(named - set(by_key) - own_keys):
            raise InvalidInput(
                f"The session has no message with the key {missing[0]!r}, which a memory names. The messages are kept, "
                "no memory was stored: name messages by keys that they have, or by their places in the call."
            )
        by_id = {message.id: message for message in await self._ledger.messages(scope, [one.id for one in messages])}
        # Known messages are found by their keys; a forgotten one is not found, and is no source.
        places = [by_id.get(message.id) or by_key.get(key or "") for message, key in zip(messages, keys, strict=True)]
        stored: list[Stored | None] = []
        for number, memory in enumerate(observation.memories):
            wanted = [
                by_key.get(source) if isinstance(source, str) else places[source]
                for source in memory.sources or range(len(places))
            ]
            sources = sorted({one.id: one for one in wanted if one}.values(), key=lambda message: message.position)
            if wanted and not sources:  # it would bring back what was forgotten with them
                stored.append(None)
                continue
            key = f"{request}-memory-{number}" if request else ""
            assert self._remember is not None
            stored.append(await self._remember(scope, session_id, memory.extracted, sources, key=key))
        return stored


def redact_observation(observation: Observation, redact: Redact) -> tuple[Observation, Mapping[str, int]]:
    """The session and its messages without secrets, and the number of secrets by kind; memories are redacted where they
    are stored. A secret in an id or key is refused: redacted, it would be the same as another one."""
    refuse_secret("session_id", observation.session_id, redact)
    for message in observation.messages:
        refuse_secret("key", message.key or "", redact)
    redaction = Redaction(redact)
    redacted = replace(
        observation,
        title=redaction.text(observation.title),
        interface=redaction.text(observation.interface),
        messages=[
            replace(message, text=redaction.text(message.text), speaker=redaction.text(message.speaker))
            for message in observation.messages
        ],
    )
    return redacted, redaction.found


def _require_sources(observation: Observation) -> None:
    count = len(observation.messages)
    for memory in observation.memories:
        for source in memory.sources:
            if isinstance(source, int) and not 0 <= source < count:
                raise InvalidInput(
                    f"A memory names message {source} of the call, which has {count}, counted from 0. Nothing was "
                    "kept: name messages that there are, or leave them out for all."
                )
