"""Counts of records, in words."""

from __future__ import annotations

from collections.abc import Mapping

EXPORT_RECORD_TYPE_PLURALS: Mapping[str, str] = {
    "memory": "memories",
    "message_memory": "links to messages",
    "profile": "profile entries",
    "diary": "diary entries",
    "archived_memory": "archived memories",
}
"""Of types, where another than with an s."""


def describe_record_counts(counts: Mapping[str, int]) -> str:
    """As "1 being, 2 memories"."""
    parts = (
        f"{count:,} {type_ if count == 1 else EXPORT_RECORD_TYPE_PLURALS.get(type_, type_ + 's')}".replace("_", " ")
        for type_, count in counts.items()
        if count
    )
    return ", ".join(parts) or "nothing"
