"""ruling 14: of two things neither takes the other's place, however alike they are told."""

from __future__ import annotations

import math

import pytest

from madeleine.memory.rules.storing.statements import StatementForComparison
from madeleine.memory.rules.storing.subjects import (
    name_different_tickets,
    speak_of_two_things,
    tells_same_of_other_subject,
)
from madeleine.memory.rules.storing.supersession import WordRarities, supersession_score
from tests.rows import for_each_row

TWO_THINGS = [
    ("The code of the safe is 2084", "Code of the gate changed: 7731"),
    ("Der Code für den Tresor ist 2084", "Neuer Code für das Tor: 7731"),
    ("Le code du coffre est 2084", "Le code de la grille a changé : 7731"),
    ("Il codice della cassaforte è 2084", "Il codice del cancello ora è 7731"),
    ("El código de la caja es 2084", "Nuevo código de la verja: 7731"),
    ("O código do cofre é 2084", "O código do portão mudou: 7731"),
    ("De code van de kluis is 2084", "Nieuwe code van het hek: 7731"),
]
ONE_THING = [
    ("The OpenAPI spec is docs/openapi.yaml in the backend.", "API spec has its own repo: acme/contracts."),
    ("The code of the front door is 1111", "The door code was changed to 2222"),
    ("The vet of our cat Mimi is Dr Allen", "Mimi now goes to Dr Beck, the new vet"),
    ("El móvil de la abuela Carmen es el 612", "Nuevo número de la abuela: 699"),
    ("Dolores Ibáñez viene los miércoles", "La señora Ibáñez prefiere los viernes"),
    ("Irina prende 12 euro l'ora", "Irina chiede 14 euro l'ora"),
    ("The standup is at 9", "Standup moved to 10"),
    ("My sister works for Acme.", "My sister now works for Siemens."),
    ("Works for Acme.", "Now works for Siemens."),
    ("Ben is head of sales.", "Ben is now head of marketing."),
    ("王磊的手机是13857112233", "王磊的手机换成13857112244"),
    ("Код от сейфа 2084", "Новый код от сейфа 7731"),
]


@for_each_row(("one", "other"), TWO_THINGS)
def test_the_same_of_something_else_is_of_two_things(one: str, other: str) -> None:
    assert speak_of_two_things(StatementForComparison(one), StatementForComparison(other))
    assert speak_of_two_things(StatementForComparison(other), StatementForComparison(one))


@for_each_row(("one", "other"), ONE_THING)
def test_another_word_for_a_thing_and_another_value_are_of_one(one: str, other: str) -> None:
    assert not speak_of_two_things(StatementForComparison(one), StatementForComparison(other))


@for_each_row(
    ("one", "other", "same"),
    [
        ("Inés es alérgica a los frutos secos.", "Thiago es alérgico a la dipirona.", True),
        ("Anne est allergique aux noix.", "Paul est allergique à la dipyrone.", True),
        ("Anna works at the clinic", "Tom works from home", True),
        ("Tom works at the clinic", "Tom works from home", False),
        ("Anna told Tom to come", "Tom told the neighbours", False),
        ("Lydia wohnt in Leipzig.", "Sie wohnt in Dresden.", False),
        ("13 people came", "15 people came", False),
        ("Anna is allergic to nuts", "Ann is allergic to cats", True),
    ],
)
def test_two_names_before_the_same_words_are_two_subjects(one: str, other: str, *, same: bool) -> None:
    statements = StatementForComparison(one), StatementForComparison(other)
    assert tells_same_of_other_subject(*statements) is same


@for_each_row(
    ("one", "other", "different"),
    [
        ("SILT-41: the loader leaks", "SILT-133: mended by a second lock", True),
        ("SILT-41: the loader leaks", "SILT-41 is closed, see SILT-133", False),
        ("SILT-41: the loader leaks", "The loader leaks no longer", False),
        ("GPT-4 is our model", "We have switched to GPT-5", False),
        ("SILT-41: the loader leaks", "SHA-256: used for tokens", False),
    ],
)
def test_another_ticket_is_another_thing(one: str, other: str, *, different: bool) -> None:
    assert name_different_tickets(StatementForComparison(one), StatementForComparison(other)) is different


@pytest.mark.parametrize("text", ["", "?", "Of the", "of of of", "2026-03-01", "的的的"])
def test_any_text_has_a_subject_or_none(text: str) -> None:
    statement = StatementForComparison(text)
    for other in (statement, StatementForComparison("The code of the safe is 2084")):
        assert not speak_of_two_things(statement, other)
        assert not tells_same_of_other_subject(statement, other)


def test_what_speaks_of_another_thing_is_never_proposed_to_supersede() -> None:
    """Ruling 14: whoever followed that would lose what is still true."""
    known = WordRarities({"code": 1.0, "safe": 1.0, "alérg": 1.0}, is_known=False)
    for old, new in (*TWO_THINGS, ("Inés es alérgica a las nueces.", "Thiago es alérgico a la dipirona.")):
        score = supersession_score(
            StatementForComparison(new), StatementForComparison(old), cosine=0.9, other_cosines=(0.2,), rarity=known
        )
        assert score == -math.inf
