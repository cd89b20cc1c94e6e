from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.normalization import FOLDED_FIELD_SEPARATOR, fold_text
from madeleine.storage.sql.database.memory_rows import fold_and_delimit_theme, fold_and_delimit_themes


@given(st.text())
def test_folding_twice_is_folding_once_and_what_is_folded_can_be_stored(text: str) -> None:
    folded = fold_text(text)
    assert fold_text(folded) == folded
    assert FOLDED_FIELD_SEPARATOR not in folded
    folded.encode()


@given(st.lists(st.text(min_size=1)), st.text(min_size=1))
def test_a_theme_is_found_among_others_exactly_if_it_is_one_of_them(themes: list[str], theme: str) -> None:
    assert (fold_and_delimit_theme(theme) in fold_and_delimit_themes(themes)) == (
        fold_text(theme) in {fold_text(one) for one in themes}
    )
