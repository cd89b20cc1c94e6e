"""ruling 14: a proposal rests on structure: the same subject, another value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from madeleine.memory.rules.storing.statements import (
    StatementForComparison,
    differ_in_one_value,
    states_change_in_one_place,
    states_change_of_number,
    tells_of_other_thing_in_one_wording,
    tells_same_numbers_without_change,
)
from madeleine.memory.rules.storing.supersession import WordRarities, supersession_score, word_rarities_from_idf
from tests.rows import for_each_row

RARE = 0.8
STRANGERS = (0.3, 0.25, 0.2)
"""Cosines of the other nearest memories."""


def score(
    new: str, old: str, *, cosine: float = 0.65, others: Sequence[float] = STRANGERS, rarity: float = RARE
) -> float:
    after, before = StatementForComparison(new), StatementForComparison(old)
    guessed = WordRarities(dict.fromkeys(before.content_words_by_stem, rarity), is_known=False)
    return supersession_score(after, before, cosine=cosine, other_cosines=others, rarity=guessed)


@for_each_row(
    ("old", "new"),
    [
        ("storefront-web uses npm; run npm ci before the tests.", "Switched storefront-web from npm to pnpm."),
        ("The ledger API listens on 3000 locally.", "Port clash with Grafana: the ledger API is at localhost:3417."),
        ("Lydia wohnt in Leipzig.", "Lydia ist nach Dresden umgezogen."),
        ("陈静住在杭州。", "陈静搬到苏州了。"),
    ],
)
def test_the_same_subject_with_another_value_may_supersede(old: str, new: str) -> None:
    assert score(new, old) > 0


@for_each_row(
    ("old", "new", "is_of_one_subject"),
    [
        ("The dentist expects us at 9:20.", "Twenty past: no, 20 minutes of gymnastics now.", False),
        ("Staff get 25 days of leave.", "The gym now costs 25 a month.", False),
        ("Ticket 48213 waits for the customer.", "48213 is closed now.", True),
    ],
)
def test_an_amount_that_both_tell_is_no_subject(old: str, new: str, *, is_of_one_subject: bool) -> None:
    assert (score(new, old) > -math.inf) is is_of_one_subject


@for_each_row(
    ("old", "new"),
    [
        ("Stand-up is at 9:15 on Monday.", "Stand-up is at 10:30 on Monday."),
        ("Aunt Carol can eat shellfish.", "Aunt Carol can not eat shellfish."),
        ("The dev server of Heron listens on port 8080.", "To avoid a clash, Heron's dev server listens on 8091."),
        ("Mira leads the on-call rota.", "Joachim leads the on-call rota; Mira is on leave."),
        ("The tender for Bremen is due by 4 May at noon.", "The tender for Bremen is now due by 11 May, noon."),
    ],
)
def test_the_same_words_but_for_one_value_may_supersede(old: str, new: str) -> None:
    assert differ_in_one_value(StatementForComparison(new), StatementForComparison(old))


@for_each_row(
    ("old", "new", "is_change"),
    [
        ("The nightly backup runs at 2:00 with restic.", "The nightly backup now runs at 3:30, to spare us.", True),
        ("Logs are kept for 14 days and searched in Kibana.", "Logs are kept for 30 days from now on.", True),
        ("Meeting room 4 seats 12 people.", "Meeting room 5 now seats 20 people.", False),
        ("Hotline 1 of the city answers in German.", "Hotline 2 of the city now answers in French.", False),
        ("Die Heizung läuft um 6:30 im Bad.", "Die Heizung läuft jetzt um 7:00, weil alle später aufstehen.", True),
        ("The staging API is on port 8080, as ever.", "The billing API is on port 8091, as Ben says.", False),
        ("The bike's tyre pressure: 6 bar at the back.", "The bike's tyre pressure: 5.5 bar at the front.", False),
        ("The school closes at 1:00 on Wednesdays.", "The school closes at 3:30 on Fridays.", False),
        ("Outage of 50 minutes: a certificate had run out.", "Outage of 25 minutes: a disk was full.", False),
        ("Lunch with Ada on 3 May at the harbour.", "Lunch with Ada on 9 May, with soup.", False),
        (
            "Webhooks time out after 5 seconds, with no retry.",
            "Calls now time out after 15 seconds, with no retry.",
            False,
        ),
    ],
)
def test_a_change_of_a_number_is_one_whatever_follows(old: str, new: str, *, is_change: bool) -> None:
    assert states_change_of_number(StatementForComparison(new), StatementForComparison(old)) is is_change


@for_each_row(
    ("old", "new"),
    [
        ("My wife's mobile number is 07700 900311.", "My father-in-law's mobile number is 07700 900648."),
        ("Our tortoise is called Methuselah.", "Our budgie is called Captain Blue."),
        ("Locker code at the swimming pool: 3608.", "Locker code at the station: 7714."),
        ("Julian is allergic to cats.", "Julian is allergic to birch pollen."),
        ("The user lives in Leith.", "Does the user still live in Leith?"),
        ("The sauna is open on Fridays.", "Ada planted tomatoes."),
    ],
)
def test_look_alikes_questions_and_strangers_may_not(old: str, new: str) -> None:
    assert score(new, old) < 0


@for_each_row(
    ("old", "new"),
    [
        ("My wife's mobile number is 07700 900311.", "My father-in-law's mobile number is 07700 900648."),
        ("Ada's phone number is 0171 555 0101.", "The phone number of Ben, Ada's husband, is 0171 555 0102."),
        ("The user wants commit messages in English.", "The user wants chat replies in Welsh."),
        ("Julian is allergic to cats.", "Julian is allergic to birch pollen."),
        ("Coin 0 is in pocket 4 of the first coat.", "Coin 4 is in pocket 0 of the second coat."),
        ("上海仓库的电话是021-5550-7712。", "嘉兴仓库的电话是0573-555-7721。"),
    ],
)
def test_two_of_one_wording_that_may_both_be_true_are_no_change(old: str, new: str) -> None:
    assert not differ_in_one_value(StatementForComparison(new), StatementForComparison(old))


@for_each_row(
    ("old", "new"),
    [
        ("Nadia is allergic to peanuts.", "Nadia is no longer allergic to peanuts."),
        ("The wifi key is bluebird42.", "The wifi key has been changed to heron77."),
        ("The invoice service runs on Java 17.", "The invoice service has been upgraded to Java 21."),
        ("Paula reports to Henrik.", "Paula reports to Amina as of this month."),
        ("Omar takes his coffee black now.", "Omar now takes his coffee with oat milk."),
        ("Der Müll wird dienstags abgeholt.", "Der Müll wird neuerdings donnerstags abgeholt."),
        ("Le code de la porte est 4512.", "Le code de la porte est maintenant 7789."),
        ("O João trabalha no banco.", "O João já não trabalha no banco."),
        ("Кот спит на диване.", "Кот теперь спит на кровати."),
        ("门禁密码是3321。", "门禁密码改成了8876。"),
        ("猫の名前はタマです。", "猫の名前はミケに変わった。"),
        ("지수는 서울에 산다.", "지수는 이제 부산에 산다."),
    ],
)
def test_one_place_and_a_word_of_change_tell_that_it_may_supersede(old: str, new: str) -> None:
    assert states_change_in_one_place(StatementForComparison(new), StatementForComparison(old))


@for_each_row(
    ("old", "new"),
    [
        ("Anna works at the bakery.", "Ben works at the bakery now."),
        ("The phone of Anna is 030 4412.", "The phone of Ben is now 030 9981."),
        ("Sara has stopped smoking.", "Sara has stopped eating sugar."),
        ("I no longer drink alcohol.", "I no longer use Twitter."),
        ("Ella plays the piano.", "Ella plays the flute."),
        ("Der Vertrag mit Meier wurde verlängert.", "Der Vertrag mit Huber wurde gekündigt."),
        ("田中さんは営業部に異動した。", "佐藤さんは人事部に異動した。"),
    ],
)
def test_other_subjects_and_other_events_of_a_kind_may_not(old: str, new: str) -> None:
    assert not states_change_in_one_place(StatementForComparison(new), StatementForComparison(old))


def test_what_a_whole_store_has_in_common_tells_nothing() -> None:
    """ruling 16: all memories of one language, or about one firm, lie near one another."""
    old, new = "Die Reinigung kommt abends um sieben.", "Die Quartalsabrechnung geht am Zehnten an die Reinigung."
    assert score(new, old, cosine=0.6, others=(0.3, 0.3)) > score(new, old, cosine=0.6, others=(0.55, 0.5)) + 2
    assert score(new, old, cosine=0.6, others=(0.55, 0.5)) < 0
    assert score(new, old, cosine=0.6, others=(1.0, 1.0)) < 0
    assert score(new, old, cosine=0.6, others=()) > score(new, old, cosine=0.4, others=())


def rarity_among(memories: int, *, holders: int) -> float:
    idf = [math.log((memories + 1) / (holding + 0.5)) for holding in (holders, 0)]
    return word_rarities_from_idf({"word": idf[0]}, idf[1]).by_stem["word"]


def test_a_word_of_one_memory_is_rare_in_a_store_of_any_size() -> None:
    rarities = [rarity_among(memories, holders=1) for memories in (1, 2, 5, 20, 100, 600, 5_000)]
    assert min(rarities) > 0.75
    assert rarity_among(5, holders=4) < rarity_among(5, holders=2) < rarity_among(5, holders=1)


@for_each_row(
    ("old", "new", "is_of_other"),
    [
        ("Standard warranty on lawnmowers is two years.", "Warranty on lawnmower batteries is one year.", True),
        ("My bike's tyre pressure: 6 bar at the back.", "My bike's tyre pressure: 5.5 bar at the front.", True),
        ("Therapy every Wednesday at 8:30.", "Therapy every Friday at 12:00.", False),
        ("Ivo lives in Zagreb.", "Ivo lives in Split.", False),
        ("Our release manager is Joachim.", "Our release manager is Mira.", False),
        ("Lea eats fish on Fridays.", "Lea no longer eats meat on Fridays.", False),
        ("The hall roof leaks.", "Choir is in the school gym.", False),
    ],
)
def test_two_of_one_wording_that_differ_in_more_than_values_tell_of_two_things(
    old: str, new: str, *, is_of_other: bool
) -> None:
    """ADR 87: the later one is not put first, unless it matches better."""
    assert tells_of_other_thing_in_one_wording(StatementForComparison(new), StatementForComparison(old)) is is_of_other


@for_each_row(
    ("old", "new", "tells_same"),
    [
        ("The phone of the office is 0451 555 0100.", "The office has the phone number 0451 555 0100.", True),
        ("Le code de la porte de la cave est 1883.", "Cave : le code, c'est 1883.", True),
        ("The daily is at 9:30 in Kiel.", "The daily at 9:30 is in Husum from now on.", False),
        ("The gate code is 4471.", "The gate code is 9026.", False),
        ("Ada likes tea.", "Tea is what Ada likes.", False),
    ],
)
def test_the_same_numbers_in_other_words_are_no_change(old: str, new: str, *, tells_same: bool) -> None:
    assert tells_same_numbers_without_change(StatementForComparison(new), StatementForComparison(old)) is tells_same
