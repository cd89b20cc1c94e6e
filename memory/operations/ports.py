"""Repositories of operational data (spec O10). `isinstance` checks them at run time.

Every method raises `StorageError` if the database fails.
"""

from __future__ import annotations

from typing import Protocol, Unpack, runtime_checkable

from madeleine.memory.operations.values import CostFilter, CostGrouping, CostRecord, CostTotal

DEFAULT_RECORDS = 1_000
"""Records that a query returns at most, unless it says how many."""


@runtime_checkable
class CostRecordRepository(Protocol):
    """What calls of language models cost: Madeleine's own, and those that an application records."""

    async def save(self, record: CostRecord) -> None:
        """Durably; a record is never changed."""

    async def query(self, *, limit: int = DEFAULT_RECORDS, **filter: Unpack[CostFilter]) -> tuple[CostRecord, ...]:
        """The last `limit` of them, the latest first."""

    async def aggregate(self, **filter: Unpack[CostFilter]) -> float:
        """US dollars, of the calls whose price is known."""

    async def totals(self, by: CostGrouping, **filter: Unpack[CostFilter]) -> tuple[CostTotal, ...]:
        """Days and runs in the order of their first call; models, purposes and beings by their tokens, the most
        first."""
