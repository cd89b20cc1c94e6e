"""What is drawn from a text, and what is not (spec O14)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.graph.extraction import extract_entities_and_relations_by_rules
from madeleine.memory.graph.values import MAX_ENTITY_CHARS, entity_key
from madeleine.memory.model import DatedAction, Scene
from tests.contracts.ledger.ledger_values import memory
from tests.rows import for_each_row

RELATIONS: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("Ben Okri works for Carla Rossi.", [("Ben Okri", "works for", "Carla Rossi")]),
    ("Ada's sister Lena moved to Bern.", [("Ada", "sister", "Lena"), ("Lena", "moved to", "Bern")]),
    (
        "Yesterday Tom lives in Bern and works for Lindt.",
        [("Tom", "lives in", "Bern"), ("Tom", "works for", "Lindt")],
    ),
    ("We know that Tom is the brother of Lena.", [("Tom", "is the brother of", "Lena")]),
    ("Then Tom called Lena. Bern is far from Rome.", [("Tom", "called", "Lena")]),
    # Nothing is related by a list, a negation, a question, punctuation, function words alone or a long way.
    ("We saw Tom and Lena.", []),
    ("We heard that Tom does not work for Lindt.", []),
    ("Does she think that Tom works for Lindt?", []),
    ("We met Tom, who works, in Bern.", []),
    ("We met Tom in Bern.", []),
    ("We met Tom after a very long and quite tiring journey to Bern.", []),
    ("The lamp is broken.", []),
]


@for_each_row(("text", "expected"), RELATIONS)
def test_relations_are_drawn_from_words_between_names(text: str, expected: list[tuple[str, str, str]]) -> None:
    drawn = extract_entities_and_relations_by_rules(memory(text))
    assert [(one.subject, one.relation, one.object) for one in drawn.relations] == expected


def test_the_scene_and_the_names_are_mentioned_each_once() -> None:
    scene = Scene(
        action="mia: I met Ben Okri and BEN OKRI at noon. Mia laughed.",
        actors=("Mia Berger",),
        when=("2026-03-01T12:00", DatedAction("2026-04", "again"), "2026-01-01/2026-02-01", "some day"),
        setting="the harbour",
        dialogue=("Lena is late",),
    )
    drawn = extract_entities_and_relations_by_rules(memory(scene=scene, themes=("friends", "Friends")), known={"lena"})
    assert [(mention.name, mention.kind) for mention in drawn.mentions] == [
        ("Mia Berger", "actor"),
        ("the harbour", "place"),
        ("friends", "theme"),
        ("2026-03-01", "date"),
        ("2026-04", "date"),
        ("Ben Okri", "name"),
        ("Lena", "name"),
    ]


@given(st.text(max_size=200), st.lists(st.text(max_size=150), max_size=3))
def test_any_text_is_drawn_within_bounds_and_the_same_each_time(text: str, actors: list[str]) -> None:
    told = memory(number=1, scene=Scene(action=text or "x", actors=tuple(actors)))
    drawn = extract_entities_and_relations_by_rules(told)
    assert drawn == extract_entities_and_relations_by_rules(told)
    keys = [mention.key for mention in drawn.mentions]
    assert len(keys) == len(set(keys))
    assert all(1 < len(mention.name) <= MAX_ENTITY_CHARS for mention in drawn.mentions)
    assert all(entity_key(one.subject) != entity_key(one.object) for one in drawn.relations)
