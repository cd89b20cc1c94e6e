"""spec L1, step 5."""

from __future__ import annotations

import pytest

from madeleine.memory.model import CATEGORIES, Category
from madeleine.memory.rules.storing.routing import route
from madeleine.memory.text.reading import Reading


@pytest.mark.parametrize("hint", CATEGORIES)
def test_a_hint_wins_over_every_rule(hint: Category) -> None:
    assert route(Reading("I prefer tea right now. Tea is hot."), hint) == hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I prefer answers without preamble.", "procedural"),
        ("Right now I prefer tea.", "procedural"),
        ("Right now we are fixing the build.", "working"),
        ("In this session we only look at the logs.", "working"),
        ("今すぐ直している。", "working"),
        ("User is a backend engineer specializing in Python and PostgreSQL.", "semantic"),
        ("The office of the firm has two floors.", "semantic"),
        ("Berlin ist die Hauptstadt von Deutschland.", "semantic"),
        ("東京は日本の首都です。", "semantic"),
        ("北京是中国的首都。", "semantic"),
        ("Discussed database migration from MySQL to PostgreSQL.", "episodic"),
        ("We went to the lake and swam.", "episodic"),
        ("Yesterday the office was closed.", "episodic"),
        ("I am tired.", "episodic"),
        ("What is the name of the dog?", "episodic"),
        ("The lake is cold. We swam. Then we slept.", "episodic"),
        ("The lake is cold. The water has no salt. We swam.", "semantic"),
        ("…", "episodic"),
    ],
)
def test_a_text_goes_where_the_first_rule_that_holds_sends_it(text: str, expected: Category) -> None:
    assert route(Reading(text)) == expected
