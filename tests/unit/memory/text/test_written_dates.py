"""Dates within a text become words that a search compares (ADR 42)."""

from datetime import date

from madeleine.memory.text.relative_dates import (
    date_texts_meant_by_relative_words,
    text_with_relative_dates_resolved,
)
from madeleine.memory.text.written_dates import (
    english_month_by_name_in_question,
    text_with_iso_dates,
    text_without_dates,
)
from tests.rows import for_each_row

TODAY = date(2024, 1, 24)
"""A Wednesday."""


@for_each_row(
    ("written", "in_iso"),
    [
        ("am 24.01.2024 um", "am 2024-01-24 um"),
        ("on 2023/09/11, 24/12/2023", "on 2023-09-11, 2023-12-24"),
        ("on 9/11/2023", "on 2023-09-11 2023-11-09"),
        ("am 24. Januar", "am 24 January"),
        ("le 24 janvier 2024", "le 2024-01-24"),
        ("el 24 de enero de 2024", "el 2024-01-24"),
        ("24 января 2024", "2024-01-24"),
        ("On January 24th, 2024", "On 2024-01-24"),
        ("im Jänner 2024", "im January 2024"),
        ("24 يناير 2024", "2024-01-24"),
        ("2024年1月24日に", "2024-01-24 に"),
        ("二〇二四年一月二十四日", "2024-01-24"),
        ("十二月三十一号开会", "31 December 开会"),
        ("十三月一日, 二月河, 十月怀胎", "十三月一日, 二月河, 十月怀胎"),
        ("2024년 1월 24일에", "2024-01-24 에"),
        ("version 3.11.2, 45/99/2020, 31.02.2024, 12:30", "version 3.11.2, 45/99/2020, 31.02.2024, 12:30"),
    ],
)
def test_a_date_has_one_form_in_any_language_and_what_is_none_stays(written: str, in_iso: str) -> None:
    assert text_with_iso_dates(written).strip() == in_iso


@for_each_row(
    ("asked", "meant"),
    [
        ("10 days ago", "2024-01-14"), ("last Tuesday", "2024-01-23"), ("last Wednesday", "2024-01-17"),
        ("the day before yesterday", "2024-01-22"), ("vor zwei Monaten", "November 2023"),
        ("il y a trois jours", "2024-01-21"), ("hace dos días", "2024-01-22"), ("l'anno scorso", "2023"),
        ("na terça-feira passada", "2024-01-23"), ("gisteren", "2024-01-23"), ("два дня назад", "2024-01-22"),
        ("先週の金曜日", "2024-01-19"), ("この前の火曜", "2024-01-23"), ("上周五", "2024-01-19"),
        ("上个星期天", "2024-01-21"), ("지난주 금요일", "2024-01-19"), ("지난 화요일", "2024-01-23"),
        ("三天前", "2024-01-21"), ("3日前", "2024-01-21"), ("어제", "2024-01-23"), ("منذ يومين", "2024-01-22"),
    ],
)  # fmt: skip
def test_what_is_told_from_today_is_a_date(asked: str, meant: str) -> None:
    assert text_with_relative_dates_resolved(asked, TODAY).strip() == meant
    assert date_texts_meant_by_relative_words(asked, TODAY) == (meant,)


def test_a_week_is_its_days_to_a_question_and_nothing_to_a_text() -> None:
    assert text_with_relative_dates_resolved("two weeks ago", TODAY).split() == [
        f"2024-01-{day:02}" for day in range(7, 14)
    ]
    assert date_texts_meant_by_relative_words("two weeks ago", TODAY) == ()


def test_what_a_question_is_about_has_no_dates() -> None:
    question = "What did we eat on 24.01.2024, 3 May, 2024-01-02 and yesterday?"
    assert text_without_dates(question).split() == ["What", "did", "we", "eat", "on", ",", ",", "and", "?"]


@for_each_row(
    ("question", "english"),
    [
        ("Was hat Ada im März gemacht?", {"märz": "march"}),
        ("Qu'est-ce qu'Ada a fait en mai et en aout ?", {"mai": "may", "aout": "august"}),
        ("Что Ада делала в марте?", {"марте": "march"}),
        ("What did Ada do in March?", {}),
        ("Was hat Ada im April gemacht?", {}),
        ("Mars rover", {}),
        ("Why is Mars red and who has been on it?", {}),
    ],
)
def test_a_month_of_a_question_has_its_english_name(question: str, english: dict[str, str]) -> None:
    assert english_month_by_name_in_question(question) == english
