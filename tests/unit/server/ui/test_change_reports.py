"""What a patrol has changed, as the page shows it."""

from __future__ import annotations

from madeleine.server.ui.change_reports import changed_fields
from madeleine.storage.sql.overview import PatrolChangedRow


def test_times_are_shown_as_times_and_ids_by_their_names() -> None:
    """They are journalled as columns hold them: in microseconds, and by id."""
    change = PatrolChangedRow(
        step="consolidate",
        kind="memory",
        target="m",
        before={"kept_until": None, "cluster_id": "c-1", "since": 1},
        after={"kept_until": 1_767_225_600_000_000, "cluster_id": "c-2", "since": 2},
    )
    assert changed_fields(change, {"c-2": {"name": "Harbour"}}) == [
        {"name": "kept_until", "before": None, "after": "2026-01-01T00:00:00+00:00"},
        {"name": "cluster_id", "before": "c-1", "after": "Harbour"},
    ]
