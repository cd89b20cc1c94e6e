"""spec O12, the non-inferable filter."""

from __future__ import annotations

from madeleine.memory.recall.selection import ADVICE_ON_MEMORY_LACKING_RECALLED_THEME, is_tagged_non_inferable
from tests.rows import for_each_row


@for_each_row(
    ("themes", "is_one"),
    [((), False), (("design",), False), (("a", "Non-Inferable"), True), (("inferable", "non-inferable-ish"), False)],
)
def test_a_theme_marks_what_nobody_can_find_out(themes: tuple[str, ...], is_one: bool) -> None:
    assert is_tagged_non_inferable(themes) is is_one


def test_the_advice_names_the_theme_and_what_to_do() -> None:
    assert "'non-inferable'" in ADVICE_ON_MEMORY_LACKING_RECALLED_THEME
    assert "update_memory" in ADVICE_ON_MEMORY_LACKING_RECALLED_THEME
