"""Issue 12.3: what is no date is refused, with the way to write one."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from madeleine.memory.errors import InvalidInput
from madeleine.memory.model import DatedAction
from madeleine.tools.dates import parse_iso_period_argument, parse_time_window, validated_timeline_argument


@pytest.mark.parametrize("text", ["tomorrow", "2026-02-30", "24.12.2026", "next spring", "Day7"])
@pytest.mark.parametrize("argument", ["when", "since"])
def test_a_refused_date_is_named_with_its_argument_and_the_forms_of_a_date(argument: str, text: str) -> None:
    """They were stored as they stood and shown as dates."""
    with pytest.raises(InvalidInput, match=rf"{argument}: '{text}' is not a date\. Write 2026-03-01, .*2026-03, 2026 "):
        parse_iso_period_argument(argument, text)


def test_a_time_window_that_holds_nothing_is_refused() -> None:
    """It found nothing, as if nothing were known."""
    assert parse_time_window("2026", "") == {"since": datetime(2026, 1, 1, tzinfo=UTC), "until": None}
    same = parse_time_window("2026-03", "2026-03")
    assert same["until"] == datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="2026-04 is after until: 2026-03"):
        parse_time_window("2026-04", "2026-03")


def test_a_timeline_holds_dates_alone() -> None:
    good = SimpleNamespace(date="2026-03 ", action="signed")
    assert validated_timeline_argument("when", ["2026", good]) == ("2026", DatedAction("2026-03", "signed"))
    assert validated_timeline_argument("when", "2026-03-01T18:30+01:00") == ("2026-03-01T18:30+01:00",)
    with pytest.raises(InvalidInput, match=r"when\.1\.date: 'Day7'"):
        validated_timeline_argument("when", ["2026-01-02", SimpleNamespace(date="Day7", action="moved")])
    with pytest.raises(InvalidInput, match=r"when\.0: 'soon'"):
        validated_timeline_argument("when", ["soon"])
