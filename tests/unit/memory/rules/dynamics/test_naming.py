"""ruling 4: a new sub-cluster is named after its commonest themes, else its most telling words."""

from __future__ import annotations

from madeleine.memory.model import Memory
from madeleine.memory.rules.dynamics.naming import (
    cluster_name_from_memories,
    cluster_name_words_of_memory,
    memory_counts_of_cluster_name_words,
)
from tests.doubles import a_memory
from tests.rows import for_each_row


def themed(*themes: tuple[str, ...]) -> list[Memory]:
    return [a_memory(f"scene {i}", themes=own) for i, own in enumerate(themes)]


@for_each_row(
    ("themes", "name"),
    [
        ([("food",), ("food",), ("food",)], "food"),
        ([("food", "Rome"), ("food", "Rome"), ("food",)], "food, Rome"),
        ([("Rome", "food", "art"), ("Rome", "food", "art"), ("Rome", "food")], "Rome, food"),
        ([("food",), ("food",), (), ()], "food"),
    ],
)
def test_a_group_is_named_after_themes_that_half_of_it_shares(themes: list[tuple[str, ...]], name: str) -> None:
    """ruling 4"""
    assert cluster_name_from_memories(themed(*themes), {}) == name


def test_a_theme_that_one_memory_repeats_counts_once() -> None:
    """ruling 4"""
    memories = [
        a_memory("ramen dinner", themes=("food", "food")), a_memory("ramen lunch"), a_memory("ramen supper")
    ]  # fmt: skip
    assert cluster_name_from_memories(memories, {"ramen": 1.0}) == "ramen"


def test_without_common_themes_the_most_telling_words_name_it() -> None:
    """ruling 17: count × (IDF + ln share): ramen 3 × 1.0, broth 2 × (4.0 - 0.4), kitchen 2 × (2.0 - 0.4)."""
    memories = [a_memory("Ramen with broth"), a_memory("ramen, broth, kitchen"), a_memory("The kitchen and ramen")]
    assert cluster_name_from_memories(memories, {"ramen": 1.0, "broth": 4.0, "kitchen": 2.0}) == "broth, kitchen, ramen"


def test_without_common_words_the_first_action_names_it() -> None:
    """ruling 4"""
    assert (
        cluster_name_from_memories([a_memory("Saw\n a heron"), a_memory("Ate ramen"), a_memory("Slept")], {})
        == "Saw a heron"
    )


@for_each_row(
    "memories",
    [
        [a_memory("x" * 500)],
        themed(("t" * 200, "u" * 200), ("t" * 200, "u" * 200)),
        [a_memory("w" * 100), a_memory("w" * 100)],
    ],
)
def test_a_name_has_at_most_sixty_characters(memories: list[Memory]) -> None:
    """ruling 4"""
    assert len(cluster_name_from_memories(memories, {})) == 60


def test_actors_and_function_words_and_short_words_name_nothing() -> None:
    """ruling 4"""
    memory = a_memory("Hashi and I don't go to the bar at 10", actors=("Hashi Tanaka",))
    assert cluster_name_words_of_memory(memory) == {"bar"}


def test_a_word_is_common_if_two_memories_hold_it() -> None:
    """ruling 4"""
    counts = memory_counts_of_cluster_name_words([a_memory("ramen ramen soup"), a_memory("Ramen"), a_memory("noodles")])
    assert counts == {"ramen": 2}


def test_a_rare_word_of_few_does_not_name_what_most_are_about() -> None:
    """ruling 17: "href" is in two pages of ten, "portfolio" in eight, and elsewhere, too."""
    memories = [a_memory(f"The portfolio, {'abcdefgh'[i] * 3}") for i in range(6)]
    memories += [a_memory(f"The portfolio with an href, {'xy'[i] * 3}") for i in range(2)]
    memories += [a_memory("Something else"), a_memory("Another thing")]
    assert cluster_name_from_memories(memories, {"portfolio": 3.0, "href": 6.0}) == "portfolio, href"


def test_words_that_stand_side_by_side_are_a_phrase_and_forms_of_one_word_are_one() -> None:
    """ruling 17: half of those that hold "statement" hold "personal statement"."""
    memories = [
        a_memory("She wrote her personal statement, and hiked"),
        a_memory("The Personal Statement took a hike of an hour"),
        a_memory("Her statement. Personal things in a Cover-Letter; hiking"),
        a_memory("Another cover letter, another hike"),
    ]
    idf = {"personal": 1.0, "statement": 4.0, "cover": 3.0, "letter": 3.0, "hike": 2.5, "hiked": 2.4, "hiking": 2.3}
    assert cluster_name_from_memories(memories, idf) == "personal statement, cover letter, hike"


def test_those_who_talk_do_not_name_what_they_talk_about() -> None:
    """ruling 17: they address each other."""
    memories = [
        a_memory("Thanks, Calvin! The boat", actors=("Dave",)),
        a_memory("Calvin, that boat?", actors=("Dave",)),
    ]
    memories.append(a_memory("My boat and the garage", actors=("Calvin",)))
    memories.append(a_memory("A garage, Dave", actors=("Calvin",)))
    assert cluster_name_from_memories(memories, {"calvin": 9.0, "boat": 3.0, "garage": 1.0}) == "boat, garage"


def test_code_names_nothing_where_there_is_prose() -> None:
    """ruling 17"""
    pages = [a_memory(f"The portfolio page, {i}:\n```html\n<a href='x'>\n```\nDone") for i in ("top", "bottom")]
    assert cluster_name_from_memories(pages, {"portfolio": 1.0, "href": 5.0, "page": 1.0}) == "portfolio page"
    assert cluster_name_words_of_memory(a_memory("```\nhref charset\n```")) == {"href", "charset"}


def test_a_name_differs_from_those_of_other_clusters_where_a_word_can_tell() -> None:
    """ruling 17"""
    memories = [
        a_memory("wheat flour from Brandt", themes=("prices",)),
        a_memory("Brandt has flour", themes=("prices",)),
    ]
    idf = {"flour": 3.0, "brandt": 2.0}
    assert cluster_name_from_memories(memories, idf) == "prices"
    assert cluster_name_from_memories(memories, idf, {"prices"}) == "prices, flour"
    assert cluster_name_from_memories(memories, idf, {"prices", "prices, flour"}) == "prices, Brandt"
    every_name = {"prices", "prices, flour", "prices, Brandt"}
    assert cluster_name_from_memories(memories, idf, every_name) == "prices"


def test_a_fifth_word_takes_the_place_of_the_fourth_in_a_name_that_is_taken() -> None:
    """ruling 17"""
    memories = [a_memory("eggs milk butter cream yeast"), a_memory("yeast, butter, cream, milk, eggs")]
    idf = {"eggs": 5.0, "milk": 4.0, "butter": 3.0, "cream": 2.0, "yeast": 1.0}
    assert cluster_name_from_memories(memories, idf) == "eggs, milk, butter, cream"
    assert cluster_name_from_memories(memories, idf, {"eggs, milk, butter, cream"}) == "eggs, milk, butter, yeast"


def test_names_of_people_and_german_nouns_keep_their_capital() -> None:
    """ruling 17: in its own language."""
    memories = [a_memory("Tooth of Lene is loose"), a_memory("Does Lene brush every tooth?")]
    assert cluster_name_from_memories(memories, {"lene": 2.0, "tooth": 1.0}) == "Lene, tooth"
