"""Where a ledger on PostgreSQL is."""

from __future__ import annotations

from typing import NamedTuple


class PostgresLocation(NamedTuple):
    """`server` names the data directory whose index follows the ledger; an index on a Qdrant server is named alike by
    all."""

    url: str
    server: str
