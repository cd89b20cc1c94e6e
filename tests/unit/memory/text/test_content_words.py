"""ruling 19: what a question names, in the languages of the lexicons."""

from __future__ import annotations

import pytest

from madeleine.memory.text.content_words import (
    content_words,
    identifier_mask,
    is_id_or_address_word,
    name_index_of_each_word,
    question_without_words,
    verb_or_adjective_mask,
    weight_of_each_word_from_unspaced_length,
)
from tests.rows import for_each_row


@for_each_row(
    ("question", "named"),
    [
        ("Where does Tom live now?", "tom"),
        ("What is Maria's blood type?", "maria blood"),
        ("Wo wohnt Tobias jetzt?", "tobias"),
        ("Kannst du mir bitte sagen, ob Tobias heute da ist?", "tobias"),
        ("Where does Anna May live?", "anna may"),
        ("Wie ist Annas Name?", "annas"),
        ("Where Is The Key To The House", "key house"),
        ("Quelle est l'adresse postale du client Bergeron ?", "adresse postale client bergeron"),
        ("Qu'a-t-elle appris de la correspondance ratée ?", "correspondance ratée"),
        ("Was dürfen Patienten nicht bekommen?", "patienten"),
        ("Dove abita adesso Tommaso?", "tommaso"),
        ("Где теперь живёт Антон?", "антон"),
        ("隼プロジェクトの予算はいくらですか？", "隼プロジェクト 予算"),
        ("玛丽是什么血型？", "玛丽 血型"),
        ("야간 백업은 몇 시에 시작해?", "야간 백업 시에 시작해"),
        ("우리 회의는 언제야?", "회의"),
        ("妈妈和王芳的生日是什么时候？", "妈妈 王芳 生日"),
        ("私のカメラは今どこですか？", "カメラ"),
        ("年会在哪里？", "年会"),
        ("什么时候开会？", "开会"),
        ("周涛在哪里工作？", "周涛 工作"),
        ("费用是多少？", "费用"),
        ("公司用什么邮箱？", "公司 邮箱"),
        ("小明会什么乐器？", "小明 乐器"),
        ("你能用什么药？", "药"),
        ("ผู้ใช้แพ้กุ้ง", "ผู้ใช้แพ้กุ้ง"),
        ("backup size", "backup size"),
        ("What is it?", "what is it"),
        ("", ""),
    ],
)
def test_the_words_that_ask_are_left_out_unless_nothing_else_is_there(question: str, named: str) -> None:
    assert list(content_words(question)) == named.split()


@for_each_row(
    ("question", "names"),
    [
        ("In which city does Alex Kim live?", [0, 1, 1]),
        ("How much RAM does heron-1 have?", [0, 1, 1]),
        ("Quel est le loyer de Camille Duval ?", [0, 1, 1]),
        ("the cello and Tom", [0, 1]),
        ("", []),
    ],
)
def test_the_words_of_a_name_have_one_number(question: str, names: list[int]) -> None:
    assert list(name_index_of_each_word(question, content_words(question))) == names


def test_without_words_the_others_stay() -> None:
    assert question_without_words("Which antibiotic gave Léo a Rash?", ("antibiotic", "rash")) == "Which  gave Léo a ?"


@for_each_row(
    ("words", "information"),
    [
        (("harbour", "12", "maria"), (1, 1, 1)),
        (("清水建設", "業種"), (3**0.5, 1)),
        (("メコン川", "得"), (3**0.5, 1)),
        (("야간", "백업은"), (1, 1)),
        (("2km", "10時間"), (1, 1)),
        ((), ()),
    ],
)
def test_a_run_of_signs_without_spaces_says_more_than_one_word(
    words: tuple[str, ...], information: tuple[float, ...]
) -> None:
    assert weight_of_each_word_from_unspaced_length(words) == pytest.approx(information)


@pytest.mark.parametrize(
    ("words", "are"),
    [
        ("qx7r2m 10.20.4.17 208841 a@b.example wktm2291876 v1.2.3 7f3c2ab rtx4090", True),
        (
            "2026 1.74 10kg 250ml 2nd python3 euro2016 番号2号 31.12.2026 2026-03-01 39.90 o.k 5432 heron",
            False,
        ),
    ],
)
def test_an_identifier_is_told_from_numbers_quantities_and_dates(words: str, are: bool) -> None:
    assert [word for word in words.split() if is_id_or_address_word(word) != are] == []


def test_a_name_in_code_is_an_identifier_as_it_is_written() -> None:
    question = "Does parseOrderLine of PagerDuty call OrderLineParserFactory, PostgreSQL or McDonald?"
    words = content_words(question)
    named = {word for word, is_one in zip(words, identifier_mask(question, words), strict=True) if is_one}
    assert named == {"parseorderline", "orderlineparserfactory"}
    assert identifier_mask("does parseorderline fail", ("parseorderline",)) == (False,)


@for_each_row(
    ("question", "verbs"),
    [
        ("Wie erreiche ich die Ambulanz?", "erreiche"),
        ("Was hat der Herzultraschall ergeben?", "ergeben"),
        ("Wie alt ist Torben?", ""),
        ("Was hat die Vollmacht gekostet?", "gekostet"),
        ("was hat die vollmacht gekostet?", ""),
        ("was ist die blutgruppe von Torben?", ""),
        ("Πού μένει ο Γιάννης;", ""),
        ("What did Tom find?", ""),
        ("Où habite Anne ?", ""),
    ],
)
def test_capitals_tell_verbs_from_nouns_where_a_language_writes_nouns_with_them(question: str, verbs: str) -> None:
    """What stands before "is" is the property that is asked for."""
    words = content_words(question)
    told = zip(words, verb_or_adjective_mask(question, words), strict=True)
    assert [word for word, is_verb in told if is_verb] == verbs.split()
