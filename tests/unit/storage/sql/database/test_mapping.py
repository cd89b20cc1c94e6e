from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from madeleine.storage.sql.database.mapping import microseconds_from_moment, moment_from_microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_comes_back_to_the_microsecond(moment: datetime) -> None:
    assert moment_from_microseconds(microseconds_from_moment(moment)) == moment


def test_moments_keep_their_order_before_1970() -> None:
    assert microseconds_from_moment(datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)) == -1
