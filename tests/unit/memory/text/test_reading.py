"""One reading of a text (rulings 13 and 15): every recogniser in the languages that have a lexicon."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.reading import AnalysedText
from tests.rows import for_each_row


@for_each_row(
    ("text", "languages"),
    [
        ("The lake is cold and we swam.", {"en"}),
        ("Der See ist kalt und wir sind geschwommen.", {"de"}),
        ("Le lac est froid et nous avons nagé.", {"fr"}),
        ("El lago está frío y nosotros nadamos.", {"es"}),
        ("Il lago è freddo e noi abbiamo nuotato.", {"it"}),
        ("O lago estava frio e nós não nadamos.", {"pt"}),
        ("Het meer is koud en wij hebben gezwommen.", {"nl"}),
        ("Озеро холодное, и мы плавали.", {"ru"}),
        ("湖は冷たい。", {"ja"}),
        ("湖水很冷。", {"ja", "zh"}),
        ("호수가 차갑다.", {"ko"}),
        ("البحيرة باردة.", {"ar"}),
        ("It is cold and they went. Aber ich bin nicht mit ihnen gegangen, weil es regnete.", {"en", "de"}),
        ("42!", set()),
    ],
)
def test_the_language_is_told_by_script_and_function_words(text: str, languages: set[str]) -> None:
    assert {one.language for one in AnalysedText(text).lexicons} == languages


@for_each_row(
    ("text", "values"),
    [
        ("three cats and 1,000 euros", {"3", "1000"}),
        ("drei Katzen und zwölf Hunde sind da", {"3", "12"}),
        ("trois chats et quinze chiens sont là", {"3", "15"}),
        ("los tres gatos y once perros", {"3", "11"}),
        ("i tre gatti e undici cani", {"3", "11"}),
        ("os três gatos e onze cães", {"3", "11"}),
        ("de drie katten en twaalf honden", {"3", "12"}),
        ("три кошки и пять собак", {"3", "5"}),
        ("猫が三匹と犬が十二匹", {"3", "12"}),
        ("二〇二六年", {"2026"}),
        ("ثلاثة كتب", {"3"}),
        ("3,5 and 3.5", {"3.5"}),
    ],
)
def test_numbers_in_digits_and_in_words_have_one_value(text: str, values: set[str]) -> None:
    assert values <= AnalysedText(text).canonical_number_texts


@for_each_row(
    "text",
    [
        "twelve eggs", "2 eggs", "٣ كتب", "zwei Eier und das Brot", "les deux amis", "los dos amigos", "i due amici",
        "os dois amigos", "de twee vrienden", "две книги", "三月に行った", "两个人", "두 명이 왔다", "خمسة كتب",
    ],
)  # fmt: skip
def test_numbers_are_seen_in_digits_and_in_words(text: str) -> None:
    assert AnalysedText(text).mentions_number_or_date


@for_each_row(
    "text",
    [
        "on 2026-03-14", "see you tomorrow", "on Friday", "am Dienstag", "le 4 mai", "ayer fuimos", "ci vediamo domani",
        "na sexta-feira", "op 3 maart", "вчера", "昨日は寒かった", "昨天",
        "어제 왔다", "يوم الأحد", "last summer", "in May",
    ],
)  # fmt: skip
def test_dates_are_seen_in_every_language(text: str) -> None:
    assert AnalysedText(text).mentions_date


@for_each_row("text", ["nobody came", "it may rain", "one has to wait", "とても寒い", "wir warten"])
def test_other_words_are_neither_numbers_nor_dates(text: str) -> None:
    assert not AnalysedText(text).mentions_number_or_date


@for_each_row(
    ("text", "denied"),
    [
        ("He is not at home.", "He is at home."),
        ("I can't swim.", "I can swim."),
        ("Ich habe keine Zeit.", "Ich habe Zeit."),
        ("Je ne viens pas.", "Je viens."),
        ("Ella nunca viene.", "Ella siempre viene."),
        ("Lei non viene mai.", "Lei viene sempre."),
        ("Ela não vem.", "Ela vem."),
        ("Zij komt niet.", "Zij komt."),
        ("Она не придёт.", "Она придёт."),
        ("肉を食べません。", "肉を食べます。"),
        ("我不喜欢咖啡。", "我喜欢咖啡。"),
        ("고기를 먹지 않아요.", "고기를 먹어요."),
        ("هو ليس هنا.", "هو هنا."),
    ],
)
def test_a_negation_is_told_from_the_same_without(text: str, denied: str) -> None:
    """ruling 13"""
    assert AnalysedText(text).contains_negation
    assert not AnalysedText(denied).contains_negation


@for_each_row(
    "text",
    [
        "what is the time", "Is it late?", "wer ist da", "où est-il", "¿dónde está", "dove sei", "onde está você",
        "waar is de hond", "где он живёт", "どこですか", "你好吗", "어디 있니", "أين أنت", "何時？",
    ],
)  # fmt: skip
def test_questions_are_known_by_their_mark_or_their_first_word(text: str) -> None:
    assert AnalysedText(text).is_question


@for_each_row("text", ["It is late.", "Es regnet.", "Il pleut.", "今日は寒い。", "Он дома."])
def test_a_statement_is_no_question(text: str) -> None:
    assert not AnalysedText(text).is_question


@for_each_row(
    ("text", "mine"),
    [
        ("I went home", True), ("Ich war zu Hause", True), ("Je suis là", True), ("yo estoy aquí", True),
        ("io sono qui", True), ("eu estou aqui", True), ("ik ben hier", True), ("я дома", True),
        ("She went home", False), ("the US army", False), ("Er war zu Hause", False), ("она дома", False),
    ],
)  # fmt: skip
def test_the_first_person_is_told_from_others(text: str, mine: bool) -> None:
    assert (AnalysedText(text).first_person_degree > 0) is mine


@for_each_row(
    ("text", "names"),
    [
        ("Ann told Bob", {"ann", "bob"}),
        ("We went to Lisbon in June", {"lisbon", "june"}),
        ("The dog barked", set()),
        ("Anna's dog and Dr. Who", {"anna", "dr"}),
        ("mein Hund heißt Rex", {"hund", "rex"}),
    ],
)
def test_possible_names_have_a_capital_and_are_no_function_words(text: str, names: set[str]) -> None:
    assert {word.stem for word in AnalysedText(text).possible_names} == names


@given(st.text())
def test_reading_is_pure_and_words_stand_where_they_say(text: str) -> None:
    one, other = AnalysedText(text), AnalysedText(text)
    assert one == other
    assert "".join(one.sentences) == text
    assert all(one.normalized_text[word.start : word.end] == word.text for word in one.words)
    wording = (
        "contains_negation",
        "states_personal_taste",
        "standing_preference_sentence_share",
        "mentions_date_or_time_span",
    )
    for name in ("words", "numbers", "canonical_number_texts", "possible_names", *wording):
        assert getattr(one, name) == getattr(other, name) == getattr(one, name)
