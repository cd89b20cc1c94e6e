"""Who the being is and whom it deals with (spec P5), and what its use cases need of the ledger."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import MemoryId

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
