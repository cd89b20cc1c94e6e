"""A question for the days to come, in the languages of the lexicons (ruling 19: what a filter names is a match)."""

from __future__ import annotations

from datetime import date

from madeleine.memory.text.coming_days import coming_days_asked_for
from tests.rows import for_each_row

TODAY = date(2026, 11, 27)
"""A Friday."""
TOMORROW, NEXT_WEEK, DECEMBER = ("2026-11-28",) * 2, ("2026-11-30", "2026-12-06"), ("2026-12-01", "2026-12-31")


@for_each_row(
    ("question", "days"),
    [
        ("What is coming up next week?", NEXT_WEEK),
        ("What are my plans for the coming week?", ("2026-11-28", "2026-12-04")),
        ("What do I have over the next week?", ("2026-11-28", "2026-12-04")),
        ("What do we have to do in the next ten days?", ("2026-11-28", "2026-12-07")),
        ("What is happening over the next few days?", ("2026-11-28", "2026-12-04")),
        ("What is on in the next 2 weeks?", ("2026-11-28", "2026-12-11")),
        ("What is coming up in the next weeks?", ("2026-11-28", "2026-12-25")),
        ("Was steht in den nächsten Wochen an?", ("2026-11-28", "2026-12-25")),
        ("What do we have over the coming days?", ("2026-11-28", "2026-12-04")),
        ("What's on next month?", DECEMBER),
        ("What is happening in December?", DECEMBER),
        ("What is planned for January 2027?", ("2027-01-01", "2027-01-31")),
        ("What do we have on 12 December?", ("2026-12-12",) * 2),
        ("What is on 2026-12-12?", ("2026-12-12",) * 2),
        ("Impegni di dicembre", DECEMBER),
        ("O que temos marcado para dezembro?", DECEMBER),
        ("Was steht im Dezember an?", DECEMBER),
        ("Какие встречи 3 декабря?", ("2026-12-03",) * 2),
        ("Do I have any appointments tomorrow?", TOMORROW),
        ("Was steht nächste Woche an?", NEXT_WEEK),
        ("Habe ich morgen Termine?", TOMORROW),
        ("¿Qué tengo la semana que viene?", NEXT_WEEK),
        ("Quels rendez-vous ai-je demain ?", TOMORROW),
        ("Che appuntamenti ho domani?", TOMORROW),
        ("O que tenho na próxima semana?", NEXT_WEEK),
        ("Wat staat er volgende week op de agenda?", NEXT_WEEK),
        ("Какие встречи на следующей неделе?", NEXT_WEEK),
        ("来週の予定は？", NEXT_WEEK),
        ("明天有什么事？", TOMORROW),
        ("다음 주 일정이 뭐야?", NEXT_WEEK),
        ("ما هي مواعيد الأسبوع القادم؟", NEXT_WEEK),
        ("Who is on duty next week?", None),
        ("Who is on duty in December?", None),
        ("What happened in December?", None),
        ("What did we do on 10 December?", None),
        ("Was war im Dezember?", None),
        ("What is planned before 3 December?", None),
        ("What is planned from 3 December on?", None),
        ("Who may be there?", None),
        ("Who is December?", None),
        ("What do we have in June?", None),
        ("What do we have on 12 November?", None),
        ("What do we have in December and January?", None),
        ("What did Tom plan for next week?", None),
        ("What happened last week?", None),
        ("Is the market in the morning?", None),
        ("What is on 9999999 days from now?", None),
        ("And then? " * 20 + "What is on next week?", None),
        ("What happened this month?", None),
        ("Was macht sie am Morgen?", None),
        ("¿Qué hace ella por la mañana?", None),
        ("Wat doet ze op de morgen?", None),
        ("下周围有什么活动？", None),
        ("다음 주제가 뭐야?", None),
        ("来週号は何？", None),
        ("", None),
    ],
)
def test_days_to_come_are_read_where_nothing_else_is_asked(question: str, days: tuple[str, str] | None) -> None:
    found = coming_days_asked_for(question, TODAY)
    assert (found and tuple(map(str, found))) == days


def test_more_weeks_than_a_calendar_has_are_cut() -> None:
    assert coming_days_asked_for("What is on in the next 999 weeks?", TODAY) is not None
    assert coming_days_asked_for("What is on in the next 999 weeks?", date(9999, 12, 30)) is None
