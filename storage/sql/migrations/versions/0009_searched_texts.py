"""Search without accents, over every text of a memory; dates that are months or years (ADR 0033).

Revision 0009. What is derived from the texts is made anew; the texts stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from madeleine.memory.model import DatedAction, Scene, content_hash, embedded_text, first_timeline_period
from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.mapping import microseconds_from_moment
from madeleine.storage.sql.database.memory_rows import fold_and_delimit_themes

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_ROWS_AT_ONCE = 1_000
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""Such dates were read before."""
_NOT_ASCII = "*[^\x01-\x7f]*"


def upgrade() -> None:
    connection = op.get_bind()
    derived = ("folded", "folded_themes", "content_hash", "happened_at")
    texts = ("action", "feeling", "when_", "setting", "actors", "dialogue", "sensory", "lesson", "themes")
    change = sa.text(f"UPDATE memories SET {', '.join(f'{name} = :{name}' for name in derived)} WHERE seq = :seq")
    for rows in _pages("memories", *derived, *texts):
        connection.execute(change, [{"seq": row["seq"]} | _derived(row) for row in rows])
    for table in ("messages", "notes"):
        change = sa.text(f"UPDATE {table} SET folded = :folded WHERE seq = :seq")
        for rows in _pages(table, "folded", where="folded GLOB :pattern"):
            connection.execute(change, [{"seq": row["seq"], "folded": fold_text(row["folded"])} for row in rows])


def _pages(table: str, *columns: str, where: str = "TRUE") -> Iterator[list[dict[str, Any]]]:
    connection, after = op.get_bind(), -1
    page = sa.text(
        f"SELECT seq, {', '.join(columns)} FROM {table} WHERE seq > :after AND {where} ORDER BY seq LIMIT :most"
    )
    binds = {"pattern": _NOT_ASCII} if "pattern" in where else {}
    while rows := connection.execute(page, {"after": after, "most": _ROWS_AT_ONCE, **binds}).mappings().fetchall():
        yield [dict(row) for row in rows]
        after = rows[-1]["seq"]


def _derived(row: dict[str, Any]) -> dict[str, Any]:
    when = tuple(item if isinstance(item, str) else DatedAction(**item) for item in json.loads(row["when_"]))
    lists = {name: json.loads(row[name]) for name in ("actors", "dialogue", "sensory", "themes")}
    searched = (
        *(row[name] for name in ("action", "feeling", "when_", "setting")),
        *lists["actors"], *lists["dialogue"], *lists["sensory"], row["lesson"],
    )  # fmt: skip
    period = first_timeline_period(when)
    return {
        "folded": FOLDED_FIELD_SEPARATOR.join(map(fold_text, searched)),
        "folded_themes": fold_and_delimit_themes(lists["themes"]),
        "content_hash": content_hash(embedded_text(Scene(action=row["action"], when=when), row["feeling"])),
        "happened_at": microseconds_from_moment(period.start)
        if period and not _DAY.fullmatch(period.text)
        else row["happened_at"],
    }


def downgrade() -> None:
    """An older version reads these rows, and finds less in them."""
