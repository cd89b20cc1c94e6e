"""The shape of a JSON text, bounded before anything parses it: parsers and validators take microseconds for each
member, and hold the whole process meanwhile."""

from __future__ import annotations

MAX_JSON_MEMBERS = 10_000
"""Members of all objects and items of all arrays, about; the longest call that the tools accept has some thousands."""
MAX_JSON_DEPTH = 64
_BYTES_OTHER_THAN_JSON_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def json_size_or_nesting_error(text: bytes) -> str:
    """Why the text is refused; "" if it is not. Text that is no JSON may pass: its parser stops at the fault.

    1 ms a megabyte; 10 ms at worst.
    """
    if b"\0" in text:
        return "it is not JSON in UTF-8"
    brackets = text.count(b"[") + text.count(b"{")
    if text.count(b",") + brackets <= MAX_JSON_MEMBERS and brackets <= MAX_JSON_DEPTH:
        return ""
    unescaped = text.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in text else text
    if unescaped.count(b'"') > 4 * MAX_JSON_MEMBERS:
        return _too_many_json_members_message()
    structure = b"".join(unescaped.split(b'"')[::2])
    nesting = structure.translate(None, _BYTES_OTHER_THAN_JSON_BRACKETS)
    if structure.count(b",") + len(nesting) // 2 > MAX_JSON_MEMBERS:
        return _too_many_json_members_message()
    depth = deepest = 0
    for sign in nesting:
        depth += 1 if sign in b"[{" else -1
        deepest = max(deepest, depth)
    return f"its JSON is nested deeper than {MAX_JSON_DEPTH} levels" if deepest > MAX_JSON_DEPTH else ""


def _too_many_json_members_message() -> str:
    return f"its JSON has more than {MAX_JSON_MEMBERS:,} members; split it into several calls"
