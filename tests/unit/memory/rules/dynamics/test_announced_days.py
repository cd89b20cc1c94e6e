"""The day that a text announces beside the dates of its memory (ADR 99)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from madeleine.memory.rules.dynamics.future_dates import announced_days
from tests.doubles import a_memory

TOLD = datetime(2026, 11, 1, 12, tzinfo=UTC)


def announced(text: str, when: str) -> tuple[str, ...]:
    dated = a_memory(text, when=(when,))
    days = announced_days(text, dated.scene.when, created_at=TOLD, happened_at=dated.happened_at)
    return tuple(map(str, days or ()))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("The roof is inspected on 9 December 2026.", ("2026-12-09",) * 2),
        ("Das Dach wird am 9.12.2026 geprüft.", ("2026-12-09",) * 2),
        ("Ines is away from 7 to 18 December.", ("2026-12-07", "2026-12-18")),
        ("The plumber comes tomorrow.", ("2026-11-02",) * 2),
        ("The inspector comes the day after tomorrow.", ("2026-11-03",) * 2),
        ("El fontanero viene mañana.", ("2026-11-02",) * 2),
        ("We move next week.", ("2026-11-02", "2026-11-08")),
        ("The exam is on Dec 9.", ("2026-12-09",) * 2),
        ("Die Prüfung ist am 9. Dez. um acht.", ("2026-12-09",) * 2),
        ("The conference is in March 2027.", ("2027-03-01", "2027-03-31")),
        ("The rent is 980 euros from 1 January 2027 on.", ("2027-01-01",) * 2),
    ],
)
def test_the_one_day_to_come_is_announced(text: str, days: tuple[str, str]) -> None:
    assert announced(text, "2026-11-01") == days


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("The lease began on 3 March 2026.", "2026-11-01"),
        ("The fair moves from 3 to 10 December 2026, the ball to the 5 January 2027.", "2026-11-01"),
        ("The fair is on 3 December 2026.", "2026-12-03"),
        ("We did it in two weeks.", "2026-11-01"),
        ("Yesterday the plumber came.", "2026-11-01"),
        ("We argued about it on 3 May.", "2026-11-01"),
        ("The fair is on 3 December 2026. " + "It was a long day. " * 30, "2026-11-01"),
    ],
)
def test_nothing_is_announced_by(text: str, when: str) -> None:
    """Several days, none to come, a duration, a day without its year half a year away, a long text; or a memory that is
    dated to the day itself."""
    assert announced(text, when) == ()
