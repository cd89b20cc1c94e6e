"""What is too large to be parsed."""

from __future__ import annotations

import json

from madeleine.server.mcp.json_limits import MAX_JSON_DEPTH, MAX_JSON_MEMBERS, json_size_or_nesting_error
from tests.rows import for_each_row

MANY = MAX_JSON_MEMBERS + 1


@for_each_row(
    "text",
    [
        b"{" + b",".join(b'"x%d":1' % n for n in range(MANY)) + b"}",
        b"[" + b",".join([b"[[],{}]"] * MANY) + b"]",
        b'["\\\\","' + b'","'.join([b"\\\\"] * MANY) + b'"]',  # quotes that only seem to be escaped
        b'["' + b'","'.join([b"\\u005c"] * MANY) + b'"]',
        b'{"a":"\\"",' + b",".join([b'"b":1'] * MANY) + b"}",
    ],
)
def test_too_many_members_are_refused(text: bytes) -> None:
    assert json.loads(text)
    assert "10,000 members" in json_size_or_nesting_error(text)


def test_too_deep_nesting_is_refused() -> None:
    for text in (b"[" * 400_000, b'{"a":' * 100 + b"1" + b"}" * 100, b'["' + b"," * 20_000 + b'"' + b",[" * 100):
        assert json_size_or_nesting_error(text)
    assert not json_size_or_nesting_error(b"[" * MAX_JSON_DEPTH + b"]" * MAX_JSON_DEPTH)


def test_signs_within_strings_do_not_count() -> None:
    text = 'He said: "a, [b], {c}", \\ and so on, \\" too. ' * 20_000
    assert not json_size_or_nesting_error(json.dumps({"text": text}).encode())
    assert not json_size_or_nesting_error(json.dumps([text] * 3, ensure_ascii=False).encode())


def test_another_encoding_than_utf_8_is_refused() -> None:
    assert "UTF-8" in json_size_or_nesting_error('{"a": 1}'.encode("utf-16"))
