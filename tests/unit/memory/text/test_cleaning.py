"""spec L1, step 1."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from madeleine.memory.text.normalization import normalize_unicode_and_whitespace
from tests.rows import for_each_row


@for_each_row(
    ("text", "expected"),
    [
        ("  \n\ta text \u3000\n", "a text"),
        ("one\n\n\n\ntwo\n\nthree\nfour", "one\n\ntwo\n\nthree\nfour"),
        ("one\r\n\r\n\r\ntwo\rthree", "one\n\ntwo\nthree"),
        ("cafe\u0301", "caf\u00e9"),
        ("**bold** `code`\n```py\n    x = 1\n```", "**bold** `code`\n```py\n    x = 1\n```"),
        (" \n ", ""),
    ],
)
def test_space_around_and_long_gaps_go_and_formatting_stays(text: str, expected: str) -> None:
    assert normalize_unicode_and_whitespace(text) == expected


@given(st.text(st.sampled_from("ab \t\n\re\u0301\u212b\u3000\u2028`#")))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = normalize_unicode_and_whitespace(text)
    assert normalize_unicode_and_whitespace(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert "\n\n\n" not in once
