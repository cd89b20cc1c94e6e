"""Observing a conversation (spec T1, T4): its messages are kept word for word, and what the agent drew from them itself
becomes memories."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from madeleine.memory.chat import Message, MessageId, NewMessage
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.redaction import Redaction
from madeleine.memory.ingest.store import Stored
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope
from madeleine.memory.watch.extraction import Extracted
from madeleine.memory.watch.ports import ChatLedger

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent drew from a conversation by itself. `sources`: the messages that it is of, by their keys in the
    session or by their places in the call; all of the call if there are none."""

    extracted: Extracted
    sources: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Messages of one session, in their order. `interface`: where it is held, the caller's name if none is given.
    `watched`: the memory thread is not to look at them."""

    session_id: str
    messages: Sequence[NewMessage] = ()
    drawn: Sequence[AgentMemory] = ()
    title: str = ""
    interface: str = ""
    watched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """`new` as they are kept. `known`: how many were there before, or were forgotten before. `last_key`: of the last
    message in the session that has a key. `memories`: what became of what was drawn, in its order; None for what was
    not stored, since all that it is of is forgotten, or it itself. `redacted`: the secrets that were taken out, by
    kind."""

    new: tuple[Message, ...]
    known: int
    last_key: str | None
    memories: tuple[Stored | None, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


class RememberAgentMemories(Protocol):
    """Makes memories of what was drawn from `messages` of a session, and links the two. `request`: the same for a call
    that is made again, of which nothing is stored twice; "" where that does not happen."""

    async def __call__(
        self,
        scope: Scope,
        session_id: str,
        extracted: Sequence[Extracted],
        messages: Sequence[Message],
        *,
        request: str = "",
    ) -> Sequence[Stored]: ...


class Observe:
    """The use case. What is observed again, by its keys or in a call made again, is not kept again."""

    def __init__(
        self,
        ledger: ChatLedger,
        remember: RememberAgentMemories | None = None,
        *,
        now: Callable[[], datetime],
        redact: Redact = redact_secrets,
        appended: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `remember` nothing can come that was drawn. `appended` is called when new messages are durable; it
        must not block."""
        self._ledger = ledger
        self._remember = remember
        self._appended = appended
        self._now = now
        self._redact = redact

    async def __call__(self, scope: Scope, seen: Observation, *, request: str = "") -> Observed:
        """Secrets are redacted first; then the messages are durable before anything is made of them. `request`: the
        same for a call that is made again, else "".

        Raises `InvalidInput` for a key or session id that is a secret, and for sources that there are not;
        `StorageFull`, `StorageError`.
        """
        if seen.drawn and self._remember is None:
            raise InvalidInput("Nothing was kept: memories come along with messages only where a memory is at work.")
        seen, found = redact_observation(seen, self._redact)
        keys = [
            message.key or (f"{request}-{place}" if request else None) for place, message in enumerate(seen.messages)
        ]
        messages = self._messages(scope, seen)
        _require_sources(seen)
        # A client that goes away does not stop what it has asked for half-way.
        return replace(await asyncio.shield(self._keep(scope, seen, messages, keys, request)), redacted=found)

    def _messages(self, scope: Scope, seen: Observation) -> list[Message]:
        """Their positions are given out by the ledger. Those that do not say when they were said were said now, one
        after the other."""
        now = self._now()
        return [
            Message(
                id=MessageId(str(uuid.uuid4())),
                session_id=seen.session_id,
                position=0,
                role=message.role,
                text=message.text,
                speaker=message.speaker,
                at=message.at or now + place * _TICK,
                stored_at=now,
                client=scope.client,
            )
            for place, message in enumerate(seen.messages)
        ]

    async def _keep(
        self, scope: Scope, seen: Observation, messages: Sequence[Message], keys: Sequence[str | None], request: str
    ) -> Observed:
        ids = await self._ledger.append(
            scope,
            seen.session_id,
            messages,
            keys=keys,
            title=seen.title,
            interface=seen.interface or scope.client,
            # The agent has looked at them itself.
            watched=seen.watched or bool(seen.drawn),
        )
        if ids:
            self._appended()
        stored = await self._draw(scope, seen, list(zip(messages, keys, strict=True)), request) if seen.drawn else []
        return Observed(
            new=tuple(await self._ledger.messages(scope, ids)),
            known=len(messages) - len(ids),
            last_key=await self._ledger.last_key(scope, seen.session_id),
            memories=tuple(stored),
        )

    async def _draw(
        self, scope: Scope, seen: Observation, given: Sequence[tuple[Message, str | None]], request: str
    ) -> list[Stored | None]:
        named = {source for drawn in seen.drawn for source in drawn.sources if isinstance(source, str)}
        keys = {key for _, key in given if key is not None}
        by_key = await self._ledger.keyed_messages(scope, seen.session_id, [*named, *keys])
        if missing := sorted(named - set(by_key) - keys):
            raise InvalidInput(
                f"The session has no message with the key {missing[0]!r}, which a memory names. The messages are kept, "
                "no memory was stored: name messages by keys that they have, or by their places in the call."
            )
        by_id = {one.id: one for one in await self._ledger.messages(scope, [message.id for message, _ in given])}
        # Those that were known are found by their keys; what was forgotten is not found, and tells nothing.
        places = [by_id.get(message.id) or by_key.get(key or "") for message, key in given]
        stored: list[Stored | None] = []
        for number, drawn in enumerate(seen.drawn):
            wanted = [
                by_key.get(source) if isinstance(source, str) else places[source]
                for source in drawn.sources or range(len(places))
            ]
            of = sorted({one.id: one for one in wanted if one}.values(), key=lambda one: one.position)
            if wanted and not of:  # it would bring back what was forgotten with them
                stored.append(None)
                continue
            own = f"{request}-memory-{number}" if request else ""
            assert self._remember is not None
            stored += await self._remember(scope, seen.session_id, [drawn.extracted], of, request=own) or [None]
        return stored


def redact_observation(seen: Observation, redact: Redact) -> tuple[Observation, Mapping[str, int]]:
    """Without the secrets in it, and how many of each kind there were.

    What tells one conversation or message from another is refused instead: cleaned it would be the same as another
    one's.
    """
    if kinds := redact(seen.session_id).found:
        raise InvalidInput(
            f"session_id: looks like a secret ({', '.join(kinds)}). Nothing was kept: use another session_id."
        )
    for message in seen.messages:
        if message.key is not None and (kinds := redact(message.key).found):
            raise InvalidInput(f"key: looks like a secret ({', '.join(kinds)}). Nothing was kept: use another key.")
    cleaning = Redaction(redact)
    cleaned = replace(
        seen,
        title=cleaning.text(seen.title),
        interface=cleaning.text(seen.interface),
        messages=[
            replace(message, text=cleaning.text(message.text), speaker=cleaning.text(message.speaker))
            for message in seen.messages
        ],
        drawn=[
            replace(
                drawn,
                extracted=replace(
                    drawn.extracted,
                    essence=cleaning.text(drawn.extracted.essence),
                    lesson=cleaning.text(drawn.extracted.lesson),
                ),
            )
            for drawn in seen.drawn
        ],
    )
    return cleaned, cleaning.found


def _require_sources(seen: Observation) -> None:
    count = len(seen.messages)
    for drawn in seen.drawn:
        for source in drawn.sources:
            if isinstance(source, int) and not 0 <= source < count:
                raise InvalidInput(
                    f"A memory names message {source} of the call, which has {count}, counted from 0. Nothing was "
                    "kept: name messages that there are, or leave them out for all."
                )
