"""Reading and writing who the being is (spec P5). A preference is a memory as well: it is kept once and found twice."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime

from madeleine.memory.context.ports import ProfileLedger
from madeleine.memory.errors import InvalidInput
from madeleine.memory.ingest.forget import Forget
from madeleine.memory.ingest.notes import SCENE, Noted, add_note
from madeleine.memory.ingest.redaction import Redaction
from madeleine.memory.ingest.store import NewScene, StoreScenes
from madeleine.memory.ingest.update import UpdateMemory
from madeleine.memory.model import MemoryChanges, MemoryId, Note, NoteId, Scene
from madeleine.memory.profile import KINDS, SOUL_PARTS, ProfileEntry, ProfileKind, kept_already
from madeleine.memory.rules.storing.secrets import Redact, redact_secrets
from madeleine.memory.scope import Scope

MOST_ENTRIES = 200
"""Of one kind that are written by hand: each is in every prompt."""
SHOWN_NOTES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """`redacted`: the secrets that were taken out, by kind."""

    entry: ProfileEntry
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class EditProfile:
    """The use case.

    A preference is stored as a procedural memory, pinned, of the text `name: value`, so that a recall brings it back;
    writing it anew corrects that memory, and removing it forgets it. So there is one of each, whoever changes it.

    Names are alike whatever their case; an entry keeps the spelling that it was first written with.
    """

    ledger: ProfileLedger
    store: StoreScenes
    update: UpdateMemory
    forget: Forget
    _: KW_ONLY
    now: Callable[[], datetime]
    redact: Redact = redact_secrets

    async def read(self, scope: Scope, kind: ProfileKind | None = None, name: str = "") -> list[ProfileEntry]:
        """In the order of the kinds, the soul in the order of its parts, else by name."""
        wanted = alike(name)
        return [
            entry
            for entry in in_order(await self.ledger.profile(scope))
            if (kind is None or entry.kind == kind) and (not wanted or alike(entry.name) == wanted)
        ]

    async def write(self, scope: Scope, kind: ProfileKind, name: str, value: str) -> Written:
        """The entry as it is read from now on. Secrets are redacted before anything else is done. Raises
        `InvalidInput` for a part that no soul has, where there are too many of a kind, and for a preference that one
        of another name tells already; `StorageFull`, `StorageError`."""
        cleaning = Redaction(self.redact)
        # As JSON, for a secret may be known by its name alone.
        [(name, value)] = cleaning.json({plain(name): value.strip()}).items()
        if kind == "soul" and name not in SOUL_PARTS:
            raise InvalidInput(f"A soul has no part {name[:100]!r}. Nothing was written: name {listed(SOUL_PARTS)}.")
        entries = await self.ledger.profile(scope)
        before = _named(entries, kind, name)
        if before is None and sum(one.kind == kind and not one.learnt for one in entries) >= MOST_ENTRIES:
            raise InvalidInput(
                f"There are {MOST_ENTRIES} entries of the kind {kind} already, and each is in every prompt. Nothing "
                "was written: remove one that is not needed, or store this as a memory."
            )
        entry = ProfileEntry(kind=kind, name=name, value=value, updated_at=self.now())
        if before is not None:
            entry = replace(entry, name=before.name, enabled=before.enabled)
        if kind == "preferences":
            entry = await self._remembered(scope, entry, before, entries)
        replaced = await self.ledger.write_entry(scope, entry)
        if replaced:  # two wrote at once, and the later one counts
            await self.forget(scope, [replaced])
        now = _named(await self.ledger.profile(scope), kind, entry.name)
        return Written(entry=now or entry, redacted=cleaning.found)

    async def _remembered(
        self, scope: Scope, entry: ProfileEntry, before: ProfileEntry | None, entries: Sequence[ProfileEntry]
    ) -> ProfileEntry:
        """With its memory: the one that it has, corrected; one that was learnt and says the same, which stays off if
        it was; else a new one."""
        learnt = before is not None and before.learnt
        text = entry.value if learnt else f"{entry.name}: {entry.value}"
        if before is not None and before.memory_id is not None:
            await self.update(scope, before.memory_id, MemoryChanges(text=text, pinned=True))
            return replace(entry, memory_id=before.memory_id)
        of_memory = {one.memory_id: one for one in entries if one.memory_id is not None}

        def permit(id_: MemoryId) -> None:
            if id_ in of_memory and not of_memory[id_].learnt:
                raise kept_already(of_memory[id_].name)

        scene = NewScene(scene=Scene(action=text), category="procedural", pinned=True, tool="profile")
        [stored] = await self.store(scope, [scene], permit=permit)
        same = of_memory.get(stored.memory.id)
        return replace(entry, memory_id=stored.memory.id, enabled=same.enabled if same else True)

    async def enable(self, scope: Scope, kind: ProfileKind, name: str, enabled: bool) -> ProfileEntry:
        """A preference that is off does not lead a recall, either. Raises `InvalidInput` for what cannot be off, or is
        not there."""
        if kind not in ("partner_rules", "preferences"):
            raise InvalidInput(
                f"Only partner rules and preferences can be switched on and off, and this is of the kind {kind}. "
                "Nothing was changed: remove it, or write it anew."
            )
        entry = await self._existing(scope, kind, name)
        entry = replace(entry, enabled=enabled, updated_at=self.now())
        await self.ledger.write_entry(scope, entry)
        return entry

    async def remove(self, scope: Scope, kind: ProfileKind, name: str) -> ProfileEntry:
        """A preference with its memory, which is forgotten. Raises `InvalidInput` for what is not there."""
        entry = await self._existing(scope, kind, name)
        # First the entry: with its memory it would go without a word in the audit.
        await self.ledger.remove_entry(scope, entry, at=self.now())
        if entry.memory_id is not None:
            await self.forget(scope, [entry.memory_id])
        return entry

    async def _existing(self, scope: Scope, kind: ProfileKind, name: str) -> ProfileEntry:
        found = _named(await self.ledger.profile(scope), kind, plain(name))
        if found is None:
            raise InvalidInput(
                f"There is no entry {name[:100]!r} of the kind {kind}. Nothing was changed: show lists all."
            )
        return found

    # notes

    async def notes(self, scope: Scope) -> list[Note]:
        """Those that are not done, oldest first."""
        return await self.ledger.open_notes(scope, limit=SHOWN_NOTES)

    async def note(self, scope: Scope, type_: str, content: str) -> Noted:
        """A note of a type of the caller's own, as todo or reminder. Secrets are redacted before it is written. Raises
        `InvalidInput` for a scene."""
        of_type = self.redact(plain(type_))
        type_ = of_type.text
        if type_.casefold() == SCENE:
            raise InvalidInput(
                "A note of the type scene is for the patrol. Nothing was written: call store, or `madeleine note`."
            )
        noted = await add_note(self.ledger, scope, content, now=self.now(), type_=type_, redact=self.redact)
        return replace(noted, redacted=Counter(of_type.found) + Counter(noted.redacted))

    async def close_note(self, scope: Scope, note_id: str, *, remove: bool = False) -> None:
        """It is not shown any more. Raises `InvalidInput` for what is not there."""
        if not await self.ledger.close_note(scope, NoteId(note_id), at=self.now(), remove=remove):
            raise InvalidInput(
                f"There is no note {note_id[:100]!r}. Nothing was changed: show lists those that are open."
            )


def in_order(entries: Sequence[ProfileEntry]) -> list[ProfileEntry]:
    """The same for the same entries. What was learnt comes after what was named, and stays in the order given: that of
    its coming."""

    def place(entry: ProfileEntry) -> tuple[int, int, str]:
        if entry.kind == "soul":
            return 0, SOUL_PARTS.index(entry.name) if entry.name in SOUL_PARTS else len(SOUL_PARTS), entry.name
        return KINDS.index(entry.kind), int(entry.learnt), "" if entry.learnt else entry.name.casefold()

    return sorted(entries, key=place)


def plain(name: str) -> str:
    """As it is written down: names that look alike are alike."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def alike(name: str) -> str:
    """The same for names that differ in case alone."""
    return unicodedata.normalize("NFC", plain(name).casefold())


def listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _named(entries: Sequence[ProfileEntry], kind: ProfileKind, name: str) -> ProfileEntry | None:
    """The very name first: two that differ in case may have been written at once."""
    found = [entry for entry in entries if entry.kind == kind and alike(entry.name) == alike(name)]
    return next((entry for entry in found if entry.name == name), found[0] if found else None)
