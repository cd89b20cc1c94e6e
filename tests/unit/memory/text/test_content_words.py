"""ruling 19: what a question names, in the languages of the lexicons."""

from __future__ import annotations

import pytest

from madeleine.memory.text.content_words import content_words


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Where does Tom live now?", "tom"),
        ("What is Maria's blood type?", "maria blood"),
        ("Wo wohnt Tobias jetzt?", "tobias"),
        ("Quelle est l'adresse postale du client Bergeron ?", "adresse postale client bergeron"),
        ("Dove abita adesso Tommaso?", "tommaso"),
        ("Где теперь живёт Антон?", "антон"),
        ("隼プロジェクトの予算はいくらですか？", "隼プロジェクト 予算"),
        ("玛丽是什么血型？", "玛丽 血型"),
        ("야간 백업은 몇 시에 시작해?", "야간 백업은 시에 시작해"),
        ("backup size", "backup size"),
        ("What is it?", "what is it"),
        ("", ""),
    ],
)
def test_the_words_that_ask_are_left_out_unless_nothing_else_is_there(question: str, named: str) -> None:
    assert list(content_words(question)) == named.split()
