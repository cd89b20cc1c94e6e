"""Entries of a being's profile: who it is and whom it deals with (spec P5)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MemoryId

ProfileKind = Literal["soul", "partner_rules", "preferences", "relationships", "tools", "map", "knowledge"]
PROFILE_KIND_ORDER: tuple[ProfileKind, ...] = get_args(ProfileKind)
SOUL_PARTS = ("personality", "voice", "values", "backstory", "inner_world", "examples")
"""Names of the soul's entries, in display order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileEntry:
    """An entry, identified by kind and name. `enabled` applies to partner rules and preferences.

    A preference is also a procedural memory, `memory_id`. A learnt preference, never named, has that id as its name.
    """

    kind: ProfileKind
    name: str
    value: str
    updated_at: datetime
    enabled: bool = True
    memory_id: MemoryId | None = None

    @property
    def is_learnt_from_memory(self) -> bool:
        return self.memory_id is not None and self.name == self.memory_id

    @property
    def audit_id(self) -> str:
        """Id for the audit, which holds no names chosen by people."""
        return audit_id_of_profile_entry(self.kind, self.name)


def audit_id_of_profile_entry(kind: ProfileKind, name: str) -> str:
    return f"{kind}/{name}" if kind == "soul" else f"{kind}/{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def duplicate_preference_error(name: str) -> InvalidInput:
    """The error for a preference whose memory belongs to the preference `name`."""
    return InvalidInput(
        f"The preference {name[:200]!r} says that already. The new one was not written: set {name[:200]!r} again, or "
        "remove it first."
    )
