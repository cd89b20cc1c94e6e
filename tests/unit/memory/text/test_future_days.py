"""The days that a text names, and from when on it says that something is true, in the languages of the lexicons."""

from __future__ import annotations

from datetime import date

from madeleine.memory.text.future_days import (
    dates_in_text_as_iso_periods,
    days_to_come_in_text,
    iso_periods_in_text_ranges_as_first_day,
    validity_start_stated_in_text,
)
from tests.rows import for_each_row

TOLD = date(2026, 11, 25)


@for_each_row(
    ("text", "day"),
    [
        ("From January 2027 on the rent is 1040 euros.", "2027-01"),
        ("The fee is 12 euros from 1 March 2027 on.", "2027-03-01"),
        ("Ab dem 1. Januar 2027 kostet die Miete 1040 Euro.", "2027-01-01"),
        ("À partir du 1er janvier 2027, le loyer est de 1040 euros.", "2027-01-01"),
        ("A partir de enero de 2027 el alquiler es de 1040 euros.", "2027-01"),
        ("Da gennaio 2027 l'affitto è di 1040 euro.", "2027-01"),
        ("Vanaf 1 januari 2027 is de huur 1040 euro.", "2027-01-01"),
        ("A partir de janeiro de 2027 o aluguel é de 1040 euros.", "2027-01"),
        ("С 1 января 2027 года аренда стоит 1040 евро.", "2027-01-01"),
        ("家賃は2027年1月1日から1040ユーロになります", "2027-01-01"),
        ("从2027年1月起房租是1040欧元。", "2027-01"),
        ("2027년 1월부터 월세는 1040유로입니다.", "2027-01"),
        ("ابتداء من يناير 2027 الإيجار 1040 يورو", "2027-01"),
        ("From 3 December on the office is closed.", "2026-12-03"),
        ("The rent goes to 1,425 pounds from January.", "2027-01"),
        ("Ab Januar kostet die Pacht 420 Euro.", "2027-01"),
        ("A partir de enero el alquiler es de 900 euros.", "2027-01"),
    ],
)
def test_from_when_on_it_is_true_is_read_in_every_language(text: str, day: str) -> None:
    begin = validity_start_stated_in_text(text, TOLD)
    assert begin is not None
    assert begin.text == day


@for_each_row(
    "text",
    [
        "The trip goes from 3 to 5 May 2027.",
        "We are away from 3 May 2027 to 5 May 2027.",
        "Aurélie part au Japon du 4 au 19 avril 2027.",
        "Vom 4. bis 19. April 2027 ist sie weg.",
        "4月5日から4月8日まで京都",
        "4월 5일부터 8일까지",
        "The rent is 980 euros, from January 2027 on it is 1040.",
        "The rent is 980 and from January 2027 on 1040.",
        "The rent is 980 euros. From January 2027 on it is 1040.",
        "Leni's dentist appointment is on Tuesday, 8 December 2026.",
        "She comes from Lyon.",
        "From December to February the road is closed.",
        "The gym is closed on Sundays from May.",
    ],
)
def test_a_period_and_a_part_of_what_is_told_are_no_beginning(text: str) -> None:
    assert validity_start_stated_in_text(text, TOLD) is None


@for_each_row(
    ("text", "days"),
    [
        ("on Tuesday, 8 December 2026, at 15:30", ["2026-12-08"]),
        ("am 8. Dezember um 15:30", ["2026-12-08"]),
        ("seit dem 3. Oktober", ["2026-10-03"]),
        ("le 3 janvier", ["2027-01-03"]),
        ("valid until May 2027", ["2027-05"]),
        ("away from 3 to 9 February 2027", ["2027-02-03", "2027-02-09"]),
        ("vom 3. bis 9. Februar 2027 verreist", ["2027-02-03", "2027-02-09"]),
        ("from 18 December to 4 January", ["2026-12-18", "2027-01-04"]),
        ("vom 1er au 10 janvier", ["2027-01-01", "2027-01-10"]),
        ("room 12 on 9 February 2027", ["2027-02-09"]),
        ("moved from 8 December to 15 December", ["2026-12-08", "2026-12-15"]),
        ("on 29 February", []),
        ("version 12.4 costs 2027 euros", []),
    ],
)
def test_the_days_that_a_text_names_are_read_to_the_nearest_year(text: str, days: list[str]) -> None:
    assert [day.text for day in dates_in_text_as_iso_periods(text, TOLD)] == days


@for_each_row(
    ("text", "days"),
    [
        ("The portal may come at the end of January, 2027-01-29.", "2027-01-29 2027-01-29"),
        ("The kiosk is closed from 3 to 9 February 2027", "2027-02-03 2027-02-09"),
        ("The office is closed from 24 December to 2 January", "2026-12-24 2027-01-02"),
        ("Das Büro ist vom 24. Dezember bis 2. Januar geschlossen", "2026-12-24 2027-01-02"),
        ("La boutique sera fermée du 1er au 10 janvier", "2027-01-01 2027-01-10"),
        ("Moved from 24 December to 2 January", ""),
        ("Ann comes tomorrow", "2026-11-26 2026-11-26"),
        ("Ann comes on Tuesday next week", "2026-12-01 2026-12-01"),
        ("下周二开会", "2026-12-01 2026-12-01"),
        ("十二月一日开会", "2026-12-01 2026-12-01"),
        ("On 9 December or on 12 December", ""),
        ("We met on 3 May", ""),
        ("Nothing is planned", ""),
    ],
)
def test_a_text_tells_of_one_day_to_come(text: str, days: str) -> None:
    found = days_to_come_in_text(text, TOLD)
    assert " ".join(map(str, found or ())) == days


def test_of_a_period_the_first_day_can_be_asked_for_alone() -> None:
    text = "Jonas is away from 13 to 20 February 2027, and Ada on 1 March 2027."
    assert [day.text for day in iso_periods_in_text_ranges_as_first_day(text, TOLD)] == ["2027-02-13", "2027-03-01"]
    text = "From 28 December until 4 January the office is closed, and on 6 March."
    assert [day.text for day in iso_periods_in_text_ranges_as_first_day(text, TOLD)] == ["2026-12-28", "2027-03-06"]
    moved = "The exam was moved from 28 December to 5 January."
    assert [day.text for day in iso_periods_in_text_ranges_as_first_day(moved, TOLD)] == ["2026-12-28", "2027-01-05"]
