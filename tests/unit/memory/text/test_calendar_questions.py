"""A question for days to come or gone by, in the languages of the lexicons (ruling 19: what a filter names matches)."""

from __future__ import annotations

from datetime import date

import pytest

from madeleine.memory.text.calendar_questions import days_asked_for, days_named
from tests.rows import for_each_row

TODAY = date(2026, 11, 27)
"""A Friday."""
TOMORROW, NEXT_WEEK, DECEMBER = ("2026-11-28",) * 2, ("2026-11-30", "2026-12-06"), ("2026-12-01", "2026-12-31")


@for_each_row(
    ("question", "days"),
    [
        ("What is coming up next week?", NEXT_WEEK),
        ("What is on on Tuesday next week?", ("2026-12-01",) * 2),
        ("Was steht nächste Woche Dienstag an?", ("2026-12-01",) * 2),
        ("Qu'est-ce qui est prévu mardi de la semaine prochaine ?", ("2026-12-01",) * 2),
        ("下周二有什么安排？", ("2026-12-01",) * 2),
        ("周二有什么安排？", ("2026-12-01",) * 2),
        ("十二月一日有什么安排？", ("2026-12-01",) * 2),
        ("来週の火曜日の予定は？", ("2026-12-01",) * 2),
        ("下下周一有什么安排？", ("2026-12-07", "2026-12-13")),
        ("下周日程是什么？", NEXT_WEEK),
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
        ("What is on 2026-12-12?", ("2026-12-12",) * 2),
        ("Impegni di dicembre", DECEMBER),
        ("O que temos marcado para dezembro?", DECEMBER),
        ("Was steht im Dezember an?", DECEMBER),
        ("Какие встречи 3 декабря?", ("2026-12-03",) * 2),
        ("Do I have any appointments tomorrow?", TOMORROW),
        ("Was steht nächste Woche an?", NEXT_WEEK),
        ("Habe ich morgen Termine?", TOMORROW),
        ("Am I free tomorrow?", TOMORROW),
        ("Bin ich am 12. Dezember frei?", ("2026-12-12",) * 2),
        ("Je suis libre le 12 décembre ?", ("2026-12-12",) * 2),
        ("¿Estoy libre el 12 de diciembre?", ("2026-12-12",) * 2),
        ("Я свободен 12 декабря?", ("2026-12-12",) * 2),
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
        ("What is planned before 3 December?", None),
        ("What is planned from 3 December on?", None),
        ("Who may be there?", None),
        ("Who is December?", None),
        ("What do we have in December and January?", None),
        ("What did Tom plan for next week?", None),
        ("Is the market in the morning?", None),
        ("What is on 9999999 days from now?", None),
        ("And then? " * 20 + "What is on next week?", None),
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
    assert [tuple(map(str, found)) for found in days_asked_for(question, TODAY)] == ([days] if days else [])


LAST_WEEK, MARCH, YESTERDAY = ("2026-11-16", "2026-11-22"), ("2026-03-01", "2026-03-31"), ("2026-11-26",) * 2
TUESDAY, WEEKEND = ("2026-11-24",) * 2, ("2026-11-21", "2026-11-22")


@for_each_row(
    ("question", "days"),
    [
        ("What happened last week?", [LAST_WEEK]),
        ("What did we do yesterday?", [YESTERDAY]),
        ("What did I do today?", [("2026-11-27",) * 2]),
        ("What happened this month?", [("2026-11-01", "2026-11-30")]),
        ("What did we do in the past two weeks?", [("2026-11-13", "2026-11-27")]),
        ("What happened over the last few days?", [("2026-11-20", "2026-11-27")]),
        ("What happened since last week?", [("2026-11-16", "2026-11-27")]),
        ("What happened since Monday?", [("2026-11-23", "2026-11-27")]),
        ("What did we do on Monday?", [("2026-11-23",) * 2]),
        ("What happened last Friday?", [("2026-11-20",) * 2]),
        ("What happened in March?", [MARCH]),
        ("What happened last March?", [MARCH]),
        ("What happened in December?", [("2025-12-01", "2025-12-31")]),
        ("What happened in November?", [("2026-11-01", "2026-11-30")]),
        ("What happened in March 2025?", [("2025-03-01", "2025-03-31")]),
        ("What do we have in June?", [("2026-06-01", "2026-06-30")]),
        ("What happened on 12 March?", [("2026-03-12",) * 2]),
        ("What do we have on 12 December?", [("2026-12-12",) * 2, ("2025-12-12",) * 2]),
        ("What did we do on 10 December?", [("2025-12-10",) * 2]),
        ("What do we have on 12 November?", [("2026-11-12",) * 2]),
        ("What happened since 3 March?", [("2026-03-03", "2026-11-27")]),
        ("Was haben wir gestern gemacht?", [YESTERDAY]),
        ("Was ist letzte Woche passiert?", [LAST_WEEK]),
        ("Was war im Dezember?", [("2025-12-01", "2025-12-31")]),
        ("Was ist am 12. März passiert?", [("2026-03-12",) * 2]),
        ("Was haben wir am Montag gemacht?", [("2026-11-23",) * 2]),
        ("Was ist seit Montag passiert?", [("2026-11-23", "2026-11-27")]),
        ("Was haben wir in den letzten drei Tagen gemacht?", [("2026-11-24", "2026-11-27")]),
        ("Qu'est-ce qu'on a fait hier ?", [YESTERDAY]),
        ("Que s'est-il passé la semaine dernière ?", [LAST_WEEK]),
        ("Que s'est-il passé en mars ?", [MARCH]),
        ("¿Qué pasó la semana pasada?", [LAST_WEEK]),
        ("¿Qué hicimos en marzo?", [MARCH]),
        ("Che cosa abbiamo fatto ieri?", [YESTERDAY]),
        ("Cosa è successo la settimana scorsa?", [LAST_WEEK]),
        ("O que fizemos ontem?", [YESTERDAY]),
        ("O que aconteceu em março?", [MARCH]),
        ("Wat hebben we gisteren gedaan?", [YESTERDAY]),
        ("Wat is er vorige week gebeurd?", [LAST_WEEK]),
        ("Что мы делали вчера?", [YESTERDAY]),
        ("Что было в марте?", [MARCH]),
        ("昨日は何をした？", [YESTERDAY]),
        ("先週何があった？", [LAST_WEEK]),
        ("昨天我们做了什么？", [YESTERDAY]),
        ("上周发生了什么？", [LAST_WEEK]),
        ("어제 뭐 했어?", [YESTERDAY]),
        ("지난주에 무슨 일이 있었어?", [LAST_WEEK]),
        ("ماذا فعلنا أمس؟", [YESTERDAY]),
        ("ماذا حدث الأسبوع الماضي؟", [LAST_WEEK]),
        ("What happened on Tuesday?", [TUESDAY]),
        ("Que s'est-il passé mardi ?", [TUESDAY]),
        ("¿Qué pasó el martes?", [TUESDAY]),
        ("Was ist am Dienstag?", [TUESDAY, ("2026-12-01",) * 2]),
        ("¿Qué tengo el martes?", [TUESDAY, ("2026-12-01",) * 2]),
        ("What is on Saturday?", [("2026-11-28",) * 2, ("2026-11-21",) * 2]),
        ("¿Qué tenemos el jueves que viene?", [("2026-12-03",) * 2]),
        ("Qu'est-ce qu'on a lundi prochain ?", [("2026-11-30",) * 2]),
        ("What is on next Friday?", [("2026-12-04",) * 2]),
        ("¿Qué tengo pasado mañana?", [("2026-11-29",) * 2]),
        ("Was steht übermorgen an?", [("2026-11-29",) * 2]),
        ("12月の予定は？", [("2026-12-01", "2026-12-31")]),
        ("¿Qué hay en diciembre?", [("2025-12-01", "2025-12-31"), ("2026-12-01", "2026-12-31")]),
        ("¿Qué ha pasado desde el lunes?", [("2026-11-23", "2026-11-27")]),
        ("¿Qué hemos hecho hoy?", [("2026-11-27",) * 2]),
        ("¿Qué hicimos en los ultimos diez días?", [("2026-11-17", "2026-11-27")]),
        ("What happened between 16 and 18 November?", [("2026-11-16", "2026-11-18")]),
        ("Was ist vom 16. bis 18. November passiert?", [("2026-11-16", "2026-11-18")]),
        ("What did we do over the weekend?", [WEEKEND]),
        ("What happened last weekend?", [WEEKEND]),
        ("Was haben wir am Wochenende gemacht?", [WEEKEND]),
        ("¿Qué hicimos el fin de semana pasado?", [WEEKEND]),
        ("¿Qué hicimos el finde?", [WEEKEND]),
        ("Qu'est-ce qu'on a fait le week-end dernier ?", [WEEKEND]),
        ("先週末は何をした？", [WEEKEND]),
        ("What is planned for the weekend?", [("2026-11-28", "2026-11-29")]),
        ("What is planned for this month?", [("2026-11-27", "2026-11-30")]),
        ("What did Ada do last week?", []),
        ("What went wrong last Friday?", []),
        ("What happened before 3 March?", []),
        ("What happened until March?", []),
        ("What did April say?", []),
        ("May I?", []),
        ("Who may be there?", []),
        ("Which port does staging use today?", []),
    ],
)
def test_days_gone_by_are_read_where_nothing_else_is_asked(question: str, days: list[tuple[str, str]]) -> None:
    assert [tuple(map(str, found)) for found in days_asked_for(question, TODAY)] == days


IN_TWO_WEEKS, WEEK_AFTER_NEXT = ("2026-12-08", "2026-12-14"), ("2026-12-07", "2026-12-13")


@pytest.mark.parametrize(
    ("questions", "days"),
    [
        (
            (
                "What do I have in two weeks?",
                "Do we have any appointments in two weeks' time?",
                "Was steht in zwei Wochen an?",
                "Qu'est-ce qui est prévu dans deux semaines ?",
                "¿Qué hay dentro de dos semanas?",
                "Cosa c'è tra due settimane?",
                "O que temos daqui a duas semanas?",
                "Wat staat er over twee weken op de agenda?",
                "Что запланировано через две недели?",
                "2週間後の予定は？",
                "两周后有什么安排？",
                "2주 뒤 일정은?",
            ),
            [IN_TWO_WEEKS],
        ),
        (
            (
                "What's happening the week after next?",
                "Was steht übernächste Woche an?",
                "再来週の予定は？",
                "下下周有什么安排？",
                "다다음 주 일정이 뭐야?",
            ),
            [WEEK_AFTER_NEXT],
        ),
        (("What's on in 10 days?", "¿Qué tengo en diez días?"), [("2026-12-07",) * 2]),
        (("What is planned in a month?", "Welche Termine habe ich in einem Monat?"), [("2026-12-01", "2026-12-31")]),
        (("What did we do in two weeks?", "Was haben wir in zwei Wochen gemacht?"), []),
        (("Was stand im Oktober an?",), [("2026-10-01", "2026-10-31")]),
        (("两天前我们做了什么？",), [("2026-11-25",) * 2]),
    ],
    ids=str,
)
def test_days_ahead_are_counted_from_today(questions: tuple[str, ...], days: list[tuple[str, str]]) -> None:
    for question in questions:
        assert [tuple(map(str, found)) for found in days_asked_for(question, TODAY)] == days, question


TO_COME = ("2026-11-27", "9999-12-31")


@pytest.mark.parametrize(
    ("questions", "days"),
    [
        (
            (
                "What appointments are coming up?",
                "What are my next appointments?",
                "When is my next appointment?",
                "What's on my calendar?",
                "What do I have planned?",
                "Was sind meine nächsten Termine?",
                "Was ist geplant?",
                "Quels sont mes prochains rendez-vous ?",
                "¿Cuáles son mis próximas citas?",
                "Quali sono i prossimi appuntamenti?",
                "Quais são os próximos compromissos?",
                "Какие встречи предстоят?",
                "これからの予定は？",
            ),
            [TO_COME],
        ),
        (("What deadlines are coming up?", "What is due?", "What had I planned?", "Where is the next event held?"), []),
        (("What happened in 2025?", "Was war 2025?", "¿Qué pasó en 2025?"), [("2025-01-01", "2025-12-31")]),
        (("What happened since 2025?",), [("2025-01-01", "2026-11-27")]),
        (("What is planned since 2027?",), [("2027-01-01", "2027-12-31")]),
        (("What happened before 2025?", "What did Ada do in 2025?", "What happened in 2024 and 2025?"), []),
        (("What happened this year?", "¿Qué pasó este año?", "今年何があった？"), [("2026-01-01", "2026-12-31")]),
        (("What is planned next year?", "Was steht nächstes Jahr an?"), [("2027-01-01", "2027-12-31")]),
        (("What's on tonight?", "What happened this morning?", "Cosa c'è stasera?"), [("2026-11-27",) * 2]),
    ],
    ids=str,
)
def test_all_that_is_to_come_and_whole_years(questions: tuple[str, ...], days: list[tuple[str, str]]) -> None:
    for question in questions:
        assert [tuple(map(str, found)) for found in days_asked_for(question, TODAY)] == days, question


def test_what_took_two_weeks_is_of_no_named_day() -> None:
    assert days_named("How many orders came in in two weeks?", TODAY) is None


def test_more_weeks_than_a_calendar_has_are_cut() -> None:
    assert days_asked_for("What is on in the next 999 weeks?", TODAY)
    assert not days_asked_for("What is on in the next 999 weeks?", date(9999, 12, 30))


@pytest.mark.parametrize(
    "question",
    [
        "Wer wohnt hier?",
        "Wat doen we hier?",
        "Who is Morgen?",
        "Where do I live today?",
        "What is my name today?",
        "¿Qué sabes de Julio?",
        "What do you know of May?",
        "Dove vive Sabato?",
        "¿Dónde vive Domingo?",
        "What happened before last week?",
        "O que há na feira?",
        "How was it?",
    ],
)
def test_what_only_looks_like_a_question_for_days_is_none(question: str) -> None:
    assert days_asked_for(question, TODAY) == ()


@for_each_row(
    ("question", "days"),
    [
        ("What must be done on Monday?", [("2026-11-23",) * 2, ("2026-11-30",) * 2]),
        ("O que fizemos na segunda-feira?", [("2026-11-23",) * 2]),
        ("What did we do at the weekend?", [WEEKEND]),
    ],
)
def test_a_participle_alone_tells_of_no_past(question: str, days: list[tuple[str, str]]) -> None:
    assert sorted(tuple(map(str, found)) for found in days_asked_for(question, TODAY)) == days


def test_a_day_that_a_year_has_not_is_the_one_before() -> None:
    assert days_asked_for("What is planned for 29 February?", date(2027, 11, 28)) == ((date(2028, 2, 29),) * 2,)
    assert days_asked_for("What happened on 29 February?", date(2027, 11, 28)) == ((date(2027, 2, 28),) * 2,)


@for_each_row(
    ("question", "days"),
    [
        ("What did Ben fix last week?", LAST_WEEK),
        ("What did Ben do on Tuesday?", TUESDAY),
        ("¿Qué compró Lucía ayer?", YESTERDAY),
        ("Is the gym open on Monday?", None),
        ("Which port does staging use today?", None),
        ("What did Caroline do in May 2023?", None),
        ("Who wrote the parser?", None),
    ],
)
def test_days_are_named_beside_what_else_is_asked(question: str, days: tuple[str, str] | None) -> None:
    found = days_named(question, TODAY)
    assert (found and tuple(map(str, found))) == days
