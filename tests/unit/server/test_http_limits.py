"""How often anybody may ask."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from madeleine.server.http.request_checks import MAX_RATE_LIMIT_BUCKETS, RateLimiter


@given(st.integers(1, 100), st.lists(st.floats(0, 30), min_size=1, max_size=300))
def test_no_more_requests_are_accepted_than_the_bucket_holds_and_regains(per_minute: int, pauses: list[float]) -> None:
    limit, now, taken = RateLimiter(per_minute), 0.0, 0
    for pause in pauses:
        now += pause
        taken += limit.admit_or_wait_seconds("ada", now=now) == 0
    assert taken <= per_minute + (now - pauses[0]) * per_minute / 60 + 1e-6


@given(st.integers(1, 100), st.integers(0, 200))
def test_a_request_after_the_returned_wait_is_accepted(per_minute: int, before: int) -> None:
    limit = RateLimiter(per_minute)
    for _ in range(before):
        limit.admit_or_wait_seconds("ada", now=0)
    wait = limit.admit_or_wait_seconds("ada", now=0)
    assert wait == 0 or limit.admit_or_wait_seconds("ada", now=wait + 1e-6) == 0


def test_each_key_has_a_bucket_of_its_own() -> None:
    limit = RateLimiter(1)
    assert [limit.admit_or_wait_seconds(who, now=0) == 0 for who in ("ada", "bo", "ada", "bo")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_number_of_buckets_is_limited() -> None:
    limit = RateLimiter(1)
    for n in range(MAX_RATE_LIMIT_BUCKETS + 1):
        limit.admit_or_wait_seconds(str(n), now=0)
    assert limit.admit_or_wait_seconds("0", now=0) == 0
    assert limit.admit_or_wait_seconds(str(MAX_RATE_LIMIT_BUCKETS), now=0) > 0
