"""ruling 14: a proposal rests on structure: the same subject, another value."""

from __future__ import annotations

import math

import pytest

from madeleine.memory.rules.storing.supersession import (
    Statement,
    could_supersede,
    rarity_of_word,
    supersession_score,
)

RARE, COMMON = 0.8, 0.2


def score(new: str, old: str, *, cosine: float = 0.6, rarity: float = RARE) -> float:
    after, before = Statement(new), Statement(old)
    if not could_supersede(after, before):
        return -1.0
    return supersession_score(after, before, cosine=cosine, rarity=dict.fromkeys(before.content, rarity), nearest=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("storefront-web uses npm; run npm ci before the tests.", "Switched storefront-web from npm to pnpm."),
        ("The ledger API listens on 3000 locally.", "Port clash with Grafana: the ledger API is at localhost:3417."),
        ("Lydia wohnt in Leipzig.", "Lydia ist nach Dresden umgezogen."),
    ],
)
def test_the_same_subject_with_another_value_may_supersede(old: str, new: str) -> None:
    assert score(new, old) > 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("My wife's mobile number is 07700 900311.", "My father-in-law's mobile number is 07700 900648."),
        ("Our tortoise is called Methuselah.", "Our budgie is called Captain Blue."),
        ("The user lives in Leith.", "Does the user still live in Leith?"),
        ("The sauna is open on Fridays.", "Ada planted tomatoes."),
    ],
)
def test_look_alikes_questions_and_strangers_may_not(old: str, new: str) -> None:
    assert score(new, old) < 0


def test_to_share_only_common_words_is_not_to_speak_of_the_same() -> None:
    old, new = "The user drives a Volvo to work.", "The user walks to work with a dog now."
    assert score(new, old, rarity=COMMON, cosine=0.45) < 0


def rarity_among(memories: int, *, holders: int) -> float:
    idf = [math.log((memories + 1) / (holding + 0.5)) for holding in (holders, 0)]
    return rarity_of_word(*idf)


def test_a_word_of_one_memory_is_rare_in_a_store_of_any_size() -> None:
    rarities = [rarity_among(memories, holders=1) for memories in (1, 2, 5, 20, 100, 600, 5_000)]
    assert min(rarities) > 0.75
    assert rarity_among(5, holders=4) < rarity_among(5, holders=2) < rarity_among(5, holders=1)


def test_a_name_alone_is_not_what_two_memories_speak_of() -> None:
    lives, moved = "Anna lives in Lyon.", "Anna moved to Bordeaux."
    assert score(moved, lives, cosine=0.5) - score("Anna has a dog named Rex.", lives, cosine=0.5) > 1
