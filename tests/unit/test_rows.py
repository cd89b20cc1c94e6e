"""The helper of tests that check a table."""

from __future__ import annotations

import pytest

from tests.rows import for_each_row


def test_every_row_is_checked_and_each_that_fails_is_named() -> None:
    @for_each_row(("one", "other"), [(1, 1), (1, 2), (2, 2), (3, 2)])
    def check(one: int, other: int) -> None:
        assert one == other

    with pytest.raises(ExceptionGroup, match="2 of 4 rows fail") as raised:
        check()
    assert [error.__notes__ for error in raised.value.exceptions] == [["In the row (1, 2)"], ["In the row (3, 2)"]]
