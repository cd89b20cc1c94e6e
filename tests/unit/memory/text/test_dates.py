"""Issue 12.3: `when` is a date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from madeleine.memory.model import date_of_timeline_entry
from madeleine.memory.text.dates import parse_iso_period
from tests.rows import for_each_row


@for_each_row(
    ("told", "start", "end", "shown"),
    [
        ("2026-03-01", datetime(2026, 3, 1), datetime(2026, 3, 2), "2026-03-01"),
        ("2024-02", datetime(2024, 2, 1), datetime(2024, 3, 1), "2024-02"),
        ("2026-12", datetime(2026, 12, 1), datetime(2027, 1, 1), "2026-12"),
        ("2024", datetime(2024, 1, 1), datetime(2025, 1, 1), "2024"),
        ("2026-02-27/2026-03-05", datetime(2026, 2, 27), datetime(2026, 3, 6), "2026-02-27/2026-03-05"),
        ("2025/2026-03", datetime(2025, 1, 1), datetime(2026, 4, 1), "2025/2026-03"),
    ],
)
def test_a_date_lasts_as_long_as_it_was_told_to(told: str, start: datetime, end: datetime, shown: str) -> None:
    period = parse_iso_period(told)
    assert period is not None
    assert period.start == start.replace(tzinfo=UTC)
    assert period.end == end.replace(tzinfo=UTC) - timedelta(microseconds=1)
    assert date_of_timeline_entry(told) == shown


def test_a_time_with_a_zone_is_shown_on_the_tellers_day() -> None:
    """One in the morning in Tokyo was shown as the day before."""
    period = parse_iso_period("2026-03-01T01:00+09:00")
    assert period is not None
    assert period.start == period.end == datetime(2026, 2, 28, 16, tzinfo=UTC)
    assert date_of_timeline_entry("2026-03-01T01:00+09:00") == "2026-03-01"


@for_each_row(
    "text",
    [
        *(
            "tomorrow",
            "2026-02-30",
            "24.12.2026",
            "12/24/2026",
            "2026-13",
            "20260301",
            "2026-3-1",
            "March 2026",
            "Day7",
        ),
        *("2026-03-05/2026-03-01", "2026-03-01/", "2026/03/01", "٢٠٢٦-٠٣-٠١", ""),
    ],
)
def test_what_is_not_an_iso_date_is_no_period(text: str) -> None:
    assert parse_iso_period(text) is None
    assert date_of_timeline_entry(text) == text


def test_the_words_of_a_month_name_no_day() -> None:
    """A memory of a month was found by a day that nobody had told."""
    words = {
        told: period.start_in_words for told in ("2026-03-01", "2026-03", "2026") if (period := parse_iso_period(told))
    }
    assert words == {"2026-03-01": "Sunday 1 March 2026", "2026-03": "March 2026", "2026": "2026"}
