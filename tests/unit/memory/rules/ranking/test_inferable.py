"""spec O12, the non-inferable filter."""

from __future__ import annotations

import pytest

from madeleine.memory.recall.selection import NON_INFERABLE_ADVICE, is_non_inferable


@pytest.mark.parametrize(
    ("themes", "is_one"),
    [((), False), (("design",), False), (("a", "Non-Inferable"), True), (("inferable", "non-inferable-ish"), False)],
)
def test_a_theme_marks_what_nobody_can_find_out(themes: tuple[str, ...], is_one: bool) -> None:
    assert is_non_inferable(themes) is is_one


def test_the_advice_names_the_theme_and_what_to_do() -> None:
    assert "'non-inferable'" in NON_INFERABLE_ADVICE
    assert "update_memory" in NON_INFERABLE_ADVICE
