from __future__ import annotations

import pytest

from madeleine.memory.model import MemoryId
from madeleine.memory.rules.ranking.near_equals import (
    MemoryMatchToQuestion,
    MemoryPairRelationFlags,
    are_short_statements_without_questions,
    asks_for_past,
    asks_for_what_was_before,
    asks_for_what_was_first,
    is_answered_only_by_older_statement,
    newer_names_other_bearer_of_first_name,
    newer_replaces_older_score,
    newer_speaks_of_another_thing_than_asked,
    question_mentions_only_older_statement,
    scores_with_newer_versions_before_older,
    scores_with_passages_before_summaries,
)
from madeleine.memory.rules.storing.statements import StatementForComparison
from madeleine.memory.text.reading import AnalysedText
from tests.rows import for_each_row

LYON, PARIS, ROME, SOUP = map(MemoryId, ("lyon", "paris", "rome", "soup"))


def test_what_says_it_anew_comes_first_with_the_same_score_whether_it_matched_or_not() -> None:
    scores = {LYON: 0.8, SOUP: 0.7, ROME: 0.3}
    ordered = scores_with_newer_versions_before_older(scores, {LYON: [PARIS], PARIS: [ROME]}, max_corrected=2)
    assert list(ordered.items()) == [(ROME, 0.8), (PARIS, 0.8), (LYON, 0.8), (SOUP, 0.7)]
    assert scores_with_newer_versions_before_older(scores, {ROME: [PARIS]}, max_corrected=2) == scores
    assert list(scores_with_newer_versions_before_older({PARIS: 0.8, LYON: 0.7}, {LYON: [PARIS]}, max_corrected=2)) == [
        PARIS,
        LYON,
    ]


def test_what_speaks_of_another_thing_is_not_put_first_by_way_of_a_third_either() -> None:
    scores, chain = {LYON: 0.8, ROME: 0.7}, {LYON: [PARIS], PARIS: [ROME]}
    ordered = scores_with_newer_versions_before_older(scores, chain, max_corrected=2, unrelated={(ROME, LYON)})
    assert list(ordered.items()) == [(PARIS, 0.8), (LYON, 0.8), (ROME, 0.7)]


def test_two_signs_of_a_script_without_spaces_name_nothing() -> None:
    question, newer, older = map(
        StatementForComparison,
        ("健身馆的会员怎么收费?", "健身馆取消了年度会员,改成每月 25 元", "健身馆的年度会员价是 199 元"),
    )
    assert not question_mentions_only_older_statement(question, newer, older)
    assert question_mentions_only_older_statement(
        *map(StatementForComparison, ("Theo's dentist", "Dentist for Lotte: 9:50", "Dentist for Theo: 9:20"))
    )


@for_each_row(
    ("question", "newer", "older", "alone"),
    [
        ("Where does Ada live?", "Ada lives in Paris now", "Ada lives in Lyon", False),
        ("Foy's address", "Foy writes from foy@mail.org these days", "Foy's address is foy@shop.ie", False),
        ("the Norwegian papers", "Lea does papers for Turkey", "Lea does papers for Norway", True),
        ("the Turkish papers", "Lea does papers for Turkey", "Lea does papers for Norway", False),
        ("the Northern papers", "Lea does papers for Turkey", "Lea does papers for Norway", False),
        ("the Austrian papers", "Lea does papers for Australia", "Lea does papers for Austria", False),
        ("the shop's payments", "The shop takes cards by Stripe", "The shop takes cards by Paymill", False),
        ("hotfixes", "Features branch off main, merged the same day", "Hotfixes branch off tags, merged at once", True),
    ],
)
def test_of_two_things_told_in_one_form_the_older_one_answers_what_it_alone_names(
    question: str, newer: str, older: str, alone: bool
) -> None:
    assert (
        is_answered_only_by_older_statement(
            StatementForComparison(question), StatementForComparison(newer), StatementForComparison(older)
        )
        is alone
    )


