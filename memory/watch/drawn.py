"""What an agent drew from a conversation, stored as it would store a scene (spec T4)."""

from __future__ import annotations

from collections.abc import Sequence

from memory.chat import ChatLedger, Message
from memory.ingest.store import NewScene, Stored, StoreScenes
from memory.model import Scene
from memory.scope import Scope
from memory.watch.extraction import Extracted

TOOL = "observe"


class StoreDrawn:
    """`memory.watch.observe.RememberDrawn`: each becomes a memory, or reinforces one that says the same (spec T6)."""

    def __init__(self, store: StoreScenes, ledger: ChatLedger) -> None:
        self._store = store
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
        if not extracted:
            return []
        scenes = [
            scene_of(one, session_id, messages, key=f"{request}-{place}" if request else None)
            for place, one in enumerate(extracted)
        ]
        stored = await self._store(scope, scenes)
        ids = [message.id for message in messages]
        await self._ledger.link(scope, {one.memory.id: ids for one in stored})
        return stored


def scene_of(one: Extracted, session_id: str, messages: Sequence[Message], *, key: str | None = None) -> NewScene:
    """When and by whom the last of the messages, and all of them, were said."""
    return NewScene(
        scene=Scene(
            action=one.essence,
            actors=tuple(dict.fromkeys(message.speaker for message in messages if message.speaker)),
            when=(messages[-1].at.isoformat(timespec="seconds"),) if messages else (),
        ),
        importance=one.weight,
        emotions=one.emotions,
        lesson=one.lesson,
        session_id=session_id,
        key=key,
        tool=TOOL,
    )
