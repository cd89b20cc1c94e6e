"""What every repository holds."""

from __future__ import annotations

from madeleine.storage.sql.database.engine import Database


class Repository:
    """Implements ports of use cases over one open database; repositories of one database share its connections."""

    def __init__(self, database: Database) -> None:
        self._database = database
