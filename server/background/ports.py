"""What scheduled patrols need of the ledger (spec P12)."""

from __future__ import annotations

from typing import Protocol

from madeleine.memory.patrol_records import RecentActivity


class BeingsLedger(Protocol):
    async def recent_activity(self) -> list[RecentActivity]:
        """Of every being to whom something has come since its last patrol; one that was left alone is not among them.

        A patrol that was undone counts, for it would only do the same again; one that was rolled back, or that only
        carried out decisions, does not. What a patrol has written itself is nothing new. A recall counts if it brought
        back anything that is alive.
        """
        ...