@for_each_row(
    ("question", "newer", "is_other"),
    [
        ("Wie ist die Nummer von Paula Weiß?", "Paula Wiese fährt mit, ihre Nummer ist 909", True),
        ("Wie ist die Nummer von Paula Weiß?", "Paula Weiß hat eine neue Nummer: 909", False),
        ("Wie ist die Nummer von Paula Weiß?", "Paula hat eine neue Nummer: 909", False),
        ("Wie ist Paulas Nummer?", "Paula Wiese fährt mit, ihre Nummer ist 909", False),
    ],
)
def test_two_of_one_first_name_are_two(question: str, newer: str, is_other: bool) -> None:
    assert newer_names_other_bearer_of_first_name(question, newer, "Die Lehrerin Paula Weiß hat 990") is is_other


BOTH_NEAR = (0.6, 0.6)
"""Cosines of the newer and the older one to the question."""
RESEMBLING = MemoryPairRelationFlags(resembles=True)
EVENT = MemoryPairRelationFlags(resembles=True, is_event_after_fact=True)
JOINED = MemoryPairRelationFlags(is_proposed=True, joined_by_proposals=True)


@pytest.mark.parametrize(
    ("question", "newer", "older", "cosines", "link", "is_first"),
    [
        (
            "Ivo's town?",
            "Ivo resigned and rents in Split",
            "Ivo is based in Zagreb",
            BOTH_NEAR,
            MemoryPairRelationFlags(),
            True,
        ),
        (
            "the book club",
            "Book club has moved to the pub",
            "Book club meets at Ingrid's",
            BOTH_NEAR,
            MemoryPairRelationFlags(),
            True,
        ),
        (
            "Ada's phone",
            "Ben's phone number is 171 02",
            "Ada's phone number is 171 01",
            (0.4, 0.7),
            MemoryPairRelationFlags(),
            False,
        ),
        (
            "Who looks after Lund?",
            "Olsen looks after Nord",
            "Petersen looks after Lund",
            (0.4, 0.7),
            MemoryPairRelationFlags(),
            False,
        ),
        (
            "the rate limit",
            "Token lifetime went up",
            "Rate limit: 600 a minute per token",
            (0.1, 0.7),
            MemoryPairRelationFlags(),
            False,
        ),
        (
            "metrics",
            "Dashboards replace Graphite now",
            "Metrics go to Graphite",
            (0.1, 0.5),
            MemoryPairRelationFlags(),
            False,
        ),
        ("metrics", "Dashboards replace Graphite now", "Metrics go to Graphite", (0.1, 0.5), JOINED, True),
        ("Which days has Leo?", "Leo laughed for five days", "Ruth has Leo on Mondays", (0.3, 0.7), RESEMBLING, True),
        ("Which days has Leo?", "Leo laughed for five days", "Ruth has Leo on Mondays", (0.3, 0.7), EVENT, False),
        ("Which days has Leo?", "Ruth has Leo on Fridays now", "Ruth has Leo on Mondays", BOTH_NEAR, EVENT, True),
    ],
)
def test_of_two_that_answer_a_question_the_later_one_comes_first_if_it_tells_of_the_same(
    question: str,
    newer: str,
    older: str,
    *,
    cosines: tuple[float, float],
    link: MemoryPairRelationFlags,
    is_first: bool,
) -> None:
    asked = StatementForComparison(question)

    def match(text: str, cosine: float) -> MemoryMatchToQuestion:
        statement = StatementForComparison(text)
        return MemoryMatchToQuestion(statement, cosine, {word: 0.8 for word in asked.words if word in statement.words})

    new, old = map(match, (newer, older), cosines)
    rarest = 0.8 if new.statement.content_words_by_stem.keys() & old.statement.content_words_by_stem.keys() else 0.0
    only_older = is_answered_only_by_older_statement(asked, new.statement, old.statement)
    score = newer_replaces_older_score(
        new, old, link, rarest_shared_word=rarest, is_answered_only_by_older=only_older, is_read=True
    )
    assert (score > 0) is is_first, score


