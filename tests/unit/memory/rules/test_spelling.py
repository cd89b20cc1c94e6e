"""Ruling 19: a typing error in a rare word is forgiven, a part of a joined word is found, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.dictionaries import is_dictionary_word
from madeleine.inference.stems import stem_word_of_language
from madeleine.memory.rules.spelling import spelling_corrections_from_texts, typing_error_count
from madeleine.memory.text.normalization import fold_text
from tests.rows import for_each_row

TEXTS = ("the kubernetes cluster is in frankfurt", "maria likes kubernetes, maria", "port 5432; paste mode", "порядок")


@for_each_row(
    ("written", "meant"),
    [
        ("kubernets", "kubernetes"),
        ("kuberntees", "kubernetes"),
        ("clutser", "cluster"),
        ("frankfrut", "frankfurt"),
        ("порядк", "порядок"),
        ("kubernetes", None),
        ("kuber", None),
        ("ports", None),
        ("mario", None),
        ("54321", None),
        ("haste", None),
        ("clover", None),
    ],
)
def test_a_word_is_respelled_as_the_nearest_one_that_is_known(written: str, meant: str | None) -> None:
    assert spelling_corrections_from_texts([written], TEXTS).get(written) == meant


@for_each_row(
    ("written", "meant"),
    [
        ("arguing", "argued"),
        ("studies", "studying"),
        ("verträge", "vertrag"),
        ("contratos", "contrato"),
        ("carlos", None),
        ("banks", None),
    ],
)
def test_a_word_of_a_list_is_found_in_another_form_of_any_language(written: str, meant: str | None) -> None:
    texts = ("we argued", "she is studying", "der vertrag liegt dort", "o contrato", "carla at the bank", "письмо")
    written = fold_text(written)
    assert spelling_corrections_from_texts([written], texts, stem=stem_word_of_language).get(written) == (
        meant and fold_text(meant)
    )


JOINED = (
    "das pflegeheim haus rosalia",
    "der termin beim zahnarzt, der notar",
    "an der hand war blut",
    "die gruppe wandert",
    "das kostet 620 euro",
    "geheim, ein schwein, das unternehmen",
)


@for_each_row(
    ("written", "query", "meant"),
    [
        ("heim", "In welchem Heim lebt sie?", "pflegeheim"),
        ("zahnarzttermin", "Hat er einen Zahnarzttermin?", "zahnarzt termin"),
        ("gekostet", "Was hat die Vollmacht gekostet?", "kostet"),
        ("blutgruppe", "Welche Blutgruppe hat er?", None),
        ("nehmen", "Was soll der Vater nehmen?", None),
        ("wein", "Welchen Wein trinkt er?", None),
        ("gekostet", "was hat das gekostet?", None),
        ("wohnheim", "In welchem Wohnheim lebt sie?", None),
        ("notar", "Wer ist der Notar?", None),
        ("heim", "Where is the Heim of her mother?", None),
        ("heim", "", None),
    ],
)
def test_where_words_are_joined_to_one_a_word_is_found_by_its_kinds_and_its_parts(
    written: str, query: str, meant: str | None
) -> None:
    """ "geheim" is no kind of "Heim", and a "Pflegeheim" no kind of "Wohnheim"."""
    assert spelling_corrections_from_texts([written], JOINED, query).get(written) == meant


INFLECTED = (
    "en la clinica trabajan raul y nerea, que estudian",
    "vera no toma penicilina; toma agua",
    "hemos plantado un limonero para don tomas",
    "la hija de maria cobra para comer",
    "nous avons pris le parapluie, pas le train",
)


@for_each_row(
    ("written", "query", "meant"),
    [
        ("trabaja", "¿Quién trabaja en la clínica?", "trabajan"),
        ("tomar", "¿Qué no puede tomar Vera?", "toma"),
        ("plantas", "¿Qué plantas hay en la terraza?", "plantado"),
        ("parapluies", "Où sont les parapluies ?", "parapluie"),
        ("pasamos", "¿Dónde pasamos la Navidad?", None),
        ("estudia", "¿Dónde vive Estudia?", None),
        ("hijo", "¿Cómo se llama su hijo?", None),
        ("mario", "¿dónde vive mario?", None),
        ("paro", "¿Cuánto paro cobra?", None),
        ("tomar", "Tomar", None),
        ("trabaja", "Who is trabaja?", None),
        ("trabaja", "", "trabajan"),
    ],
)
def test_a_word_is_found_in_its_other_forms_in_the_language_of_the_question(
    written: str, query: str, meant: str | None
) -> None:
    """ADR 79: "pas" is too short for "pasamos", a son is no daughter, and English forms are in the index."""
    corrections = spelling_corrections_from_texts([written], INFLECTED, query, stem_word_of_language)
    assert corrections.get(written) == meant


DEEDS = ("joanna cleans on mondays", "clean sheets", "clean air", "piotr owns two dogs", "we drove", "it shows")


@for_each_row(
    ("written", "query", "meant"),
    [
        ("cleaner", "Who is the cleaner?", "cleans"),
        ("owner", "Whose number is that of the owner?", "owns"),
        ("owners", "Who are the owners?", "owns"),
        ("cleaner", "Which one is cleaner?", None),
        ("shower", "Where is the shower?", None),
        ("driver", "Who is the driver?", None),
        ("owner", "Who is Owner?", None),
        ("owner", "", None),
        ("owner", "¿Quién es el owner de la casa?", None),
    ],
)
def test_whoever_is_asked_for_is_found_by_what_they_do(written: str, query: str, meant: str | None) -> None:
    """ADR 112: the English stemmer takes "er" off from long words alone."""
    corrections = spelling_corrections_from_texts([written], DEEDS, query, stem_word_of_language)
    assert corrections.get(written) == meant


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_typing_errors_are_a_distance_that_letters_bound(word: str, other: str) -> None:
    errors = typing_error_count(word, other)
    assert errors == typing_error_count(other, word)
    assert abs(len(word) - len(other)) <= errors <= max(len(word), len(other))
    assert (errors == 0) == (word == other)


def test_two_swapped_letters_are_one_error() -> None:
    assert typing_error_count("frankfrut", "frankfurt") == 1


def test_a_word_of_the_language_of_the_question_is_no_typing_error() -> None:
    """ADR 101: "leitet" was searched for as "leidet"."""
    texts = ("wer leidet hier", "der vermietet das haus")
    query = "Wer leitet den Chor, und was sagt der Vermieter?"
    assert spelling_corrections_from_texts(["leitet", "vermieter"], texts, query, is_word=is_dictionary_word) == {}
    found = spelling_corrections_from_texts(["vermeiter"], texts, "Wo wohnt der Vermeiter?", is_word=is_dictionary_word)
    assert found == {"vermeiter": "vermietet"}
