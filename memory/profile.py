"""Who the being is and whom it deals with (spec P5), and what its use cases need of the ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from madeleine.memory.chat import ChatReads
from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import Memory, MemoryId, Note, NoteId
from madeleine.memory.patrol_ports import DiaryEntry, Thoughts
from madeleine.memory.scope import Scope

ProfileKind = Literal["soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge"]
KINDS: tuple[ProfileKind, ...] = (
    "soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge",
)  # fmt: skip
SOUL_PARTS = ("personality", "voice", "values", "backstory", "inner_world", "examples")
"""The names that an entry of the soul can have, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEntry:
    """One thing that is known by kind and name. `enabled` is about partner rules and preferences.

    A preference is a procedural memory too, which `memory_id` names. One that was learnt, and never named, has that id
    for its name.
    """

    kind: ProfileKind
    name: str
    value: str
    updated_at: datetime
    enabled: bool = True
    memory_id: MemoryId | None = None

    @property
    def learnt(self) -> bool:
        return self.memory_id is not None and self.name == self.memory_id

    @property
    def id(self) -> str:
        """For the audit, which holds no names that people chose."""
        return entry_id(self.kind, self.name)


def entry_id(kind: ProfileKind, name: str) -> str:
    return f"{kind}/{name}" if kind == "soul" else f"{kind}/{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def kept_already(name: str) -> InvalidInput:
    """For a preference whose memory is that of another one, of that name."""
    return InvalidInput(
        f"The preference {name[:200]!r} says that already. The new one was not written: set {name[:200]!r} anew, or "
        "remove it first."
    )


class ProfileLedger(Protocol):
    async def profile(self, scope: Scope) -> list[ProfileEntry]:
        """All entries, by kind and name; of preferences that are memories, those whose memory is alive, with what it
        says now. Also the latest procedural memories that have no entry, as if they had, in the order of their coming.
        """
        ...

    async def write_entry(self, scope: Scope, entry: ProfileEntry) -> MemoryId | None:
        """Durably, in place of the entry of that kind and name, and of one that was learnt, of the same memory. The
        memory that the replaced one was of, if it was of another that is alive. Raises `InvalidInput` if the memory is
        that of an entry with another name; `StorageFull`, `StorageError`."""
        ...

    async def remove_entry(self, scope: Scope, entry: ProfileEntry, *, at: datetime) -> bool:
        """False if it is gone already."""
        ...

    async def add_note(self, scope: Scope, note: Note) -> None: ...

    async def open_notes(self, scope: Scope, *, limit: int) -> list[Note]:
        """The latest that are unread and no scenes, oldest first."""
        ...

    async def close_note(self, scope: Scope, note_id: NoteId, *, at: datetime, remove: bool = False) -> bool:
        """Marked as done, or taken away. False if there is no such note that is no scene."""
        ...


class ContextLedger(ChatReads, Protocol):
    """What a context reads."""

    async def profile(self, scope: Scope) -> list[ProfileEntry]: ...

    async def open_notes(self, scope: Scope, *, limit: int) -> list[Note]: ...

    async def thoughts(self, scope: Scope) -> Thoughts: ...

    async def diary_since(self, scope: Scope, date: str, *, limit: int) -> list[DiaryEntry]:
        """The latest of those of that ISO date and later, oldest first."""
        ...

    async def recently_activated(self, scope: Scope, *, limit: int) -> Sequence[Memory]:
        """Living memories with an action, the last one that came to mind first (spec P5)."""
        ...