@for_each_row(("score", "is_first"), [(0.0, False), (0.1, False), (0.3, True)])
def test_what_proposals_join_comes_first_as_far_as_it_matches_as_well(score: float, is_first: bool) -> None:
    """ADR 87: an unlike text that was proposed wrongly stood before what the question names."""
    new, old = map(StatementForComparison, ("Staging host: stg01", "Port of the staging database: 5433"))
    newer = MemoryMatchToQuestion(new, 0.3, {"staging": 0.7}, score=score)
    older = MemoryMatchToQuestion(old, 0.8, {"staging": 0.7, "port": 0.5, "database": 0.7}, score=0.35)
    result = newer_replaces_older_score(
        newer, older, JOINED, rarest_shared_word=0.7, is_answered_only_by_older=False, is_read=True
    )
    assert (result > 0) is is_first, result


@for_each_row(
    ("newer", "score", "is_first"),
    [
        ("The dog is called Nell", 0.0, False),
        ("The cat is now called Tom", 0.0, True),
        ("The dog is called Nell", 0.3, True),
    ],
)
def test_where_the_model_does_not_read_words_or_a_change_must_tell(newer: str, score: float, is_first: bool) -> None:
    new, old = map(StatementForComparison, (newer, "The cat is called Felix"))
    result = newer_replaces_older_score(
        MemoryMatchToQuestion(new, score=score),
        MemoryMatchToQuestion(old, 0.0, {"cat": 0.9}, score=0.35),
        MemoryPairRelationFlags(is_proposed=True, joined_by_proposals=True),
        rarest_shared_word=0.75,
        is_answered_only_by_older=False,
        is_read=False,
    )
    assert (result > 0) is is_first, result


@for_each_row(("score", "is_first"), [(0.22, False), (0.26, True)])
def test_what_is_not_nearly_as_relevant_needs_more_to_come_first(score: float, is_first: bool) -> None:
    """Ruling 24, ADR 109: "Bis wann muss die Quartalsabrechnung bei der KV sein?"."""
    new, old = map(
        StatementForComparison,
        (
            "Noch offen: Widerspruch gegen die Kürzung der KV im vierten Quartal, Frist 18. Juni.",
            "Die Quartalsabrechnung geht spätestens am 10. des Folgemonats an die KV.",
        ),
    )
    result = newer_replaces_older_score(
        MemoryMatchToQuestion(new, 0.57, {"kv": 0.65}, score=score),
        MemoryMatchToQuestion(old, 0.75, {"quartalsabrechnung": 0.76, "kv": 0.65}, score=0.319),
        RESEMBLING,
        rarest_shared_word=0.59,
        is_answered_only_by_older=False,
        is_read=True,
    )
    assert (result > 0) is is_first, result


@for_each_row(
    ("question", "newer", "older", "is_other"),
    [
        ("Как зовут кота?", "Собаку зовут Найда, она чёрная.", "Кота зовут Барсик, он рыжий.", True),
        ("What is the cat called?", "The dog is called Rex", "The cat is called Tom", True),
        ("What are the cat and the dog called?", "The dog is called Rex", "The cat is called Tom", False),
        ("What is it called?", "The dog is called Rex", "The cat is called Tom", False),
        ("What is the cat called?", "The cat is called Felix", "The cat is called Tom", False),
        ("What is the cat called?", "Her dog and cat are called Rex and Kim", "The cat is called Tom", False),
        ("Where is the OpenAPI spec?", "API spec has its own repo", "The OpenAPI spec is docs/openapi.yaml", False),
        ("When is the meeting?", "Sync moved to Friday", "The meeting is on Monday", False),
    ],
)
def test_what_says_the_same_of_another_subject_is_not_put_first(
    question: str, newer: str, older: str, is_other: bool
) -> None:
    statements = map(StatementForComparison, (question, newer, older))
    assert newer_speaks_of_another_thing_than_asked(*statements) is is_other


