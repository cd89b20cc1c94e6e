"""ruling 14: a proposal rests on structure: the same subject, another value."""

from __future__ import annotations

import pytest

from madeleine.memory.rules.storing.supersession import Statement, could_supersede, supersession_score

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
