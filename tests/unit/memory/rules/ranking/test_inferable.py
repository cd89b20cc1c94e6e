"""spec O12, the non-inferable filter."""

from __future__ import annotations

import pytest

from madeleine.memory.recall.selection import MISSING_NON_INFERABLE_THEME_ADVICE, has_non_inferable_theme


@pytest.mark.parametrize(
    ("themes", "is_one"),
    [((), False), (("design",), False), (("a", "Non-Inferable"), True), (("inferable", "non-inferable-ish"), False)],
)
def test_a_theme_marks_what_nobody_can_find_out(themes: tuple[str, ...], is_one: bool) -> None:
    assert has_non_inferable_theme(themes) is is_one


def test_the_advice_names_the_theme_and_what_to_do() -> None:
    assert "'non-inferable'" in MISSING_NON_INFERABLE_THEME_ADVICE
    assert "update_memory" in MISSING_NON_INFERABLE_THEME_ADVICE
