"""Read and edit the being's profile (spec P5). A preference is a memory as well: stored once, shown in both places."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.context.ports import ProfileLedger
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.new_scene import NewScene
from madeleine.memory.ingest.notes import SCENE_NOTE_TYPE, StoredNoteWithRedactionCounts, add_note
from madeleine.memory.ingest.store import StoreScenes
from madeleine.memory.ingest.update_and_forget import ForgetMemories, UpdateMemory
from madeleine.memory.model import MemoryChanges, MemoryId, Note, NoteId, Scene, Scope
from madeleine.memory.profile import (
    PROFILE_KIND_ORDER,
    SOUL_PARTS,
    ProfileEntry,
    ProfileKind,
    duplicate_preference_error,
)
from madeleine.memory.rules.storing.secrets import CountingRedactor, RedactText, redact_secrets

MAX_PROFILE_ENTRIES_PER_KIND = 200
"""Of one kind that are written by hand: each is part of every prompt."""
MAX_LISTED_NOTES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenProfileEntryWithRedactionCounts:
    """`redacted`: number of secrets removed, by kind."""

    entry: ProfileEntry
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EditProfile:
    """The use case.

    A preference is stored as a pinned procedural memory with the text `name: value`, so that recall finds it. Writing
    it again corrects that memory, removing it forgets the memory.

    Names are compared without case; an entry keeps the spelling it was first written with.
    """

    ledger: ProfileLedger
    store: StoreScenes
    update: UpdateMemory
    forget: ForgetMemories
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: RedactText = redact_secrets

    async def read(self, scope: Scope, kind: ProfileKind | None = None, name: str = "") -> list[ProfileEntry]:
        """Entries by kind, the soul by its parts, others by name."""
        key = casefolded_profile_name(name)
        return [
            entry
            for entry in profile_entries_in_display_order(await self.ledger.profile_entries(scope))
            if (kind is None or entry.kind == kind) and (not key or casefolded_profile_name(entry.name) == key)
        ]

    async def write(
        self, scope: Scope, kind: ProfileKind, name: str, value: str
    ) -> WrittenProfileEntryWithRedactionCounts:
        """Return the entry as it is read from now on. Secrets are redacted first. Raises `InvalidInput` for an unknown
        part of the soul, too many entries of a kind, or a preference that another entry already states;
        `StorageFull`, `StorageError`."""
        redaction = CountingRedactor(self.redact)
        # As JSON: some secrets are recognised by their name alone.
        [(name, value)] = redaction.redact_json({normalize_profile_name(name): value.strip()}).items()
        if kind == "soul" and name not in SOUL_PARTS:
            parts = f"{', '.join(SOUL_PARTS[:-1])} or {SOUL_PARTS[-1]}"
            raise InvalidInput(f"A soul has no part {name[:100]!r}. Nothing was written: name {parts}.")
        entries = await self.ledger.profile_entries(scope)
        before = _find_profile_entry(entries, kind, name)
        if (
            before is None
            and sum(entry.kind == kind and not entry.is_learnt_from_memory for entry in entries)
            >= MAX_PROFILE_ENTRIES_PER_KIND
        ):
            raise InvalidInput(
                f"There are already {MAX_PROFILE_ENTRIES_PER_KIND} entries of the kind {kind}, each part of every "
                "prompt. Nothing was written: remove one that is not needed, or store this as a memory."
            )
        entry = ProfileEntry(kind=kind, name=name, value=value, updated_at=self.now())
        if before is not None:
            entry = replace(entry, name=before.name, enabled=before.enabled)
        if kind == "preferences":
            entry = await self._store_preference_as_memory(scope, entry, before, entries)
        replaced = await self.ledger.write_profile_entry(scope, entry)
        if replaced:  # concurrent writes: the later one wins
            await self.forget(scope, [replaced])
        current = _find_profile_entry(await self.ledger.profile_entries(scope), kind, entry.name)
        return WrittenProfileEntryWithRedactionCounts(entry=current or entry, redacted=redaction.found)

    async def _store_preference_as_memory(
        self, scope: Scope, entry: ProfileEntry, before: ProfileEntry | None, entries: Sequence[ProfileEntry]
    ) -> ProfileEntry:
        """Attach the preference's memory: its own, corrected; a learnt one with the same text, which stays disabled if
        it was; else a new one."""
        learnt = before is not None and before.is_learnt_from_memory
        text = entry.value if learnt else f"{entry.name}: {entry.value}"
        if before is not None and before.memory_id is not None:
            await self.update.update_with_already_redacted_texts(
                scope, before.memory_id, MemoryChanges(text=text, pinned=True)
            )
            return replace(entry, memory_id=before.memory_id)
        by_memory = {entry.memory_id: entry for entry in entries if entry.memory_id is not None}

        def approve(id_: MemoryId) -> None:
            if id_ in by_memory and not by_memory[id_].is_learnt_from_memory:
                raise duplicate_preference_error(by_memory[id_].name)

        scene = NewScene(scene=Scene(action=text), category="procedural", pinned=True, tool="profile")
        [stored] = await self.store.store_already_redacted_scenes(scope, [scene], approve=approve)
        existing = by_memory.get(stored.memory.id)
        return replace(entry, memory_id=stored.memory.id, enabled=existing.enabled if existing else True)

    async def set_preference_enabled(self, scope: Scope, kind: ProfileKind, name: str, enabled: bool) -> ProfileEntry:
        """A disabled preference is not recalled either. Raises `InvalidInput` for other kinds and unknown
        entries."""
        if kind not in ("partner_rules", "preferences"):
            raise InvalidInput(
                f"Only partner rules and preferences can be enabled and disabled, not entries of the kind {kind}. "
                "Nothing was changed: remove it, or set it again."
            )
        entry = await self._require_existing_entry(scope, kind, name)
        entry = replace(entry, enabled=enabled, updated_at=self.now())
        await self.ledger.write_profile_entry(scope, entry)
        return entry

    async def remove(self, scope: Scope, kind: ProfileKind, name: str) -> ProfileEntry:
        """Remove an entry; the memory of a preference is forgotten. Raises `InvalidInput` for an unknown entry."""
        entry = await self._require_existing_entry(scope, kind, name)
        # The entry first: removed with its memory it would not be audited.
        await self.ledger.remove_profile_entry(scope, entry, at=self.now())
        if entry.memory_id is not None:
            await self.forget(scope, [entry.memory_id])
        return entry

    async def _require_existing_entry(self, scope: Scope, kind: ProfileKind, name: str) -> ProfileEntry:
        entry = _find_profile_entry(await self.ledger.profile_entries(scope), kind, normalize_profile_name(name))
        if entry is None:
            raise InvalidInput(
                f"There is no entry {name[:100]!r} of the kind {kind}. Nothing was changed: the action show lists all."
            )
        return entry

    # notes

    async def list_open_notes(self, scope: Scope) -> list[Note]:
        """Open notes, oldest first."""
        return await self.ledger.list_open_notes(scope, limit=MAX_LISTED_NOTES)

    async def write_note(self, scope: Scope, type_: str, content: str) -> StoredNoteWithRedactionCounts:
        """Write a note of the caller's own type, such as todo or reminder. Secrets are redacted first. Raises
        `InvalidInput` for a scene."""
        redacted_type = self.redact(normalize_profile_name(type_))
        type_ = redacted_type.text
        if type_.casefold() == SCENE_NOTE_TYPE:
            raise InvalidInput(
                "A note of the type scene is for the patrol. Nothing was written: call store, or `madeleine note`."
            )
        added = await add_note(self.ledger, scope, content, now=self.now(), type_=type_, redact=self.redact)
        return replace(added, redacted=Counter(redacted_type.found) + Counter(added.redacted))

    async def close_note(self, scope: Scope, note_id: str, *, remove: bool = False) -> None:
        """Mark a note as done, or remove it. Raises `InvalidInput` for an unknown note."""
        if not await self.ledger.close_note(scope, NoteId(note_id), at=self.now(), remove=remove):
            raise InvalidInput(
                f"There is no note {note_id[:100]!r}. Nothing was changed: the action show lists the open ones."
            )


def profile_entries_in_display_order(entries: Sequence[ProfileEntry]) -> list[ProfileEntry]:
    """A stable order. Learnt preferences follow named ones, in the given order, in which they were learnt."""

    def sort_key(entry: ProfileEntry) -> tuple[int, int, str]:
        if entry.kind == "soul":
            return 0, SOUL_PARTS.index(entry.name) if entry.name in SOUL_PARTS else len(SOUL_PARTS), entry.name
        return (
            PROFILE_KIND_ORDER.index(entry.kind),
            int(entry.is_learnt_from_memory),
            "" if entry.is_learnt_from_memory else entry.name.casefold(),
        )

    return sorted(entries, key=sort_key)


def normalize_profile_name(name: str) -> str:
    """A name as it is stored: NFC, single spaces."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def casefolded_profile_name(name: str) -> str:
    """Equal for names that differ only in case."""
    return unicodedata.normalize("NFC", normalize_profile_name(name).casefold())


def _find_profile_entry(entries: Sequence[ProfileEntry], kind: ProfileKind, name: str) -> ProfileEntry | None:
    """The exact name first: two that differ in case may have been written at once."""
    matching = [
        entry
        for entry in entries
        if entry.kind == kind and casefolded_profile_name(entry.name) == casefolded_profile_name(name)
    ]
    return next((entry for entry in matching if entry.name == name), matching[0] if matching else None)
