"""What contexts and profiles need of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from madeleine.memory.chat import ConversationMessage, RecordedChatSession
from madeleine.memory.core_blocks.ports import CoreBlockReader
from madeleine.memory.model import Emotion, Memory, MemoryId, Note, NoteId, Scope
from madeleine.memory.patrol_records import DiaryEntry, ThoughtsForNextSession
from madeleine.memory.profile import ProfileEntry
from madeleine.memory.rules.dynamics.future_dates import future_start_of_replacement
from madeleine.memory.rules.prompting import PromptPartName
from madeleine.memory.rules.storing.supersession import tells_change_without_superseded_memory


class ChatReader(Protocol):
    async def recent_messages(
        self, scope: Scope, *, limit: int, session_id: str | None = None, other_than: str | None = None
    ) -> list[ConversationMessage]:
        """The last ones, oldest first: of one session by position, or of all that the scope's project may see, or of
        these but one by when they were said."""

    async def sessions(self, scope: Scope, *, limit: int, all_projects: bool = False) -> list[RecordedChatSession]:
        """Those spoken in latest first; without those of other projects, unless all are asked for."""


class ProfileLedger(Protocol):
    async def profile_entries(self, scope: Scope) -> list[ProfileEntry]:
        """All entries, by kind and name; of preferences that are memories, those whose memory is alive, with what it
        says now. Also the latest procedural memories that have no entry, as if they had, in the order of their coming.
        """

    async def write_profile_entry(self, scope: Scope, entry: ProfileEntry) -> MemoryId | None:
        """Durably, in place of the entry of that kind and name, and of one that was learnt, of the same memory. The
        memory that the replaced one was of, if it was of another that is alive. Raises `InvalidInput` if the memory is
        that of an entry with another name; `StorageFull`, `StorageError`."""

    async def remove_profile_entry(self, scope: Scope, entry: ProfileEntry, *, at: datetime) -> bool:
        """False if it is gone already."""

    async def add_note(self, scope: Scope, note: Note) -> None: ...

    async def list_open_notes(self, scope: Scope, *, limit: int) -> list[Note]:
        """The latest that are unread and no scenes, or scenes that could not be read, oldest first."""

    async def close_note(self, scope: Scope, note_id: NoteId, *, at: datetime, remove: bool = False) -> bool:
        """Marked as done, or taken away. False if there is no such note, or it is a scene that waits for a patrol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStartMemories:
    """What a conversation begins with (ruling 18). `pinned`: latest first; `changed`: what changes something and then
    what is new, each latest first; `due`: told before it happens, soonest first; `important`: the most important first,
    or often used. A memory may be in several. `possibly_superseded`: short ids of the memories, still true, that one of
    these may supersede."""

    pinned: Sequence[Memory] = ()
    due: Sequence[Memory] = ()
    important: Sequence[Memory] = ()
    changed: Sequence[Memory] = ()
    possibly_superseded: Mapping[MemoryId, str] = field(default_factory=dict)

    def possible_supersession_remark(self, memory: Memory) -> str:
        """What the memory may supersede, while nobody has decided that, or what tells of a change of it and is among
        these (ADR 74); "" for nothing."""
        older = memory.possibly_superseded_memory_id
        if older and older in self.possibly_superseded:
            return f"may supersede {self.possibly_superseded[older]}"
        latest = self.latest_memory_telling_of_change_to(memory)
        return f"{latest.short_id} may tell otherwise" if latest else ""

    def latest_memory_telling_of_change_to(self, memory: Memory) -> Memory | None:
        """Of these, what resembles the memory and tells of a change."""
        telling = (
            one
            for one in self._memory_by_id.values()
            if one.resembles == memory.id and tells_change_without_superseded_memory(one)
        )
        return max(telling, key=lambda one: one.number, default=None)

    @property
    def _memories_by_group(self) -> dict[PromptPartName, Sequence[Memory]]:
        return {"pinned": self.pinned, "due": self.due, "important": self.important, "changes": self.changed}

    @property
    def _memory_by_id(self) -> dict[MemoryId, Memory]:
        return {memory.id: memory for memories in self._memories_by_group.values() for memory in memories}

    def groups_without_repeats(self) -> dict[PromptPartName, list[Memory]]:
        """Each memory once, in the first group that has it. Of two that may be versions of one the later alone, unless
        the earlier is pinned or the later is true from a day on only."""
        everything = self._memory_by_id
        earlier = {
            before.id
            for memory in everything.values()
            if memory.valid_from is None
            and (before := everything.get(memory.may_supersede or memory.id))
            and before is not memory
            and not future_start_of_replacement(before, memory, memory.created_at)
        }
        shown: set[MemoryId] = set()
        groups: dict[PromptPartName, list[Memory]] = {}
        for part, memories in self._memories_by_group.items():
            groups[part] = [
                memory for memory in memories if memory.id not in shown and (memory.pinned or memory.id not in earlier)
            ]
            shown |= {memory.id for memory in memories}
        return groups


def possibly_outdated_memory_ids(memories: Sequence[Memory]) -> set[MemoryId]:
    """Those that a later one of them was proposed to supersede, or may tell a change of, while nobody has decided."""
    start = SessionStartMemories(changed=memories)
    latest = {memory.id for memory in start.groups_without_repeats()["changes"]}
    return {
        memory.id for memory in memories if memory.id not in latest or start.latest_memory_telling_of_change_to(memory)
    }


class ContextLedger(ChatReader, CoreBlockReader, Protocol):
    """What a context reads."""

    async def policies(self) -> list[Memory]:
        """Current core policies of the organisation, oldest first (spec O4)."""

    async def profile_entries(self, scope: Scope) -> list[ProfileEntry]: ...

    async def list_open_notes(self, scope: Scope, *, limit: int) -> list[Note]: ...

    async def thoughts_for_next_session(self, scope: Scope) -> ThoughtsForNextSession: ...

    async def diary_entries_since(self, scope: Scope, date: str, *, limit: int) -> list[DiaryEntry]:
        """The latest of those of that ISO date and later, oldest first."""

    async def recently_activated_memories(self, scope: Scope, *, limit: int) -> Sequence[Memory]:
        """Living memories with an action, the last one that came to mind first (spec P5)."""

    async def emotions_of_latest_session_memory(self, scope: Scope, session_id: str) -> tuple[Emotion, ...]:
        """Of the latest memory of this session that has any."""

    async def memory_groups_for_session_start(
        self, scope: Scope, *, now: datetime, due_until: datetime, changed_since: datetime, limit: int
    ) -> SessionStartMemories:
        """Living current memories but preferences, at most `limit` in each group."""
