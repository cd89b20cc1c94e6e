"""Since when a version is true (ruling 14, ADR 54)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from madeleine.memory.model import start_of_first_dated_timeline_entry
from madeleine.memory.rules.dynamics.future_dates import superseding_memory_and_start_date
from tests.doubles import a_memory

TOLD = datetime(2027, 1, 25, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("when", "since"),
    [
        (("2026-11-26",), datetime(2027, 1, 1, tzinfo=UTC)),
        (("2027-01-10",), datetime(2027, 1, 10, tzinfo=UTC)),
        ((), TOLD),
    ],
)
def test_a_plan_that_is_told_again_when_its_day_has_come_is_true_since_that_day(
    when: tuple[str, ...], since: datetime
) -> None:
    """By the day of its first telling it would be true before it began. A later day, or none, is taken at its word."""
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    old = replace(a_memory("The rent of the flat is 980 euros"), created_at=begin, happened_at=begin)
    new = a_memory("From January 2027 on the rent of the flat rises to 1050 euros", when=when)
    new = replace(new, created_at=TOLD, happened_at=start_of_first_dated_timeline_entry(when, TOLD))
    assert superseding_memory_and_start_date(new, old, TOLD)[1] == since
