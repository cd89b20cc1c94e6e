"""Elements of a JSON array, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.moving.sources.json_stream import iterate_json_array

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(st.lists(ANYTHING, max_size=5), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_it_gives_what_json_gives_however_it_is_cut(
    values: list[Any], size: int, indent: int | None, escaped: bool
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=escaped)
    assert list(iterate_json_array(pieces(text, size))) == values


@given(st.dictionaries(st.text(max_size=3), ANYTHING, max_size=3), st.integers(1, 40))
def test_an_object_alone_is_its_own_element(value: dict[str, Any], size: int) -> None:
    assert list(iterate_json_array(pieces(f" {json.dumps(value)}\n", size))) == [value]


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize(
    ("text", "before", "said"),
    [
        ('[{"a": 1}, {"b": 2', 1, "it ends too early"),
        ('[{"a": 1}, {"b": "tw', 1, "it ends too early"),
        ("[1, 2", 2, "it ends too early"),
        ("", 0, "it ends too early"),
        ('[{"a": 1}, {"b": oops, "c": "and a good deal more text behind it"}]', 1, "it is damaged"),
        ("no JSON at all, but a text that goes on for a while", 0, "it is damaged"),
    ],
)
def test_where_it_cannot_be_read_that_is_said_after_what_came_before(
    text: str, before: int, said: str, size: int
) -> None:
    found = iterate_json_array(pieces(text, size))
    for _ in range(before):
        next(found)
    with pytest.raises(ValueError, match=f"^{said}.* after [0-9,]+ characters$"):
        next(found)


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        list(iterate_json_array(["[" + "[" * 200_000]))


def test_damage_is_found_before_the_rest_is_read() -> None:
    def chunks() -> Iterator[str]:
        yield '[{"a": oops' + " " * 100
        raise AssertionError("it was read on")

    with pytest.raises(ValueError, match="damaged"):
        next(iterate_json_array(chunks()))


def test_numbers_of_thousands_of_digits_are_read_past() -> None:
    """Python refuses to read them as integers, and their reason named one of its own settings."""
    digits = "9" * 5_000
    assert list(iterate_json_array([f"[1, {digits}, -{digits}]"])) == [1, float("inf"), float("-inf")]