def test_memories_that_ask_or_tell_much_are_not_compared() -> None:
    fact, question, much = map(
        StatementForComparison, ("Ivo lives in Split", "Does Ivo live in Split?", "Ivo walks on. " * 30)
    )
    assert are_short_statements_without_questions(fact, StatementForComparison("Ivo moved to Trieste"))
    assert not are_short_statements_without_questions(fact, question)
    assert not are_short_statements_without_questions(much, fact)


@for_each_row(
    ("question", "past"),
    [
        ("Where does Ada live?", False),
        ("Where did Ada live before Paris?", True),
        ("Wo hat Ada ursprünglich gewohnt?", True),
        ("Où habitait Ada avant ?", True),
        ("アダは最初どこに住んでいた?", True),
        ("Wo wohnt Ada?", False),
        ("Which fix for the upload test failed?", True),
        ("Which fixes have we tried so far?", True),
        ("Welcher Ansatz hat nicht funktioniert?", True),
        ("Quelle méthode a échoué ?", True),
        ("哪个方法失败了?", True),
        ("Who is paged when a deploy has failed?", False),
        ("Wie oft versucht der Client die Verbindung?", False),
        ("Wat gebeurt er als de back-up mislukt?", False),
        ("Какие файлы не удалять?", False),
    ],
)
def test_a_question_for_the_past_is_told_by_its_wording(question: str, past: bool) -> None:
    assert asks_for_past(AnalysedText(question)) is past


@for_each_row(
    ("question", "before", "first"),
    [
        ("Where did Ivo live before Split?", True, False),
        ("What is to be done before a release?", False, False),
        ("Où habitait Ada avant Lyon ?", True, False),
        ("Wer war vor Mira Release-Managerin?", True, False),
        ("What was the original deadline?", False, True),
        ("Who was our first customer?", False, True),
        ("Who is the first-aider?", False, False),
        ("Who looks at error reports first?", False, False),
        ("Worauf war Iltis ursprünglich aufgesetzt?", False, True),
        ("最初の締め切りはいつでしたか?", False, True),
        ("Dove viveva Ivo prima di Split?", True, False),
        ("Где жил Иво до Сплита?", True, False),
        ("会議の前に何をしますか?", False, False),
        ("发布之前要做什么?", False, False),
        ("Wat was het wachtwoord voor de wifi?", False, False),
        ("До скольки был открыт магазин?", False, False),
        ("Quale era la prima data di consegna?", False, True),
        ("What was his first name?", False, False),
    ],
)
def test_what_was_before_and_what_was_first_are_asked_for_in_the_past(
    question: str, *, before: bool, first: bool
) -> None:
    """ADR 88."""
    query = AnalysedText(question)
    assert (asks_for_what_was_before(query), asks_for_what_was_first(query)) == (before, first)
    assert asks_for_past(query) or not (before or first)


@for_each_row(
    ("scores", "order"),
    [
        ({"summary": 0.6, "other": 0.55, "passage": 0.5, "late": 0.49}, ["passage", "other", "summary", "late"]),
        ({"summary": 0.6, "other": 0.55, "passage": 0.4}, ["summary", "other", "passage"]),
        ({"passage": 0.6, "summary": 0.6, "late": 0.6}, ["passage", "summary", "late"]),
        ({"summary": 0.6, "other": 0.5}, ["summary", "other"]),
    ],
)
def test_a_passage_that_is_nearly_as_relevant_stands_before_its_summary(
    scores: dict[MemoryId, float], order: list[str]
) -> None:
    """ruling 24: they change places, and the scores stay where they were."""
    passages = {MemoryId("summary"): [MemoryId("passage"), MemoryId("late"), MemoryId("unmatched")]}
    result = scores_with_passages_before_summaries(scores, passages)
    assert list(result) == order
    assert list(result.values()) == list(scores.values())
