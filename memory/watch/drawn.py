"""What an agent drew from a conversation itself, as the memory thread would keep it (spec T4, T6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from madeleine.memory.chat import Message
from madeleine.memory.ingest.store import Stored
from madeleine.memory.model import Memory, MemoryId
from madeleine.memory.scope import Scope
from madeleine.memory.watch.extraction import Extracted, Finding
from madeleine.memory.watch.remember import Remember, Remembered

TOOL = "observe"


class MemoriesLedger(Protocol):
    async def memories(self, scope: Scope, ids: Sequence[MemoryId]) -> list[Memory]: ...


class StoreAgentMemories:
    """`RememberAgentMemories`: each becomes a memory, or reinforces one that says the same (spec T6). What only repeats
    a memory, dead or alive, changes nothing."""

    def __init__(self, remember: Remember, ledger: MemoriesLedger) -> None:
        self._remember = remember
        self._ledger = ledger

    async def __call__(
        self,
        scope: Scope,
        session_id: str,
        extracted: Sequence[Extracted],
        messages: Sequence[Message],
        *,
        request: str = "",
    ) -> Sequence[Stored]:
        findings = [Finding(one, tuple(messages)) for one in extracted]
        keys = [f"{request}-{place}" for place in range(len(findings))] if request else None
        found = await self._remember(scope, findings, session_id=session_id, tool=TOOL, keys=keys)
        known = {one.id: one for one in await self._ledger.memories(scope, [one.memory_id for one in found])}
        # What was forgotten in between is told by nobody.
        return [_stored(one, known[one.memory_id]) for one in found if one.memory_id in known]


def _stored(one: Remembered, memory: Memory) -> Stored:
    match one.outcome:
        case "stored" | "reinforced":
            return Stored(memory=memory, status=one.outcome)
        case "repeated":
            return Stored(memory=memory, status=one.status, repeated=True)
        case "quoted":
            return Stored(memory=memory, status="reinforced", repeated=True)
